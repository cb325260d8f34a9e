// `Tensor` under another name
use autograd_core::prelude::*;

use autograd_core::Tensor as T;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &T<f64>) -> Tensor<f64> {
        x * w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
