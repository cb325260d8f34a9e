//! The items that expansions of the macros use, and nothing else. Not part of the public interface.
#![allow(missing_docs, reason = "hidden from users")]

pub use std::borrow::Cow;
pub use std::boxed::Box;
pub use std::marker::PhantomData;
pub use std::vec;
pub use std::vec::Vec;

pub use crate::error::{Error, Result};
pub use crate::graph::{AnyTensor, Element, Tensor};
#[cfg(feature = "nn")]
pub use crate::nn::{Module, Visitor as ModuleVisitor};
pub use crate::ops::{Close, Float};
pub use crate::py_layer::*;
#[cfg(feature = "static-graph")]
pub use crate::static_graph::private::*;

pub mod shapes {
    pub use crate::py_layer::shapes::*;
}

pub mod host {
    pub use crate::array::DType;
    pub use crate::graph::ElementFunctions;
    pub use crate::host::{
        Call, Description, DynOp, Form, FormulaOp, HostOutput, Output, Parameter, PlainArg,
        returned,
    };
}

pub mod elementwise {
    pub use crate::ops::Float;
    pub use crate::ops::elementwise::{
        Checked, ElementwiseOp, Info, MaskElement, Outputs, Pair, Reduction, apply, apply_one,
        apply_static, check_backward, pulled, verify,
    };
    pub use autograd_kernels::formula::{
        Block, Compiled, Dual, Formula, Lane, Lanewise, Mask, Program, Real, Scratch, Traced,
        Written,
    };
}

/// The words that an editor completes where a macro takes one of them.
#[allow(non_camel_case_types, reason = "an editor shows the names of these types")]
pub mod words {
    /// The arguments of `#[py_layer(..)]`.
    pub mod arguments {
        /// A function of each element: `#[py_layer(elementwise)]`.
        pub enum elementwise {}
        /// An op without a gradient.
        pub enum no_grad {}
        /// An op whose gradient has no gradient.
        pub enum once_differentiable {}
        /// A backward that is not the derivative, on purpose.
        pub enum surrogate {}
        /// The shapes of the tensors: `shapes(x: [n, k] -> [n])`.
        pub enum shapes {}
        /// Tests of the gradient: `check(x = [2, 3])`.
        pub enum check {}
        /// The op as a value for other languages: `export`, or `export(f32, f64)` for a generic op.
        pub enum export {}
        /// Warnings to switch off: `allow(unread_saved)`.
        pub enum allow {}
        /// The output's sum or mean: `reduce = mean(-1)`.
        pub enum reduce {}
        /// Compares each call's gradient with finite differences in a debug build.
        pub enum verify {}
    }

    /// The attributes of forward's parameters.
    pub mod parameters {
        /// The input gets no gradient.
        pub enum stop_gradient {}
        /// The value if the caller gives none: `#[default(2.0)]`.
        pub enum default {}
    }
}

pub mod check {
    pub use crate::AnyTensor;
    pub use crate::gradcheck::exhaustive::{Exhaustive, exhaustive};
    pub use crate::gradcheck::op::{Inputs, Order, array, run, sample, shown, succeeded};
}
