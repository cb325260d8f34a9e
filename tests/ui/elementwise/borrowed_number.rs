// numbers come by value
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: &Real<L>) -> Real<L> {
        *x * 2.0
    }
}

fn main() {
    let x = Tensor::<f64>::ones([2]);
    Op::apply(&x);
}
