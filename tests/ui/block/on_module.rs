// a module under the attribute
use autograd_core::prelude::*;

#[py_layer]
mod op {}

fn main() {}
