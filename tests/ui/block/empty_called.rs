// an empty op can be called
use autograd_core::prelude::*;

#[py_layer]
impl Op {}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
