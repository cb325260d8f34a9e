//! Norms, variances, products of vectors.

use std::panic::Location;

use super::super::call::call;
use super::super::shape::signed;
use super::super::table::{
    Attr, Dims, Form, OpDef, Type, entries, exactly, float, float_reduced, for_programs,
};
use super::super::{Caller, Float, HasMean, expect, pairs};
use super::normalize::layer_norm;
use super::{are_in_range, scale_of};
use crate::array::IntoAxes;
use crate::array::shape::axes as check_axes;
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{Element, GradMode, Rule, Saved, Tensor, finish};

entries! {
    NORMS:

    NORM = OpDef {
        infer: for_programs(|_, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![Form::new(float(x)?.dtype, Dims::new())])
        }),
        run: |_, x, at| float!(x, x => Ok(norm(&x, at))),
        ..OpDef::new("norm")
    };

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

fn norm<T: Float>(x: &Tensor<T>, caller: Caller) -> Tensor<T> {
    let value = GradMode::of(false, || {
        let squares = x.square().sum();
        if are_in_range(&squares) || x.is_empty() {
            return squares.sqrt();
        }
        let largest = x.abs().max();
        match largest.item() {
            scale if scale > T::ZERO && scale < T::infinity() => {
                (x / scale).square().sum().sqrt() * scale
            }
            _ => largest,
        }
    });
    let value = value.read().into_owned();
    finish(NORM.name, caller, &[x], value.clone(), || {
        Rule::new([Saved::input(0, x), Saved::output_value(value)], |saved, dy: Tensor<T>, _| {
            let (x, y) = (saved.tensor::<T>()?, saved.tensor::<T>()?);
            // At 0 there is no derivative: the gradient is 0, with a derivative of NaN.
            let unit = if y.item() == T::ZERO { x.abs().sqrt() } else { x / y };
            Ok([Some(unit * dy)])
        })
    })
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

/// # Norms
impl<T: Float> Tensor<T> {
    /// Returns the root of the sum of all squares, without overflow or underflow. At 0 the gradient is 0, and
    /// a second derivative is NaN.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from(vec![3.0, 4.0]).norm().item(), 5.0);
    /// ```
    #[track_caller]
    pub fn norm(&self) -> Tensor<T> {
        expect(call(&NORM, [], [self.untyped()]))
    }
}

/// # Variances
impl<T: Element> Tensor<T> {
    pairs! {
        /// Returns the variance along `axes`, which are removed; of all elements if none is given. The
        /// divisor is the number of elements less `correction`: 1 for a sample, 0 for a whole population.
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

        /// Returns the root of [`Tensor::var_axes`], without overflow. At 0 the gradient is 0, and a second
        /// derivative is NaN.
        pub fn std_axes(&self, axes: impl IntoAxes, correction: usize) -> Tensor<T>,
            Panics if "an axis does not exist or is given twice" where T: HasMean {
            let attrs = [Attr::Ints(axes.as_axes().to_vec()), Attr::Int(correction as isize)];
            expect(call(&STD, attrs, [self.untyped()]))
        }
    }
}

/// # Products of vectors
impl<T: Float> Tensor<T> {
    pairs! {
        /// Returns the products of each element of a vector `[m]` with each of another `[n]`: `[m, n]`.
        pub fn outer, try_outer(&self, other: &Tensor<T>) -> Tensor<T>, Shape if
            "either is not a vector"
        {
            for (x, parameter) in [(self, RECEIVER), (other, "other")] {
                if x.ndim() != 1 {
                    return Err(Error::shape("outer", parameter, "a vector", x.shape()));
                }
            }
            self.unsqueeze(1).try_mul(other.unsqueeze(0))
        }
    }
}

/// # Normalization
impl<T: Element> Tensor<T> {
    pairs! {
        /// Subtracts the mean of each group of elements along `axes`, and divides by its standard deviation
        /// (`eps` is added to the variance): layer normalization along the last axes, batch normalization
        /// along all but the channels, without scale and shift. Squares do not overflow. Equal elements give
        /// 0, or NaN if `eps` is 0.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 3.0], [10.0, 30.0]]);
        /// assert_eq!(x.normalize(&[1], 0.0).to_vec(), [-1.0, 1.0, -1.0, 1.0]);
        /// ```
        #[doc(alias = "layer_norm")]
        #[doc(alias = "batch_norm")]
        pub fn normalize, try_normalize(&self, axes: impl IntoAxes, eps: f64) -> Tensor<T>, Axis if
            "an axis does not exist or is given twice"
            where T: HasMean
        {
            layer_norm(self, None, axes.as_axes(), eps, Location::caller())
        }
    }
}
