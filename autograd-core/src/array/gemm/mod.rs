//! Products of matrices of floats, by strides: a transposed operand is never made real.
//!
//! `packed` is for large ones, whose operands it packs where they must be; what is small or narrow is
//! read where it lies, by `rows` or by `dots`. This file chooses, and shares products among threads.

mod dots;
mod packed;
mod panels;
mod rows;
mod runs;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Storable;
use super::matmul::FloatMultiply;
use super::pool::with_room;
use super::simd::Vectored;
use super::threads::{num_threads, share, share_chunks, worth_at_most};
use dots::Dots;
use packed::{COLUMN_STEP, Packed};
pub(super) use packed::{KC, ROW_STEP};
use panels::{Gapless, WIDEST};
use rows::Rows;
pub(crate) use runs::{Left, Pieces, Runs, add_dots};

/// One operand: element `[i, j]` stands at `i * rows + j * columns`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl<T> Matrix<'_, T> {
    fn transposed(self) -> Self {
        Self { data: self.data, rows: self.columns, columns: self.rows }
    }
}

/// Up to so many multiplications, packing costs more than it brings.
const SMALL: usize = 48 * 48 * 48;
/// Up to so many bytes of columns, a strip of the result is one vector wide.
const NARROW_BYTES: usize = 64;
/// Up to so many rows, the right operand is read too seldom for packing to pay.
const FEW_ROWS: usize = 40;
/// Up to so many bytes, the right operand is taken to stay in a cache.
const CACHED_BYTES: usize = 4 << 20;
/// As `FEW_ROWS`, where the right operand lies by columns, which are then multiplied one by one.
const FEW_DOTS: usize = 12;
/// So many columns at least are multiplied by long rows along both, where they are as long as this.
const LEAST_DOTS: usize = 3;
const LONG_DOTS: usize = 64;
/// Up to so many bytes, those columns stay in a first cache.
const DOTS_BYTES: usize = 40 << 10;
/// From so many rows on that pays where the columns are gapless, and where they are made so.
const MANY_DOTS: usize = 16;
const MANY_TURNED: usize = 64;
// How those sums are made depends on how many rows there are, so threads never part them by rows.
const _: () = assert!(FEW_DOTS <= rows::TALLEST);
/// About so many multiplications of a large product are a microsecond's work, on a slow CPU more.
const A_MICROSECOND: usize = 50_000;
/// About so many multiplications of a stack of products a thread computes at once.
const SOME_PRODUCTS: usize = 10 * A_MICROSECOND;
/// So many rows and columns at least a part that a thread computes.
const LEAST_PART: usize = 48;

/// `c = a b`, where `a` is m by k, `b` k by n, and `c` row-major m by n, with any content. `None`
/// where this CPU has no vectors; then nothing is written.
pub(crate) fn gemm<T: Vectored + Storable>(
    size: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
) -> Option<()> {
    gemm_plus(size, a, b, &[], c).map(|_| ())
}

