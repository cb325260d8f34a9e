// Attributes of parameters of `forward`.
use autograd_core::prelude::*;

#[py_layer]
impl Op {
CASE

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}

//= a default knows no other parameter
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, n: f64, #[default(n * 2.0)] by: f64) -> Tensor<f64> {
        x * by * n
    }

//= a default of another type than its parameter
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, #[default("two")] by: f64) -> Tensor<f64> {
        x * by
    }

//= `#[default]` on `impl Trait`
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, #[default(|x| x)] f: impl Fn(f64) -> f64) -> Tensor<f64> {
        x * f(2.0)
    }

//= malformed and repeated attributes of parameters
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        #[stop_gradient(yes)] x: &Tensor<f64>,
        #[default] a: f64,
        #[default(1.0)] #[default(2.0)] b: f64,
        #[stop_gradient] c: f64,
        y: &Tensor<f64>,
    ) -> Tensor<f64> {
        x * y * a * b * c
    }

//= `#[stop_gradient]` twice
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, #[stop_gradient] #[stop_gradient] n: &[Tensor<i64>]) -> Tensor<f64> {
        x * n.len() as f64
    }
