// `#[derive(Saved)]` on other than a struct with named fields, each of a size, and attributes without arguments
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

#[derive(Saved)]
struct Unsized {
    tensor: Tensor<f64>,
    names: [f64],
}

#[derive(Saved)]
#[saved()]
struct Empty {
    #[saved()]
    tensor: Tensor<f64>,
}

fn main() {}
