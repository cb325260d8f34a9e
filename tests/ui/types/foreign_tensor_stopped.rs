// another type that is called `Tensor`, behind `#[stop_gradient]`
mod other {
    pub struct Tensor<T>(pub T);
}
use autograd_core::{BackwardContext, ForwardContext, py_layer};

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &autograd_core::Tensor<f64>, #[stop_gradient] n: &other::Tensor<f64>) -> autograd_core::Tensor<f64> {
        x * n.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &autograd_core::Tensor<f64>) -> autograd_core::Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
