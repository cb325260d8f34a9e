// an elementwise op has no element type of its own
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl<T: Float> Op<T> {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
