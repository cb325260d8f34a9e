// `#[derive(Saved)]` on other than a struct with named fields
use autograd_core::prelude::*;

#[derive(Saved)]
enum A {
    B(Tensor<f64>),
}

#[derive(Saved)]
struct C(Tensor<f64>);

#[derive(Saved)]
struct D<'a> {
    tensor: &'a Tensor<f64>,
}

fn main() {}
