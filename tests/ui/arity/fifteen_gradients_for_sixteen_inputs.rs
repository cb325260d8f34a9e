// 15 gradients for 16 inputs
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x0: &Tensor<f64>, x1: &Tensor<f64>, x2: &Tensor<f64>, x3: &Tensor<f64>, x4: &Tensor<f64>, x5: &Tensor<f64>, x6: &Tensor<f64>, x7: &Tensor<f64>, x8: &Tensor<f64>, x9: &Tensor<f64>, x10: &Tensor<f64>, x11: &Tensor<f64>, x12: &Tensor<f64>, x13: &Tensor<f64>, x14: &Tensor<f64>, x15: &Tensor<f64>) -> Tensor<f64> {
        x0 * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>) {
        todo!()
    }
}

fn main() {}
