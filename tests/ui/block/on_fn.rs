// a function under the attribute
use autograd_core::prelude::*;

#[py_layer]
fn forward(x: &Tensor<f64>) -> Tensor<f64> {
    x * 2.0
}

fn main() {}
