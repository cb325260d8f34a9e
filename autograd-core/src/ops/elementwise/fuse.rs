//! Fused expressions over tensors, without a named op.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::Location;
use std::sync::Arc;

use super::one_output;
use super::op::{ElementwiseOp, Handle, Traceable};
use crate::error::Result;
use crate::formula::{Real, RecordedFormula, Traced, record};
use crate::graph::Tensor;
use crate::ops::{Float, expect};

/// Computes a formula of some tensors in one pass over memory, broadcast to their common shape.
///
/// The closure is called once and may capture plain values. The result is differentiable to every
/// order. An op that is used often is faster as a `#[py_layer(elementwise)]`, which is compiled.
///
/// # Panics
///
/// If the shapes cannot be broadcast to one; see [`try_fuse`].
///
/// ```
/// use autograd_core::{Tensor, fuse};
///
/// let x = Tensor::from(vec![0.0, 1.0, 4.0]);
/// let scale = Tensor::from(10.0);
/// x.set_stop_gradient(false);
/// let y = fuse([&x, &scale], |[x, scale]| scale * (x * x + 1.0).ln());
/// y.sum().backward()?;
/// assert_eq!(x.grad().unwrap().at(&[1]), 10.0);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[track_caller]
pub fn fuse<T: Float, const N: usize>(
    inputs: [&Tensor<T>; N],
    formula: impl FnOnce([Real<Traced>; N]) -> Real<Traced>,
) -> Tensor<T> {
    expect(try_fuse(inputs, formula))
}

/// Computes a formula of the named tensors in one pass over memory: [`fuse`](crate::fuse())
/// for tensors in variables. In the formula the names are numbers.
///
/// ```
/// use autograd_core::{Tensor, fuse};
///
/// let (x, scale) = (Tensor::from(vec![0.0, 1.0, 4.0]), Tensor::from(10.0));
/// let y = fuse!(|x, scale| scale * (x * x + 1.0).ln());
/// assert_eq!(y.at(&[0]), 0.0);
/// ```
#[macro_export]
macro_rules! fuse {
    (|$($input:ident),+ $(,)?| $formula:expr) => {
        $crate::fuse([$($input.this()),+], |[$($input),+]| $formula)
    };
}

/// As [`fuse`], but returns an error if the shapes do not fit.
///
/// # Errors
///
/// [`Error::Shape`](crate::Error::Shape) if the shapes cannot be broadcast to one.
///
/// ```
/// use autograd_core::{Tensor, try_fuse};
///
/// let (x, y) = (Tensor::from(vec![1.0, 2.0]), Tensor::from(vec![1.0, 2.0, 3.0]));
/// let error = try_fuse([&x, &y], |[x, y]| x * y).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "fuse: input 1 must be of a shape that can be broadcast with [2], found shape [3]"
/// );
/// ```
#[track_caller]
pub fn try_fuse<T: Float, const N: usize>(
    inputs: [&Tensor<T>; N],
    formula: impl FnOnce([Real<Traced>; N]) -> Real<Traced>,
) -> Result<Tensor<T>> {
    let mut formula = Some(formula);
    let formula = record(N, 0, &mut |reals, _| match (formula.take(), reals.first_chunk()) {
        (Some(formula), Some(reals)) => vec![formula(*reals)],
        _ => unreachable!("it is called once, with as many as were asked for"),
    });
    let op: Arc<dyn ElementwiseOp<T>> = cached_op(formula, N);
    one_output(T::elementwise(Handle::Shared(op), &inputs, &[], Location::caller()))
}

/// Number of expressions that a thread remembers.
const MAX_CACHED: usize = 32;

thread_local! {
    /// The recent expressions of this thread, each with its number of inputs and its op.
    static CACHE: RefCell<VecDeque<(RecordedFormula, usize, Arc<Traceable>)>> =
        const { RefCell::new(VecDeque::new()) };
}

fn cached_op(formula: RecordedFormula, inputs: usize) -> Arc<Traceable> {
    let found = CACHE.with_borrow(|cache| {
        let same = |(other, n, _): &&(RecordedFormula, usize, _)| *other == formula && *n == inputs;
        cache.iter().find(same).map(|(_, _, op)| Arc::clone(op))
    });
    found.unwrap_or_else(|| {
        let op = Traceable::new("fuse", formula.program(), [inputs, 0, 1]).reading_outputs();
        let op = Arc::new(op);
        CACHE.with_borrow_mut(|cache| {
            cache.truncate(MAX_CACHED - 1);
            cache.push_front((formula, inputs, Arc::clone(&op)));
        });
        op
    })
}