/// [`gemm`], with a number for each column added to its sums where they are in registers anyway:
/// whether that was so comes back. No numbers are zeros.
pub(crate) fn gemm_plus<T: Vectored + Storable>(
    [m, k, n]: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    plus: &[T],
    c: &mut [T],
) -> Option<bool> {
    debug_assert_eq!(c.len(), m * n);
    debug_assert!(plus.is_empty() || plus.len() == n);
    if n == 1 && m > 1 {
        // The column as a row: cᵀ = bᵀ aᵀ.
        return gemm([1, k, m], b.transposed(), a.transposed(), c).map(|()| false);
    }
    if m <= FEW_DOTS && (b.columns != 1 || n == 1) && b.rows == 1 {
        let mut left = Vec::new();
        let a = with_gapless_rows([m, k], a, &mut left);
        return each_part([m, k, n], (a, b), c, |size, (a, b), _, c| {
            let steps = [size[2], 1];
            T::run(Dots { size, a, b: b.transposed(), c, steps }).ok()
        })
        .map(|()| false);
    }
    let few_columns = (LEAST_DOTS..=FEW_DOTS).contains(&n) && k * n * size_of::<T>() <= DOTS_BYTES;
    let many_rows = m >= if b.rows == 1 { MANY_DOTS } else { MANY_TURNED };
    if few_columns && many_rows && k >= LONG_DOTS && a.columns == 1 {
        return long_rows([m, k, n], a, b, c).map(|()| false);
    }
    let narrow = n * size_of::<T>() <= NARROW_BYTES;
    // Strips go down all rows of the right operand again and again: it must stay in a cache.
    let cached = m == 1 || k * n * size_of::<T>() <= CACHED_BYTES;
    let few = m <= FEW_ROWS && cached;
    let by_columns = a.rows == 1 && a.columns != 1 && k * m * size_of::<T>() <= CACHED_BYTES;
    if narrow && by_columns && m >= 4 * WIDEST {
        return turned([m, k, n], a, b, c).map(|()| false);
    }
    if b.columns == 1 && (few || narrow && a.columns == 1) || m * n * k <= SMALL {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        // Panels are made from any layout.
        let wide = n * size_of::<T>() >= 4 * WIDEST * size_of::<f32>();
        let panels = m >= 4 && (wide || a.columns != 1);
        let a = if panels { a } else { with_gapless_rows([m, k], a, &mut left) };
        let b = with_gapless_rows([k, n], b, &mut right);
        // Each element is computed in the same way, whichever stand beside it.
        return each_part([m, k, n], (a, b), c, |size, (a, b), from, c| {
            let plus = plus.get(from..from + size[2]).unwrap_or(&[]);
            T::run(Rows { size, a, b, plus, c }).ok()
        })
        .map(|()| true);
    }
    let [down, across] = grid([m, k, n]);
    // Each element is computed in the same way, whichever stand beside it.
    let rows = m.div_ceil(down).next_multiple_of(ROW_STEP);
    let columns = n.div_ceil(across).next_multiple_of(COLUMN_STEP);
    let across = n.div_ceil(columns);
    let mut parts: Vec<Vec<&mut [T]>> = Vec::with_capacity(m.div_ceil(rows) * across);
    for c in c.chunks_mut(rows * n) {
        let whole = c.chunks_exact_mut(n);
        // Where rows are not parted, a small product takes 4 to 7 % less so.
        if across == 1 {
            parts.push(whole.collect());
            continue;
        }
        let first = parts.len();
        parts.resize_with(first + across, || Vec::with_capacity(whole.len()));
        for row in whole {
            let pieces = row.chunks_mut(columns);
            parts[first..].iter_mut().zip(pieces).for_each(|(part, piece)| part.push(piece));
        }
    }
    let parts: Vec<_> = parts.into_iter().map(|c| Mutex::new((c, None))).collect();
    share(parts.len(), &|part| {
        let mut part_of_c = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
        let (c, done) = &mut *part_of_c;
        let a = Matrix { data: &a.data[part / across * rows * a.rows..], ..a };
        let b = Matrix { data: &b.data[part % across * columns * b.columns..], ..b };
        *done = T::run(Packed { k, a, b, c }).ok();
    });
    let done =
        |part: Mutex<(_, Option<()>)>| part.into_inner().unwrap_or_else(PoisonError::into_inner).1;
    parts.into_iter().map(done).collect::<Option<()>>().map(|()| false)
}

/// A product of long gapless rows and few columns: cᵀ = bᵀ aᵀ multiplies along both.
fn long_rows<T: Vectored + Storable>(
    [m, k, n]: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
) -> Option<()> {
    let mut columns = Vec::new();
    let b = with_gapless_rows([n, k], b.transposed(), &mut columns).transposed();
    each_part([m, k, n], (a, b), c, |[m, k, n], (a, b), _, c| {
        T::run(Dots { size: [n, k, m], a: b.transposed(), b: a, c, steps: [1, n] }).ok()
    })
}

/// A product of few columns whose left operand lies by columns: cᵀ = bᵀ aᵀ has vectors along those.
fn turned<T: Vectored + Storable>(
    [m, k, n]: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
) -> Option<()> {
    let mut columns = T::pool().take(m * n);
    columns.resize(m * n, T::ZERO);
    let done = gemm([n, k, m], b.transposed(), a.transposed(), &mut columns);
    if done.is_some() {
        let matrix = Matrix { data: &columns, rows: 1, columns: m };
        let _ = T::run(Gapless { size: [m, n], matrix, to: c });
    }
    T::pool().give(columns);
    done
}

