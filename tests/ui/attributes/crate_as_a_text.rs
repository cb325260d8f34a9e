// `crate` takes a path without quotes, in all forms
use autograd_core as ag;
use autograd_core::nn::{Linear, Module};
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_layer(crate = "ag")]
impl Doubled {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer(elementwise, crate = "ag")]
impl Halved {
    fn forward(x: Real) -> Real {
        x / 2.0
    }
}

scalar_op!(Square: y = x * x, dx = dy * x * 2.0, crate = "ag");

#[py_func(crate = "ag")]
impl Same {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        x.to_owned()
    }
}

#[derive(Saved)]
#[saved(crate = "ag")]
struct Parts {
    x: Tensor<f64>,
}

#[derive(Module)]
#[module(crate = "ag")]
struct Net {
    layer: Linear<f64>,
}

fn main() {
    let _: ag::Tensor<f64>;
}
