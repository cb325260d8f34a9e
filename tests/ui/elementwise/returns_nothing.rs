// forward returns nothing
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) {
        let _ = x;
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
