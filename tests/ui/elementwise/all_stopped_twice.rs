// some of the inputs must have a gradient
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(#[stop_gradient] x: Real<L>, #[stop_gradient] w: Real<L>) -> Real<L> {
        x * w
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, &x);
}
