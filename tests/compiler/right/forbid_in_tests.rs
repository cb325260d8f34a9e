// rustc: --test
// generated tests allow no lint that a crate may forbid
#![forbid(deprecated, non_snake_case, trivial_numeric_casts, unnameable_test_items, unused_qualifications)]
#![deny(warnings)]
use autograd_core::prelude::*;

#[py_layer(check(x = [2, 3] in 0.5..2.0))]
impl<T: Float> Twice<T> {
    pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> { x * 2.0 }
    pub fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> { dy * 2.0 }
}

#[py_layer(elementwise)]
impl Scaled {
    pub fn forward(x: Real, k: f64) -> Real { x * k }
    pub fn backward(k: f64, dy: Real) -> Real { dy * k }
}

#[test]
fn calls() {
    let x = Tensor::<f64>::from(1.0);
    let _ = (Twice::apply(&x), Scaled::apply(&x, 1.0));
}
