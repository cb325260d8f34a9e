// a lane that nothing declares
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward(x: Real<L>) -> Real<L> {
        x * x
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
