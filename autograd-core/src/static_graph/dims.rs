//! Lengths of axes, as users write them.

use super::form::Dims;
use super::ir::{Place, wrong};
pub use crate::array::IntoDims;
use crate::error::Result;

pub(super) fn read_dims(dims: impl IntoDims, call: &str, place: &Place) -> Result<Dims> {
    let no_length = |n| wrong(call, place, format!("{n} is no length; -1 is a free axis"));
    dims.into_dims().map_err(no_length)
}
