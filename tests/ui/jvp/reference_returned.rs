// A tangent is returned by value.
use autograd_core::prelude::*;

#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    fn jvp<'a>(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &'a Tensor<f64>) -> &'a Tensor<f64> {
        dx
    }
}

fn main() {
    Double::apply(&Tensor::from(1.0));
}
