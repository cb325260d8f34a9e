// a malformed argument is reported, but no errors that follow from it
use autograd_core::prelude::*;

#[py_layer(no_grad = true)]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_layer("no_grad")]
impl Other {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

fn main() {}
