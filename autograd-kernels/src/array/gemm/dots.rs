//! Products of rows with rows, with vectors along both.

#![allow(clippy::needless_range_loop, reason = "an index names a place in several operands")]

use ndarray::LinalgScalar;

use super::panels::Matrix;
use crate::array::Storable;
use crate::array::simd::{VectorKernel, Vectors};

const MAX_SUMS: usize = 16;

/// Dot products of contiguous rows of `k` elements, added to `c`.
pub(super) struct Dots<'a, 'b, T> {
    pub(super) k: usize,
    pub(super) left: Matrix<'a, T>,
    pub(super) right: Matrix<'a, T>,
    pub(super) c: &'a mut [&'b mut [T]],
}

impl<T: Storable + LinalgScalar> VectorKernel<T> for Dots<'_, '_, T> {
    #[inline(always)]
    fn run<V: Vectors<T>>(self, v: V) {
        match self.c.len() {
            1 => self.tiles::<1, 8, V>(v),
            _ if const { V::REGISTERS >= 32 } => self.tiles::<4, 4, V>(v),
            _ => self.tiles::<4, 2, V>(v),
        }
    }
}

impl<T: Storable + LinalgScalar> Dots<'_, '_, T> {
    /// Tiles of `M` left rows and `N` right ones. The vectors of all sums are reduced at once.
    #[inline(always)]
    fn tiles<const M: usize, const N: usize, V: Vectors<T>>(self, v: V) {
        let Self { k, left, right, c } = self;
        let (m, n) = (c.len(), c.first().map_or(0, |row| row.len()));
        for (i, j) in (0..m).step_by(M).flat_map(|i| (0..n).step_by(N).map(move |j| (i, j))) {
            // A missing row is replaced by the last one.
            let mut a = [&left.data[..k]; M];
            let mut b = [&right.data[..k]; N];
            (0..M).for_each(|r| a[r] = &left.data[(i + r).min(m - 1) * left.rows..][..k]);
            (0..N).for_each(|s| b[s] = &right.data[(j + s).min(n - 1) * right.rows..][..k]);
            let mut sums = [[v.splat(T::ZERO); N]; M];
            for p in (0..k).step_by(V::LANES) {
                let mut right = [v.splat(T::ZERO); N];
                for s in 0..N {
                    right[s] = v.load(&b[s][p..]);
                }
                for r in 0..M {
                    let left = v.load(&a[r][p..]);
                    for s in 0..N {
                        sums[r][s] = v.mul_add(left, right[s], sums[r][s]);
                    }
                }
            }
            let (sums, mut reduced) = (sums, [T::ZERO; MAX_SUMS]);
            for (sums, reduced) in
                sums.as_flattened().chunks(V::LANES).zip(reduced.chunks_exact_mut(V::LANES))
            {
                v.store(v.sums(sums), reduced);
            }
            for (c, sums) in c[i..].iter_mut().zip(reduced.chunks_exact(N)).take(M) {
                for (c, &sum) in c[j..].iter_mut().zip(sums) {
                    *c = *c + sum;
                }
            }
        }
    }
}
