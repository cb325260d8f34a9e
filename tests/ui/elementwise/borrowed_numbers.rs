// a number is given by value, and what the body does with a reference is not reported too
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Square {
    fn forward<L: Lane>(x: &Real<L>) -> Real<L> {
        x * x
    }
}

#[py_layer(elementwise)]
impl Product {
    fn forward(x: Real, w: &Real) -> Real {
        x * w
    }

    fn backward(x: &Real, w: Real, dy: Real) -> (Real, Real) {
        (w * dy, x * dy)
    }
}

fn main() {}
