//! Kernels of tensors whose data stands inline: `+ - * /` of two of one shape, or of one and a number, and
//! formulas of one. They compute in an operand's own place, or in a copy, without a pass.

use super::{Binary, Float, Input};
use crate::array::shape::same;
use crate::formula::{Formula, run_over};
use crate::graph::Tensor;

/// Whether an op is of this kind.
#[inline(always)]
fn is_known(op: Binary) -> bool {
    matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::Div)
}

/// The result, outside the graph; both operands come back where they are not of this kind.
#[inline(always)]
pub(super) fn pair<'a, T: Float>(
    op: Binary,
    left: Input<'a, T>,
    right: Input<'a, T>,
) -> Result<Tensor<T>, [Input<'a, T>; 2]> {
    let (a, b) = (left.tensor(), right.tensor());
    if !a.is_small() || !b.is_small() || !is_known(op) || !same(a.shape(), b.shape()) {
        return Err([left, right]);
    }
    let mut now = None;
    if right.is_temporary() && !left.is_temporary() {
        let a = data(left.tensor(), &mut now);
        return Ok(over(right, |x| apply::<T>(op, true, x, a)));
    }
    let b = data(right.tensor(), &mut now);
    Ok(over(left, |x| apply::<T>(op, false, x, b)))
}

/// The same of a tensor and the number `s`, or of `s` and the tensor.
#[inline(always)]
pub(super) fn number<T: Float>(
    op: Binary,
    x: Input<'_, T>,
    s: T,
    swapped: bool,
) -> Result<Tensor<T>, Input<'_, T>> {
    if !x.tensor().is_small() || !is_known(op) {
        return Err(x);
    }
    let mut number = T::INLINE;
    number.as_mut().fill(s);
    Ok(over(x, |x| apply::<T>(op, swapped, x, &number)))
}

/// A formula of one tensor, or of one before it and that.
#[inline(always)]
pub(super) fn formula<'a, T: Float>(
    formula: &dyn Formula<T>,
    before: Option<&Tensor<T>>,
    x: Input<'a, T>,
) -> Result<Tensor<T>, Input<'a, T>> {
    let mut now = None;
    let before = before.map(|before| before.small_data(&mut now));
    if !x.tensor().is_small() || matches!(before, Some(None)) {
        return Err(x);
    }
    let before = before.flatten();
    let len = x.tensor().len();
    let run = |from: &T::Inline, to: &mut T::Inline| {
        if formula.run_inline(before, from, to) {
            *to = *from;
            run_over(formula, len, before.map(AsRef::as_ref), to.as_mut());
        }
    };
    if x.is_temporary() {
        // Beside it: a copy to read from would be written in narrow pieces and at once read in wide ones.
        return Ok(over(x, |x| {
            let mut out = T::INLINE;
            run(x, &mut out);
            *x = out;
        }));
    }
    // Not in a copy: what has just been written in narrow pieces is not there yet for wide ones.
    let (x, mut now) = (x.tensor(), None);
    let from = data(x, &mut now);
    Ok(x.small_like().rewritten(|to| run(from, to)))
}

/// In an operand's own place, if it is a temporary, or in a copy.
#[inline(always)]
fn over<T: Float>(x: Input<'_, T>, run: impl Fn(&mut T::Inline)) -> Tensor<T> {
    let copy = match x {
        Input::Ref(x) => x.small_copy(),
        Input::Own(mut x) => {
            if x.try_in_place(|value| value.inline_mut().map(|(data, _)| run(data)).is_some()) {
                return x;
            }
            x.small_copy()
        }
    };
    copy.unwrap_or_else(|| not_small()).rewritten(run)
}

#[inline(always)]
fn data<'a, T: Float>(x: &'a Tensor<T>, now: &'a mut Option<T::Inline>) -> &'a T::Inline {
    x.small_data(now).unwrap_or_else(|| not_small())
}

#[cold]
fn not_small() -> ! {
    unreachable!("the operands were seen to stand inline")
}

/// Writes over `x`; with the arguments exchanged if `swapped`.
#[inline]
fn apply<T: Float>(op: Binary, swapped: bool, x: &mut T::Inline, y: &T::Inline) {
    let pairs = x.as_mut().iter_mut().zip(y.as_ref());
    match (op, swapped) {
        (Binary::Add, _) => pairs.for_each(|(x, y)| *x = x.plus(*y)),
        (Binary::Sub, false) => pairs.for_each(|(x, y)| *x = x.minus(*y)),
        (Binary::Sub, true) => pairs.for_each(|(x, y)| *x = y.minus(*x)),
        (Binary::Mul, _) => pairs.for_each(|(x, y)| *x = x.times(*y)),
        (_, false) => pairs.for_each(|(x, y)| *x = x.over(*y)),
        (_, true) => pairs.for_each(|(x, y)| *x = y.over(*x)),
    }
}
