// a formula needs a number
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(#[stop_gradient] keep: Mask<L>) -> Real<L> {
        keep.select(1.0, 0.0)
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&Tensor::from(true)) as Tensor<f64>;
}
