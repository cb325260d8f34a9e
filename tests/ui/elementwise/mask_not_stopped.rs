// a mask is marked `#[stop_gradient]`
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>, keep: Mask<L>) -> Real<L> {
        keep.select(x, 0.0)
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, &Tensor::from(true));
}
