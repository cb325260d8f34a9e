// a plain parameter is taken by value
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>, slope: &f64) -> Real<L> {
        x * *slope
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, &0.5);
}
