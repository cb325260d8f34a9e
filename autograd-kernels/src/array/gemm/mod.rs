//! Products of matrices of floats, by strides: a transposed operand is never copied as a whole.
//! Most are computed in `tiles`, those of up to twelve rows with contiguous columns by `dots`, and
//! all by ndarray on a CPU without vectors. This file chooses, and shares products among threads.

mod dots;
mod panels;
#[cfg(test)]
mod tests;
mod tiles;

use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, LinalgScalar, ShapeBuilder};
use smallvec::SmallVec;

use super::Storable;
use super::buffer::Buffer;
use super::simd::{Vectored, has_vectors};
use super::threads::{num_threads, share, worth};
use dots::Dots;
pub use panels::Matrix;
use tiles::Tiles;

pub trait FloatMultiply: Storable + LinalgScalar + Vectored {
    /// `c = a b`, where `a` is m by k, `b` k by n, and `c` m by n, with rows that start `step` apart and
    /// unspecified content. No side is zero.
    fn float_product(
        size: [usize; 3],
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        c: &mut [Self],
        step: usize,
    );
    /// Adds `a bᵀ` to `c`, where `a` is m by k, `b` n by k, both with contiguous rows, and `c` row-major.
    fn add_dots(size: [usize; 3], a: Matrix<'_, Self>, b: Matrix<'_, Self>, c: &mut [Self]);
}

macro_rules! float_multiply {
    ($($t:ty)*) => {$(
        impl FloatMultiply for $t {
            fn float_product(
                size: [usize; 3],
                a: Matrix<'_, $t>,
                b: Matrix<'_, $t>,
                c: &mut [$t],
                step: usize,
            ) {
                product(size, a, b, c, step);
            }
            fn add_dots(size: [usize; 3], a: Matrix<'_, $t>, b: Matrix<'_, $t>, c: &mut [$t]) {
                add_dots(size, a, b, c);
            }
        }
    )*};
}

float_multiply! { f32 f64 }

/// Up to this many rows are multiplied with contiguous columns in place, if the columns have at least
/// [`MIN_DOT_LENGTH`] elements.
const MAX_DOT_ROWS: usize = 12;
const MIN_DOT_LENGTH: usize = 32;
/// About this many multiplications take a slow CPU a microsecond.
const PER_MICROSECOND: usize = 50_000;
/// About this many multiplications of a stack of products are taken by a thread at once.
const STACK_PART: usize = 10 * PER_MICROSECOND;
const MIN_PART: usize = 48;
/// The sides of parts are multiples of these, so that most tiles are whole.
const ROW_STEP: usize = 24;
const COLUMN_STEP: usize = 48;

fn product<T: FloatMultiply>(
    [m, k, n]: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
    step: usize,
) {
    debug_assert_eq!(c.len().div_ceil(step), m);
    if !has_vectors() {
        return portable([m, k, n], a, b, c, step);
    }
    if n == 1 && m > 1 && step == 1 {
        // The column as a row: cᵀ = bᵀ aᵀ.
        return product([1, k, m], b.transposed(), a.transposed(), c, m);
    }
    // The method is chosen for the whole product, so that an element does not depend on the parts.
    let contiguous_columns = b.rows == 1 && (b.columns != 1 || n == 1);
    let by_dots = m <= MAX_DOT_ROWS && contiguous_columns && k >= MIN_DOT_LENGTH;
    in_parts([m, k, n], a, b, (c, step), |a, b, c| match by_dots {
        true => dots(k, a, b, c),
        false => T::run(Tiles { k, a, b, c }),
    });
}

fn dots<T: FloatMultiply>(k: usize, a: Matrix<'_, T>, b: Matrix<'_, T>, c: &mut [&mut [T]]) {
    let mut rows = Buffer::any(if a.columns == 1 { 0 } else { c.len() * k });
    for (i, row) in rows.chunks_exact_mut(k).enumerate() {
        (0..k).for_each(|p| row[p] = a.data[i * a.rows + p * a.columns]);
    }
    let (left, step) = if a.columns == 1 { (a.data, a.rows) } else { (&rows[..], k) };
    c.iter_mut().for_each(|row| row.fill(T::ZERO));
    T::run(Dots {
        k,
        left: Matrix { data: left, rows: step, columns: 1 },
        right: b.transposed(),
        c,
    });
}

