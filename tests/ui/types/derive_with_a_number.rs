// a field of a saved struct that is no tensor
use autograd_core::prelude::*;

#[derive(Saved)]
struct Parts {
    y: Tensor<f64>,
    factor: f64,
}

fn main() {}
