//! Lengths of axes, as users write them.

use super::form::Dims;
use super::ir::{Place, wrong};
use crate::error::Result;

/// Lengths of axes: `[None, Some(4)]`, `[-1, 4]` with -1 for a free axis, `()` for a scalar, or
/// the shape of a [`Variable`](super::Variable).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a shape",
    label = "write the lengths as an array: `[2, 3]`",
    note = "a shape is an array `[2, 3]`, `[-1, 3]` or `[None, Some(3)]` (-1 and `None` are free axes), a slice, or `()` for a scalar"
)]
pub trait IntoDims {
    /// The lengths; or the one that is none.
    #[doc(hidden)]
    fn into_dims(self) -> Result<Vec<Option<usize>>, i64>;
}

macro_rules! dims {
    ($($n:ty)*) => {$(
        impl<const N: usize> IntoDims for [$n; N] {
            fn into_dims(self) -> Result<Vec<Option<usize>>, i64> {
                (&self[..]).into_dims()
            }
        }
        impl IntoDims for &[$n] {
            fn into_dims(self) -> Result<Vec<Option<usize>>, i64> {
                self.iter().map(|&n| dim(n as i64)).collect()
            }
        }
    )*};
}

dims! { i32 i64 isize usize }

fn dim(n: i64) -> Result<Option<usize>, i64> {
    match n {
        -1 => Ok(None),
        n => usize::try_from(n).map(Some).map_err(|_| n),
    }
}

impl IntoDims for Vec<Option<usize>> {
    fn into_dims(self) -> Result<Vec<Option<usize>>, i64> {
        Ok(self)
    }
}

impl IntoDims for &[Option<usize>] {
    fn into_dims(self) -> Result<Vec<Option<usize>>, i64> {
        Ok(self.to_vec())
    }
}

impl IntoDims for &Vec<Option<usize>> {
    fn into_dims(self) -> Result<Vec<Option<usize>>, i64> {
        Ok(self.clone())
    }
}

impl<const N: usize> IntoDims for [Option<usize>; N] {
    fn into_dims(self) -> Result<Vec<Option<usize>>, i64> {
        Ok(self.to_vec())
    }
}

#[diagnostic::do_not_recommend]
impl IntoDims for () {
    fn into_dims(self) -> Result<Vec<Option<usize>>, i64> {
        Ok(Vec::new())
    }
}

pub(super) fn read_dims(dims: impl IntoDims, call: &str, place: &Place) -> Result<Dims> {
    match dims.into_dims() {
        Ok(dims) => Ok(Dims::from_vec(dims)),
        Err(n) => Err(wrong(call, place, format!("{n} is no length; -1 is a free axis"))),
    }
}
