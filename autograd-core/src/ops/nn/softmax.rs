//! Softmax and its logarithm, without overflow.

use std::ptr;

use super::super::call::call;
use super::super::reduce::without;
use super::super::shape::signed;
use super::super::table::{
    Attr, OpDef, Type, entries, float, float_along, float_reduced, for_programs,
};
use super::super::{Caller, Float, pairs};
use super::kernels::{self, RowPull, pull_rows};
use crate::array::IntoAxes;
use crate::array::shape::{axes as check_axes, axis as check_axis};
use crate::error::Result;
use crate::fuse;
use crate::graph::{GradMode, Rule, Saved, Tensor, finish, is_grad_enabled};

entries! {
    SOFTMAXES:

    SOFTMAX = OpDef {
        run: |op, x, at| float!(x, x => softmax(&SOFTMAX, &x, op.int(0), at)),
        ..along_axis("softmax")
    };

    LOG_SOFTMAX = OpDef {
        run: |op, x, at| float!(x, x => softmax(&LOG_SOFTMAX, &x, op.int(0), at)),
        ..along_axis("log_softmax")
    };

    LOGSUMEXP = OpDef {
        attrs: &[("axes", Type::Ints)],
        infer: for_programs(float_reduced),
        run: |op, x, at| float!(x, x => logsumexp(&x, op.ints(0), at)),
        ..OpDef::new("logsumexp")
    };
}

const fn along_axis(name: &'static str) -> OpDef {
    OpDef { attrs: &[("axis", Type::Int)], infer: for_programs(float_along), ..OpDef::new(name) }
}

fn softmax<T: Float>(
    op: &'static OpDef,
    x: &Tensor<T>,
    axis: isize,
    caller: Caller,
) -> Result<Tensor<T>> {
    if check_axis(op.name, axis, x.ndim())? + 1 == x.ndim() {
        return Ok(last(op, x, caller));
    }
    Ok(last(op, &x.swap_axes(axis, -1), caller).swap_axes(axis, -1))
}

fn last<T: Float>(op: &'static OpDef, x: &Tensor<T>, caller: Caller) -> Tensor<T> {
    let (n, log) = (x.shape()[x.ndim() - 1], ptr::eq(op, &LOG_SOFTMAX));
    let value = x.row_major(x.shape_owned(), |from, rows| match log {
        false => kernels::softmax::<T, false>(rows, from, n),
        true => kernels::softmax::<T, true>(rows, from, n),
    });
    finish(op.name, caller, &[x], value.clone(), || {
        let saved = [Saved::output_value(value)];
        Rule::new(saved, move |saved, dy: Tensor<T>, _| {
            Ok([Some(pull(log, &saved.tensor()?, &dy))])
        })
    })
}

/// `y = softmax(x)`: `dx = y (dy - sum(dy y))`; `y = log_softmax(x)`: `dx = dy - exp(y) sum(dy)`.
fn pull<T: Float>(log: bool, y: &Tensor<T>, dy: &Tensor<T>) -> Tensor<T> {
    if !is_grad_enabled() {
        let (shape, n, y) = (y.shape_owned(), y.shape()[y.ndim() - 1], y.read());
        let y = y.contiguous();
        let y = y.as_slice().unwrap_or(&[]);
        let pull = if log { RowPull::LogSoftmax } else { RowPull::Softmax };
        return Tensor::from_value(dy.row_major(shape, |dy, dx| pull_rows(dx, [dy, y], n, pull)));
    }
    if log {
        let sum = dy.sum_axes_keep([-1]);
        return fuse!(|y, dy, sum| dy - y.exp() * sum);
    }
    let sum = (dy * y).sum_axes_keep([-1]);
    fuse!(|y, dy, sum| y * (dy - sum))
}

