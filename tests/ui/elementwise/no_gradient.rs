// backward must take the gradient of the output
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }

    fn backward<L: Lane>(x: Real<L>) -> Real<L> {
        2.0 * x
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
