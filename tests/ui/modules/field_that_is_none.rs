// A field without parameters is reported with a fix; the other fields are not.
use autograd_core::nn::{Linear, Module};
use autograd_core::prelude::*;

#[derive(Module)]
struct Net {
    hidden: Linear,
    width: usize,
    table: Tensor<i64>,
    many: Vec<(Linear, f64)>,
}

fn main() {}