fn logsumexp<T: Float>(x: &Tensor<T>, axes: &[isize], caller: Caller) -> Result<Tensor<T>> {
    let positions = check_axes("logsumexp", axes, x.ndim())?;
    let shape = without(x.shape(), &positions);
    let axes = signed(&positions);
    let (largest, rest) = GradMode::of(false, || {
        let largest = finite_largest(x, &axes);
        let rest = (x - &largest).exp().sum_axes_keep(&axes).ln();
        (largest, rest)
    });
    let value = GradMode::of(false, || (&rest + &largest).reshape(shape));
    let value = value.read().into_owned();
    Ok(finish(LOGSUMEXP.name, caller, &[x], value, || {
        let saved = [Saved::plain((largest, rest)), Saved::input(0, x)];
        Rule::new(saved, move |saved, dy: Tensor<T>, _| {
            let (hidden, x) = (saved.plain::<(Tensor<T>, Tensor<T>)>(), saved.tensor()?);
            let (largest, rest) = &*hidden;
            let finite = rest.abs().lt_scalar(T::infinity()).all();
            let shares = if !finite || is_grad_enabled() {
                shares(&x, &axes)
            } else if largest.abs().le_scalar(16.0).all() {
                (x - (largest + rest)).exp()
            } else {
                // Their sum would be rounded like a large number.
                (x - largest - rest).exp()
            };
            Ok([Some(shares * dy.reshape(rest.shape()))])
        })
    }))
}

/// Returns the greatest element along the axes, which are kept; 0 if it is infinite or there is none.
fn finite_largest<T: Float>(x: &Tensor<T>, axes: &[isize]) -> Tensor<T> {
    if x.is_empty() {
        return Tensor::from(T::ZERO);
    }
    GradMode::of(false, || {
        let largest = x.max_axes_keep(axes);
        let infinite = largest.abs().eq_scalar(T::infinity());
        infinite.where_else(T::ZERO, &largest)
    })
}

/// Returns `exp(x)` divided by its sum; 0 if all are minus infinity, and infinite elements share the whole.
fn shares<T: Float>(x: &Tensor<T>, axes: &[isize]) -> Tensor<T> {
    let all = (x - finite_largest(x, axes)).exp();
    let sum = all.sum_axes_keep(axes);
    let nothing = sum.eq_scalar(T::ZERO);
    let shares = &all / nothing.where_else(T::ONE, &sum);
    let infinite = sum.eq_scalar(T::infinity());
    if !infinite.any() {
        return shares;
    }
    let hits = x.eq_scalar(T::infinity()).where_else(T::ONE, T::ZERO);
    let count = hits.sum_axes_keep(axes).maximum(1.0);
    infinite.where_else(&(hits / count), &shares)
}

/// # Softmax
impl<T: Float> Tensor<T> {
    pairs! {
        /// Returns `exp(x) / sum(exp(x))`, with the sum along an axis, in the shape of `x`, without overflow.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let y = Tensor::from(vec![1000.0, 1000.0]).softmax(0);
        /// assert_eq!(y.to_vec(), [0.5, 0.5]);
        /// ```
        pub fn softmax, try_softmax(&self, axis: isize) -> Tensor<T>, Axis if "there is no such axis",
            "Tensor::from([1.0]).try_softmax(1)" => Axis {
            call(&SOFTMAX, [Attr::Int(axis)], [self.untyped()])
        }

        /// Returns `x - ln(sum(exp(x)))`, the logarithm of [`Tensor::softmax`], in the shape of `x`; accurate even
        /// if the softmax is nearly 0.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let y = Tensor::from([0.0, 1000.0]).log_softmax(0);
        /// assert_eq!(y.to_vec(), [-1000.0, 0.0]);
        /// ```
        pub fn log_softmax, try_log_softmax(&self, axis: isize) -> Tensor<T>,
            Axis if "there is no such axis",
            "Tensor::from([1.0]).try_log_softmax(1)" => Axis
        {
            call(&LOG_SOFTMAX, [Attr::Int(axis)], [self.untyped()])
        }

        /// Returns `ln(sum(exp(x)))`, with the sum along `axes`, which are removed; of all elements if
        /// none is given. Does not overflow; minus infinity for no elements.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let y = Tensor::from([1000.0, 1000.0]).logsumexp(0);
        /// assert!((y.item() - 1000.0 - 2_f64.ln()).abs() < 1e-12);
        /// ```
        pub fn logsumexp, try_logsumexp(&self, axes: impl IntoAxes) -> Tensor<T>,
            Axis if "an axis does not exist or is given twice",
            "Tensor::from([1.0]).try_logsumexp(1)" => Axis
        {
            call(&LOGSUMEXP, [Attr::Ints(axes.as_axes().to_vec())], [self.untyped()])
        }
    }
}
