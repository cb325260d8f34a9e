// 3 gradients for 2 outputs, and a plain value between them
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, usize, Tensor<f64>) {
        (x * 2.0, 1, x * 3.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, _n: usize, db: &Tensor<f64>) -> Tensor<f64> {
        da * db
    }
}

fn main() {}
