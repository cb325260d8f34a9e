// a plain number is an `f64`, whatever the elements are
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>, k: f32) -> Real<L> {
        x * k
    }

    fn backward<L: Lane>(k: f64, dy: Real<L>) -> Real<L> {
        k * dy
    }
}

#[py_layer(elementwise)]
impl Derived {
    fn forward<L: Lane>(x: Real<L>, k: f32) -> Real<L> {
        k * x
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, 2.0);
}
