// `backward` gets gradients, not inputs
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x * w
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        dy: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>) {
        (dy * w, dy * x)
    }
}

fn main() {}
