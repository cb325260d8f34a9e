//! Cumulative products and norms of any order.

use super::call::call;
use super::nn::scale_of;
use super::shape::signed;
use super::table::{
    Attr, Form, OpDef, Type, entries, exactly, float, float_along, for_programs, reduced,
};
use super::{Caller, Float, expect, pairs};
use crate::array::pick::{self, AxisShape};
use crate::array::shape::{axes as check_axes, axis as check_axis};
use crate::array::{IntoAxes, Value};
use crate::error::{Error, Result};
use crate::graph::{GradMode, Rule, Saved, Tensor, finish};

entries! {
    POWERS:

    NORM_AXES = OpDef {
        attrs: &[("axes", Type::Ints), ("p", Type::Plain), ("keep", Type::Flag)],
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let dims = reduced(&x.dims, op.ints(0), op.flag(2))?;
            Ok(vec![Form::new(float(x)?.dtype, dims)])
        }),
        run: |op, x, _| float!(x, x => norm(&x, op.ints(0), op.number(1), op.flag(2))),
        ..OpDef::new("norm_axes")
    };

    CUMPROD = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: for_programs(float_along),
        run: |op, x, at| float!(x, x => cumprod(&x, op.int(0), at)),
        ..OpDef::new("cumprod")
    };

    /// `y[k] = b[k] + a[k] y[k - 1]` along an axis.
    RECURRENCE = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: for_programs(|op, inputs| {
            let [a, b] = exactly(inputs)?;
            if !a.agrees(b) {
                return Err(format!("its inputs differ: {a} and {b}"));
            }
            float_along(op, &inputs[..1])
        }),
        run: |op, x, at| float!(x, (a, b) => recurrence(&a, &b, op.int(0), at)),
        ..OpDef::new("recurrence")
    };
}

/// Replaces each element but the first along an axis by `next` of it, of that of `a`, and of the last result.
fn running<T: Float>(a: &Tensor<T>, y: Value<T>, axis: usize, next: fn(T, T, T) -> T) -> Value<T> {
    let (read, AxisShape { n, inner, .. }) = (a.read(), AxisShape::new(a.shape(), axis));
    let read = read.contiguous();
    let (a, block) = (read.as_slice().unwrap_or(&[]), (n * inner).max(1));
    pick::changed(y, |y| {
        for (y, a) in y.chunks_exact_mut(block).zip(a.chunks_exact(block)) {
            (inner..block).for_each(|at| y[at] = next(y[at], a[at], y[at - inner]));
        }
    })
}

fn cumprod<T: Float>(x: &Tensor<T>, axis: isize, caller: Caller) -> Result<Tensor<T>> {
    let position = check_axis("cumprod", axis, x.ndim())?;
    let value = running(x, x.read().into_owned(), position, |y, _, before| before * y);
    Ok(finish(CUMPROD.name, caller, &[x], value.clone(), || {
        let saved = [Saved::input(0, x), Saved::output_value(value)];
        Rule::new(saved, move |saved, dy: Tensor<T>, _| {
            let (x, y) = (saved.tensor()?, saved.tensor()?);
            let db = adjoint(&x, &dy, axis)?;
            Ok([Some(of_factors(&db, &y, axis, |first| first))])
        })
    }))
}

fn recurrence<T: Float>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    axis: isize,
    caller: Caller,
) -> Result<Tensor<T>> {
    let position = check_axis("recurrence", axis, a.ndim())?;
    if a.shape() != b.shape() {
        let expected = format!("of the shape {:?} of `a`", a.shape());
        return Err(Error::shape("recurrence", "b", expected, b.shape()));
    }
    let value = running(a, b.read().into_owned(), position, |b, a, before| b + a * before);
    Ok(finish(RECURRENCE.name, caller, &[a, b], value.clone(), || {
        let saved = [Saved::input(0, a), Saved::output_value(value)];
        Rule::new(saved, move |saved, dy: Tensor<T>, wants| {
            let (a, y) = (saved.tensor()?, saved.tensor()?);
            let db = adjoint(&a, &dy, axis)?;
            // The first factor multiplies nothing.
            let da = || of_factors(&db, &y, axis, |first| Tensor::zeros_like(&first));
            Ok([wants[0].then(da), wants[1].then(|| db.clone())])
        })
    }))
}

