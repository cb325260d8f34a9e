// the wrong part of a tuple is shown
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f32>) -> Tensor<f64> {
        x * w.cast::<f64>()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy * 2.0, dy * 3.0)
    }
}

fn main() {}
