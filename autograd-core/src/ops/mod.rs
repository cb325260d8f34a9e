//! The op set, one file a family. A rule is a line in a table; nothing here walks a graph.

pub(crate) mod binary;
mod compare;
mod create;
mod derived;
pub(crate) mod elementwise;
mod families;
mod index;
mod inplace;
mod instances;
mod instantiate;
pub(crate) mod kernels;
mod matmul;
mod names;
mod nn;
mod number;
mod operators;
pub(crate) mod reduce;
#[cfg(feature = "static-graph")]
pub(crate) mod rules;
mod shape;
mod small;
mod totals;
#[cfg_attr(
    not(feature = "static-graph"),
    allow(dead_code, reason = "only programs are made of notes")
)]
pub(crate) mod trace;
mod unary;

pub use crate::graph::Scalar;
#[cfg(feature = "static-graph")]
pub(crate) use crate::graph::{Comparison, OfElements};
#[cfg(feature = "nn")]
pub(crate) use index::check_indices;
pub(crate) use instantiate::instantiate;
pub(crate) use names::Caller;
#[allow(unreachable_pub, reason = "they stand in hidden methods of public traits")]
pub use names::{Binary, Reduce, Unary};
#[cfg(feature = "nn")]
pub(crate) use nn::batch_norm;
pub use nn::{Conv2dOptions, IntoPair, PoolOptions};
#[cfg(feature = "static-graph")]
pub(crate) use nn::{conv2d_shape, pool2d_shape};
#[allow(unreachable_pub, reason = "as the names")]
pub use number::Input;
pub(crate) use number::{Arithmetic, Totals, expect, failed, joined};
pub use number::{Float, HasMean, Numeric, Operand};
