//! Examples in the docs of everything that the macros move: each is run once.
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

/// ```
/// // struct
/// ```
#[py_layer]
impl Op {
    /// ```
    /// // forward
    /// ```
    pub fn forward(
        _ctx: &mut ForwardContext<Self>,
        /// ```
        /// // tensor
        /// ```
        x: &Tensor<f64>,
        /// ```
        /// // number
        /// ```
        by: f64,
    ) -> Tensor<f64> {
        x * by
    }

    /// ```
    /// // backward
    /// ```
    pub fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.clone()
    }
}

/// ```
/// // struct
/// ```
#[py_layer(elementwise)]
impl Formula {
    /// ```
    /// // forward
    /// ```
    pub fn forward(
        /// ```
        /// // number
        /// ```
        x: Real,
    ) -> Real {
        x * 2.0
    }
}

scalar_op!(
    /// ```
    /// // op
    /// ```
    pub Line: y = x * 2.0, dx = dy * 2.0
);

/// ```
/// // struct
/// ```
#[py_func]
impl Doubled {
    /// ```
    /// // forward
    /// ```
    pub fn forward(x: ArrayViewD<'_, f64>) -> ArrayD<f64> {
        &x * 2.0
    }

    /// ```
    /// // backward
    /// ```
    pub fn backward(dy: ArrayViewD<'_, f64>) -> ArrayD<f64> {
        &dy * 2.0
    }
}
