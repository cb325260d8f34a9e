//! Variances and standard deviations along axes.

use super::call::call;
use super::nn::{are_in_range, scale_of};
use super::shape::signed;
use super::table::{Attr, OpDef, Type, entries, float, float_reduced, for_programs};
use super::{Float, HasMean, expect, pairs};
use crate::array::IntoAxes;
use crate::array::shape::axes as check_axes;
use crate::error::Result;
use crate::graph::{Element, GradMode, Tensor};

entries! {
    VARIANCES:

    VAR = OpDef {
        run: |op, x, _| float!(x, x => var(&x, op.ints(0), op.int(1) as usize)),
        ..variance_op("var")
    };

    STD = OpDef {
        run: |op, x, _| float!(x, x => deviation(&x, op.ints(0), op.int(1) as usize)),
        ..variance_op("std")
    };
}

const fn variance_op(name: &'static str) -> OpDef {
    let attrs = &[("axes", Type::Ints), ("correction", Type::Int)];
    OpDef { attrs, infer: for_programs(float_reduced), ..OpDef::new(name) }
}

/// Returns the mean squared deviation as `spread * scale²`; no scale if the squares are in range. With
/// `whole`, rows that are out of range even if scaled have a scale of 1, so that their gradient is right.
fn scaled_variance<T: Float>(
    op: &'static str,
    x: &Tensor<T>,
    axes: &[isize],
    correction: usize,
    whole: bool,
) -> Result<(Tensor<T>, Option<Tensor<T>>)> {
    let positions = check_axes(op, axes, x.ndim())?;
    let n: usize = positions.iter().map(|&position| x.shape()[position]).product();
    let axes = signed(&positions);
    // No degree of freedom is left: 0 / 0, as for the mean of no elements.
    let freedom = n.saturating_sub(correction) as f64;
    let centered = x - x.mean_axes_keep(&axes);
    let squares = centered.square().sum_axes(&axes);
    if are_in_range(&squares) || n == 0 {
        return Ok((squares / freedom, None));
    }
    // Also divided by the root of `n`, so that the square of the scale is at most the variance.
    let mut scale = scale_of(&centered, &axes, 0.0) / (n as f64).sqrt();
    let spread = |scale: &Tensor<T>| (&centered / scale).square().sum_axes_keep(&axes) / freedom;
    if whole {
        scale = GradMode::of(false, || {
            let infinite = (spread(&scale) * &scale * &scale).eq_scalar(T::infinity());
            infinite.where_else(T::ONE, &scale)
        });
    }
    let spread = spread(&scale).reshape(squares.shape());
    let scale = scale.reshape(squares.shape());
    Ok((spread, Some(scale)))
}

fn var<T: Float>(x: &Tensor<T>, axes: &[isize], correction: usize) -> Result<Tensor<T>> {
    Ok(match scaled_variance("var", x, axes, correction, true)? {
        (var, None) => var,
        (spread, Some(scale)) => spread * &scale * scale,
    })
}

fn deviation<T: Float>(x: &Tensor<T>, axes: &[isize], correction: usize) -> Result<Tensor<T>> {
    let (spread, scale) = scaled_variance("std", x, axes, correction, false)?;
    // The slope of the root at 0 is infinite, and infinity times the variance's slope is NaN. There,
    // another function with the same value has a slope of 0, and no second derivative either.
    let none = spread.eq_scalar(T::ZERO);
    let root = none.where_else(spread.pow(1.5), none.where_else(T::ONE, &spread).sqrt());
    Ok(match scale {
        None => root,
        Some(scale) => root * scale,
    })
}

/// # Variances
impl<T: Element> Tensor<T> {
    pairs! {
        /// Returns the variance `sum((x - mean)²) / (n - correction)` along `axes`, which are removed; of all `n`
        /// elements if none is given. `correction` is 1 for a sample, 0 for a whole population, as PyTorch's.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]);
        /// assert_eq!(x.var_axes(&[], 0).item(), 1.25);
        /// ```
        pub fn var_axes(&self, axes: impl IntoAxes, correction: usize) -> Tensor<T>,
            Panics if "an axis does not exist or is given twice" where T: HasMean {
            let attrs = [Attr::Ints(axes.as_axes().to_vec()), Attr::Int(correction as isize)];
            expect(call(&VAR, attrs, [self.untyped()]))
        }

        /// Returns `sqrt(var)`, the root of [`Tensor::var_axes`], without overflow. At 0 the gradient is 0, and a
        /// second derivative is NaN.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 3.0]]);
        /// assert_eq!(x.std_axes(1, 0).to_vec(), [1.0]);
        /// ```
        pub fn std_axes(&self, axes: impl IntoAxes, correction: usize) -> Tensor<T>,
            Panics if "an axis does not exist or is given twice" where T: HasMean {
            let attrs = [Attr::Ints(axes.as_axes().to_vec()), Attr::Int(correction as isize)];
            expect(call(&STD, attrs, [self.untyped()]))
        }
    }
}