/// A product that needs no packing, on threads where that pays: in parts of its rows, or of its columns
/// where rows are few, since each part of the rows reads the right operand as a whole. `part` computes
/// one, of which the size, the operands and the first column are shown.
fn each_part<T: Vectored + Storable>(
    [m, k, n]: [usize; 3],
    (a, b): (Matrix<'_, T>, Matrix<'_, T>),
    c: &mut [T],
    part: impl Fn([usize; 3], (Matrix<'_, T>, Matrix<'_, T>), usize, &mut [T]) -> Option<()> + Sync,
) -> Option<()> {
    if m * k * n <= SMALL || !worth_at_most(time_of([m, k, n])) {
        return part([m, k, n], (a, b), 0, c);
    }
    let without_vectors = AtomicBool::new(false);
    let note = |done: Option<()>| {
        if done.is_none() {
            without_vectors.store(true, Ordering::Relaxed);
        }
    };
    let threads = num_threads();
    if m > rows::TALLEST && m >= (threads - 1) * rows::STEP {
        let rows = m.div_ceil(threads);
        let rows = if rows < 2 * rows::STEP { rows } else { rows.next_multiple_of(rows::STEP) };
        share_chunks([c], [rows * n], &|index, [c]| {
            let a = Matrix { data: &a.data[index * rows * a.rows..], ..a };
            note(part([c.len() / n, k, n], (a, b), 0, c));
        });
        return (!without_vectors.into_inner()).then_some(());
    }
    let columns = n.div_ceil(threads).next_multiple_of(COLUMN_STEP);
    let by_columns = |out: &mut [T]| {
        share_chunks([out], [m * columns], &|index, [out]| {
            let from = index * columns;
            let b = Matrix { data: &b.data[from * b.columns..], ..b };
            note(part([m, k, out.len() / m], (a, b), from, out));
        });
    };
    if m == 1 {
        by_columns(c);
    } else {
        // Each part has rows of its own.
        let mut parts = T::pool().take_filled(m * n);
        by_columns(&mut parts);
        for (index, part) in parts.chunks(m * columns).enumerate() {
            let width = part.len() / m;
            for (row, from) in c.chunks_exact_mut(n).zip(part.chunks_exact(width)) {
                row[index * columns..][..width].copy_from_slice(from);
            }
        }
        T::pool().give(parts);
    }
    (!without_vectors.into_inner()).then_some(())
}

/// About how long a large product takes one thread.
fn time_of([m, k, n]: [usize; 3]) -> Duration {
    Duration::from_micros((m * n * k / A_MICROSECOND) as u64)
}

/// How many products of a stack one thread should compute at once, where that is worth another thread
/// and the threads are not better off with parts of each.
pub(super) fn at_once([m, k, n]: [usize; 3], products: usize) -> Option<usize> {
    let enough = products >= 4 * num_threads() || !worth_at_most(time_of([m, k, n]));
    let shared = products > 1 && enough && worth_at_most(time_of([m * products, k, n]));
    shared.then(|| (SOME_PRODUCTS / (m * k * n)).clamp(1, products.div_ceil(num_threads())))
}

/// In how many parts, down and across, threads compute a large product. Each part reads, and packs
/// where it must, its rows of the left operand and its columns of the right one: of all ways to have
/// parts for the most threads it is the one in which the least is read.
fn grid([m, k, n]: [usize; 3]) -> [usize; 2] {
    if !worth_at_most(time_of([m, k, n])) {
        return [1, 1];
    }
    let threads = num_threads();
    let most = [m, n].map(|side| (side / LEAST_PART).max(1));
    (1..=threads.min(most[0]))
        .map(|down| [down, (threads / down).min(most[1])])
        .max_by_key(|&[down, across]| (down * across, Reverse(down * n + across * m)))
        .unwrap_or([1, 1])
}

/// The matrix with gapless rows: itself, or a copy in `buffer`.
fn with_gapless_rows<'a, T: Vectored + Storable>(
    [rows, columns]: [usize; 2],
    matrix: Matrix<'a, T>,
    buffer: &'a mut Vec<T>,
) -> Matrix<'a, T> {
    if matrix.columns == 1 {
        return matrix;
    }
    *buffer = with_room(rows * columns);
    buffer.resize(rows * columns, T::ZERO);
    // Without vectors it stays zeros, which nobody reads: nothing is computed then.
    let _ = T::run(Gapless { size: [rows, columns], matrix, to: buffer });
    Matrix { data: buffer, rows: columns, columns: 1 }
}
