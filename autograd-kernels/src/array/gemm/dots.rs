//! Products of rows with rows, with vectors along both.

#![allow(clippy::needless_range_loop, reason = "an index names a place in several operands")]

use super::panels::load;
use crate::array::Storable;
use crate::array::simd::{VectorKernel, Vectors};

const MAX_SUMS: usize = 16;

/// Dot products of contiguous rows of `k` elements, over all pieces of the rows.
pub(super) struct Dots<L, R, W> {
    pub(super) size: [usize; 3],
    pub(super) pieces: usize,
    /// Return a piece of a left row, and of a right one.
    pub(super) left: L,
    pub(super) right: R,
    /// Receives sums of a row, and the position of the first one.
    pub(super) write: W,
}

impl<'a, T, L, R, W> VectorKernel<T> for Dots<L, R, W>
where
    T: Storable,
    L: Fn(usize, usize) -> &'a [T],
    R: Fn(usize, usize) -> &'a [T],
    W: FnMut(usize, usize, &[T]),
{
    #[inline(always)]
    fn run<V: Vectors<T>>(self, v: V) {
        match self.size[0] {
            1 => self.tiles::<1, 8, T, V>(v),
            _ if const { V::REGISTERS >= 32 } => self.tiles::<4, 4, T, V>(v),
            _ => self.tiles::<4, 2, T, V>(v),
        }
    }
}

impl<'a, L, R, W> Dots<L, R, W> {
    /// Tiles of `M` left rows and `N` right ones. The vectors of all sums are reduced at once.
    #[inline(always)]
    fn tiles<const M: usize, const N: usize, T, V>(mut self, v: V)
    where
        T: Storable + 'a,
        V: Vectors<T>,
        L: Fn(usize, usize) -> &'a [T],
        R: Fn(usize, usize) -> &'a [T],
        W: FnMut(usize, usize, &[T]),
    {
        let [m, k, n] = self.size;
        for (i, j) in (0..m).step_by(M).flat_map(|i| (0..n).step_by(N).map(move |j| (i, j))) {
            let mut sums = [[v.splat(T::ZERO); N]; M];
            for piece in 0..self.pieces {
                // A missing row is replaced by the last one.
                let mut a = [&(self.left)(piece, i)[..k]; M];
                let mut b = [&(self.right)(piece, j)[..k]; N];
                (1..M).for_each(|r| a[r] = &(self.left)(piece, (i + r).min(m - 1))[..k]);
                (1..N).for_each(|s| b[s] = &(self.right)(piece, (j + s).min(n - 1))[..k]);
                for p in (0..k).step_by(V::LANES) {
                    let mut right = [v.splat(T::ZERO); N];
                    for s in 0..N {
                        right[s] = load(v, &b[s][p..]);
                    }
                    for r in 0..M {
                        let left = load(v, &a[r][p..]);
                        for s in 0..N {
                            sums[r][s] = v.mul_add(left, right[s], sums[r][s]);
                        }
                    }
                }
            }
            let (sums, mut reduced) = (sums, [T::ZERO; MAX_SUMS]);
            for (sums, reduced) in
                sums.as_flattened().chunks(V::LANES).zip(reduced.chunks_exact_mut(V::LANES))
            {
                v.store(v.sums(sums), reduced);
            }
            for (r, reduced) in reduced.chunks_exact(N).enumerate().take(M.min(m - i)) {
                // A length known at compile time needs no call.
                match n - j < N {
                    true => (self.write)(i + r, j, &reduced[..n - j]),
                    false => (self.write)(i + r, j, &reduced[..N]),
                }
            }
        }
    }
}
