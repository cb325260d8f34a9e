// an integer output has no gradient
use autograd_core::prelude::*;

#[py_layer]
impl Op {
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
}

fn main() {}
