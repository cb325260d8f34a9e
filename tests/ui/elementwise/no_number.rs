// a formula needs a number
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(#[stop_gradient] keep: Mask<L>) -> Real<L> {
        keep.select(1.0, 0.0)
    }
}

fn main() {
    let _: Tensor<f64> = Op::apply(&Tensor::from(true));
}
