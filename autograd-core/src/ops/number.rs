//! The element types with arithmetic, and what all ops share: inputs, operands, panics.

use ndarray::LinalgScalar;

use super::elementwise::op::{ElementwiseOp, Handle, Outputs};
use super::names::{Binary, Caller, Reduce, Unary};
use crate::array::elementwise::convert_zip;
use crate::array::gemm::FloatMultiply;
use crate::array::integer::Additions;
use crate::array::math::Math;
use crate::array::pick::AxisShape;
use crate::array::shape::broadcast;
use crate::array::{Shape, Storable, Value};
use crate::error::{Error, Result};
use crate::formula;
use crate::graph::{Edge, Element, Tensor, is_noting};
use crate::random::RandomFloat;

/// An element type with arithmetic: all but `bool`.
///
/// Operators on integers wrap, as in NumPy. Sums, products and matrix products of integers are exact; one
/// that the element type cannot hold is an [`Error::Overflow`](crate::Error::Overflow).
///
/// ```
/// use autograd_core::{Numeric, Tensor};
///
/// fn total<T: Numeric>(x: &Tensor<T>) -> T {
///     x.sum().item()
/// }
/// assert_eq!((total(&Tensor::from([1, 2])), total(&Tensor::from([1.5, 2.0]))), (3, 3.5));
/// ```
#[diagnostic::on_unimplemented(
    message = "tensors of `{Self}` have no arithmetic",
    label = "not a number type",
    note = "arithmetic is for f32, f64, i32, i64 and u8; `cast` changes the element type"
)]
#[allow(private_bounds, reason = "how numbers are computed is no part of the public interface")]
pub trait Numeric: Element + LinalgScalar + Arithmetic {
    #[doc(hidden)]
    fn nearest(value: f64) -> Self;
    #[doc(hidden)]
    fn binary(
        op: Binary,
        left: Input<'_, Self>,
        right: Input<'_, Self>,
        caller: Caller,
    ) -> Result<Tensor<Self>>;
    #[doc(hidden)]
    fn binary_scalar(
        op: Binary,
        x: Input<'_, Self>,
        scalar: Self,
        swapped: bool,
        caller: Caller,
    ) -> Tensor<Self>;
    #[doc(hidden)]
    fn reduce(
        op: Reduce,
        x: &Tensor<Self>,
        axes: &[isize],
        keep: bool,
        caller: Caller,
    ) -> Result<Tensor<Self>>;
    #[doc(hidden)]
    fn matmul(left: &Tensor<Self>, right: &Tensor<Self>, caller: Caller) -> Result<Tensor<Self>>;
}

/// A floating-point element type, which can be differentiated: `f32` or `f64`.
///
/// ```
/// use autograd_core::{Float, Tensor};
///
/// fn scaled<T: Float>(x: &Tensor<T>, by: f64) -> Tensor<T> {
///     x * T::from_f64(by)
/// }
/// assert_eq!(scaled(&Tensor::from([1.0_f32]), 3.0).to_vec(), [3.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point type, so a tensor of it has no gradient",
    label = "f32 or f64 is needed here",
    note = "`cast::<f32>()` or `cast::<f64>()` changes the element type"
)]
#[allow(private_bounds, reason = "how numbers are computed is no part of the public interface")]
pub trait Float:
    Numeric + num_traits::Float + Operand<Self> + RandomFloat + Math + FloatMultiply
{
    /// Returns the nearest number of this type.
    ///
    /// ```
    /// use autograd_core::Float;
    ///
    /// assert_eq!(<f32 as Float>::from_f64(0.1), 0.1_f32);
    /// ```
    fn from_f64(value: f64) -> Self;
    /// Returns the same number as `f64`.
    ///
    /// ```
    /// use autograd_core::Float;
    ///
    /// assert_eq!(0.1_f32.into_f64(), f64::from(0.1_f32));
    /// ```
    fn into_f64(self) -> f64;
    #[doc(hidden)]
    fn unary(op: Unary, x: Input<'_, Self>, caller: Caller) -> Tensor<Self>;
    #[doc(hidden)]
    fn formula(
        op: &'static dyn ElementwiseOp<Self>,
        x: &Tensor<Self>,
        caller: Caller,
    ) -> Result<Tensor<Self>>;
    #[doc(hidden)]
    fn elementwise(
        op: Handle<Self>,
        reals: &[&Tensor<Self>],
        masks: &[&Tensor<bool>],
        caller: Caller,
    ) -> Result<Outputs<Self>>;
}

/// An element type whose tensors have means and variances: every [`Float`]. It is the bound of [`Tensor::mean`].
///
/// ```
/// use autograd_core::{HasMean, Tensor};
///
/// fn centred<T: HasMean>(x: &Tensor<T>) -> Tensor<T> {
///     x - x.mean()
/// }
/// assert_eq!(centred(&Tensor::from([1.0, 2.0, 6.0])).to_vec(), [-2.0, -1.0, 3.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "tensors of `{Self}` have no mean, variance or mean loss",
    label = "means are for f32 and f64",
    note = "convert the elements first: `.cast::<f64>()`; generic code asks for `T: Float`"
)]
pub trait HasMean: Float {}

