//! Element types: which numbers an array can hold.

use std::cell::Cell;
use std::fmt::Debug;
use std::thread::LocalKey;

use super::buffer::Buffer;
use super::pool::{Near, Pool};

/// How many bytes of data stand inside a tensor's own allocation: one vector register of the
/// widest instruction set, so that a small tensor is one allocation and one vector operation.
pub const INLINE_BYTES: usize = 64;

/// What arrays need to know of an element type.
pub trait Storable:
    Copy + Send + Sync + Debug + PartialEq + PartialOrd + Default + 'static
{
    /// The name that users know.
    const NAME: &'static str;
    const IS_FLOAT: bool;
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
    ($($t:ty, $name:literal, $is_float:literal, $zero:expr, $one:expr;)*) => {$(
        impl Storable for $t {
            const NAME: &'static str = $name;
            const IS_FLOAT: bool = $is_float;
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            type Inline = [$t; INLINE_BYTES / size_of::<$t>()];
            const INLINE: Self::Inline = [$zero; INLINE_BYTES / size_of::<$t>()];
            const PADS: bool = $is_float;
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
    f32, "float32", true, 0.0, 1.0;
    f64, "float64", true, 0.0, 1.0;
    i32, "int32", false, 0, 1;
    i64, "int64", false, 0, 1;
    u8, "uint8", false, 0, 1;
    bool, "bool", false, false, true;
}
