// Undeclared values cannot be read.
use autograd_core::prelude::*;

#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    fn jvp(ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        let (a, b) = ctx.saved_tensor();
        dx * a * b
    }
}

fn main() {
    Double::apply(&Tensor::from(1.0));
}
