// an input has in backward the type that it has in forward
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>, slope: f64) -> Real<L> {
        x * slope
    }

    fn backward<L: Lane>(slope: Real<L>, dy: Real<L>) -> Real<L> {
        dy * slope
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, 0.5);
}
