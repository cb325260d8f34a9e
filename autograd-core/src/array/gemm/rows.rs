//! Products that are too small or too narrow for packing: rows of the right operand are read where
//! they lie.

#![allow(clippy::needless_range_loop, reason = "an index names a place in several operands")]

use super::Matrix;
use super::panels::{Buffer, load, pack_rows, store};
use crate::array::Storable;
use crate::array::simd::{VectorKernel, Vectors};

/// Rows that strips and panels divide, mostly.
pub(super) const STEP: usize = 8;
/// Rows that one panel has, at most.
pub(super) const TALLEST: usize = 12;

/// Operands whose rows are gapless, read where they lie; the left one may lie in any way from four rows on.
pub(super) struct Rows<'a, T> {
    pub(super) size: [usize; 3],
    pub(super) a: Matrix<'a, T>,
    pub(super) b: Matrix<'a, T>,
    /// What is added to each column's sums, or nothing.
    pub(super) plus: &'a [T],
    pub(super) c: &'a mut [T],
}

impl<T: Storable> VectorKernel<T> for Rows<'_, T> {
    #[inline(always)]
    fn run<V: Vectors<T>>(mut self, v: V) {
        let [m, _, n] = self.size;
        let mut i = 0;
        if (n >= 4 * V::LANES || self.a.columns != 1) && m >= 4 {
            return self.by_panels(v);
        }
        while n <= V::LANES && i + 8 <= m {
            i += self.strips::<8, 1, V>(v, i);
        }
        while i + 6 <= m {
            i += self.strips::<6, 2, V>(v, i);
        }
        while i + 4 <= m {
            i += self.strips::<4, 2, V>(v, i);
        }
        while i < m {
            i += self.strips::<1, 4, V>(v, i);
        }
    }
}

impl<T: Storable> Rows<'_, T> {
    /// As many rows at once as have their sums in registers, so that each vector of the right
    /// operand is loaded once for all of them; their numbers stand in a panel, side by side.
    #[inline(always)]
    fn by_panels<V: Vectors<T>>(&mut self, v: V) {
        let [m, ..] = self.size;
        let mut left = Buffer::new();
        let mut i = 0;
        while i < m {
            i += match m - i {
                12.. if const { V::REGISTERS >= 32 } => self.panel::<12, V>(v, i, &mut left),
                10 | 11 if const { V::REGISTERS >= 32 } => self.panel::<10, V>(v, i, &mut left),
                8 | 9 if const { V::REGISTERS >= 32 } => self.panel::<8, V>(v, i, &mut left),
                5.. => self.panel::<6, V>(v, i, &mut left),
                _ => self.panel::<4, V>(v, i, &mut left),
            };
        }
    }

    /// Up to `R` rows of the result; how many comes back.
    #[inline(always)]
    fn panel<const R: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        i: usize,
        left: &mut Buffer<T>,
    ) -> usize {
        let Self { size: [m, k, n], a, b, .. } = *self;
        let count = (m - i).min(R);
        let left = left.of(R * k);
        pack_rows::<T, R, V>(v, left, [count, k], &a.data[i * a.rows..], [a.rows, a.columns]);
        let mut j = 0;
        while j + 2 * V::LANES <= n {
            self.panel_strip::<R, 2, V>(v, left, b, [i, count], [j, 2 * V::LANES]);
            j += 2 * V::LANES;
        }
        while j < n {
            let width = (n - j).min(V::LANES);
            self.panel_strip::<R, 1, V>(v, left, b, [i, count], [j, width]);
            j += width;
        }
        count
    }

    #[inline(always)]
    fn panel_strip<const R: usize, const N: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        left: &[T],
        b: Matrix<'_, T>,
        [i, count]: [usize; 2],
        [j, width]: [usize; 2],
    ) {
        let n = self.size[2];
        let mut sums = [[v.splat(T::ZERO); N]; R];
        for (p, a) in left.chunks_exact(R).enumerate() {
            let b = &b.data[p * b.rows + j..][..width];
            let b: [V::Vector; N] = std::array::from_fn(|s| load(v, &b[s * V::LANES..]));
            for r in 0..R {
                let a = v.splat(a[r]);
                for s in 0..N {
                    sums[r][s] = v.mul_add(a, b[s], sums[r][s]);
                }
            }
        }
        self.plus::<R, N, V>(v, &mut sums, [j, width]);
        for (r, sums) in sums.into_iter().enumerate().take(count) {
            let out = &mut self.c[(i + r) * n + j..][..width];
            for (out, sum) in out.chunks_mut(V::LANES).zip(sums) {
                store(v, sum, out);
            }
        }
    }

    #[inline(always)]
    fn plus<const R: usize, const N: usize, V: Vectors<T>>(
        &self,
        v: V,
        sums: &mut [[V::Vector; N]; R],
        [j, width]: [usize; 2],
    ) {
        if self.plus.is_empty() {
            return;
        }
        let plus = &self.plus[j..][..width];
        let plus: [V::Vector; N] = std::array::from_fn(|s| load(v, &plus[s * V::LANES..]));
        for r in 0..R {
            for s in 0..N {
                sums[r][s] = v.add(sums[r][s], plus[s]);
            }
        }
    }

    /// `R` rows of the result, in strips of `N` vectors, of one, and the rest; `R` comes back.
    #[inline(always)]
    fn strips<const R: usize, const N: usize, V: Vectors<T>>(&mut self, v: V, i: usize) -> usize {
        let [_, _, n] = self.size;
        let mut j = 0;
        while j + N * V::LANES <= n {
            self.strip::<R, N, V>(v, i, j, N * V::LANES);
            j += N * V::LANES;
        }
        while j < n {
            let width = (n - j).min(V::LANES);
            self.strip::<R, 1, V>(v, i, j, width);
            j += width;
        }
        R
    }

    #[inline(always)]
    fn strip<const R: usize, const N: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        i: usize,
        j: usize,
        width: usize,
    ) {
        let [_, k, n] = self.size;
        let rows: [&[T]; R] = std::array::from_fn(|r| &self.a.data[(i + r) * self.a.rows..][..k]);
        let mut sums = [[v.splat(T::ZERO); N]; R];
        for p in 0..k {
            let b = &self.b.data[p * self.b.rows + j..][..width];
            for s in 0..N {
                let b = load(v, &b[s * V::LANES..]);
                for r in 0..R {
                    sums[r][s] = v.mul_add(v.splat(rows[r][p]), b, sums[r][s]);
                }
            }
        }
        self.plus::<R, N, V>(v, &mut sums, [j, width]);
        for (r, sums) in sums.into_iter().enumerate() {
            let out = &mut self.c[(i + r) * n + j..][..width];
            for (out, sum) in out.chunks_mut(V::LANES).zip(sums) {
                store(v, sum, out);
            }
        }
    }
}
