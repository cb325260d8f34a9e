// rustc: -Dmissing_docs
// says: missing documentation for an associated function
//! An op without docs.
use autograd_core::prelude::*;
#[py_layer]
impl Op {
    pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
    pub fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
}
fn main() {}
//- plain
//! The same.
use autograd_core::prelude::*;
pub struct Op;
impl Op {
    pub fn forward(x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
    pub fn backward(dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
}
fn main() {}
