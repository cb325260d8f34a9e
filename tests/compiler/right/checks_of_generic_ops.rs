// rustc: --test
// `check(..)` of generic ops, and values of the block
#![deny(warnings)]
#![allow(dead_code)]
use std::fmt::Display;

use autograd_core::prelude::*;

#[py_layer(check(x = [2, 3], k = Self::C))]
impl<T: Float> Op<T> {
    const C: f64 = 2.0;
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>, k: f64) -> Tensor<T> { let _ = k; x.clone() }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> { dy.clone() }
}

#[py_layer(check(x = [2], by = [1.0, 2.0], shown = 1_u8))]
impl<T: Float, const N: usize, D: Display> Generic<T, N, D> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>, by: [f64; N], shown: D) -> Tensor<T> {
        let _ = shown.to_string();
        x * by[0]
    }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> { dy.clone() }
}

#[py_layer(check(x = [2], by = [1.0, 2.0]))]
impl<const N: usize> Constant<N> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, by: [f64; N]) -> Tensor<f64> { x * by[0] }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy.clone() }
}
