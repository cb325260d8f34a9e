// an empty argument
use autograd_core::prelude::*;

#[py_layer(no_grad,, crate = ::autograd_core)]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

fn main() {}
