//! Products of few rows with gapless columns: a sum is one along both.

#![allow(clippy::needless_range_loop, reason = "an index names a place in several operands")]

use super::Matrix;
use super::panels::{Buffer, WIDEST, load, pack, store};
use crate::array::Storable;
use crate::array::simd::{VectorKernel, Vectors};

/// Columns of the result whose sums fill the registers.
const TALL: usize = 12;

/// Gapless rows times gapless columns; `b` is the right operand transposed.
pub(super) struct Dots<'a, T> {
    pub(super) size: [usize; 3],
    pub(super) a: Matrix<'a, T>,
    pub(super) b: Matrix<'a, T>,
    pub(super) c: &'a mut [T],
    /// From row to row of the result, and from column to column.
    pub(super) steps: [usize; 2],
}

impl<T: Storable> VectorKernel<T> for Dots<'_, T> {
    #[inline(always)]
    fn run<V: Vectors<T>>(mut self, v: V) {
        let [m, k, n] = self.size;
        // Summing the vectors up costs as much as four steps along a long row.
        if m >= 3 && k >= 4 * V::LANES {
            return self.by_rows(v);
        }
        if (3..=V::LANES).contains(&m) {
            return self.by_columns(v);
        }
        for j in 0..n {
            let column = &self.b.data[j * self.b.rows..][..k];
            for i in 0..m {
                let at = self.at(i, j);
                self.c[at] = dot(v, &self.a.data[i * self.a.rows..][..k], column);
            }
        }
    }
}

