// a `self` receiver
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(&self, _ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(self, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
