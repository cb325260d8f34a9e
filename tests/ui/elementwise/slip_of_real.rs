// a slip of the type of a formula's only input
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Reel<L>) -> Real<L> {
        x * 2.0
    }
}

fn main() {}
