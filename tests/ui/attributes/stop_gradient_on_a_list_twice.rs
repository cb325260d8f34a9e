// `#[stop_gradient]` twice
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, #[stop_gradient] #[stop_gradient] n: &[Tensor<i64>]) -> Tensor<f64> {
        x * n.len() as f64
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
