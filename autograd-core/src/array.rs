//! The kernels' arrays, and their public interface: element types, shapes, threads, the buffer pool.

use std::fmt;
use std::ops::RangeFull;

use smallvec::SmallVec;

pub(crate) use autograd_kernels::array::*;

/// The element type of a tensor, as a value.
///
/// ```
/// use autograd_core::{DType, Tensor};
///
/// assert_eq!(Tensor::from([1.0, 2.0]).dtype(), DType::Float64);
/// assert_eq!(DType::Float32.to_string(), "float32");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// `f32`
    Float32,
    /// `f64`
    Float64,
    /// `i32`
    Int32,
    /// `i64`
    Int64,
    /// `u8`
    UInt8,
    /// `bool`
    Bool,
}

impl DType {
    /// The name that Paddle prints: `float32`, `int64`, `bool` ..
    ///
    /// ```
    /// assert_eq!(autograd_core::DType::Float64.name(), "float64");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt8 => "uint8",
            Self::Bool => "bool",
        }
    }

    /// Whether tensors of this type can have a gradient.
    ///
    /// ```
    /// use autograd_core::DType;
    ///
    /// assert!(DType::Float32.is_float() && !DType::Int64.is_float());
    /// ```
    pub const fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float64)
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Self::Float32, Self::Float64, Self::Int32, Self::Int64, Self::UInt8, Self::Bool];
        all.into_iter().find(|dtype| dtype.name() == name)
    }

    pub(crate) const fn range(self) -> Option<[i64; 2]> {
        match self {
            Self::Int32 => Some([i32::MIN as i64, i32::MAX as i64]),
            Self::Int64 => Some([i64::MIN, i64::MAX]),
            Self::UInt8 => Some([u8::MIN as i64, u8::MAX as i64]),
            Self::Float32 | Self::Float64 | Self::Bool => None,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A type that can be a shape: `[2, 3]`, a slice, a `Vec`, a single length, or `()` or `[]` for a scalar.
///
/// ```
/// use autograd_core::Tensor;
///
/// assert_eq!(Tensor::<f32>::zeros(vec![2, 3]).len(), Tensor::<f32>::zeros(6).len());
/// assert_eq!(Tensor::<f32>::zeros(()).ndim(), 0);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a shape",
    label = "write the lengths as an array of `usize`: `[2, 3]`",
    note = "a shape is an array `[2, 3]`, a slice or a `Vec` of `usize`, one length, or `()` for a scalar"
)]
pub trait IntoShape {
    #[doc(hidden)]
    fn into_shape(self) -> Shape;
}

impl<const N: usize> IntoShape for [usize; N] {
    fn into_shape(self) -> Shape {
        self.as_slice().into_shape()
    }
}

impl<const N: usize> IntoShape for &[usize; N] {
    fn into_shape(self) -> Shape {
        self.as_slice().into_shape()
    }
}

impl IntoShape for &[usize] {
    fn into_shape(self) -> Shape {
        Shape::from_slice(self)
    }
}

impl IntoShape for Vec<usize> {
    fn into_shape(self) -> Shape {
        Shape::from_vec(self)
    }
}

impl IntoShape for &Vec<usize> {
    fn into_shape(self) -> Shape {
        Shape::from_slice(self)
    }
}

impl IntoShape for usize {
    fn into_shape(self) -> Shape {
        Shape::from_slice(&[self])
    }
}

#[diagnostic::do_not_recommend]
impl IntoShape for () {
    fn into_shape(self) -> Shape {
        Shape::new()
    }
}

#[diagnostic::do_not_recommend]
impl IntoShape for Shape {
    fn into_shape(self) -> Shape {
        self
    }
}

