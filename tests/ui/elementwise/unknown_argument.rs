// an argument that does not exist, near one that does
use autograd_core::prelude::*;

#[py_layer(elementwise, reduse = sum)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }

}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
