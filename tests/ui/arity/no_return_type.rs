// `backward` ends with a gradient, but says that it returns nothing
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) {
        dy * 2.0
    }
}

#[py_layer]
impl Two {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x + w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) {
        (dy.clone(), dy.clone())
    }
}

fn main() {}
