// attributes that a parameter does not have
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, #[no_grad] at: &Tensor<i64>, #[clap(long)] by: f64) -> Tensor<f64> {
        x * (by + at.len() as f64)
    }

    fn backward(_ctx: &BackwardContext<Self>, #[gradient] dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
