//! Products with a matrix whose rows are runs of elements, which may overlap: a convolution reads an
//! image this way, without copying each window.

use std::ops::Range;

use super::FloatMultiply;
use super::panels::{Matrix, Runs};
use super::tiles::{tile, write};
use crate::array::buffer::Buffer;
use crate::array::simd::{VectorKernel, Vectored, Vectors, has_vectors};

/// Rows per tile; numbers of channels are often multiples of it.
const TILE_ROWS: usize = 8;

/// A left operand, in panels of [`TILE_ROWS`] rows; missing rows are zeros.
pub struct Left<T: FloatMultiply> {
    panels: Buffer<T>,
}

impl<T: FloatMultiply + Vectored> Left<T> {
    /// Element `[i, p]` is `from[rows[i] + columns[p]]`.
    pub fn new(from: &[T], rows: &[usize], columns: &[usize]) -> Self {
        let mut panels = Buffer::any(rows.len().next_multiple_of(TILE_ROWS) * columns.len());
        let size = TILE_ROWS * columns.len();
        for (rows, panel) in rows.chunks(TILE_ROWS).zip(panels.chunks_exact_mut(size)) {
            for (&column, to) in columns.iter().zip(panel.as_chunks_mut::<TILE_ROWS>().0) {
                *to =
                    std::array::from_fn(|r| rows.get(r).map_or(T::ZERO, |row| from[row + column]));
            }
        }
        Self { panels }
    }

    /// Writes the product of `rows` and runs of `n` elements to `c`, whose rows are `step` apart. The
    /// first row must be the first one of a tile.
    pub fn times(&self, rows: Range<usize>, runs: Runs<'_, T>, n: usize, c: &mut [T], step: usize) {
        let (m, k) = (rows.len(), runs.starts.len());
        debug_assert!(rows.start.is_multiple_of(TILE_ROWS));
        let panels = &self.panels[rows.start * k..];
        if has_vectors() {
            return T::run(Times { size: [m, n], panels, runs, c, step });
        }
        let right = runs.gapless(n);
        let right = Matrix { data: &right, rows: n, columns: 1 };
        let mut product = Buffer::any(TILE_ROWS * n);
        for (c, panel) in c.chunks_mut(TILE_ROWS * step).zip(panels.chunks_exact(TILE_ROWS * k)) {
            let left = Matrix { data: panel, rows: 1, columns: TILE_ROWS };
            T::float_product([TILE_ROWS, k, n], left, right, &mut product);
            for (c, row) in c.chunks_mut(step).zip(product.chunks_exact(n)) {
                c[..n].copy_from_slice(row);
            }
        }
    }
}

struct Times<'a, T> {
    size: [usize; 2],
    panels: &'a [T],
    runs: Runs<'a, T>,
    c: &'a mut [T],
    step: usize,
}

impl<T: FloatMultiply> VectorKernel<T> for Times<'_, T> {
    /// In strips of columns, so that those of the right operand stay in the L1 cache for all panels.
    #[inline(always)]
    fn run<V: Vectors<T>>(mut self, v: V) {
        let [_, n] = self.size;
        let vectors = if const { V::REGISTERS >= 32 } { 2 } else { 1 };
        let mut j = 0;
        while j < n {
            let width = (n - j).min(vectors * V::LANES);
            match width > V::LANES {
                true => self.strip::<2, V>(v, [j, width]),
                false => self.strip::<1, V>(v, [j, width]),
            }
            j += width;
        }
    }
}

impl<T: FloatMultiply> Times<'_, T> {
    #[inline(always)]
    fn strip<const N: usize, V: Vectors<T>>(&mut self, v: V, [j, width]: [usize; 2]) {
        let Runs { data, starts } = self.runs;
        let (data, m) = (&data[j..], self.size[0]);
        let panels = self.panels.chunks_exact(TILE_ROWS * starts.len());
        for (i, panel) in (0..m).step_by(TILE_ROWS).zip(panels) {
            let right = starts.iter().map(|&start| &data[start..][..width]);
            let left = panel.as_chunks::<TILE_ROWS>().0.iter();
            let sums: [[V::Vector; N]; TILE_ROWS] = tile(v, left, |a, r| a[r], right);
            let rows = self.c[i * self.step..].chunks_mut(self.step).take(m - i);
            write(v, sums, rows.map(|row| &mut row[j..][..width]), false);
        }
    }
}