/// A type that can be given as axes: one axis (`1`, `-1` from the end), an array `[0, 2]`, a slice, a
/// `Vec`, or `..` for all axes; an empty list (`[]`) also means all.
///
/// ```
/// use autograd_core::Tensor;
///
/// let x = Tensor::<f64>::ones([2, 3, 4]);
/// assert_eq!(x.sum_axes(1).shape(), [2, 4]);
/// assert_eq!(x.sum_axes([0, -1]).shape(), [3]);
/// assert_eq!(x.sum_axes_keep(..).shape(), [1, 1, 1]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name axes",
    label = "write one axis, several, or all of them: `1`, `[0, -1]`, `..`",
    note = "an axis is an `isize`; a negative one counts from the end"
)]
#[doc(alias = "dim")]
#[doc(alias = "keepdim")]
pub trait IntoAxes {
    /// The axes; empty for all.
    #[doc(hidden)]
    fn as_axes(&self) -> &[isize];
}

impl IntoAxes for isize {
    fn as_axes(&self) -> &[isize] {
        std::slice::from_ref(self)
    }
}

impl IntoAxes for RangeFull {
    fn as_axes(&self) -> &[isize] {
        &[]
    }
}

impl<const N: usize> IntoAxes for [isize; N] {
    fn as_axes(&self) -> &[isize] {
        self
    }
}

impl<const N: usize> IntoAxes for &[isize; N] {
    fn as_axes(&self) -> &[isize] {
        &self[..]
    }
}

impl IntoAxes for &[isize] {
    fn as_axes(&self) -> &[isize] {
        self
    }
}

impl IntoAxes for Vec<isize> {
    fn as_axes(&self) -> &[isize] {
        self
    }
}

impl IntoAxes for &Vec<isize> {
    fn as_axes(&self) -> &[isize] {
        self
    }
}

/// Lengths of axes, of which one may be free: `[-1, 4]`, or `[None, Some(n)]` beside computed lengths. Every
/// [`IntoShape`] is one, and so is the shape of a program's variable.
///
/// ```
/// use autograd_core::Tensor;
///
/// let x = Tensor::<f64>::zeros([4, 3]);
/// assert_eq!(x.reshape([-1, 6]).shape(), [2, 6]);
/// assert_eq!(x.reshape([None, Some(x.len() / 3)]).shape(), [3, 4]);
/// assert_eq!(x.reshape(vec![2, 6]).shape(), [2, 6]);
/// assert_eq!(x.reshape(12).shape(), [12]);
/// assert_eq!(x.reshape(Tensor::<f64>::ones([6, 2]).shape()).shape(), [6, 2]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a shape",
    label = "write the lengths as an array: `[2, 3]`",
    note = "a shape is an array `[2, 3]`, `[-1, 3]` or `[None, Some(3)]` (-1 and `None` are free axes), a slice, or `()` for a scalar"
)]
pub trait IntoDims {
    /// The lengths, or the number that is not a length.
    #[doc(hidden)]
    fn into_dims(self) -> Result<SmallVec<[Option<usize>; 4]>, i64>;
}

#[diagnostic::do_not_recommend]
impl<S: IntoShape> IntoDims for S {
    fn into_dims(self) -> Result<SmallVec<[Option<usize>; 4]>, i64> {
        Ok(self.into_shape().into_iter().map(Some).collect())
    }
}

macro_rules! dims {
    ($($n:ty: $of:expr;)*) => {$(
        impl<const N: usize> IntoDims for [$n; N] {
            fn into_dims(self) -> Result<SmallVec<[Option<usize>; 4]>, i64> {
                (&self[..]).into_dims()
            }
        }
        impl IntoDims for &[$n] {
            fn into_dims(self) -> Result<SmallVec<[Option<usize>; 4]>, i64> {
                self.iter().copied().map($of).collect()
            }
        }
        impl IntoDims for Vec<$n> {
            fn into_dims(self) -> Result<SmallVec<[Option<usize>; 4]>, i64> {
                (&self[..]).into_dims()
            }
        }
        impl IntoDims for &Vec<$n> {
            fn into_dims(self) -> Result<SmallVec<[Option<usize>; 4]>, i64> {
                (&self[..]).into_dims()
            }
        }
    )*};
}

