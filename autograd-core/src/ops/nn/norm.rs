//! Norms, variances, products of vectors.

use std::panic::Location;

use super::super::{Caller, Float, expect};
use super::writable;
use crate::array::shape::axes as check_axes;
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{GradMode, Keep, KeepOutput, Lost, Tensor, record};

pub(in crate::ops) fn norm<T: Float>(x: &Tensor<T>, caller: Caller) -> Tensor<T> {
    let value = GradMode::of(false, || x.square().sum().sqrt());
    if !x.is_recorded() {
        return value.with_lost(Lost::of("norm", caller, x));
    }
    let value = writable(value);
    let state = (Keep::input(0, x), KeepOutput::value(&value));
    // `y = |x|`: `dx = x dy / y`, and 0 at 0.
    record("norm", caller, [x], value, state, |(x, y), dy, _| {
        let y = y.into_tensor();
        let y = y.eq_scalar(T::ZERO).where_scalar(T::ONE, &y);
        Ok([Some(x * (dy / y))])
    })
}

pub(in crate::ops) fn var<T: Float>(
    x: &Tensor<T>,
    axes: &[isize],
    correction: usize,
) -> Result<Tensor<T>> {
    let positions = check_axes("var", axes, x.ndim())?;
    let n: usize = positions.iter().map(|&position| x.shape()[position]).product();
    let axes: Vec<isize> = positions.iter().map(|&position| position as isize).collect();
    let squares = (x - x.mean_axes_keep(&axes)).square();
    // No degree of freedom left: 0 / 0, as for the mean of nothing.
    Ok(squares.sum_axes(&axes) / n.saturating_sub(correction) as f64)
}

/// # Norms and variances
impl<T: Float> Tensor<T> {
    /// The square root of the sum of all squares; the gradient at 0 is 0.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from(vec![3.0, 4.0]).norm().item(), 5.0);
    /// ```
    #[track_caller]
    pub fn norm(&self) -> Tensor<T> {
        T::norm(self, Location::caller())
    }

    /// The variance along `axes`, which are taken away; all of them if none is given. The sum of
    /// squares is divided by the number of elements less `correction`: 1 for a sample, 0 for all
    /// there is.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]);
    /// assert_eq!(x.var_axes(&[], 0).item(), 1.25);
    /// ```
    ///
    /// # Panics
    ///
    /// If an axis does not exist or stands twice.
    #[track_caller]
    pub fn var_axes(&self, axes: &[isize], correction: usize) -> Tensor<T> {
        expect(T::var(self, axes, correction))
    }

    /// The standard deviation along `axes`, which are taken away; see [`Tensor::var_axes`]. Where
    /// it is 0, so is its gradient.
    ///
    /// # Panics
    ///
    /// If an axis does not exist or stands twice.
    #[track_caller]
    pub fn std_axes(&self, axes: &[isize], correction: usize) -> Tensor<T> {
        let var = expect(T::var(self, axes, correction));
        // The slope of the root at 0 is infinite, and infinity times the slope of the variance NaN.
        let none = var.eq_scalar(T::ZERO);
        none.where_else(&var, &none.where_scalar(T::ONE, &var).sqrt())
    }

    /// Every element of a vector `[m]` times every element of another `[n]`: `[m, n]`.
    ///
    /// # Panics
    ///
    /// If either is not a vector; see [`Tensor::try_outer`].
    #[track_caller]
    pub fn outer(&self, other: &Tensor<T>) -> Tensor<T> {
        expect(self.try_outer(other))
    }

    /// [`Tensor::outer`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if either is not a vector.
    #[track_caller]
    pub fn try_outer(&self, other: &Tensor<T>) -> Result<Tensor<T>> {
        for (x, parameter) in [(self, RECEIVER), (other, "other")] {
            if x.ndim() != 1 {
                return Err(Error::Shape {
                    op: "outer",
                    parameter: parameter.into(),
                    expected: "a vector".into(),
                    found: x.shape().to_vec(),
                });
            }
        }
        self.unsqueeze(1).try_mul(other.unsqueeze(0))
    }

    /// Each group of elements along `axes` with its mean taken away, divided by its standard
    /// deviation (`eps` is added to the variance): layer normalisation along the last axes, batch
    /// normalisation along all but the channels, less the learned scale and shift.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[1.0, 3.0], [10.0, 30.0]]);
    /// assert_eq!(x.normalize(&[1], 0.0).to_vec(), [-1.0, 1.0, -1.0, 1.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If an axis does not exist or stands twice.
    #[doc(alias = "layer_norm")]
    #[doc(alias = "batch_norm")]
    #[track_caller]
    pub fn normalize(&self, axes: &[isize], eps: f64) -> Tensor<T> {
        expect(T::layer_norm(self, None, axes, eps, Location::caller()))
    }
}
