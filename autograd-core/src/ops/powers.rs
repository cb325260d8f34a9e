//! Cumulative products and norms of any order, made of other ops.

use super::call::call;
use super::nn::scale_of;
use super::shape::signed;
use super::table::{Attr, Form, OpDef, Type, entries, exactly, float, reduced};
use super::{Float, expect};
use crate::array::IntoAxes;
use crate::array::shape::axes as check_axes;
use crate::error::{Error, Result};
use crate::graph::Tensor;

entries! {
    POWERS:

    /// Of any order that is not negative, and along any axes.
    NORM_AXES = OpDef {
        attrs: &[("axes", Type::Ints), ("p", Type::Plain), ("keep", Type::Flag)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            let dims = reduced(&x.dims, op.ints(0), op.flag(2))?;
            Ok(vec![Form::new(float(x)?.dtype, dims)])
        },
        run: |op, x, _| float!(x, x => norm(&x, op.ints(0), op.number(1), op.flag(2))),
        ..OpDef::new("norm_axes")
    };
}

/// Whether there is a norm of this order.
pub(crate) fn is_order(p: f64) -> bool {
    p >= 0.0 || p == f64::NEG_INFINITY
}

fn norm<T: Float>(x: &Tensor<T>, axes: &[isize], p: f64, keep: bool) -> Result<Tensor<T>> {
    let positions = check_axes("norm_axes", axes, x.ndim())?;
    let named = |done: Result<Tensor<T>>| done.map_err(|error| error.called("norm_axes"));
    let size = || x.abs();
    match p {
        f64::INFINITY => return named(size().try_max(axes, keep)),
        f64::NEG_INFINITY => return named(size().try_min(axes, keep)),
        0.0 => return named(x.ne_scalar(T::ZERO).cast::<T>().try_sum(axes, keep)),
        1.0 => return named(size().try_sum(axes, keep)),
        _ => {}
    }
    let scale = match positions.iter().any(|&position| x.shape()[position] == 0) {
        true => Tensor::from(T::ONE),
        false => scale_of(x, axes, 0.0),
    };
    let x = x / &scale;
    let powers = if p % 2.0 == 0.0 {
        x.pow(p)
    } else if p > 1.0 {
        x.abs().pow(p)
    } else {
        // At 0 the slope is infinite. Another function of the same value has a slope of 0 there.
        let zeros = x.eq_scalar(T::ZERO);
        zeros.where_else(x.abs(), zeros.where_else(T::ONE, x.abs()).pow(p))
    };
    let sum = powers.sum_axes_keep(axes);
    // The same for the root.
    let zeros = sum.eq_scalar(T::ZERO);
    let root = zeros.where_else(sum.pow(1.5), zeros.where_else(T::ONE, &sum).pow(1.0 / p));
    let norm = root * scale;
    if keep {
        return Ok(norm);
    }
    Ok(norm.squeeze_axes(&signed(&positions)))
}

/// # Products and norms along axes
impl<T: Float> Tensor<T> {
    /// The cumulative products along an axis, each including its own element. Gradients do not divide by elements,
    /// so they are exact where elements are zero.
    ///
    /// It is a scan by doubling (Hillis and Steele 1986): neighbours are multiplied in runs of 2, 4, 8 and so on. So
    /// the product of any such run must be finite for the results after it to be.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([2.0, 0.0, 3.0]);
    /// x.set_stop_gradient(false);
    /// x.cumprod(0).sum().backward()?;
    /// assert_eq!(x.cumprod(0).to_vec(), [2.0, 0.0, 0.0]);
    /// assert_eq!(x.grad().unwrap().to_vec(), [1.0, 8.0, 0.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such axis.
    #[track_caller]
    pub fn cumprod(&self, axis: isize) -> Tensor<T> {
        let n = self.length("cumprod", axis);
        let mut products = self.narrow(axis, 0, n);
        let mut len = 1;
        while len < n {
            // Of up to `len` elements each; then of up to twice as many.
            let longer = products.narrow(axis, len, n - len) * products.narrow(axis, 0, n - len);
            products = Tensor::concat(&[&products.narrow(axis, 0, len), &longer], axis);
            len *= 2;
        }
        products
    }

    /// The norm of order `p` along `axes`, which are removed; all of them if none is given: the sum of `|x|^p`
    /// to the power `1 / p`, without overflow or underflow of the powers. Infinity gives the greatest `|x|`, minus
    /// infinity the least, 0 the number of elements that are not 0 (which has no gradient).
    ///
    /// Where the norm is 0 there is no derivative: the gradient given there is 0, and for `p` above 1 a second
    /// derivative is NaN. If `p` is below 1, the gradient of any element that is 0 is 0 too. Equal
    /// extremes share the gradient.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[3.0, -4.0], [0.0, 2.0]]);
    /// assert_eq!(x.norm_axes(1, 2.0).to_vec(), [5.0, 2.0]);
    /// assert_eq!(x.norm_axes(0, 1.0).to_vec(), [3.0, 6.0]);
    /// assert_eq!(x.norm_axes(.., f64::INFINITY).item(), 4.0);
    /// ```
    ///
    /// # Panics
    ///
    /// If an axis does not exist or is named twice, if `p` is NaN or a finite number below 0, and for an infinite `p`
    /// if there are no elements.
    #[doc(alias = "vector_norm")]
    #[doc(alias = "norm_dim")]
    #[track_caller]
    pub fn norm_axes(&self, axes: impl IntoAxes, p: f64) -> Tensor<T> {
        expect(self.norm_of("norm_axes", axes.as_axes(), p, false))
    }

    /// [`Tensor::norm_axes`] with the axes kept, with length 1.
    ///
    /// # Panics
    ///
    /// As [`Tensor::norm_axes`].
    #[track_caller]
    pub fn norm_axes_keep(&self, axes: impl IntoAxes, p: f64) -> Tensor<T> {
        expect(self.norm_of("norm_axes_keep", axes.as_axes(), p, true))
    }

    #[track_caller]
    fn norm_of(&self, op: &'static str, axes: &[isize], p: f64, keep: bool) -> Result<Tensor<T>> {
        if !is_order(p) {
            return Err(Error::value(op, "p", "0 or more, or an infinity", p));
        }
        let attrs = [Attr::Ints(axes.to_vec()), Attr::Number(p), Attr::Flag(keep)];
        call(&NORM_AXES, attrs, [self.untyped()]).map_err(|error| error.called(op))
    }
}
