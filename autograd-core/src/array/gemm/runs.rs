//! Products with a matrix whose rows are runs of numbers, which may share numbers with each other:
//! a convolution reads a picture so, without a copy for each element of its window.

#![allow(clippy::needless_range_loop, reason = "an index names a place in several operands")]

use std::ops::Range;

use super::panels::{load, store};
use super::{FloatMultiply, Matrix};
use crate::array::buffer::Buffer;
use crate::array::simd::{VectorKernel, Vectored, Vectors};

/// A matrix whose row `i` starts at `starts[i]` and is as long as who reads it asks.
#[derive(Clone, Copy)]
pub(crate) struct Runs<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) starts: &'a [usize],
}

impl<T: FloatMultiply> Runs<'_, T> {
    /// As rows without gaps, for a CPU that has no vectors here.
    fn gapless(self, n: usize) -> Buffer<T> {
        let mut copy = Buffer::any(self.starts.len() * n);
        for (to, &start) in copy.chunks_exact_mut(n).zip(self.starts) {
            to.copy_from_slice(&self.data[start..][..n]);
        }
        copy
    }
}

/// Rows that one tile of a product has: with two vectors each, and those of the right operand, they
/// fill the registers, and numbers of channels are multiples of it.
const fn tile_rows(registers: usize) -> usize {
    if registers >= 32 { 8 } else { 4 }
}

/// A left operand, in panels of as many rows as a tile has; missing rows are zeros.
pub(crate) struct Left<T: FloatMultiply> {
    panels: Buffer<T>,
}

impl<T: FloatMultiply + Vectored> Left<T> {
    /// Element `[i, p]` is that of `from` at `rows[i] + columns[p]`.
    pub(crate) fn new(from: &[T], rows: &[usize], columns: &[usize]) -> Self {
        let mut panels = Buffer::any(rows.len().next_multiple_of(tile_rows(32)) * columns.len());
        let pack = Pack { from, rows, columns, panels: &mut panels };
        if let Err(Pack { panels, .. }) = T::run(pack) {
            pack_panels::<T, 1>(from, rows, columns, panels);
        }
        Self { panels }
    }

    /// Writes the product of some rows, the first of which is one of a tile, with runs of `n`
    /// numbers to `c`, whose rows are `step` apart.
    pub(crate) fn times(
        &self,
        rows: Range<usize>,
        runs: Runs<'_, T>,
        n: usize,
        c: &mut [T],
        step: usize,
    ) {
        let (m, k) = (rows.len(), runs.starts.len());
        debug_assert!(rows.start.is_multiple_of(tile_rows(32)));
        let panels = &self.panels[rows.start * k..];
        if T::run(Times { size: [m, k, n], panels, runs, c: &mut *c, step }).is_ok() {
            return;
        }
        let (right, mut product) = (runs.gapless(n), Buffer::any(m * n));
        let [left, right] =
            [(panels, k), (&right[..], n)].map(|(data, rows)| Matrix { data, rows, columns: 1 });
        T::float_product([m, k, n], left, right, &mut product);
        for (c, row) in c.chunks_mut(step).zip(product.chunks_exact(n)) {
            c[..n].copy_from_slice(row);
        }
    }
}

struct Pack<'a, T> {
    from: &'a [T],
    rows: &'a [usize],
    columns: &'a [usize],
    panels: &'a mut [T],
}

impl<T: FloatMultiply> VectorKernel<T> for Pack<'_, T> {
    #[inline(always)]
    fn run<V: Vectors<T>>(self, _: V) {
        let Self { from, rows, columns, panels } = self;
        match const { tile_rows(V::REGISTERS) } {
            8 => pack_panels::<T, 8>(from, rows, columns, panels),
            _ => pack_panels::<T, 4>(from, rows, columns, panels),
        }
    }
}

#[inline(always)]
fn pack_panels<T: FloatMultiply, const R: usize>(
    from: &[T],
    rows: &[usize],
    columns: &[usize],
    panels: &mut [T],
) {
    for (rows, panel) in rows.chunks(R).zip(panels.chunks_exact_mut(R * columns.len())) {
        let whole: Option<&[usize; R]> = rows.first_chunk();
        for (&column, to) in columns.iter().zip(panel.as_chunks_mut::<R>().0) {
            let of = |&row: &usize| from[row + column];
            match whole {
                Some(rows) => *to = rows.each_ref().map(of),
                None => {
                    *to = std::array::from_fn(|r| rows.get(r).map_or(T::ZERO, of));
                }
            }
        }
    }
}

struct Times<'a, T> {
    size: [usize; 3],
    panels: &'a [T],
    runs: Runs<'a, T>,
    c: &'a mut [T],
    step: usize,
}

impl<T: FloatMultiply> VectorKernel<T> for Times<'_, T> {
    #[inline(always)]
    fn run<V: Vectors<T>>(self, v: V) {
        match const { tile_rows(V::REGISTERS) } {
            8 => self.strips::<8, V>(v),
            _ => self.strips::<4, V>(v),
        }
    }
}

