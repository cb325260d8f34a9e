// `_` in place of a type is reported once, with the type to write
use autograd_core::prelude::*;

#[py_layer]
impl Output {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> _ {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer]
impl Element {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<_>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer]
impl Input {
    fn forward(_ctx: &mut ForwardContext<'_, Self>, x: &_) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<'_, Self>, dy: &Tensor<f64>) -> _ {
        dy * 2.0
    }
}

fn main() {
    let x = Tensor::from(1.0);
    let _ = Output::apply(&x).sum();
}
