//! `#[py_layer(elementwise)]`: a formula for each element instead of code on tensors.

mod bodies;
mod check;
mod expand;

mod messages;
pub(crate) mod parse;
mod scalar;

pub(crate) use check::check;
pub(crate) use expand::TRY_DOC;
pub(crate) use parse::parse;
pub(crate) use scalar::scalar_op;
