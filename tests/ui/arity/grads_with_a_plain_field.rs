// a field of `Grads` for a plain input
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, factor: f64) -> Tensor<f64> {
        x * factor
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * 2.0, factor: 3.0 }
    }
}

fn main() {}
