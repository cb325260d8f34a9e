// an enum under the attribute
use autograd_core::prelude::*;

#[py_layer]
enum Op {
    A,
}

fn main() {}
