//! Element types: which numbers a tensor can hold.

use std::cell::Cell;
use std::fmt;
use std::thread::LocalKey;

use super::buffer::Buffer;
use super::pool::{Near, Pool};

/// The element type of a tensor, as a value.
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
    /// The name the seed documents print: `float32`, `int64`, `bool` ..
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
    pub const fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float64)
    }

    /// The least and the greatest number of an integer type.
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

/// How many bytes of data stand inside a tensor's own allocation: one vector register of the
/// widest instruction set, so that a small tensor is one allocation and one vector operation.
pub(crate) const INLINE_BYTES: usize = 64;

/// What the array room needs to know of an element type.
#[doc(hidden)]
pub trait Storable:
    Copy + Send + Sync + fmt::Debug + PartialEq + PartialOrd + Default + 'static
{
    const DTYPE: DType;
    const ZERO: Self;
    const ONE: Self;
    /// `[Self; INLINE_BYTES / size_of::<Self>()]`
    type Inline: Copy
        + AsRef<[Self]>
        + AsMut<[Self]>
        + for<'a> TryFrom<&'a [Self]>
        + Send
        + Sync
        + 'static;
    const INLINE: Self::Inline;
    /// Whether kernels may run over the unused rest of inline data: no arithmetic on it panics.
    const PADS: bool;
    /// Free buffers of this element type.
    fn pool() -> &'static Pool<Self>;
    /// A buffer with room for so many elements, and any content. This and the next would be compiled
    /// in every crate that makes or drops a tensor if they were generic.
    fn any_buffer(len: usize) -> Vec<Self>;
    /// Takes a buffer back.
    fn give_back(buffer: Vec<Self>);
    /// Free buffers of this element type that this thread keeps.
    fn near() -> &'static LocalKey<Near<Self>>;
    /// Runs a closure on a buffer of this thread, of any content.
    fn with_scratch<R>(len: usize, f: impl FnOnce(&mut [Self]) -> R) -> R;
}

macro_rules! storable {
    ($($t:ty, $dtype:ident, $zero:expr, $one:expr;)*) => {$(
        impl Storable for $t {
            const DTYPE: DType = DType::$dtype;
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            type Inline = [$t; INLINE_BYTES / size_of::<$t>()];
            const INLINE: Self::Inline = [$zero; INLINE_BYTES / size_of::<$t>()];
            const PADS: bool = DType::$dtype.is_float();
            fn pool() -> &'static Pool<Self> {
                static POOL: Pool<$t> = Pool::new();
                &POOL
            }
            fn any_buffer(len: usize) -> Vec<Self> {
                Self::pool().any(len)
            }
            fn give_back(buffer: Vec<Self>) {
                Self::pool().give(buffer);
            }
            fn near() -> &'static LocalKey<Near<Self>> {
                thread_local! {
                    static NEAR: Near<$t> = const { Near::new() };
                }
                &NEAR
            }
            fn with_scratch<R>(len: usize, f: impl FnOnce(&mut [Self]) -> R) -> R {
                thread_local! {
                    static SCRATCH: Cell<Vec<$t>> = const { Cell::new(Vec::new()) };
                }
                // A thread that is ending has none any more.
                let mut buffer = SCRATCH.try_with(Cell::take).unwrap_or_default();
                let result = f(Buffer::part(&mut buffer, len));
                let _ = SCRATCH.try_with(|scratch| scratch.set(buffer));
                result
            }
        }
    )*};
}

storable! {
    f32, Float32, 0.0, 1.0;
    f64, Float64, 0.0, 1.0;
    i32, Int32, 0, 1;
    i64, Int64, 0, 1;
    u8, UInt8, 0, 1;
    bool, Bool, false, true;
}
