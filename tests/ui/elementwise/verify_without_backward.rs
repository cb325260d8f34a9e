// `verify` compares a backward that is absent
use autograd_core::prelude::*;

#[py_layer(elementwise, verify)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }

}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}
