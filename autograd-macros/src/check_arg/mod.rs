//! `check(x = [2, 3], slope = 0.1)`: the tests of an op, generated under `cfg(test)`.
//!
//! The stages are those of the macro itself: the argument is read, held against the parameters of
//! forward, and expanded.

mod check;
mod expand;
pub(crate) mod messages;
mod model;
mod parse;
mod subject;

pub(crate) use expand::Subject;
pub(crate) use model::{Check, Form, Kind, Parameter, Tensor};
pub(crate) use parse::parse;
pub(crate) use subject::{check_layer, form, layer_tests, refuse};
