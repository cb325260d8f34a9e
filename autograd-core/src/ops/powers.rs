//! Cumulative products and norms of any order.

use super::call::{call, finish};
use super::nn::scale_of;
use super::shape::signed;
use super::table::{Attr, Form, OpDef, Type, entries, exactly, float, position, reduced};
use super::{Caller, Float, expect};
use crate::array::pick::{self, Around};
use crate::array::shape::{axes as check_axes, axis as check_axis};
use crate::array::{IntoAxes, Value};
use crate::error::{Error, Result};
use crate::graph::{SavedAttr, SavedInput, SavedOutput, Tensor};

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

    CUMPROD = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            position(op.int(0), float(x)?.dims.len())?;
            Ok(vec![x.clone()])
        },
        run: |op, x, at| float!(x, x => cumprod(&x, op.int(0), at)),
        ..OpDef::new("cumprod")
    };

    /// `y[k] = b[k] + a[k] y[k - 1]` along an axis, or `b[k] + a[k] y[k + 1]` from its end.
    RECURRENCE = OpDef {
        attrs: &[("axis", Type::Int), ("from_end", Type::Flag)],
        infer: |op, inputs| {
            let [a, b] = exactly(inputs)?;
            position(op.int(0), float(a)?.dims.len())?;
            if !a.agrees(b) {
                return Err(format!("its inputs differ: {a} and {b}"));
            }
            Ok(vec![a.clone()])
        },
        run: |op, x, at| float!(x, (a, b) => recurrence(&a, &b, (op.int(0), op.flag(1)), at)),
        ..OpDef::new("recurrence")
    };
}

/// Gives each element along an axis but the first, or the last, what `next` makes of it, of the element of `a`
/// at its place, and of the one before.
fn running<T: Float>(
    a: &Tensor<T>,
    y: Value<T>,
    (axis, from_end): (usize, bool),
    next: fn(T, T, T) -> T,
) -> Value<T> {
    let (read, Around { n, inner, .. }) = (a.read(), Around::new(a.shape(), axis));
    let read = read.contiguous();
    let (a, block) = (read.as_slice().unwrap_or(&[]), (n * inner).max(1));
    pick::changed(y, |y| {
        for (y, a) in y.chunks_exact_mut(block).zip(a.chunks_exact(block)) {
            for at in inner..block {
                let (at, before) = if from_end {
                    (block - 1 - at, block - 1 - at + inner)
                } else {
                    (at, at - inner)
                };
                y[at] = next(y[at], a[at], y[before]);
            }
        }
    })
}

fn cumprod<T: Float>(x: &Tensor<T>, axis: isize, caller: Caller) -> Result<Tensor<T>> {
    let position = check_axis("cumprod", axis, x.ndim())?;
    let value = running(x, x.read().into_owned(), (position, false), |y, _, before| before * y);
    let state = (SavedAttr(axis), SavedInput::at(0, x), SavedOutput(value.clone()));
    Ok(finish("cumprod", caller, [x], value, state, |(axis, x, y), dy, _| {
        let g = adjoint(&x, &dy, axis, false)?;
        let first = g.narrow(axis, 0, g.length("cumprod", axis).min(1));
        Ok([Some(slopes(first, &g, &y, axis, false))])
    }))
}

fn recurrence<T: Float>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    (axis, from_end): (isize, bool),
    caller: Caller,
) -> Result<Tensor<T>> {
    let position = check_axis("recurrence", axis, a.ndim())?;
    if a.shape() != b.shape() {
        let expected = format!("of the shape {:?} of `a`", a.shape());
        return Err(Error::shape("recurrence", "b", expected, b.shape()));
    }
    let next = |b, a, before| b + a * before;
    let value = running(a, b.read().into_owned(), (position, from_end), next);
    let saved = (SavedInput::at(0, a), SavedOutput(value.clone()));
    let state = (SavedAttr((axis, from_end)), saved);
    Ok(finish(
        "recurrence",
        caller,
        [a, b],
        value,
        state,
        |((axis, from_end), (a, y)), dy, wants| {
            let g = adjoint(&a, &dy, axis, from_end)?;
            let none =
                || Tensor::zeros_like(&g.narrow(axis, 0, g.length("recurrence", axis).min(1)));
            let da = wants[0].then(|| slopes(none(), &g, &y, axis, from_end));
            Ok([da, wants[1].then_some(g)])
        },
    ))
}

/// The gradients of what is added at each step: `g[k] = dy[k] + a[k + 1] g[k + 1]`.
fn adjoint<T: Float>(
    a: &Tensor<T>,
    dy: &Tensor<T>,
    axis: isize,
    from_end: bool,
) -> Result<Tensor<T>> {
    let factors = a.roll(if from_end { 1 } else { -1 }, axis);
    let attrs = [Attr::Int(axis), Attr::Flag(!from_end)];
    call(&RECURRENCE, attrs, [factors.untyped(), dy.untyped()])
}

/// The gradients of the factors, `g[k] y[k - 1]`, beside that of the one that no step multiplies by.
fn slopes<T: Float>(
    first: Tensor<T>,
    g: &Tensor<T>,
    y: &Tensor<T>,
    axis: isize,
    from_end: bool,
) -> Tensor<T> {
    let n = g.length("recurrence", axis);
    let (start, rest) = (n.min(1), n.saturating_sub(1));
    let part = |x: &Tensor<T>, late: bool| x.narrow(axis, if late { start } else { 0 }, rest);
    let others = part(g, !from_end) * part(y, from_end);
    let all = if from_end { [&others, &first] } else { [&first, &others] };
    Tensor::concat(&all, axis)
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
    let root = zeros.where_else(T::ONE, &sum).pow(1.0 / p);
    let root = zeros.where_else(zeros.where_else(&sum, T::ONE).pow(1.5), root);
    let norm = root * scale;
    if keep {
        return Ok(norm);
    }
    Ok(norm.squeeze_axes(&signed(&positions)))
}

/// # Products and norms along axes
impl<T: Float> Tensor<T> {
    /// The cumulative products along an axis, each including its own element, computed in order, as in NumPy.
    /// Gradients do not divide by elements, so they are exact where elements are zero.
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
        expect(call(&CUMPROD, [Attr::Int(axis)], [self.untyped()]))
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
