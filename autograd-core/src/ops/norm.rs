//! Norms of all elements, and of any order along axes.

use super::call::call;
use super::nn::{are_in_range, scale_of};
use super::shape::signed;
use super::table::{Attr, Dims, Form, OpDef, Type, entries, exactly, float, for_programs, reduced};
use super::{Caller, Float, expect};
use crate::array::IntoAxes;
use crate::array::shape::axes as check_axes;
use crate::error::{Error, RECEIVER, Result};
use crate::formula::{Lane, Real};
use crate::fuse;
use crate::graph::{Composite, GradMode, Rule, Saved, Tensor, finish};

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

    NORM_AXES = OpDef {
        attrs: &[("axes", Type::Ints), ("p", Type::Plain), ("keep", Type::Flag)],
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let dims = reduced(&x.dims, op.ints(0), op.flag(2))?;
            Ok(vec![Form::new(float(x)?.dtype, dims)])
        }),
        run: |op, x, at| {
            float!(x, x => norm_of_order(&x, op.ints(0), (op.number(1), op.flag(2)), at))
        },
        ..OpDef::new("norm_axes")
    };
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

fn norm_of_order<T: Float>(
    x: &Tensor<T>,
    axes: &[isize],
    (p, keep): (f64, bool),
    caller: Caller,
) -> Result<Tensor<T>> {
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
    let is_even = p > 0.0 && p % 2.0 == 0.0;
    let norm = GradMode::of(false, || {
        let scale = if empty { Tensor::from(T::ONE) } else { scale_for(x, axes, p) };
        let scaled = x / &scale;
        let size = if is_even { scaled } else { scaled.abs() };
        size.pow(p).sum_axes_keep(axes).pow(1.0 / p) * scale
    });
    let kept = norm.shape().to_vec();
    let norm = if keep { norm } else { norm.squeeze_axes(&signed(&positions)) };
    let value = norm.read().into_owned();
    Ok(finish(NORM_AXES.name, caller, &[x], value.clone(), || {
        let saved = [Saved::input(0, x), Saved::output_value(value)];
        Rule::new(saved, move |saved, dy: Tensor<T>, _| {
            let (x, y) = (saved.tensor::<T>()?, saved.tensor::<T>()?);
            let [y, dy] = [y, dy].map(|part| part.reshape(&kept[..]));
            Ok([Some(fuse!(|x, y, dy| dy * slope(x, y, p)))])
        })
    }))
}

/// The derivative of the norm `y` of order `p` by its element `x`: `|x / y|^(p - 1)` with the sign of `x`.
fn slope<L: Lane>(x: Real<L>, y: Real<L>, p: f64) -> Real<L> {
    let ratio = x / y;
    let slope = match p {
        2.0 => ratio,
        _ if p % 2.0 == 0.0 => ratio.powf(p - 1.0),
        _ => x.signum() * ratio.abs().powf(p - 1.0),
    };
    if p < 0.0 {
        return y.eq(0.0).select(0.0, slope);
    }
    // An element of 0 has an infinite slope for `p` below 1: 0 instead, or NaN if `y` is not finite.
    let slope = if p < 1.0 { x.eq(0.0).select(x * x * y, slope) } else { slope };
    // At 0 there is no derivative: the gradient is 0, with a derivative of NaN.
    y.eq(0.0).select(x.abs().sqrt(), slope)
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

/// # Norms
impl<T: Float> Tensor<T> {
    /// Returns `sqrt(sum(x²))` over all elements as a scalar, without overflow or underflow. At 0 the gradient
    /// is 0, and a second derivative is NaN.
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

    /// Returns the norm of order `p`, `sum(|x|^p)^(1 / p)`, along `axes`, which are removed; of all elements if none
    /// is given. It does not overflow or underflow; for `p` below 0, it is 0 if an element is 0. Infinity gives the greatest `|x|`, minus infinity the least, 0 the number of elements
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
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[3.0, -4.0], [0.0, 2.0]]);
    /// assert_eq!(x.norm_axes_keep(1, 2.0).shape(), [2, 1]);
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Tensor::norm_axes`].
    #[track_caller]
    pub fn norm_axes_keep(&self, axes: impl IntoAxes, p: f64) -> Tensor<T> {
        expect(self.norm_of("norm_axes_keep", axes.as_axes(), p, true))
    }

    /// Returns the Euclidean distances between the rows of two tensors, `[.., n, d]` and `[.., m, d]`, as
    /// `[.., n, m]`: `sqrt(sum((x[i] - y[j])²))`. Leading axes broadcast. The gradient at distance 0 is 0.
    /// Memory for the `n * m * d` differences is used.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[0.0, 0.0], [3.0, 4.0]]);
    /// assert_eq!(x.cdist(&Tensor::from([[0.0, 4.0]])).to_vec(), [4.0, 3.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If either has fewer than two axes, rows differ in length, or leading axes do not broadcast.
    #[track_caller]
    pub fn cdist(&self, other: &Tensor<T>) -> Tensor<T> {
        for (parameter, x) in [(RECEIVER, self), ("other", other)] {
            if x.ndim() < 2 {
                expect(Err(Error::shape("cdist", parameter, "of two axes or more", x.shape())))
            }
        }
        let (rows, others) = (self.shape(), other.shape());
        if rows.last() != others.last() {
            let expected = format!("of rows of {} elements", rows[rows.len() - 1]);
            expect(Err(Error::shape("cdist", "other", expected, others)))
        }
        let _composite = Composite::here("cdist");
        let apart = self.unsqueeze(-2).try_sub(other.unsqueeze(-3));
        expect(apart.map_err(|error| error.called("cdist"))).norm_axes(-1, 2.0)
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