fn add_dots<T: FloatMultiply>(
    [m, k, n]: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
) {
    if has_vectors() {
        let mut c: SmallVec<[&mut [T]; 16]> = c.chunks_exact_mut(n).collect();
        return T::run(Dots { k, left: a, right: b, c: &mut c });
    }
    let mut product = Buffer::any(m * n);
    portable([m, k, n], a, b.transposed(), &mut product, n);
    c.iter_mut().zip(&*product).for_each(|(c, &product)| *c = *c + product);
}

/// Computes a product in parts of its rows and columns, on threads if that pays. `part` gets the rows and
/// columns of the operands from the part's first ones on, and the part of each row of the result.
fn in_parts<T: Storable>(
    [m, k, n]: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    (c, step): (&mut [T], usize),
    part: impl Fn(Matrix<'_, T>, Matrix<'_, T>, &mut [&mut [T]]) + Sync,
) {
    let [down, across] = grid([m, k, n]);
    if down * across == 1 {
        let rows = c.chunks_mut(step).map(|row| &mut row[..n]);
        return part(a, b, &mut rows.collect::<SmallVec<[_; 16]>>());
    }
    let rows = m.div_ceil(down).next_multiple_of(ROW_STEP);
    let columns = n.div_ceil(across).next_multiple_of(COLUMN_STEP);
    let across = n.div_ceil(columns);
    let mut parts: Vec<Vec<&mut [T]>> = Vec::new();
    for c in c.chunks_mut(rows * step) {
        let first = parts.len();
        parts.resize_with(first + across, Vec::new);
        for row in c.chunks_mut(step) {
            let pieces = row[..n].chunks_mut(columns);
            parts[first..].iter_mut().zip(pieces).for_each(|(part, piece)| part.push(piece));
        }
    }
    let parts: Vec<_> = parts.into_iter().map(Mutex::new).collect();
    share(parts.len(), &|index| {
        let mut c = parts[index].lock().unwrap_or_else(PoisonError::into_inner);
        part(a.tail(index / across * rows, 0), b.tail(0, index % across * columns), &mut c);
    });
}

fn time_of([m, k, n]: [usize; 3]) -> Duration {
    Duration::from_micros((m * n * k / PER_MICROSECOND) as u64)
}

/// How many products of a stack a thread should compute at once: all, if another thread does not pay or
/// threads should rather share each product.
pub(super) fn at_once([m, k, n]: [usize; 3], products: usize) -> usize {
    let enough = || products >= 4 * num_threads() || !worth(time_of([m, k, n]));
    match products > 1 && enough() && worth(time_of([m * products, k, n])) {
        true => (STACK_PART / (m * k * n)).clamp(1, products.div_ceil(num_threads())),
        false => products,
    }
}

/// The number of parts, down and across: of all grids with parts for the most threads, the one that
/// reads (and packs if necessary) the fewest rows of the left and columns of the right operand.
fn grid([m, k, n]: [usize; 3]) -> [usize; 2] {
    if m * k * n < 2 * PER_MICROSECOND || !worth(time_of([m, k, n])) {
        return [1, 1];
    }
    let threads = num_threads();
    let most = [m, n].map(|side| (side / MIN_PART).max(1));
    (1..=threads.min(most[0]))
        .map(|down| [down, (threads / down).min(most[1])])
        .max_by_key(|&[down, across]| (down * across, Reverse(down * n + across * m)))
        .unwrap_or([1, 1])
}

fn portable<T: LinalgScalar>(
    [m, k, n]: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
    step: usize,
) {
    let x = ArrayView2::from_shape((m, k).strides((a.rows, a.columns)), a.data);
    let y = ArrayView2::from_shape((k, n).strides((b.rows, b.columns)), b.data);
    let z = ArrayViewMut2::from_shape((m, n).strides((step, 1)), c);
    let (Ok(x), Ok(y), Ok(mut z)) = (x, y, z) else {
        unreachable!("a value's strides stay inside its buffer");
    };
    general_mat_mul(T::one(), &x, &y, T::zero(), &mut z);
}
