// nor a tuple of numbers
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>((x, y): (Real<L>, Real<L>)) -> Real<L> {
        x + y
    }
}

fn main() {}
