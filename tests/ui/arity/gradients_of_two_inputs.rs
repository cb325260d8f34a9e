// Gradients that do not fit the two inputs.
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a * b
    }

CASE
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, &x);
}

//= an array for the gradients of several inputs
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> [Tensor<f64>; 2] {
        [dy * 2.0, dy * 3.0]
    }

//= a field of `Grads` given twice
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { a: dy * 2.0, b: dy * 3.0, a: dy * 4.0 }
    }

//= a slip in a field of `Grads`
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { a: dy * 2.0, bb: dy * 3.0 }
    }

//= a field of `Grads` that is no input
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { a: dy * 2.0, b: dy * 3.0, weight: dy * 4.0 }
    }

//= one optional gradient for two inputs
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Option<Tensor<f64>> {
        Some(dy * 2.0)
    }
