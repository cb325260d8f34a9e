//! The loops over rows of softmax and cross entropy.

use super::super::{Arithmetic, Float};
use crate::array::simd::{Kernel, dispatch};
use crate::array::threads::{each_chunk_of, grain};

/// Number of elements, in whole rows, that a thread takes at once.
const CHUNK: usize = 16 * 1024;

/// Number of partial results of a row; a constant, so that sums are the same on every CPU.
const LANES: usize = 8;
/// As [`LANES`], for long rows: additions wait less for each other, and `f` can use whole registers.
const LONG_LANES: usize = 4 * LANES;

#[inline(always)]
fn fold_lanes<T: Copy>(row: &[T], start: T, f: impl Fn(T) -> T, join: impl Fn(T, T) -> T) -> T {
    let mut lanes = [start; LANES];
    let (blocks, row) = row.as_chunks::<LONG_LANES>();
    if !blocks.is_empty() {
        let mut many = [start; LONG_LANES];
        for block in blocks {
            for (lane, &x) in many.iter_mut().zip(block) {
                *lane = join(*lane, f(x));
            }
        }
        for part in many.as_chunks::<LANES>().0 {
            for (lane, &x) in lanes.iter_mut().zip(part) {
                *lane = join(*lane, x);
            }
        }
    }
    let (blocks, rest) = row.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane = join(*lane, f(x));
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = join(*lane, f(x));
    }
    lanes.into_iter().fold(start, join)
}

#[inline(always)]
fn total<T: Float>(row: &[T]) -> T {
    fold_lanes(row, T::ZERO, |x| x, T::plus)
}

/// Number of elements, in whole rows, that are copied before the computation.
const BLOCK: usize = 2048;

/// Returns about `most` elements as a number of elements in whole rows of `n`, at least one row.
fn whole_rows(n: usize, most: usize) -> usize {
    (most / n.max(1)).max(1) * n.max(1)
}

fn chunk_of<T>(rows: &[T], n: usize) -> usize {
    whole_rows(n, grain(rows.len(), 1).min(CHUNK))
}

#[inline(always)]
fn exp<T: Float, const FMA: bool>(x: T) -> T {
    x.v_exp::<FMA>()
}

#[inline(always)]
fn greatest<T: Float>(row: &[T]) -> T {
    fold_lanes(row, T::LOWEST, |x| x, Arithmetic::greater)
}

#[inline(always)]
fn less_greatest<T: Float>(row: &mut [T]) {
    let max = greatest(row);
    for x in row {
        *x = *x - max;
    }
}

/// Overwrites each row of `n` elements by its softmax, or the logarithm. Loops run over many rows.
struct Softmax<'a, T, const LOG: bool>(&'a mut [T], usize);

impl<T: Float, const LOG: bool> Kernel for Softmax<'_, T, LOG> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(rows, n) = self;
        // Loops, not closures: a closure that is not inlined is compiled for the baseline CPU.
        for row in rows.chunks_exact_mut(n.max(1)) {
            less_greatest(row);
        }
        if !LOG {
            for x in rows.iter_mut() {
                *x = exp::<T, FMA>(*x);
            }
        }
        for row in rows.chunks_exact_mut(n.max(1)) {
            if LOG {
                let log = fold_lanes(row, T::ZERO, exp::<T, FMA>, T::plus).v_ln::<FMA>();
                for x in row.iter_mut() {
                    *x = *x - log;
                }
            } else {
                let sum = total(row);
                for x in row.iter_mut() {
                    *x = *x / sum;
                }
            }
        }
    }
}

pub(super) fn softmax<T: Float, const LOG: bool>(rows: &mut [T], from: &[T], n: usize) {
    let (chunk, block) = (chunk_of(rows, n), whole_rows(n, BLOCK));
    each_chunk_of(rows.len(), rows, chunk, &|index, rows| {
        let from = &from[index * chunk..][..rows.len()];
        for (rows, from) in rows.chunks_mut(block).zip(from.chunks(block)) {
            rows.copy_from_slice(from);
            dispatch(Softmax::<T, LOG>(rows, n));
        }
    });
}

struct LogSumExp<'a, T>(&'a [T], usize, &'a mut [T]);

impl<T: Float> Kernel for LogSumExp<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(rows, n, out) = self;
        for (row, out) in rows.chunks_exact(n.max(1)).zip(out) {
            let max = greatest(row);
            let sum = fold_lanes(row, T::ZERO, |x| exp::<T, FMA>(x - max), T::plus);
            // An infinite maximum is the result itself.
            let finite = num_traits::Float::is_finite(max);
            *out = if finite { max + sum.v_ln::<FMA>() } else { max };
        }
    }
}

pub(super) fn log_sum_exp<T: Float>(rows: &[T], n: usize, out: &mut [T]) {
    let chunk = chunk_of(rows, n);
    each_chunk_of(rows.len(), out, chunk / n.max(1), &|index, out| {
        dispatch(LogSumExp(&rows[index * chunk..][..out.len() * n], n, out));
    });
}

struct SoftmaxScaled<'a, T>(&'a mut [T], &'a [T], usize, T);

impl<T: Float> Kernel for SoftmaxScaled<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(rows, sums, n, scale) = self;
        let (n, block) = (n.max(1), whole_rows(n, BLOCK));
        for (rows, sums) in rows.chunks_mut(block).zip(sums.chunks(block / n)) {
            for (row, &sum) in rows.chunks_exact_mut(n).zip(sums) {
                for x in row.iter_mut() {
                    *x = *x - sum;
                }
            }
            for x in rows.iter_mut() {
                *x = exp::<T, FMA>(*x) * scale;
            }
        }
    }
}

/// Replaces each `x` by `exp(x - sum) * scale`, where `sum` is the log-sum-exp of its row.
pub(super) fn softmax_scaled<T: Float>(rows: &mut [T], sums: &[T], n: usize, scale: T) {
    let chunk = chunk_of(rows, n);
    each_chunk_of(rows.len(), rows, chunk, &|index, rows| {
        let sums = &sums[index * (chunk / n.max(1))..];
        dispatch(SoftmaxScaled(rows, sums, n, scale));
    });
}
