// Calls of an op of one input.
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let CASE
}

//= `apply` returns what `forward` returns
_: Tensor<f32> = Op::apply(&x);

//= `apply` borrows its tensors
_ = Op::apply(x);
