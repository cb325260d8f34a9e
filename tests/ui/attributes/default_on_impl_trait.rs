// `#[default]` on `impl Trait`
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, #[default(|x| x)] f: impl Fn(f64) -> f64) -> Tensor<f64> {
        x * f(2.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
