// a call by name that is never applied
#![deny(unused_must_use)]
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, #[default(2.0)] by: f64) -> Tensor<f64> {
        x * by
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    Op::with().x(&x);
}
