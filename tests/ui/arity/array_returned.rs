// an array for the gradients of several inputs
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a * b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> [Tensor<f64>; 2] {
        [dy * 2.0, dy * 3.0]
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, &x);
}
