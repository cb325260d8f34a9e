//! Large products, in Goto's form (Goto and van de Geijn 2008): blocks of both operands are copied to
//! panels that lie as the innermost loop reads them, and that loop keeps a tile of the result in
//! registers.

#![allow(clippy::needless_range_loop, reason = "an index names a place in several operands")]

use super::Matrix;
use super::panels::{Buffer, load, pack, pack_rows, store};
use crate::array::Storable;
use crate::array::simd::{VectorKernel, Vectors};

/// Along `k`: so much of two panels is multiplied before the tile is written. A panel of the left
/// operand is then a part of a first cache, and one of the right operand a part of a second.
pub(in crate::array) const KC: usize = 512;
/// Panels of the left operand that are packed at once: with `KC` they fill a part of a second
/// cache.
const LEFT_PANELS: usize = 32;
/// Panels of the right operand that are packed at once.
const RIGHT_PANELS: usize = 16;
/// Rows that all tiles divide.
pub(in crate::array) const ROW_STEP: usize = 12;
/// Columns that all tiles of `f64` and `f32` divide.
pub(super) const COLUMN_STEP: usize = 64;

/// Operands that are copied to panels, block by block.
pub(super) struct Packed<'a, 'b, T> {
    pub(super) k: usize,
    pub(super) a: Matrix<'a, T>,
    pub(super) b: Matrix<'a, T>,
    /// The rows of the result, or a part of each.
    pub(super) c: &'a mut [&'b mut [T]],
}

impl<T: Storable> VectorKernel<T> for Packed<'_, '_, T> {
    /// The sums of a tile, the vectors of the right operand and one number of the left one fill
    /// the registers. Six rows of four vectors want fewer loads a step than twelve of two.
    #[inline(always)]
    fn run<V: Vectors<T>>(self, v: V) {
        match self.c.first().is_some_and(|row| row.len() <= V::LANES) {
            false if const { V::REGISTERS >= 32 } => self.blocks::<6, 4, V>(v),
            true if const { V::REGISTERS >= 32 } => self.blocks::<12, 1, V>(v),
            false => self.blocks::<6, 2, V>(v),
            true => self.blocks::<6, 1, V>(v),
        }
    }
}

impl<T: Storable> Packed<'_, '_, T> {
    #[inline(always)]
    fn blocks<const R: usize, const N: usize, V: Vectors<T>>(self, v: V) {
        let Self { k, a, b, c } = self;
        let (m, n) = (c.len(), c.first().map_or(0, |row| row.len()));
        let width = N * V::LANES;
        let (mut left, mut right) = (Buffer::new(), Buffer::new());
        for j0 in (0..n).step_by(RIGHT_PANELS * width) {
            let columns = (n - j0).min(RIGHT_PANELS * width);
            // What is left over is no wider than it must be.
            let whole = columns / width * width;
            let rest = (columns - whole).next_multiple_of(V::LANES);
            for p0 in (0..k).step_by(KC) {
                let depth = (k - p0).min(KC);
                let right = right.of((whole + rest) * depth);
                let (panels, last) = right.split_at_mut(whole * depth);
                let from = &b.data[b.rows * p0 + b.columns * j0..];
                let steps = [b.columns, b.rows];
                pack(panels, [whole, depth], width, from, steps);
                if rest > 0 {
                    pack(last, [columns - whole, depth], rest, &from[b.columns * whole..], steps);
                }
                for i0 in (0..m).step_by(LEFT_PANELS * R) {
                    let rows = (m - i0).min(LEFT_PANELS * R);
                    let left = left.of(rows.next_multiple_of(R) * depth);
                    let from = &a.data[a.rows * i0 + a.columns * p0..];
                    pack_rows::<T, R>(left, [rows, depth], from, [a.rows, a.columns]);
                    let mut c = Out { c: &mut c[i0..][..rows], add: p0 > 0 };
                    for (index, right) in panels.chunks_exact(width * depth).enumerate() {
                        c.write::<R, N, V>(v, left, right, j0 + index * width);
                    }
                    match rest / V::LANES {
                        0 => {}
                        1 => c.write::<R, 1, V>(v, left, last, j0 + whole),
                        2 if const { N > 2 } => c.write::<R, 2, V>(v, left, last, j0 + whole),
                        3 if const { N > 3 } => c.write::<R, 3, V>(v, left, last, j0 + whole),
                        _ => c.write::<R, N, V>(v, left, last, j0 + whole),
                    }
                }
            }
        }
    }
}

/// Rows of the result.
struct Out<'a, 'b, T> {
    c: &'a mut [&'b mut [T]],
    /// Whether the products of earlier panels stand there.
    add: bool,
}

impl<T: Storable> Out<'_, '_, T> {
    /// The products of all left panels and one right panel, from column `j` on.
    #[inline(always)]
    fn write<const R: usize, const N: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        left: &[T],
        right: &[T],
        j: usize,
    ) {
        let width = N * V::LANES;
        let depth = right.len() / width;
        let panels = left.chunks_exact(R * depth);
        for (left, out) in panels.zip(self.c.chunks_mut(R)) {
            let tile = tile::<T, R, N, V>(v, left, right);
            // A whole tile goes from the registers to its place.
            let columns = (out[0].len() - j).min(width);
            if let (Ok(out), true) = (<&mut [&mut [T]; R]>::try_from(&mut *out), columns == width) {
                for r in 0..R {
                    let out = &mut out[r][j..][..width];
                    for s in 0..N {
                        let (out, mut sum) = (&mut out[s * V::LANES..], tile[r][s]);
                        if self.add {
                            sum = v.add(sum, v.load(out));
                        }
                        v.store(sum, out);
                    }
                }
                continue;
            }
            for (out, sums) in out.iter_mut().zip(tile) {
                for (out, mut sum) in out[j..][..columns].chunks_mut(V::LANES).zip(sums) {
                    if self.add {
                        sum = v.add(sum, load(v, out));
                    }
                    store(v, sum, out);
                }
            }
        }
    }
}

/// The product of two panels.
#[inline(always)]
fn tile<T: Storable, const R: usize, const N: usize, V: Vectors<T>>(
    v: V,
    left: &[T],
    right: &[T],
) -> [[V::Vector; N]; R] {
    let mut sums = [[v.splat(T::ZERO); N]; R];
    for (a, b) in left.chunks_exact(R).zip(right.chunks_exact(N * V::LANES)) {
        let b: [V::Vector; N] = std::array::from_fn(|s| v.load(&b[s * V::LANES..]));
        for r in 0..R {
            let a = v.splat(a[r]);
            for s in 0..N {
                sums[r][s] = v.mul_add(a, b[s], sums[r][s]);
            }
        }
    }
    sums
}
