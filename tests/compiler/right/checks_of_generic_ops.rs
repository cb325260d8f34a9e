// rustc: --test
// `check(..)` of generic ops, and values of the block
#![deny(warnings)]
#![allow(dead_code)]
use autograd_core::prelude::*;

#[py_layer(check(x = [2, 3], k = Self::C))]
impl<T: Float> Op<T> {
    const C: f64 = 2.0;
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>, k: f64) -> Tensor<T> { let _ = k; x.clone() }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> { dy.clone() }
}