#[diagnostic::do_not_recommend]
impl<T: Float> HasMean for T {}

pub(crate) trait Arithmetic: Storable {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    /// Returns the greater number; NaN if either is NaN.
    fn greater(self, other: Self) -> Self;
    fn lesser(self, other: Self) -> Self;
    /// The lowest and the highest number, infinite for floats.
    const LOWEST: Self;
    const HIGHEST: Self;
    /// Whether sums and products do not depend on the order.
    const EXACT: bool;
    fn count(n: usize) -> Self;
    /// The position in the order of all numbers; NaN is last in either order.
    fn rank(self, descending: bool) -> i64;

    // A result that the element type cannot hold is an error of op `op`.

    /// Sums along sorted `axes`, which stay with length 1.
    fn sum(op: &'static str, x: &Value<Self>, axes: &[usize]) -> Result<Value<Self>>;
    fn prod(op: &'static str, x: &Value<Self>, axes: &[usize]) -> Result<Value<Self>>;
    fn running(
        op: &'static str,
        x: Value<Self>,
        around: AxisShape,
        from_end: bool,
    ) -> Result<Value<Self>>;
    fn added(
        op: &'static str,
        x: Value<Self>,
        additions: &impl Additions<Self>,
    ) -> Result<Value<Self>>;
}

/// An operand that an op may consume: the result may reuse the buffer of an owned temporary.
#[doc(hidden)]
pub enum Input<'a, T: Element> {
    Own(Tensor<T>),
    Ref(&'a Tensor<T>),
}

impl<T: Element> Input<'_, T> {
    pub(crate) fn tensor(&self) -> &Tensor<T> {
        match self {
            Self::Own(tensor) => tensor,
            Self::Ref(tensor) => tensor,
        }
    }

    pub(crate) fn into_tensor(self) -> Tensor<T> {
        match self {
            Self::Own(tensor) => tensor,
            Self::Ref(tensor) => tensor.clone(),
        }
    }

    /// Returns the edge of the gradient, moved out of a temporary that backward does not keep.
    #[inline(always)]
    pub(crate) fn edge(&mut self, kept: bool) -> Edge {
        match self {
            Self::Own(tensor) if !kept => tensor.take_edge(),
            _ => self.tensor().edge(),
        }
    }

    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, Self::Own(tensor) if tensor.is_temporary())
    }

    /// Runs a kernel on the value, which is moved in if no other handle shares it.
    pub(crate) fn consume<R>(self, kernel: impl FnOnce(formula::Operand<'_, T>) -> R) -> R {
        match self {
            Self::Own(tensor) => match tensor.take() {
                Ok(value) => kernel(formula::Operand::Own(value)),
                Err(tensor) => kernel(formula::Operand::Ref(&tensor.read())),
            },
            Self::Ref(tensor) => kernel(formula::Operand::Ref(&tensor.read())),
        }
    }
}

