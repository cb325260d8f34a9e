//! The loops over rows of softmax and cross entropy.

use super::super::{Arithmetic, Float};
use super::rows::{CHUNK, Given, LANES, joined, total};
use crate::array::Value;
use crate::array::simd::{Kernel, dispatch};
use crate::array::threads::{each_chunk_of, grain};

/// Elements, in whole rows, that are copied before they are computed with.
const BLOCK: usize = 2048;

/// As many rows of `n` elements as about `most` elements are, in elements.
fn whole_rows(n: usize, most: usize) -> usize {
    (most / n.max(1)).max(1) * n.max(1)
}

/// As many of the elements of `rows` as a thread should take at once.
fn chunk_of<T>(rows: &[T], n: usize) -> usize {
    whole_rows(n, grain(rows.len()).min(CHUNK))
}

#[inline(always)]
fn exp<T: Float, const FMA: bool>(x: T) -> T {
    x.v_exp::<FMA>()
}

#[inline(always)]
fn greatest<T: Float>(row: &[T]) -> T {
    joined(row, T::LOWEST, |x| x, Arithmetic::greater)
}

#[inline(always)]
fn less_greatest<T: Float>(row: &mut [T]) -> T {
    let max = greatest(row);
    for x in row {
        *x = *x - max;
    }
    max
}

/// Runs on each row of `n` elements of `.0`.
struct Rows<'a, T, F>(&'a mut [T], usize, F);

/// Runs on each row of `n` elements of `.0` and the matching row of `.1`.
struct RowPairs<'a, T, F>(&'a mut [T], &'a [T], usize, F);

/// What is done to a row: first, then to each of its elements, and last. The elements of many rows are one
/// loop.
trait Row<T>: Copy {
    fn first(self, row: &mut [T]);
    fn each<const FMA: bool>(self, x: T) -> T;
    fn last<const FMA: bool>(self, row: &mut [T]);
}

/// What is done to a row that has a partner.
trait RowPair<T>: Copy {
    fn call<const FMA: bool>(self, row: &mut [T], other: &[T]);
}

impl<T: Float, F: Row<T>> Kernel for Rows<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(rows, n, f) = self;
        // Loops, not closures: a closure that is not inlined is compiled for the baseline.
        for row in rows.chunks_exact_mut(n.max(1)) {
            f.first(row);
        }
        for x in rows.iter_mut() {
            *x = f.each::<FMA>(*x);
        }
        for row in rows.chunks_exact_mut(n.max(1)) {
            f.last::<FMA>(row);
        }
    }
}

impl<T: Float, F: RowPair<T>> Kernel for RowPairs<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(rows, others, n, f) = self;
        let rows = rows.chunks_exact_mut(n.max(1)).zip(others.chunks_exact(n.max(1)));
        for (row, other) in rows {
            f.call::<FMA>(row, other);
        }
    }
}

macro_rules! row_kernels {
    ($(
        $name:ident |$row:ident| $first:block |$x:ident| $each:block $last:block
    )*) => {$(
        /// Writes over `rows`, from rows that lie elsewhere.
        pub(super) fn $name<T: Float>(rows: &mut [T], from: &[T], n: usize) {
            #[derive(Clone, Copy)]
            struct Body;
            impl<T: Float> Row<T> for Body {
                #[inline(always)]
                fn first(self, $row: &mut [T]) $first
                #[inline(always)]
                fn each<const FMA: bool>(self, $x: T) -> T $each
                #[inline(always)]
                fn last<const FMA: bool>(self, $row: &mut [T]) $last
            }
            let (chunk, block) = (chunk_of(rows, n), whole_rows(n, BLOCK));
            each_chunk_of(rows.len(), rows, chunk, &|index, rows| {
                let from = &from[index * chunk..][..rows.len()];
                for (rows, from) in rows.chunks_mut(block).zip(from.chunks(block)) {
                    rows.copy_from_slice(from);
                    dispatch(Rows(rows, n, Body));
                }
            });
        }
    )*};
}

macro_rules! row_pair_kernels {
    ($(
        $name:ident |$row:ident, $other:ident| $body:block
    )*) => {$(
        /// Writes over `rows`, or over what is [`Given`] for them.
        pub(super) fn $name<T: Float>(rows: &mut [T], from: Option<&Value<T>>, others: &[T], n: usize) {
            #[derive(Clone, Copy)]
            struct Body;
            impl<T: Float> RowPair<T> for Body {
                #[inline(always)]
                fn call<const FMA: bool>(self, $row: &mut [T], $other: &[T]) $body
            }
            let (chunk, block) = (chunk_of(rows, n), whole_rows(n, BLOCK));
            each_chunk_of(rows.len(), rows, chunk, &|index, rows| {
                let others = &others[index * chunk..][..rows.len()];
                let mut given = Given::new(from, index * chunk);
                for (rows, others) in rows.chunks_mut(block).zip(others.chunks(block)) {
                    given.put(rows);
                    dispatch(RowPairs(rows, others, n, Body));
                }
            });
        }
    )*};
}

row_kernels! {
    softmax |row| {
        less_greatest(row);
    } |x| {
        exp::<T, FMA>(x)
    } {
        let sum = total(row);
        for x in row.iter_mut() {
            *x = *x / sum;
        }
    }
    log_softmax |row| {
        less_greatest(row);
    } |x| {
        x
    } {
        let sum = joined(row, T::ZERO, exp::<T, FMA>, T::plus);
        let log = sum.v_ln::<FMA>();
        for x in row.iter_mut() {
            *x = *x - log;
        }
    }
}

row_pair_kernels! {
    softmax_pull |dy, y| {
        let mut dot = [T::ZERO; LANES];
        let ((d, d_rest), (p, p_rest)) = (dy.as_chunks::<LANES>(), y.as_chunks::<LANES>());
        for (d, p) in d.iter().zip(p) {
            for ((sum, &d), &p) in dot.iter_mut().zip(d).zip(p) {
                *sum = *sum + d * p;
            }
        }
        for ((sum, &d), &p) in dot.iter_mut().zip(d_rest).zip(p_rest) {
            *sum = *sum + d * p;
        }
        let dot = total(&dot);
        for (d, &p) in dy.iter_mut().zip(y) {
            *d = p * (*d - dot);
        }
    }
    log_softmax_pull |dy, y| {
        let sum = total(dy);
        for (d, &y) in dy.iter_mut().zip(y) {
            *d = *d - exp::<T, FMA>(y) * sum;
        }
    }
}

struct LogSumExp<'a, T>(&'a [T], usize, &'a mut [T]);

impl<T: Float> Kernel for LogSumExp<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(rows, n, out) = self;
        for (row, out) in rows.chunks_exact(n.max(1)).zip(out) {
            let max = greatest(row);
            let sum = joined(row, T::ZERO, |x| exp::<T, FMA>(x - max), T::plus);
            // An infinite maximum is the result itself.
            let finite = num_traits::Float::is_finite(max);
            *out = if finite { max + sum.v_ln::<FMA>() } else { max };
        }
    }
}

/// The logarithm of the sum of each row's exponentials.
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

/// `exp(x - sum) * scale`, each row with its own log-sum-exp.
pub(super) fn softmax_scaled<T: Float>(rows: &mut [T], sums: &[T], n: usize, scale: T) {
    let chunk = chunk_of(rows, n);
    each_chunk_of(rows.len(), rows, chunk, &|index, rows| {
        let sums = &sums[index * (chunk / n.max(1))..];
        dispatch(SoftmaxScaled(rows, sums, n, scale));
    });
}
