// several outputs have `dy0` and `dy1`, not `dy`
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> (Real<L>, Real<L>) {
        (x, x * x)
    }

    fn backward<L: Lane>(x: Real<L>, dy: Real<L>) -> Real<L> {
        dy * x
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
