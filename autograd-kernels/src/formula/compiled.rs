//! A formula compiled for an element type: the loop over a block.

#![allow(clippy::needless_range_loop, reason = "an index names a place in several arrays")]

use super::lane::Lane;
use super::number::Number;
use super::pass::{Block, Formula, Scratch, block_of};
use super::program::{Program, Written};
use super::real::{Mask, Real};
use super::trace::trace;
use crate::array::math::Math;
use crate::array::simd::{SliceKernel, dispatch_slices};
use crate::array::{Cheap, Storable};

/// A formula of `I` numbers and `M` masks with `O` results, for any lane. Plain parameters are
/// fields. `call`, and every function in it, must be `#[inline(always)]`: code that stays a call is
/// compiled for the baseline.
pub trait Lanewise<const I: usize, const M: usize, const O: usize>: Send + Sync {
    /// The cheap function that the formula is, if any.
    #[doc(hidden)]
    const CHEAP: Option<Cheap> = None;
    fn call<L: Lane>(&self, reals: [Real<L>; I], masks: [Mask<L>; M]) -> [Real<L>; O];
}

/// A [`Lanewise`] formula as a [`Formula`] of any float type.
#[derive(Clone, Copy, Debug)]
pub struct Compiled<F, const I: usize, const M: usize, const O: usize>(pub F);

impl<T, F, const I: usize, const M: usize, const O: usize> Formula<T> for Compiled<F, I, M, O>
where
    T: Math + Storable,
    F: Lanewise<I, M, O>,
{
    fn outputs(&self) -> usize {
        O
    }

    fn run_program(&self, block: &mut Block<'_, T>) {
        by_program(self, block);
    }

    fn cheap(&self) -> Option<Cheap> {
        F::CHEAP
    }

    fn run_loop(&self, len: usize, reals: &[&[T]], masks: &[&[bool]], out: &mut [T]) -> bool {
        let [a, b, c] = first::<T, I>(reals);
        dispatch_slices(&Loop { formula: &self.0, len, reals, masks }, out, (a, b, c))
    }
}

#[cold]
#[inline(never)]
fn by_program<T: Math + Storable>(formula: &dyn Written, block: &mut Block<'_, T>) {
    let Block { read, reals, masks, out, scratch, .. } = block;
    let again = || Box::new((formula.program(), Scratch::default()));
    let (program, scratch) = &mut **scratch.program.get_or_insert_with(again);
    program.run_program(&mut Block { len: *read, read: *read, reals, masks, out, scratch });
}

impl<F, const I: usize, const M: usize, const O: usize> Written for Compiled<F, I, M, O>
where
    F: Lanewise<I, M, O>,
{
    fn program(&self) -> Program {
        trace(I, M, &mut |reals, masks| {
            let (Some(reals), Some(masks)) = (reals.first_chunk(), masks.first_chunk()) else {
                unreachable!("the trace has I numbers and M masks")
            };
            self.0.call(*reals, *masks).into()
        })
    }
}

struct Loop<'a, T, F, const I: usize, const M: usize, const O: usize> {
    formula: &'a F,
    len: usize,
    reals: &'a [&'a [T]],
    masks: &'a [&'a [bool]],
}

impl<T, F, const I: usize, const M: usize, const O: usize> SliceKernel<T>
    for &Loop<'_, T, F, I, M, O>
where
    T: Math,
    F: Lanewise<I, M, O>,
{
    type Output = bool;

    /// Results are a constant distance apart in one buffer: only one output to check for overlap.
    #[inline(always)]
    fn run<const FMA: bool>(self, out: &mut [T], (a, b, c): (&[T], &[T], &[T])) -> bool {
        let stride = const { block_of(O) };
        let Loop { len: n, reals, masks, .. } = *self;
        if const { O > 1 } {
            assert!(n <= stride, "blocks of several results fit their distance");
        }
        let x: [&[T]; I] = cut(n, reals, &[a, b, c]);
        let m: [&[bool]; M] = cut(n, masks, &[]);
        let out = &mut out[..if const { O == 1 } { n } else { O * stride }];
        let mut invalid = false;
        for i in 0..n {
            let (numbers, conditions) = (numbers_at(&x, i), masks_at(&m, i));
            let results = self.formula.call::<Number<T, FMA>>(numbers, conditions);
            for k in 0..O {
                out[k * stride + i] = results[k].0.value;
                invalid |= results[k].0.invalid;
            }
        }
        !invalid
    }
}

// Reading is separate from the loop: compiled for each number of operands, not for each formula.

#[inline]
fn first<'a, T, const I: usize>(reals: &[&'a [T]]) -> [&'a [T]; 3] {
    let given = |k: usize| if k < I { reals[k] } else { &[] };
    [given(0), given(1), given(2)]
}

/// The first `n` elements of the operands. `own` takes precedence: the compiler knows that arguments do not
/// overlap.
#[inline(always)]
fn cut<'a, E, const N: usize>(n: usize, given: &[&'a [E]], own: &[&'a [E]]) -> [&'a [E]; N] {
    if const { N == 0 } {
        return [&[]; N];
    }
    assert!(given.len() == N, "blocks fit their formula");
    let mut cut: [&[E]; N] = [&[]; N];
    for k in 0..N {
        cut[k] = &own.get(k).unwrap_or(&given[k])[..n];
    }
    cut
}

#[inline(always)]
fn numbers_at<T: Math, const FMA: bool, const I: usize>(
    x: &[&[T]; I],
    i: usize,
) -> [Real<Number<T, FMA>>; I] {
    let mut numbers = [Real(Number::new(T::zero())); I];
    for k in 0..I {
        numbers[k] = Real(Number::new(x[k][i]));
    }
    numbers
}

#[inline(always)]
fn masks_at<L: Lane, const M: usize>(m: &[&[bool]; M], i: usize) -> [Mask<L>; M] {
    let mut conditions = [Mask::from(false); M];
    if const { M > 0 } {
        for k in 0..M {
            conditions[k] = Mask::from(m[k][i]);
        }
    }
    conditions
}
