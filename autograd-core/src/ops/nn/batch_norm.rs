//! Batch normalization as formulas of ops, for the layer of [`nn`](crate::nn) and for programs.

use super::super::Float;
use super::normalize::{Parts, parts};
use crate::graph::Tensor;

/// Normalizes `x`, `[n, channels, ..]`, with the batch's mean and variance; also returns both, `[channels]`.
pub(crate) fn with_batch_stats<T: Float>(
    x: &Tensor<T>,
    affine: [&Tensor<T>; 2],
    eps: f64,
) -> (Tensor<T>, [Tensor<T>; 2]) {
    let axes: Vec<isize> = (0..x.ndim() as isize).filter(|&axis| axis != 1).collect();
    let Parts { normal, mean, var, .. } = parts(x, &axes, eps);
    let y = scaled(normal, affine);
    let channels = affine[0].shape();
    (y, [mean.reshape(channels), var.reshape(channels)])
}

pub(crate) fn with_running_stats<T: Float>(
    x: &Tensor<T>,
    affine: [&Tensor<T>; 2],
    [mean, var]: [&Tensor<T>; 2],
    eps: f64,
) -> Tensor<T> {
    let centered = x - along_channels(mean, x);
    scaled(centered * (along_channels(var, x) + eps).rsqrt(), affine)
}

fn scaled<T: Float>(y: Tensor<T>, [weight, bias]: [&Tensor<T>; 2]) -> Tensor<T> {
    let (weight, bias) = (along_channels(weight, &y), along_channels(bias, &y));
    y * weight + bias
}

fn along_channels<T: Float>(vector: &Tensor<T>, x: &Tensor<T>) -> Tensor<T> {
    let mut shape = vec![1; x.ndim() - 1];
    shape[0] = vector.len();
    vector.reshape(shape)
}

/// Returns the running statistics after a batch with `n` numbers for each channel. The batch's variance has
/// `n - 1` degrees of freedom, and is limited to the largest number, so that the running one stays finite.
pub(crate) fn new_stats<T: Float>(
    [mean, var]: [&Tensor<T>; 2],
    [batch_mean, batch_var]: &[Tensor<T>; 2],
    momentum: f64,
    n: usize,
) -> [Tensor<T>; 2] {
    let mix = |running: &Tensor<T>, batch: Tensor<T>| running * (1.0 - momentum) + batch * momentum;
    let unbiased = n as f64 / (n as f64 - 1.0);
    let batch_var = (batch_var * unbiased).minimum(T::max_value().into_f64());
    [mix(mean, batch_mean.clone()), mix(var, batch_var)]
}