dims! {
    i32: |n| dim(n.into());
    i64: dim;
    isize: |n| dim(n as i64);
    Option<usize>: Ok;
}

fn dim(n: i64) -> Result<Option<usize>, i64> {
    match n {
        -1 => Ok(None),
        n => usize::try_from(n).map(Some).map_err(|_| n),
    }
}

/// Returns how many threads a large op may use: as [`with_num_threads`] or [`set_num_threads`] set it, else
/// the environment variable `AUTOGRAD_NUM_THREADS`, else as many as the process may run on.
///
/// ```
/// assert!(autograd_core::num_threads() >= 1);
/// ```
pub fn num_threads() -> usize {
    threads::num_threads()
}

/// Sets how many threads large ops may use, in the whole process; 1 turns the use of threads off,
/// and 0 counts as 1. Results do not depend on it.
///
/// ```
/// autograd_core::set_num_threads(2);
/// assert_eq!(autograd_core::num_threads(), 2);
/// ```
pub fn set_num_threads(count: usize) {
    threads::set_num_threads(count);
}

/// Runs a closure in which large ops of this thread use up to `count` threads, whatever
/// [`set_num_threads`] says; 0 counts as 1. Scopes nest.
///
/// ```
/// use autograd_core::{Tensor, with_num_threads};
///
/// let x = Tensor::from(vec![0.5; 100_000]);
/// let one = with_num_threads(1, || x.tanh().sum());
/// let four = with_num_threads(4, || x.tanh().sum());
/// assert_eq!(one.at(&[]), four.at(&[]));
/// ```
pub fn with_num_threads<R>(count: usize, f: impl FnOnce() -> R) -> R {
    threads::with_num_threads(count, f)
}

/// Runs a closure, such as a training loop, during which the helper threads do not sleep.
///
/// A thread without work sleeps after about 150 µs, and waking it takes so long that only ops of some 80 µs
/// and more are shared with it. In this scope, ops of a few microseconds are shared too, even if a program
/// reads data between its steps. The price is that the threads' cores, [`num_threads`]` - 1` or more if more
/// threads were used before, are busy as long as the closure runs; other work that needs these cores gets
/// them. The threads serve the whole process, and scopes nest. Results do not depend on it, and with one thread
/// it has no effect.
///
/// ```
/// use autograd_core::{Tensor, with_threads_awake};
///
/// let w = Tensor::from(vec![0.5; 100_000]);
/// w.set_stop_gradient(false);
/// with_threads_awake(|| {
///     for _ in 0..3 {
///         w.tanh().sum().backward()?;
///     }
///     Ok::<(), autograd_core::Error>(())
/// })?;
/// assert!(w.grad().is_some());
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Panics
///
/// If the closure panics; the threads may then sleep again.
pub fn with_threads_awake<R>(f: impl FnOnce() -> R) -> R {
    threads::with_threads_awake(f)
}

/// Sets how many bytes of free buffers are kept for reuse (by default 512 MiB); 0 turns the pool
/// off. Buffers that are already kept stay until they are reused or
/// [`empty_buffer_pool`](crate::empty_buffer_pool) is called.
///
/// ```standalone_crate
/// use autograd_core::{Tensor, buffer_pool_bytes, set_buffer_pool_limit};
///
/// set_buffer_pool_limit(0);
/// drop(Tensor::<f32>::zeros([1000, 1000]));
/// assert_eq!(buffer_pool_bytes(), 0);
/// ```
pub fn set_buffer_pool_limit(bytes: usize) {
    pool::set_buffer_pool_limit(bytes);
}

/// Returns the number of bytes of free buffers that are kept, without those that each thread keeps by
/// itself; see [`empty_buffer_pool`](crate::empty_buffer_pool).
///
/// ```
/// use autograd_core::{Tensor, buffer_pool_bytes};
///
/// drop(Tensor::<f32>::zeros([1000, 1000]));
/// assert!(buffer_pool_bytes() >= 4_000_000);
/// ```
pub fn buffer_pool_bytes() -> usize {
    pool::buffer_pool_bytes()
}
