//! The items that expansions of the macros use, and nothing else. Not part of the public interface.
#![allow(missing_docs, reason = "hidden from users")]

pub use std::borrow::Cow;
pub use std::marker::PhantomData;
pub use std::vec;
pub use std::vec::Vec;

pub use crate::error::{Error, Result};
pub use crate::graph::{Element, Tensor};
#[cfg(feature = "nn")]
pub use crate::nn::{Module, Visitor as ModuleVisitor};
pub use crate::ops::{Close, Float};
pub use crate::py_layer::*;
#[cfg(feature = "static-graph")]
pub use crate::static_graph::private::*;

pub mod elementwise {
    pub use crate::ops::Float;
    pub use crate::ops::elementwise::{
        Checked, Info, MaskElement, Op, Outputs, Pair, Reduction, apply, apply_one, apply_static,
        branch, check_backward, pulled, verify,
    };
    pub use autograd_kernels::formula::{
        Block, Compiled, Dual, Formula, Lane, Lanewise, Mask, Program, Real, Scratch, Traced,
        UseSelectNotABranch, Written,
    };
}

pub mod check {
    pub use crate::AnyTensor;
    pub use crate::gradcheck::op::{Inputs, Order, array, run, sample, succeeded};
}