impl<T: Float> Input<'_, T> {
    /// Changes inline data: that of a temporary in place, that of others in a copy.
    #[inline(always)]
    pub(super) fn overwrite_or_copy(self, change: impl Fn(&mut T::Inline)) -> Tensor<T> {
        let copy = match self {
            Self::Ref(x) => x.small_copy(change),
            Self::Own(mut x) => {
                let overwrite = |value: &mut Value<T>| {
                    value.inline_mut().map(|(data, _)| change(data)).is_some()
                };
                if x.try_in_place(overwrite) {
                    return x;
                }
                x.small_copy(change)
            }
        };
        copy.unwrap_or_else(|| not_small())
    }

    /// The operand's inline data, as [`Tensor::small_data`].
    #[inline(always)]
    pub(super) fn small_data<'a>(&'a self, now: &'a mut Option<T::Inline>) -> &'a T::Inline {
        self.tensor().small_data(now).unwrap_or_else(|| not_small())
    }
}

#[cold]
fn not_small() -> ! {
    unreachable!("the caller has checked that the operands are inline")
}

pub(crate) fn add_parts<T: Float>(a: Option<Tensor<T>>, b: Option<Tensor<T>>) -> Option<Tensor<T>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

#[track_caller]
pub(crate) fn expect<T, E: Into<Error>>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic_with(error.into()),
    }
}

/// The payload of a panic that ends a traced closure; the trace reports it.
pub(crate) struct Refused(pub(crate) String);

/// Panics with the error, which is dropped here instead of in every crate with a call.
#[cold]
#[track_caller]
pub(crate) fn panic_with(error: Error) -> ! {
    if is_noting() {
        // The trace reports it.
        std::panic::resume_unwind(Box::new(Refused(error.to_string())));
    }
    panic!("{error}")
}

/// The right operand of an operator on a `Tensor<T>`: a tensor of the same element type, a scalar (`T`, `f64`
/// for any float type, and whole numbers as in `x * 2`), or a reference to either, as in `dy * ctx.attrs()`.
/// The left operand may be `f64` for any float type, a whole number, or a reference to one:
///
/// ```
/// use autograd_core::Tensor;
///
/// let y = Tensor::<f32>::from([0.25, 0.5]);
/// assert_eq!((1 - &y).to_vec(), (1.0 - &y).to_vec());
/// assert_eq!((&y * 2 + 1).to_vec(), [1.5, 2.0]);
/// assert_eq!((7 - Tensor::<i64>::from([1, 2])).to_vec(), [6, 5]);
/// let slope = &2.0;
/// assert_eq!((&y * slope).to_vec(), (slope * &y).to_vec());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with a tensor of `{T}`",
    label = "needs a tensor of `{T}`, a reference to one, or a scalar",
    note = "`cast::<{T}>()` changes the element type of a tensor; in generic code a number is an `f64`, as in `x + 1.0`"
)]
pub trait Operand<T: Numeric>: Sized {
    #[doc(hidden)]
    fn operate(self, op: Binary, left: Input<'_, T>, caller: Caller) -> Result<Tensor<T>>;
    /// Calls `see` with the operand as a tensor; a number becomes a scalar.
    #[doc(hidden)]
    fn lend<R>(self, see: impl FnOnce(&Tensor<T>) -> R) -> R;
}

impl<T: Element> Tensor<T> {
    #[track_caller]
    pub(crate) fn zip_values<U: Element, V: Element>(
        &self,
        op: &'static str,
        other: &Tensor<U>,
        f: impl Fn(T, U) -> V,
    ) -> Tensor<V> {
        let shape = expect(broadcast(op, self.shape(), other.shape()));
        Tensor::from_value(convert_zip(&shape, &self.read(), &other.read(), f))
    }

    pub(super) fn row_major<U: Element>(
        &self,
        shape: Shape,
        mut write: impl FnMut(&[T], &mut [U]),
    ) -> Value<U> {
        let x = self.read();
        let x = x.contiguous();
        Value::written(shape, &mut |out| write(x.as_slice().unwrap_or(&[]), out))
    }
}
