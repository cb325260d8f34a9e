// a formula cannot branch on a mask
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        if x.gt(0.0) { x } else { 0.1 * x }
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
