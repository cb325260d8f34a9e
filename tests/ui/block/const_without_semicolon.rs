// a constant whose `;` is missing can be named
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    const TWICE: f64 = 2.0

    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * Self::TWICE
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
