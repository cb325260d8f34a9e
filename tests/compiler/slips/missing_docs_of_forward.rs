// rustc: -Dmissing_docs
// says: missing documentation for an associated function
//! Rules without docs.
use autograd_core::prelude::*;
/// An op.
#[py_layer]
impl Op {
    pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
    pub fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
}
fn main() {}
//- plain
//! The same.
use autograd_core::prelude::*;
/// An op.
pub struct Op;
impl Op {
    pub fn forward(x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
    pub fn backward(dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
}
fn main() {}
