// several mistakes in several ops, each reported once
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: Tensor<f64>, k: &Tensor<i64>) -> Vec<usize> {
        let _ = k;
        x.shape().to_vec()
    }

    fn backward(ctx: &ForwardContext<Self>, dy: &Tensor<f64>) {
        let _ = (ctx, dy);
    }
}

#[py_layer]
impl Op2 {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f32>, dz: f64) -> (Tensor<f32>, f64) {
        (dy.clone(), dz)
    }
}

fn main() {}
