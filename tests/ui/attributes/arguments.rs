// Arguments of `#[py_layer(..)]` for an op of one input.
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

//= `allow` alone
allow

//= `allow` of nothing
allow()

//= `allow` of a slip
allow(unread_save)

//= `allow` of a lint of the compiler
allow(dead_code)

//= `allow` of the same twice
allow(none_gradient, none_gradient)

//= `allow` with a value
allow = none_gradient

//= an unknown argument
fast

//= a slip
once_diferentiable

//= a value for an argument that takes none
once_differentiable = yes

//= a shape after a colon
check(x: [2])
