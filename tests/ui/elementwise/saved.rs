// an elementwise op declares nothing that is saved
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    type Saved = Tensor<f64>;

    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }

}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
