// an integer in a formula
use autograd_core::prelude::*;

scalar_op!(Softplus: y = (1 + x.exp()).ln(), dx = dy / (1.0 + (-x).exp()));

scalar_op!(Square: y = x * x, dx = 2 * x * dy);

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x / 2 - 1
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Softplus::apply(&x);
}
