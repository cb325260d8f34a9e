// a number of a formula is converted by nothing, and computed with as it is
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Scaled {
    fn forward(x: Real, k: i32) -> Real {
        let scale = 2.0 * (x as f64);
        scale * x * (k as f64)
    }

    fn backward(x: Real, dy: Real) -> Real {
        dy * x as f32
    }
}

fn main() {}
