//! Activations with a parameter, and dropout.

use std::panic::Location;

use super::super::trace::{self, Call};
use super::super::{Caller, Float, expect};
use super::{copied, writable};
use crate::array::Shape;
use crate::error::{Error, Result};
use crate::graph::{Elementwise, GradMode, Keep, Lost, Plain, Tensor, record, unrecorded};

fn leaky_relu<T: Float>(x: &Tensor<T>, slope: f64, caller: Caller) -> Tensor<T> {
    let slope = T::from_f64(slope);
    let mut value = copied(&x.read());
    if let Some(data) = value.as_mut_slice() {
        T::leaky_relu(data, slope);
    }
    if !x.is_recorded() {
        return unrecorded("leaky_relu", caller, [x], value);
    }
    let state = Elementwise((Plain(slope), Keep::input(0, x)));
    record("leaky_relu", caller, [x], value, state, |(slope, x), dy, _| {
        // Constant on either side of 0, so it needs no rule of its own.
        let mut factor = copied(&x.read());
        if let Some(data) = factor.as_mut_slice() {
            T::leaky_factor(data, slope);
        }
        Ok([Some(dy * Tensor::new(factor))])
    })
}

fn elu<T: Float>(x: &Tensor<T>, alpha: f64, caller: Caller) -> Tensor<T> {
    let value = GradMode::of(false, || {
        let below = x.minimum(0.0).exp_m1() * alpha;
        x.gt_scalar(T::ZERO).where_else(x, &below)
    });
    if !x.is_recorded() {
        return value.with_lost(Lost::of("elu", caller, x));
    }
    let value = writable(value);
    let state = Elementwise((Plain(alpha), Keep::input(0, x)));
    record("elu", caller, [x], value, state, |(alpha, x), dy, _| {
        // The exponential is limited, so that the branch not taken stays finite.
        let below = x.minimum(0.0).exp() * alpha * &dy;
        Ok([Some(x.gt_scalar(T::ZERO).where_else(&dy, &below))])
    })
}

/// By what dropout multiplies a tensor of this shape, drawn from the process-wide generator; `p` is
/// a probability above 0.
pub(in crate::ops) fn dropout_mask<T: Float>(shape: Shape, p: f64) -> Tensor<T> {
    let mut mask = writable(Tensor::<T>::rand(shape));
    if let Some(data) = mask.as_mut_slice() {
        // For p = 1 nothing is above the limit, and the scale is not used.
        T::keep_where_above(data, T::from_f64(p), T::from_f64(1.0 / (1.0 - p)));
    }
    Tensor::new(mask)
}

pub(in crate::ops) fn dropout<T: Float>(
    x: &Tensor<T>,
    p: f64,
    training: bool,
    caller: Caller,
) -> Result<Tensor<T>> {
    if trace::is_noting() {
        let call = || Call::Dropout { p, training };
        let run = || dropout(x, p, training, caller);
        return trace::op(call, || vec![trace::any(x)], caller, run);
    }
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::Value {
            op: "dropout",
            parameter: "p",
            expected: "a probability".into(),
            found: p.to_string(),
        });
    }
    if !training || p == 0.0 {
        return Ok(x.clone());
    }
    Ok(x * dropout_mask(x.shape_owned(), p))
}

/// # Activations with a parameter
impl<T: Float> Tensor<T> {
    /// `x` where `x > 0`, else `slope * x`; the gradient at 0 is `slope`.
    #[track_caller]
    pub fn leaky_relu(&self, slope: f64) -> Tensor<T> {
        leaky_relu(self, slope, Location::caller())
    }

    /// `x` where `x > 0`, else `alpha * (exp(x) - 1)`; the gradient at 0 is `alpha`.
    #[track_caller]
    pub fn elu(&self, alpha: f64) -> Tensor<T> {
        elu(self, alpha, Location::caller())
    }

    /// While training: each element is 0 with probability `p`, else divided by `1 - p`, so that
    /// the mean stays. Otherwise this tensor itself. Draws from the process-wide generator that
    /// [`seed`](crate::seed) sets.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let y = Tensor::<f32>::ones([1000]).dropout(0.5, true);
    /// assert!(y.to_vec().iter().all(|&y| y == 0.0 || y == 2.0));
    /// ```
    ///
    /// # Panics
    ///
    /// If `p` is not in [0, 1]; see [`Tensor::try_dropout`].
    #[track_caller]
    pub fn dropout(&self, p: f64, training: bool) -> Tensor<T> {
        expect(self.try_dropout(p, training))
    }

    /// [`Tensor::dropout`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if `p` is not in [0, 1].
    #[track_caller]
    pub fn try_dropout(&self, p: f64, training: bool) -> Result<Tensor<T>> {
        T::dropout(self, p, training, Location::caller())
    }
}
