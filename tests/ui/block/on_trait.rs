// a trait under the attribute
use autograd_core::prelude::*;

#[py_layer]
trait Op {}

fn main() {}
