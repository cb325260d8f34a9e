// attributes of forward, and expectations of the block
#![deny(warnings)]
use autograd_core::prelude::*;
use autograd_core::scalar_op;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_layer(elementwise)]
impl Old {
    #[deprecated]
    pub fn forward(x: Real) -> Real { x * 2.0 }
}

scalar_op!(#[deprecated] pub OldLine: y = x * 2.0, dx = dy * 2.0);

#[py_layer(elementwise)]
impl OldRule {
    pub fn forward(x: Real) -> Real { x * 2.0 }
    #[deprecated]
    pub fn backward(dy: Real) -> Real { dy * 2.0 }
}

#[py_func]
impl OldFunc {
    #[deprecated]
    pub fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> { &x * 2.0 }
    #[deprecated]
    pub fn backward(dy: ArrayViewD<f64>) -> ArrayD<f64> { &dy * 2.0 }
}

#[py_layer]
#[expect(non_camel_case_types)]
impl lower {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
}

#[derive(Saved)]
#[deprecated]
pub struct Kept { pub x: Tensor<f64> }

#[derive(autograd_core::nn::Module)]
#[deprecated]
pub struct Net { pub x: autograd_core::nn::Linear<f64> }

#[derive(Saved)]
pub struct OldField { #[deprecated] pub x: Tensor<f64> }

#[derive(autograd_core::nn::Module)]
#[allow(deprecated)]
pub struct OfOld { pub x: Net, #[deprecated] pub y: autograd_core::nn::Linear<f64> }

#[py_func]
#[derive(Debug, Clone, Copy)]
impl Derived {
    pub fn forward(call: ArrayViewD<f64>) -> ArrayD<f64> { &call * 2.0 }
    pub fn backward(call: ArrayViewD<f64>, dy: ArrayViewD<f64>) -> ArrayD<f64> { &call * &dy }
}

#[allow(deprecated)]
fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = (Old::apply(&x), OldLine::apply(&x), OldRule::apply(&x), OldFunc::call, lower::apply(&x), Derived::call, Derived);
}
