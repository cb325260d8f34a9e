//! A formula compiled for an element type: the loop over a block.

use super::lane::Lane;
use super::number::Number;
use super::pass::{BLOCK, Block, Formula, Written};
use super::program::Program;
use super::real::{Mask, Real};
use super::trace::trace;
use crate::array::Storable;
use crate::array::math::Math;
use crate::array::simd::{Kernel, dispatch};

/// A formula of `I` numbers and `M` masks with `O` results, for any lane. Plain parameters are
/// fields.
///
/// `call` and all that it calls are `#[inline(always)]`: a call that stays a call is compiled for
/// the baseline.
pub trait Lanewise<const I: usize, const M: usize, const O: usize>: Send + Sync {
    /// The formula.
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

    fn run(&self, block: &mut Block<'_, T>) -> bool {
        dispatch(Loop { formula: &self.0, block })
    }
}

impl<F, const I: usize, const M: usize, const O: usize> Written for Compiled<F, I, M, O>
where
    F: Lanewise<I, M, O>,
{
    fn program(&self) -> Program {
        trace(I, M, |reals, masks| {
            let reals: [_; I] = std::array::from_fn(|i| reals[i]);
            let masks: [_; M] = std::array::from_fn(|i| masks[i]);
            self.0.call(reals, masks).to_vec()
        })
    }
}

struct Loop<'a, 'b, T, F, const I: usize, const M: usize, const O: usize> {
    formula: &'a F,
    block: &'a mut Block<'b, T>,
}

impl<T, F, const I: usize, const M: usize, const O: usize> Kernel for Loop<'_, '_, T, F, I, M, O>
where
    T: Math,
    F: Lanewise<I, M, O>,
{
    type Output = bool;

    /// Several results go to one buffer, a constant distance apart: the compiler then has one
    /// place that is written to hold against those that are read.
    #[inline(always)]
    fn run<const FMA: bool>(self) -> bool {
        let Block { len, reals, masks, out, .. } = self.block;
        let n = *len;
        assert!(n <= BLOCK && reals.len() == I && masks.len() == M, "blocks fit their formula");
        let mut x: [&[T]; I] = [&[]; I];
        for (x, given) in x.iter_mut().zip(reals.iter()) {
            *x = &given[..n];
        }
        let mut m: [&[bool]; M] = [&[]; M];
        for (m, given) in m.iter_mut().zip(masks.iter()) {
            *m = &given[..n];
        }
        let out = if O == 1 { &mut out[..n] } else { &mut out[..O * BLOCK] };
        let mut beyond = false;
        for i in 0..n {
            let mut numbers = [Real(Number::<T, FMA>::lit(0.0)); I];
            for k in 0..I {
                numbers[k] = Real(Number::new(x[k][i]));
            }
            let mut conditions = [Mask::from(false); M];
            for k in 0..M {
                conditions[k] = Mask::from(m[k][i]);
            }
            let results = self.formula.call(numbers, conditions);
            for k in 0..O {
                out[k * BLOCK + i] = results[k].0.value;
                beyond |= results[k].0.beyond;
            }
        }
        beyond
    }
}
