//! Rows of few elements, which stand side by side while they are computed: vectors go along many of them.

use super::kernels::{BLOCK, MANY, whole_rows};
use crate::Float;
use crate::array::gemm::ABREAST;

/// Rows of fewer elements are no work for vectors: many stand side by side, and vectors go along those.
pub(super) const SHORT: usize = MANY;
/// From so many on that pays, where each gives a number, and where it gives another row.
pub(super) const SEVERAL_READ: usize = 3;
pub(super) const SEVERAL_WRITTEN: usize = 8;

/// Whether rows are computed side by side, as at least `several` are. It depends on how many there are in all,
/// not on which of them a thread has: sums are the same on any number of threads.
pub(super) fn are_short<T>(rows: &[T], n: usize, several: usize) -> bool {
    (1..SHORT).contains(&n) && rows.len() >= several * n
}

/// The elements of many short rows that stand at one place of each.
pub(super) type Column<T> = [T; ABREAST];

/// Shows how many elements of short rows to compute at once, and room for the columns of so many, `N` times.
pub(super) fn with_columns<T: Float, const N: usize>(
    elements: usize,
    n: usize,
    f: impl FnOnce(usize, [&mut [Column<T>]; N]),
) {
    let some = whole_rows(n * ABREAST, BLOCK);
    let lines = lines_of(elements.min(some), n);
    T::with_scratch(N * lines * ABREAST, |room| {
        let mut rooms = room.as_chunks_mut().0.chunks_mut(lines);
        f(some, std::array::from_fn(|_| rooms.next().unwrap_or_default()));
    });
}

/// So many lines are the columns of `n` that so many elements have.
pub(super) fn lines_of(elements: usize, n: usize) -> usize {
    elements.div_ceil(n * ABREAST) * n
}

#[inline(always)]
pub(super) fn greatest_of_each<T: Float>(columns: &[Column<T>]) -> Column<T> {
    let mut all = [T::LOWEST; ABREAST];
    for column in columns {
        for (greatest, &x) in all.iter_mut().zip(column) {
            *greatest = greatest.greater(x);
        }
    }
    all
}

#[inline(always)]
pub(super) fn total_of_each<T: Float>(columns: &[Column<T>]) -> Column<T> {
    let mut all = [T::ZERO; ABREAST];
    for column in columns {
        for (total, &x) in all.iter_mut().zip(column) {
            *total = *total + x;
        }
    }
    all
}
