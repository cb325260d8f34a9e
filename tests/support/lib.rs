//! What the tests of several binaries share.

pub mod ops;
pub mod programs;

use autograd_core::prelude::*;

/// Seed 2023, `randn([2, 3])` in f64, gradient of the mean of its tanh.
pub const TANH_GRADIENT: [f64; 6] = [
    0.16604150153159006,
    0.05858341334299875,
    0.14051213529592643,
    0.1567776960002487,
    0.015646093869639145,
    0.029916598795983074,
];

/// A leaf of these numbers that wants a gradient.
pub fn leaf(data: &[f64]) -> Tensor<f64> {
    wanting(Tensor::from(data))
}

/// A leaf of the same numbers that wants a gradient.
pub fn leaf_like<T: Float>(x: &Tensor<T>) -> Tensor<T> {
    wanting(x.detach())
}

/// The tensor, which now wants a gradient.
pub fn wanting<T: Float>(x: Tensor<T>) -> Tensor<T> {
    x.set_stop_gradient(false);
    x
}

/// The numbers of a leaf's gradient.
pub fn gradient<T: Float>(x: &Tensor<T>) -> Vec<T> {
    x.grad().expect("a gradient").to_vec()
}

/// The gradients of the sum of `f` at leaves of one number each.
pub fn gradients<const N: usize>(
    f: impl Fn(&[Tensor<f64>; N]) -> Tensor<f64>,
    at: [f64; N],
) -> [f64; N] {
    let leaves = at.map(|number| leaf(&[number]));
    f(&leaves).sum().backward().unwrap();
    leaves.map(|x| gradient(&x)[0])
}
