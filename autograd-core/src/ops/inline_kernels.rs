//! Kernels for tensors with inline data, which compute in an operand's own memory, or in a copy.

use super::{Binary, Float, Input};
use crate::array::shape::same;
use crate::graph::Tensor;

#[inline(always)]
fn is_known(op: Binary) -> bool {
    matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::Div)
}

/// Computes the result without a record; returns both operands if there is no kernel for them.
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
        return Ok(reuse_or_copy(right, |x| apply::<T>(op, true, x, a)));
    }
    let b = data(right.tensor(), &mut now);
    Ok(reuse_or_copy(left, |x| apply::<T>(op, false, x, b)))
}

/// As [`pair`], for a tensor and the number `s`, or, if swapped, for `s` and the tensor.
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
    Ok(reuse_or_copy(x, |x| apply::<T>(op, swapped, x, &number)))
}

#[inline(always)]
pub(super) fn reuse_or_copy<T: Float>(x: Input<'_, T>, run: impl Fn(&mut T::Inline)) -> Tensor<T> {
    let copy = match x {
        Input::Ref(x) => x.small_copy(run),
        Input::Own(mut x) => {
            if x.try_in_place(|value| value.inline_mut().map(|(data, _)| run(data)).is_some()) {
                return x;
            }
            x.small_copy(run)
        }
    };
    copy.unwrap_or_else(|| not_small())
}

#[inline(always)]
pub(super) fn data<'a, T: Float>(
    x: &'a Tensor<T>,
    now: &'a mut Option<T::Inline>,
) -> &'a T::Inline {
    x.small_data(now).unwrap_or_else(|| not_small())
}

#[cold]
fn not_small() -> ! {
    unreachable!("the caller has checked that the operands are inline")
}

/// Writes the result over `x`; with the arguments exchanged if `swapped`.
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
