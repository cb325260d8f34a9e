// Gradients that do not fit the one input.
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

CASE
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
    let _ = Op::with().x(&x).apply();
}

//= `()` returned by `backward`
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> () {
        let _ = dy;
    }

//= `backward` takes no gradient, but `forward` has 1 tensor output
    fn backward(_ctx: &BackwardContext<Self>) -> Tensor<f64> {
        Tensor::from(1.0)
    }

//= `backward` returns no gradient, but `forward` has 1 differentiable tensor input
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) {
        let _ = dy;
    }

//= a tuple of one for the gradient of one input
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>,) {
        (dy * 2.0,)
    }
