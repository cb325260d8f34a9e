// a number of a formula cannot be printed, and is named where it is
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Shown {
    fn forward(x: Real, k: f64) -> Real {
        println!("{x:?}");
        println!("{k} {}", x > 0.0);
        x * k
    }

    fn backward(x: Real, k: f64, dy: Real) -> Real {
        dbg!(x * 2.0);
        dy * k
    }
}

fn main() {}
