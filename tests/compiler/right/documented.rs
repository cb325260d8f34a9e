// Docs of forward stand on `apply`, and forward is not without docs by that.
// rustc: -Dmissing_docs --crate-type=lib
//! Documented ops.
use autograd_core::prelude::*;
use autograd_core::scalar_op;
/// An op.
#[py_layer]
impl Op {
    /// Twice.
    pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}
/// A formula.
#[py_layer(elementwise)]
impl Formula {
    /// Twice.
    pub fn forward(x: Real) -> Real {
        x * 2.0
    }
}
scalar_op! {
    /// Thrice.
    pub Thrice: y = x * 3.0, dx = dy * 3.0
}
