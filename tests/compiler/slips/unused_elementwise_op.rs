// says: associated function `forward` is never used
#![deny(dead_code)]
use autograd_core::prelude::*;
#[py_layer(elementwise)]
impl Op { fn forward(x: Real) -> Real { x * 2.0 } }
fn main() {}
