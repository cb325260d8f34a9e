// a block that is said to be public
use autograd_core::prelude::*;

#[py_layer]
pub impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    let _ = Op::apply(&Tensor::from(1.0));
}
