// a gradient is missing
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>, w: Real<L>) -> Real<L> {
        x * w
    }

    fn backward<L: Lane>(w: Real<L>, dy: Real<L>) -> Grads {
        Grads { x: dy * w }
    }
}

fn main() {}
