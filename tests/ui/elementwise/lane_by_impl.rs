// all numbers of a formula have one lane
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Doubled {
    fn forward(x: Real<impl Lane>) -> Real {
        x * 2.0
    }
}

fn main() {}
