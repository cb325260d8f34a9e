// arguments of the derives where they do not belong
use autograd_core::nn::{Linear, Module};
use autograd_core::prelude::*;

#[derive(Saved)]
struct Kept {
    #[saved(skip)]
    x: Tensor<f64>,
}

#[derive(Module)]
#[module(crate = autograd_core, crate = autograd_core, skip)]
struct Net {
    layer: Linear<f64>,
}

fn main() {}
