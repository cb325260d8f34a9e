// Gradients of outputs or inputs of another kind.
use autograd_core::prelude::*;

#[py_layer]
impl Op {
CASE
}

fn main() {}

//= an integer output has no gradient
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<i64>) {
        (x * 2.0, x.cast())
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>, _dn: &Tensor<i64>) -> Tensor<f64> {
        dy * 2.0
    }

//= an integer output has no gradient
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<i64>) {
        (x * 2.0, x.argmax(0))
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
        _di: &Tensor<i64>,
    ) -> Tensor<f64> {
        dy * 2.0
    }

//= the gradients of a list input come as a `Vec`
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[Tensor<f64>]) -> Tensor<f64> {
        &xs[0] * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