/// Returns the gradients of the addends: `db[k] = dy[k] + a[k + 1] db[k + 1]`, a recurrence from the end.
fn adjoint<T: Float>(a: &Tensor<T>, dy: &Tensor<T>, axis: isize) -> Result<Tensor<T>> {
    let (a, dy) = (a.flip(axis).roll(1, axis), dy.flip(axis));
    let db: Tensor<T> = call(&RECURRENCE, [Attr::Int(axis)], [a.untyped(), dy.untyped()])?;
    Ok(db.flip(axis))
}

/// Returns the gradients of the factors: `db[k] y[k - 1]`, and `first` of `db` for the first.
fn of_factors<T: Float>(
    db: &Tensor<T>,
    y: &Tensor<T>,
    axis: isize,
    first: fn(Tensor<T>) -> Tensor<T>,
) -> Tensor<T> {
    let n = db.length("cumprod", axis);
    let (one, rest) = (n.min(1), n.saturating_sub(1));
    let others = db.narrow(axis, one, rest) * y.narrow(axis, 0, rest);
    Tensor::concat(&[&first(db.narrow(axis, 0, one)), &others], axis)
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
    let empty = positions.iter().any(|&position| x.shape()[position] == 0);
    if empty && p < 0.0 {
        return named(size().try_min(axes, keep));
    }
    let scale = if empty { Tensor::from(T::ONE) } else { scale_for(x, axes, p) };
    let x = x / &scale;
    let powers = if p > 0.0 && p % 2.0 == 0.0 {
        x.pow(p)
    } else if p > 1.0 {
        x.abs().pow(p)
    } else {
        // At 0 the slope is infinite. There, another function with the same value has a slope of 0.
        let zeros = x.eq_scalar(T::ZERO);
        let of_zeros = if p < 0.0 { Tensor::from(T::infinity()) } else { x.abs() };
        zeros.where_else(of_zeros, zeros.where_else(T::ONE, x.abs()).pow(p))
    };
    let sum = powers.sum_axes_keep(axes);
    let zeros = sum.eq_scalar(T::ZERO);
    let root = zeros.where_else(T::ONE, &sum).pow(1.0 / p);
    let of_zeros = match p < 0.0 {
        true => Tensor::from(T::infinity()),
        false => zeros.where_else(&sum, T::ONE).pow(1.5),
    };
    let root = zeros.where_else(of_zeros, root);
    let norm = root * scale;
    if keep {
        return Ok(norm);
    }
    Ok(norm.squeeze_axes(&signed(&positions)))
}

/// The divisor of elements before they are raised to `p`: the largest magnitude, or the least other than 0.
fn scale_for<T: Float>(x: &Tensor<T>, axes: &[isize], p: f64) -> Tensor<T> {
    if p > 0.0 {
        return scale_of(x, axes, 0.0);
    }
    GradMode::of(false, || {
        let size = x.abs();
        let least = size.eq_scalar(T::ZERO).where_else(T::infinity(), &size).min_axes_keep(axes);
        least.lt_scalar(T::infinity()).where_else(&least, T::ONE)
    })
}

/// # Products and norms along axes
impl<T: Float> Tensor<T> {
    pairs! {
        /// Returns the cumulative products along an axis, in order. Gradients are exact for zeros too.
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
        pub fn cumprod(&self, axis: isize) -> Tensor<T>, Panics if "there is no such axis" {
            expect(call(&CUMPROD, [Attr::Int(axis)], [self.untyped()]))
        }
    }

    /// Returns the norm of order `p` along `axes`, which are removed; of all elements if none is given: the
    /// sum of `|x|^p` to the power `1 / p`, without overflow or underflow; for `p` below 0, it is 0 if an
    /// element is 0. Infinity gives the greatest `|x|`, minus infinity the least, 0 the number of elements
    /// other than 0 (without a gradient). Where the norm is 0 the gradient is 0, and for `p` above 1 a second
    /// derivative is NaN. For `p` below 1, an element of 0 has the gradient 0. Equal extremes share theirs.
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
    /// If an axis does not exist or is named twice, if `p` is NaN, or if there are no elements and
    /// `p` is below 0 or infinite.
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
        if p.is_nan() {
            return Err(Error::value(op, "p", "a number", p));
        }
        let attrs = [Attr::Ints(axes.to_vec()), Attr::Number(p), Attr::Flag(keep)];
        call(&NORM_AXES, attrs, [self.untyped()]).map_err(|error| error.called(op))
    }
}
