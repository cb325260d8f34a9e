// a slip of `elementwise`, and a name in its place
use autograd_core::prelude::*;

#[py_layer(element_wise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }
}

#[py_layer("Op2")]
impl Op2 {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }
}

fn main() {}
