//! The ops, one file for each family. A rule is a line in a table; nothing here walks a graph.

mod arithmetic;
mod assign;
pub(crate) mod binary;
mod binary_ops;
pub(crate) mod call;
mod cast;
mod compare;
mod concat;
mod create;
mod cumulative;
mod diagonal;
mod einsum;
pub(crate) mod elementwise;
mod gather;
mod index_reduce;
mod indexing;
mod inplace;
mod instances;
mod layout;
mod masks;
mod matmul;
mod method_pairs;
pub(crate) mod names;
mod nn;
mod norm;
mod number;
mod operators;
mod pad;
pub(crate) mod reduce;
mod sample;
mod segments;
mod shape;
mod slices;
mod sort;
mod split;
pub(crate) mod table;
pub(crate) mod trace;
mod unary;
mod variance;

/// The entries of the table, each beside its op.
#[cfg(feature = "static-graph")]
pub(crate) mod entries {
    pub(crate) use super::nn::entries::*;
    pub(crate) use super::{
        assign::*, binary::*, cast::*, compare::*, concat::*, create::*, cumulative::*,
        diagonal::*, gather::*, index_reduce::*, indexing::*, layout::*, masks::*, matmul::*,
        norm::*, pad::*, reduce::*, segments::*, shape::*, slices::*, sort::*, split::*, unary::*,
        variance::*,
    };
}

pub use crate::graph::Scalar;
pub(crate) use crate::options::options;
#[allow(unreachable_pub, reason = "what a macro calls")]
pub use compare::Close;
#[cfg(feature = "static-graph")]
pub(crate) use compare::Comparison;
pub use concat::TensorList;
#[cfg(feature = "nn")]
pub(crate) use gather::check_indices;
pub use index_reduce::IndexReduction;
pub use indexing::{Ellipsis, IntoIndex, IntoIndexItem, NewAxis, Step};
pub(crate) use method_pairs::pairs;
pub(crate) use names::{Binary, Caller};
#[allow(unreachable_pub, reason = "hidden methods of public traits use them")]
pub use names::{Reduce, Unary};
#[cfg(feature = "static-graph")]
pub(crate) use nn::of_logits;
pub use nn::{
    Conv1dOptions, Conv2dOptions, CrossEntropyOptions, IntoPair, LossReduction, PoolOptions,
};
#[cfg(feature = "nn")]
pub(crate) use nn::{batch_norm, layer_norm, scale_of};
#[allow(unreachable_pub, reason = "as the names")]
pub use number::Input;
pub(crate) use number::{Arithmetic, add_parts, expect, panic_with};
pub use number::{Float, HasMean, Numeric, Operand};
pub use pad::Padding;
