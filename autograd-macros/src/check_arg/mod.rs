//! `check(x = [2, 3], slope = 0.1)`: the tests of an op, generated under `cfg(test)`.
//!
//! The stages are those of the macro: the argument is parsed, checked against forward's parameters, and
//! expanded.

mod check;
mod expand;
mod messages;
mod model;
mod parse;

use crate::model::{TensorInput, element};

pub(crate) use check::check;
pub(crate) use expand::{list, tests};
pub(crate) use model::Check;
pub(crate) use parse::parse;

/// Whether a tensor needs a range, since sensible random values cannot be guessed.
fn needs_range(tensor: &TensorInput) -> bool {
    matches!(&element(&tensor.tensor)[..], "i32" | "i64" | "u8")
}
