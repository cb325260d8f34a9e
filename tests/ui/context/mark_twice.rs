// a mark twice on one path
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (a, b) = (x * 2.0, x * 3.0);
        ctx.mark_non_differentiable(&a);
        ctx.mark_non_differentiable(&b);
        (a, b)
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, _db: &Tensor<f64>) -> Tensor<f64> {
        da * 2.0
    }
}

fn main() {}
