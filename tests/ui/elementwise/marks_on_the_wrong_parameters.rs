// marks that do not belong to their parameters
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(#[default(1.0)] x: Real<L>, #[stop_gradient] slope: f64) -> Real<L> {
        x * slope
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, 0.5);
}
