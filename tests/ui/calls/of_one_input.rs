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
    CASE
}

//= `apply` returns what `forward` returns
let _: Tensor<f32> = Op::apply(&x);

//= `apply` borrows its tensors
let _ = Op::apply(x);

//= `apply` takes the declared element type
let _ = Op::apply(&x.cast::<f32>());

//= `forward` called in place of `apply`
let _ = Op::forward(&x);
