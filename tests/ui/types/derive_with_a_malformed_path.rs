// `#[saved(..)]` takes the path of the library
use autograd_core::prelude::*;

#[derive(Saved)]
#[saved(path = autograd_core)]
struct Parts {
    x: Tensor<f64>,
}

fn main() {}
