// all mistakes are reported in one compile
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>, w: Real<L>, y: Real<L>) -> Real<L> {
        x * w * y
    }

    fn backward<L: Lane>(x: Real<L>, ww: Real<L>) -> Real<L> {
        ww * x
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, &x, &x);
}
