//! Cumulative sums and products along an axis.

use super::call::{call, linear};
use super::table::{
    Attr, OpDef, Type, arithmetic, entries, exactly, float, float_along, for_programs, number,
    same_along,
};
use super::{Binary, Caller, Float, Numeric, expect, pairs};
use crate::array::Value;
use crate::array::pick::{self, AxisShape};
use crate::array::shape::axis as check_axis;
use crate::error::{Error, Result};
use crate::graph::{Rule, Saved, Tensor, finish};

entries! {
    CUMULATIVE:

    CUMSUM = OpDef {
        attrs: &[("axis", Type::Int), ("from_end", Type::Flag)],
        infer: for_programs(|op, inputs| {
            arithmetic(Binary::Add, exactly::<1>(inputs)?[0])?;
            same_along(op, inputs)
        }),
        run: |op, x, at| number!(x, x => cumsum(&x, op.int(0), op.flag(1), at)),
        ..OpDef::new("cumsum")
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

fn cumsum<T: Numeric>(
    x: &Tensor<T>,
    axis: isize,
    from_end: bool,
    caller: Caller,
) -> Result<Tensor<T>> {
    let position = check_axis("cumsum", axis, x.ndim())?;
    let around = AxisShape::new(x.shape(), position);
    let value = T::running("cumsum", x.read().into_owned(), around, from_end)?;
    let back = |(axis, from_end): (isize, bool), dy: Tensor<T>| running_sum(&dy, axis, !from_end);
    let along = |(axis, from_end), dx: &Tensor<T>, _: &[usize]| running_sum(dx, axis, from_end);
    Ok(linear(CUMSUM.name, caller, x, value, (axis, from_end), back, along))
}

#[track_caller]
fn running_sum<T: Numeric>(x: &Tensor<T>, axis: isize, from_end: bool) -> Result<Tensor<T>> {
    call(&CUMSUM, [Attr::Int(axis), Attr::Flag(from_end)], [x.untyped()])
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

/// # Cumulative sums
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Returns the running sums along an axis, `y[i] = x[0] + .. + x[i]`, in the shape of `x`, added in order
        /// in the element type, as in NumPy ([`sum`](Tensor::sum) adds by blocks and is more accurate).
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::from([1.0, 2.0, 3.0]).cumsum(0).to_vec(), [1.0, 3.0, 6.0]);
        /// ```
        pub fn cumsum, try_cumsum(&self, axis: isize) -> Tensor<T>,
            Axis | Overflow if "there is no such axis, or an integer sum is outside of the element type",
            "Tensor::from([200_u8, 100]).try_cumsum(0)" => Overflow {
            running_sum(self, axis, false)
        }
    }
}

/// # Cumulative products
impl<T: Float> Tensor<T> {
    pairs! {
        /// Returns the cumulative products along an axis, `y[i] = x[0] * .. * x[i]`, in the shape of `x`. Gradients
        /// are exact for zeros too.
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
}
