// a struct beside a formula of its name
use autograd_core::prelude::*;

struct Op;

#[py_layer(elementwise)]
impl Op {
    fn forward(x: Real) -> Real {
        x * 3.0
    }
}

fn main() {
    let x = Tensor::from(1.0);
    let _ = Op::with().x(&x).apply();
    let _ = Op::try_apply(&x);
}
