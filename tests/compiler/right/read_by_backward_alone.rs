// A parameter of a formula that only backward reads is no unused variable.
#![deny(warnings)]
use autograd_core::prelude::*;
#[py_layer(elementwise, surrogate)]
impl Spike {
    fn forward(x: Real, slope: f64, #[stop_gradient] keep: Mask) -> Real {
        x.ge(0.0).select(1.0, 0.0)
    }
    fn backward(x: Real, slope: f64, keep: Mask, dy: Real) -> Real {
        keep.select(dy / (1.0 + (x * slope).abs()).square(), 0.0)
    }
}
fn main() {
    let (x, keep) = (Tensor::from([1.0]), Tensor::from([true]));
    let _ = Spike::apply(&x, 2.0, &keep);
}
