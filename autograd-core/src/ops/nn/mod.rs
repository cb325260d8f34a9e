//! Ops of neural networks: softmax and losses, activations, the affine map, convolution, pooling, normalization.

pub(super) mod activation;
#[cfg(feature = "nn")]
pub(crate) mod batch_norm;
mod conv;
mod convolve;
mod criteria;
mod kernels;
mod linear;
pub(super) mod loss;
mod normalize;
mod pointwise;
mod pool;
mod softmax;
#[cfg(test)]
mod tests;
pub(super) mod window;

pub use criteria::{CrossEntropyOptions, LossReduction};
pub use window::{Conv1dOptions, Conv2dOptions, IntoPair, PoolOptions};

#[cfg(feature = "static-graph")]
pub(crate) use loss::of_logits;
#[cfg(feature = "nn")]
pub(crate) use normalize::layer_norm;

/// The entries of the table, each beside its op.
#[cfg(feature = "static-graph")]
pub(crate) mod entries {
    pub(crate) use super::{
        activation::*, conv::*, linear::*, loss::*, normalize::*, pointwise::*, pool::*, softmax::*,
    };
}

use crate::error::{Error, Result};
use crate::graph::{GradMode, Tensor};
use crate::ops::Float;

macro_rules! floats {
    ($values:expr, |$x:ident| $done:expr) => {
        floats!(@of [Float32 f32, Float64 f64] $values, $x, $done)
    };
    (@of [$($of:ident $t:ty),*] $values:expr, $x:ident, $done:expr) => {
        match $values.first() {
            $(Some(crate::graph::AnyTensor::$of(_)) => {
                let $x = crate::ops::table::values::all::<$t>(&$values)?;
                crate::ops::table::values::computed($done)
            })*
            _ => Err("takes float32 or float64".into()),
        }
    };
}
use floats;

/// Whether a sum of squares is finite and lost no digits to underflow; otherwise numbers must be scaled.
#[inline(always)]
fn is_in_range<T: Float>(sum: T) -> bool {
    sum >= T::min_positive_value() / T::epsilon() && sum < T::infinity()
}

/// As [`is_in_range`], for each of `sums`.
fn in_range<T: Float>(sums: &Tensor<T>) -> Tensor<bool> {
    let least = T::min_positive_value() / T::epsilon();
    sums.ge_scalar(least).and(&sums.lt_scalar(T::infinity()))
}

pub(super) fn are_in_range<T: Float>(sums: &Tensor<T>) -> bool {
    sums.read().contiguous().as_slice().unwrap_or(&[]).iter().all(|&sum| is_in_range(sum))
}

/// Returns what to divide numbers by before squaring: the largest magnitude along the axes, which are kept,
/// but at least `least`; 1 if that is 0 or not finite. Not recorded.
pub(crate) fn scale_of<T: Float>(x: &Tensor<T>, axes: &[isize], least: f64) -> Tensor<T> {
    GradMode::of(false, || {
        let largest = x.abs().max_axes_keep(axes).maximum(least);
        let usable = largest.gt_scalar(T::ZERO).and(&largest.lt_scalar(T::infinity()));
        usable.where_else(&largest, T::ONE)
    })
}

fn check_same_shape(
    op: &'static str,
    own: &[usize],
    parameter: &str,
    found: &[usize],
) -> Result<()> {
    if own == found {
        return Ok(());
    }
    let expected = format!("of shape {own:?}, as the predictions are");
    Err(Error::shape(op, parameter, expected, found))
}
