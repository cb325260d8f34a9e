// an empty block
use autograd_core::prelude::*;

#[py_layer]
impl Op {}

fn main() {}
