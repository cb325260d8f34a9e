// a comparison of two numbers is no condition either
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        let y = x * x;
        if x == y { x } else { y }
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
