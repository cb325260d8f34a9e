// a backward that is meant to differ is to be compared with the derivative
use autograd_core::prelude::*;

#[py_layer(elementwise, surrogate, verify)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x.round()
    }

    fn backward<L: Lane>(dy: Real<L>) -> Real<L> {
        dy
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
