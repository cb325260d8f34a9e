// `#[must_use]` of `forward` is that of `apply`
#![deny(unused_must_use)]
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    #[must_use]
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    Op::apply(&Tensor::<f64>::from(1.0));
}