impl<T: FloatMultiply> Times<'_, T> {
    /// Strips of columns, so that those of the right operand stay in a first cache for all panels.
    #[inline(always)]
    fn strips<const R: usize, V: Vectors<T>>(mut self, v: V) {
        let [_, _, n] = self.size;
        let mut j = 0;
        while j + 2 * V::LANES <= n {
            self.strip::<R, 2, V>(v, [j, 2 * V::LANES]);
            j += 2 * V::LANES;
        }
        while j < n {
            let width = (n - j).min(V::LANES);
            self.strip::<R, 1, V>(v, [j, width]);
            j += width;
        }
    }

    #[inline(always)]
    fn strip<const R: usize, const N: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        [j, width]: [usize; 2],
    ) {
        let [m, k, _] = self.size;
        let Runs { data, starts } = self.runs;
        let data = &data[j..];
        for (i, panel) in (0..m).step_by(R).zip(self.panels.chunks_exact(R * k)) {
            let mut sums = [[v.splat(T::ZERO); N]; R];
            for (a, &start) in panel.as_chunks::<R>().0.iter().zip(starts) {
                let b = &data[start..][..width];
                let b: [V::Vector; N] = std::array::from_fn(|s| load(v, &b[s * V::LANES..]));
                for r in 0..R {
                    let a = v.splat(a[r]);
                    for s in 0..N {
                        sums[r][s] = v.mul_add(a, b[s], sums[r][s]);
                    }
                }
            }
            for (r, sums) in sums.into_iter().enumerate().take(m - i) {
                let out = &mut self.c[(i + r) * self.step + j..][..width];
                for (out, sum) in out.chunks_mut(V::LANES).zip(sums) {
                    store(v, sum, out);
                }
            }
        }
    }
}

/// Pieces of the rows of both operands, each `n` long, `.1` further on than the one before.
#[derive(Clone, Copy)]
pub(crate) struct Pieces {
    pub(crate) count: usize,
    pub(crate) n: usize,
    pub(crate) left: usize,
    pub(crate) right: usize,
}

/// Adds `a bᵀ` to `c`, along all pieces of the rows of `a` and `b`. There are `m` rows of `a`,
/// `steps[0]` apart; those of `c` are `steps[1]` apart.
pub(crate) fn add_dots<T: FloatMultiply + Vectored>(
    m: usize,
    a: &[T],
    b: Runs<'_, T>,
    pieces: Pieces,
    c: &mut [T],
    steps: [usize; 2],
) {
    if T::run(AddDots { m, a, b, pieces, c: &mut *c, steps }).is_ok() {
        return;
    }
    let Pieces { count, n, left, right } = pieces;
    let k = b.starts.len();
    let mut product = Buffer::any(m * k);
    for piece in 0..count {
        let rows = Runs { data: &b.data[piece * right..], ..b }.gapless(n);
        let a = Matrix { data: &a[piece * left..], rows: steps[0], columns: 1 };
        T::float_product([m, n, k], a, Matrix { data: &rows, rows: 1, columns: n }, &mut product);
        for (c, product) in c.chunks_mut(steps[1]).zip(product.chunks_exact(k)) {
            c.iter_mut().zip(product).for_each(|(c, &product)| *c = *c + product);
        }
    }
}

struct AddDots<'a, T> {
    m: usize,
    a: &'a [T],
    b: Runs<'a, T>,
    pieces: Pieces,
    c: &'a mut [T],
    steps: [usize; 2],
}

/// Rows of the left operand in a tile.
const TALL: usize = 4;

impl<T: FloatMultiply> VectorKernel<T> for AddDots<'_, T> {
    /// Vectors along the rows of both operands; the sums of all are joined at once.
    #[inline(always)]
    fn run<V: Vectors<T>>(mut self, v: V) {
        for i in (0..self.m).step_by(TALL) {
            if const { V::REGISTERS >= 32 } {
                self.row_of_tiles::<4, V>(v, i);
            } else {
                self.row_of_tiles::<2, V>(v, i);
            }
        }
    }
}

impl<T: FloatMultiply> AddDots<'_, T> {
    #[inline(always)]
    fn row_of_tiles<const N: usize, V: Vectors<T>>(&mut self, v: V, i: usize) {
        let k = self.b.starts.len();
        let rows = (self.m - i).min(TALL);
        for p in (0..k).step_by(N) {
            let starts = &self.b.starts[p..][..(k - p).min(N)];
            let sums = self.tile::<N, V>(v, [i, rows], starts);
            for (part, sums) in sums.as_flattened().chunks(V::LANES).enumerate() {
                let mut joined = [T::ZERO; 16];
                v.store(v.sums(sums), &mut joined);
                for (at, &sum) in (part * V::LANES..).zip(&joined[..sums.len()]) {
                    let (s, r) = (at / TALL, at % TALL);
                    if r < rows && s < starts.len() {
                        let c = &mut self.c[(i + r) * self.steps[1] + p + s];
                        *c = *c + sum;
                    }
                }
            }
        }
    }

    /// Of rows that are missing the last one is read again.
    #[inline(always)]
    fn tile<const N: usize, V: Vectors<T>>(
        &self,
        v: V,
        [i, rows]: [usize; 2],
        starts: &[usize],
    ) -> [[V::Vector; TALL]; N] {
        let Pieces { count, n, left, right } = self.pieces;
        let mut sums = [[v.splat(T::ZERO); TALL]; N];
        for piece in 0..count {
            let a: [&[T]; TALL] = std::array::from_fn(|r| {
                &self.a[piece * left + (i + r.min(rows - 1)) * self.steps[0]..][..n]
            });
            let b: [&[T]; N] = std::array::from_fn(|s| {
                &self.b.data[piece * right + starts[s.min(starts.len() - 1)]..][..n]
            });
            for at in (0..n).step_by(V::LANES) {
                let a: [V::Vector; TALL] = std::array::from_fn(|r| load(v, &a[r][at..]));
                for s in 0..N {
                    let b = load(v, &b[s][at..]);
                    for r in 0..TALL {
                        sums[s][r] = v.mul_add(a[r], b, sums[s][r]);
                    }
                }
            }
        }
        sums
    }
}
