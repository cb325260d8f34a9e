//! `check(x = [2, 3], slope = 0.1)`: the tests of an op, generated under `cfg(test)`.

mod expand;
mod messages;
mod parse;

pub(crate) use expand::{list, tests};
pub(crate) use parse::{Check, check, check_exhaustive, exhaustive, parse};
