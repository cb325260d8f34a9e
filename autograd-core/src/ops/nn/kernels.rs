//! The loops over rows of softmax, cross entropy and normalization.

use super::super::{Arithmetic, Float};
use super::is_in_range;
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

/// Number of elements whose sums are added one by one.
const SUM_BLOCK: usize = 4096;

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
                let sum = if sum == T::infinity() { T::nan() } else { sum };
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

/// Replaces each `x` by `exp(x - sum) * scale`, where `sum` is the log-sum-exp of its row; by NaN if that is infinite,
/// as softmax.
pub(super) fn softmax_scaled<T: Float>(rows: &mut [T], sums: &[T], n: usize, scale: T) {
    let chunk = chunk_of(rows, n);
    each_chunk_of(rows.len(), rows, chunk, &|index, rows| {
        let sums = &sums[index * (chunk / n.max(1))..];
        dispatch(SoftmaxScaled(rows, sums, n, scale));
    });
}

/// Adds up the elements of `a`, and its products with `b`.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "an index names a place in several arrays")]
fn sum_and_dot<T: Float>(a: &[T], b: &[T]) -> [T; 2] {
    let mut all = [T::ZERO; 2];
    // In blocks, so that errors of long rows do not add up.
    for (a, b) in a.chunks(SUM_BLOCK).zip(b.chunks(SUM_BLOCK)) {
        let [mut sums, mut dots] = [[T::ZERO; LONG_LANES]; 2];
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LONG_LANES>(), b.as_chunks::<LONG_LANES>());
        for (a, b) in a.iter().zip(b) {
            for i in 0..LONG_LANES {
                sums[i] = sums[i] + a[i];
                dots[i] = dots[i] + a[i] * b[i];
            }
        }
        for (i, (&a, &b)) in a_rest.iter().zip(b_rest).enumerate() {
            sums[i] = sums[i] + a;
            dots[i] = dots[i] + a * b;
        }
        all = [all[0] + total(&sums), all[1] + total(&dots)];
    }
    all
}

struct Normalize<'a, T>(&'a [T], usize, T, [&'a mut [T]; 2]);

impl<T: Float> Kernel for Normalize<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(x, n, eps, [out, scales]) = self;
        let count = T::from_f64(n as f64);
        let rows = x.chunks_exact(n).zip(out.chunks_exact_mut(n));
        for ((x, out), scale) in rows.zip(scales) {
            let mean = total(x) / count;
            let squares = fold_lanes(x, T::ZERO, |x| (x - mean) * (x - mean), T::plus);
            let shifted = squares / count + eps;
            *scale = if is_in_range(shifted) { shifted.sqrt().recip() } else { T::nan() };
            for (out, &x) in out.iter_mut().zip(x) {
                // Adding 0 removes the sign of a zero.
                *out = (x - mean) * *scale + T::ZERO;
            }
        }
    }
}

/// Writes rows of `n` elements, normalized, and what each was multiplied by: NaN if its squares are out of range.
pub(super) fn normalize<T: Float>(x: &[T], n: usize, eps: T, [out, scales]: [&mut [T]; 2]) {
    let (elements, chunk) = (x.len(), chunk_of(x, n));
    let parts = out.chunks_mut(chunk).zip(scales.chunks_mut(chunk / n));
    each_chunk_of(elements, &mut Vec::from_iter(parts), 1, &|index, part| {
        for (out, scales) in part {
            let x = &x[index * chunk..][..out.len()];
            dispatch(Normalize(x, n, eps, [out, scales]));
        }
    });
}

/// What the gradient `dx` of a row is, from that of its result `y`, the sum of `dy`, and the sum of `y dy`.
#[derive(Clone, Copy)]
pub(super) enum RowPull<'a, T> {
    /// `y (dy - sum(y dy))`.
    Softmax,
    /// `dy - exp(y) sum(dy)`.
    LogSoftmax,
    /// `(dy - mean(dy) - y mean(y dy)) s`, with a scale `s` for each row.
    Normalize(&'a [T]),
}

struct PullRows<'a, T>(&'a mut [T], [&'a [T]; 2], usize, RowPull<'a, T>);

impl<T: Float> Kernel for PullRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(dx, [dy, y], n, pull) = self;
        if let RowPull::LogSoftmax = pull {
            for (dx, &y) in dx.iter_mut().zip(y) {
                *dx = exp::<T, FMA>(y);
            }
        }
        let count = T::from_f64(n as f64);
        let rows = dx.chunks_exact_mut(n).zip(dy.chunks_exact(n).zip(y.chunks_exact(n)));
        for (row, (dx, (dy, y))) in rows.enumerate() {
            let [sum, dot] = sum_and_dot(dy, y);
            let elements = dx.iter_mut().zip(dy.iter().zip(y));
            match pull {
                RowPull::Softmax => {
                    for (dx, (&dy, &y)) in elements {
                        *dx = y * (dy - dot);
                    }
                }
                RowPull::LogSoftmax => {
                    for (dx, (&dy, _)) in elements {
                        *dx = dy - *dx * sum;
                    }
                }
                RowPull::Normalize(scales) => {
                    let (scale, mean, along) = (scales[row], sum / count, dot / count);
                    for (dx, (&dy, &y)) in elements {
                        *dx = (dy - mean - y * along) * scale;
                    }
                }
            }
        }
    }
}

/// Writes the gradient of rows of `n` elements from that of their results `y`.
pub(super) fn pull_rows<T: Float>(
    dx: &mut [T],
    [dy, y]: [&[T]; 2],
    n: usize,
    pull: RowPull<'_, T>,
) {
    let chunk = chunk_of(dy, n);
    each_chunk_of(dy.len(), dx, chunk, &|index, dx| {
        let from = [dy, y].map(|from| &from[index * chunk..][..dx.len()]);
        let pull = match pull {
            RowPull::Normalize(scales) => RowPull::Normalize(&scales[index * (chunk / n)..]),
            other => other,
        };
        dispatch(PullRows(dx, from, n, pull));
    });
}
