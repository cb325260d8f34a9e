// two inputs of one op have one element type
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>, slope: Real<L>) -> Real<L> {
        x * slope
    }
}

fn main() {
    let (x, w) = (Tensor::<f64>::from(1.0), Tensor::<f32>::from(1.0));
    let _ = Op::apply(&x, &w);
}
