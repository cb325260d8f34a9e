// a formula's input of which nothing is said, and a slip
use autograd_core::prelude::*;

#[py_layer(elementwise, check(x = [2, 3]), check(x = [2], slop = 0.1))]
impl Leaky {
    fn forward(x: Real, slope: f64) -> Real {
        x.gt(0.0).select(x, slope * x)
    }
}

fn main() {}