impl<T: Storable> Dots<'_, T> {
    /// Where an element of the result stands.
    #[inline(always)]
    fn at(&self, i: usize, j: usize) -> usize {
        i * self.steps[0] + j * self.steps[1]
    }

    /// Vectors along the rows of both operands: as many rows of the left one at once as have their
    /// sums in registers, so that the right one is read once for all of them.
    #[inline(always)]
    fn by_rows<V: Vectors<T>>(&mut self, v: V) {
        let [m, ..] = self.size;
        let mut left = Buffer::new();
        let mut i = 0;
        while i < m {
            i += match m - i {
                11.. if const { V::REGISTERS >= 32 } => self.rows::<12, V>(v, i, &mut left),
                9 | 10 if const { V::REGISTERS >= 32 } => self.rows::<10, V>(v, i, &mut left),
                7 | 8 if const { V::REGISTERS >= 32 } => self.rows::<8, V>(v, i, &mut left),
                5.. => self.rows::<6, V>(v, i, &mut left),
                _ => self.rows::<4, V>(v, i, &mut left),
            };
        }
    }

    /// Up to `R` rows of the result; how many comes back.
    #[inline(always)]
    fn rows<const R: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        i: usize,
        left: &mut Buffer<T>,
    ) -> usize {
        let [m, k, n] = self.size;
        let count = (m - i).min(R);
        // Vectors of all rows side by side, with zeros behind the last numbers.
        let panel = left.of(k.div_ceil(V::LANES) * R * V::LANES);
        for (block, to) in panel.chunks_exact_mut(R * V::LANES).enumerate() {
            let start = block * V::LANES;
            let length = (k - start).min(V::LANES);
            for (r, to) in to.chunks_exact_mut(V::LANES).enumerate() {
                let (to, rest) = to.split_at_mut(if r < count { length } else { 0 });
                to.copy_from_slice(
                    &self.a.data[(i + r.min(count - 1)) * self.a.rows + start..][..to.len()],
                );
                rest.fill(T::ZERO);
            }
        }
        let mut j = 0;
        while j + 2 <= n {
            self.sums::<R, 2, V>(v, panel, [i, count], j);
            j += 2;
        }
        if j < n {
            self.sums::<R, 1, V>(v, panel, [i, count], j);
        }
        count
    }

    /// `N` columns of them.
    #[inline(always)]
    fn sums<const R: usize, const N: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        panel: &[T],
        [i, count]: [usize; 2],
        j: usize,
    ) {
        let [_, k, _] = self.size;
        let right: [&[T]; N] = std::array::from_fn(|s| &self.b.data[(j + s) * self.b.rows..][..k]);
        let mut sums = [[v.splat(T::ZERO); R]; N];
        for (block, left) in panel.chunks_exact(R * V::LANES).enumerate() {
            let right: [V::Vector; N] =
                std::array::from_fn(|s| load(v, &right[s][block * V::LANES..]));
            for r in 0..R {
                let left = v.load(&left[r * V::LANES..]);
                for s in 0..N {
                    sums[s][r] = v.mul_add(left, right[s], sums[s][r]);
                }
            }
        }
        for (s, sums) in sums.iter().enumerate() {
            for (part, sums) in sums.chunks(V::LANES).enumerate() {
                let first = part * V::LANES;
                let some = count.saturating_sub(first).min(V::LANES);
                let (sums, at) = (v.sums(sums), self.at(i + first, j + s));
                // Parts of narrower vectors are dear to write.
                if const { V::REGISTERS >= 32 } && self.steps[0] == 1 {
                    store(v, sums, &mut self.c[at..][..some]);
                    continue;
                }
                let mut column = [T::ZERO; WIDEST];
                v.store(sums, &mut column);
                for (r, &sum) in column[..some].iter().enumerate() {
                    self.c[at + r * self.steps[0]] = sum;
                }
            }
        }
    }

    /// The left operand as one panel, a vector for each column of it: then a number of the right
    /// operand is multiplied with all rows at once, and no vector has to be summed up.
    #[inline(always)]
    fn by_columns<V: Vectors<T>>(&mut self, v: V) {
        let [m, k, n] = self.size;
        let mut left = Buffer::new();
        let panel = left.of(k * V::LANES);
        pack(v, panel, [m, k], V::LANES, self.a.data, [self.a.rows, 1]);
        let mut j = 0;
        while j + TALL <= n {
            self.columns::<TALL, V>(v, panel, j);
            j += TALL;
        }
        while j + 4 <= n {
            self.columns::<4, V>(v, panel, j);
            j += 4;
        }
        while j < n {
            self.columns::<1, V>(v, panel, j);
            j += 1;
        }
    }

    /// `R` columns of the result.
    #[inline(always)]
    fn columns<const R: usize, V: Vectors<T>>(&mut self, v: V, panel: &[T], j: usize) {
        let [m, k, _] = self.size;
        let right: [&[T]; R] = std::array::from_fn(|r| &self.b.data[(j + r) * self.b.rows..][..k]);
        let mut sums = [v.splat(T::ZERO); R];
        // Four steps at once: finding a place in each of so many lines costs as much as a step.
        let (whole, rest) = panel[..k * V::LANES].split_at(k / 4 * 4 * V::LANES);
        for (block, left) in whole.chunks_exact(4 * V::LANES).enumerate() {
            let left: [V::Vector; 4] = std::array::from_fn(|q| v.load(&left[q * V::LANES..]));
            for r in 0..R {
                let numbers = &right[r][4 * block..][..4];
                for q in 0..4 {
                    sums[r] = v.mul_add(v.splat(numbers[q]), left[q], sums[r]);
                }
            }
        }
        for (p, left) in (k / 4 * 4..).zip(rest.chunks_exact(V::LANES)) {
            let left = v.load(left);
            for r in 0..R {
                sums[r] = v.mul_add(v.splat(right[r][p]), left, sums[r]);
            }
        }
        let mut tile = [[T::ZERO; WIDEST]; R];
        for (to, sum) in tile.iter_mut().zip(sums) {
            v.store(sum, to);
        }
        for i in 0..m {
            for (r, sums) in tile.iter().enumerate() {
                let at = self.at(i, j + r);
                self.c[at] = sums[i];
            }
        }
    }
}
#[inline(always)]
fn dot<T: Storable, V: Vectors<T>>(v: V, mut x: &[T], mut y: &[T]) -> T {
    let mut sums = [v.splat(T::ZERO); 4];
    while let (Some((a, x_rest)), Some((b, y_rest))) =
        (x.split_at_checked(4 * V::LANES), y.split_at_checked(4 * V::LANES))
    {
        for (i, sum) in sums.iter_mut().enumerate() {
            let at = i * V::LANES;
            *sum = v.mul_add(v.load(&a[at..]), v.load(&b[at..]), *sum);
        }
        (x, y) = (x_rest, y_rest);
    }
    for (a, b) in x.chunks(V::LANES).zip(y.chunks(V::LANES)) {
        sums[0] = v.mul_add(load(v, a), load(v, b), sums[0]);
    }
    let sum = v.add(v.add(sums[0], sums[1]), v.add(sums[2], sums[3]));
    v.sum(sum)
}
