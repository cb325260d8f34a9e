// a name of backward that nothing is near
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>, slope: Real<L>) -> Real<L> {
        x * slope
    }

    fn backward<L: Lane>(gradient: Real<L>, x: Real<L>, dy: Real<L>) -> (Real<L>, Real<L>) {
        (dy * gradient, dy * x)
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, &x);
}
