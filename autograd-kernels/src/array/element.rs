//! Element types: which numbers an array can hold.

use std::fmt::Debug;

use super::pool::Pooled;

/// Bytes of data that a tensor stores inline: one register of the widest instruction set.
pub const INLINE_BYTES: usize = 64;

pub trait Storable: Pooled + Send + Sync + Debug + PartialEq + PartialOrd {
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
}

macro_rules! storable {
    ($($t:ty, $zero:expr, $one:expr;)*) => {$(
        impl Storable for $t {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            type Inline = [$t; INLINE_BYTES / size_of::<$t>()];
            const INLINE: Self::Inline = [$zero; INLINE_BYTES / size_of::<$t>()];
        }
    )*};
}

storable! {
    f32, 0.0, 1.0;
    f64, 0.0, 1.0;
    i32, 0, 1;
    i64, 0, 1;
    u8, 0, 1;
    bool, false, true;
}
