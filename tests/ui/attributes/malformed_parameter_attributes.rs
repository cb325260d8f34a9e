// malformed and repeated attributes of parameters
use autograd_core::prelude::*;

#[py_layer]
impl Op {
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

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
