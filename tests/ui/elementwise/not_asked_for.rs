// a formula without `elementwise`
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }

    fn backward<L: Lane>(x: Real<L>, dy: Real<L>) -> Real<L> {
        2.0 * x * dy
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
