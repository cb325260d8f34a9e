// a formula computes with numbers, not with tensors
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
