// a struct under the attribute
use autograd_core::prelude::*;

#[py_layer]
struct Op;

fn main() {}
