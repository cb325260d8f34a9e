// Paths of the library.
use autograd_core::prelude::*;

#[py_layer(CASE)]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}

//= a path for `crate` that is not autograd_core
crate = ::std

//= `crate` twice
crate = ::autograd_core, crate = autograd_core

//= malformed arguments
no_grad(x), "text", once_differentiable = true, crate
