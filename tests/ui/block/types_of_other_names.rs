// an undeclared type, named by `Self`
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Output = Tensor<f64>;

    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Self::Output {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
