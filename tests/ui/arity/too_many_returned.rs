// `backward` returns 2 gradients, but `forward` has 1 differentiable tensor input
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, #[stop_gradient] mask: &Tensor<f64>) -> Tensor<f64> {
        x * mask
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy * 2.0, dy * 3.0)
    }
}

fn main() {}
