// a parameter named `ctx` is the context
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(ctx: impl ForwardContext, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(ctx: _, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
