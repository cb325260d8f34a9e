// Attributes that exclude each other, or stand in a wrong place.
use autograd_core::prelude::*;

CASE

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
    let _ = Op::with().x(&x).apply();
}

//= `#[default]` on a tensor
#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, #[default(None)] x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

//= attributes of `forward` in `backward`
#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(#[default(1)] _ctx: &BackwardContext<Self>, #[stop_gradient] dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

//= `once_differentiable` beside `no_grad`
#[py_layer(no_grad, once_differentiable)]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

//= `no_grad` beside a `backward`
#[py_layer(no_grad)]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

//= a repeated argument
#[py_layer(no_grad, no_grad)]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}
