//! Products in tiles of the result whose sums stay in registers, by Goto's method (Goto and van de Geijn
//! 2008): in blocks of both operands that fit into the caches, packed if their layout does not follow the
//! innermost loop.

#![allow(clippy::needless_range_loop, reason = "an index names a place in several operands")]

use super::panels::{Matrix, pack};
use crate::array::Storable;
use crate::array::buffer::Buffer;
use crate::array::simd::{VectorKernel, Vectors};

/// The depth along `k` after which a tile is written. Its left rows then fill a part of the L1 cache, and a
/// panel of the right operand a part of the L2 cache.
const BLOCK_DEPTH: usize = 512;
/// Tiles down a block of the left operand. With `BLOCK_DEPTH` they fill at most half of an L2 cache of
/// 512 KiB, so that they stay in it while the panels pass.
const LEFT_TILES: usize = 8;
/// Panels of the right operand in a block.
const RIGHT_PANELS: usize = 16;
/// Up to this many rows of the result, packing contiguous right rows costs more than it saves.
const MAX_ROWS_UNPACKED: usize = 128;

/// A product, or a thread's part of one.
pub(super) struct Tiles<'a, 'b, T> {
    pub(super) k: usize,
    pub(super) a: Matrix<'a, T>,
    pub(super) b: Matrix<'a, T>,
    /// The rows of the result, or a part of each.
    pub(super) c: &'a mut [&'b mut [T]],
}

impl<T: Storable> VectorKernel<T> for Tiles<'_, '_, T> {
    /// The sums of a tile, the vectors of the right operand and one element of the left one fit the
    /// registers. With 32 of these, tiles have the height that leaves fewer rows empty.
    #[inline(always)]
    fn run<V: Vectors<T>>(self, v: V) {
        let narrow = self.c.first().is_some_and(|row| row.len() <= V::LANES);
        match self.c.len() {
            1 => self.blocks::<1, 4, V>(v),
            _ if narrow => self.blocks::<8, 1, V>(v),
            m if const { V::REGISTERS >= 32 } => {
                match m.next_multiple_of(5) < m.next_multiple_of(8) {
                    true => self.blocks::<5, 4, V>(v),
                    false => self.blocks::<8, 3, V>(v),
                }
            }
            _ => self.blocks::<6, 2, V>(v),
        }
    }
}

impl<T: Storable> Tiles<'_, '_, T> {
    #[inline(always)]
    fn blocks<const R: usize, const N: usize, V: Vectors<T>>(self, v: V) {
        let Self { k, a, b, c } = self;
        let (m, n) = (c.len(), c.first().map_or(0, |row| row.len()));
        let (width, most) = (N * V::LANES, k.min(BLOCK_DEPTH));
        let copy = |is_packed: bool, lines: usize| match is_packed {
            true => Buffer::any(lines * most),
            false => Buffer::default(),
        };
        let pack_left = a.columns != 1 && k > 1;
        let pack_right = b.columns != 1 || m > MAX_ROWS_UNPACKED;
        let mut left_lines = copy(pack_left, m.min(LEFT_TILES * R));
        let mut right_panels =
            copy(pack_right, n.min(RIGHT_PANELS * width).next_multiple_of(width));
        for j0 in (0..n).step_by(RIGHT_PANELS * width) {
            let columns = (n - j0).min(RIGHT_PANELS * width);
            for p0 in (0..k).step_by(BLOCK_DEPTH) {
                let depth = (k - p0).min(BLOCK_DEPTH);
                let right = b.tail(p0, j0);
                if pack_right {
                    let panels = &mut right_panels[..columns.next_multiple_of(width) * depth];
                    pack(v, panels, [columns, depth], width, right.transposed());
                }
                for i0 in (0..m).step_by(LEFT_TILES * R) {
                    let rows = (m - i0).min(LEFT_TILES * R);
                    let left = a.tail(i0, p0);
                    let left = match pack_left {
                        true => {
                            // One panel, of all columns: the rows are contiguous.
                            let lines = &mut left_lines[..rows * depth];
                            pack(v, lines, [depth, rows], depth, left.transposed());
                            Matrix { data: lines, rows: depth, columns: 1 }
                        }
                        false => left,
                    };
                    let mut out = Out { c: &mut c[i0..][..rows], column: j0, add: p0 > 0 };
                    let mut j = 0;
                    while j < columns {
                        let (rest, inside) = (columns - j, j % width);
                        let (data, step) = match pack_right {
                            true => (&right_panels[(j - inside) * depth + inside..], width),
                            false => (&right.data[j..], right.rows),
                        };
                        let right = |width| Right { data, step, depth, width };
                        // A width known at compile time needs no branches.
                        j += if const { N > 1 } && rest >= width {
                            out.write::<R, N, V>(v, left, right(width))
                        } else if const { N > 2 } && rest > V::LANES {
                            out.write::<R, 2, V>(v, left, right(rest.min(2 * V::LANES)))
                        } else {
                            out.write::<R, 1, V>(v, left, right(rest.min(V::LANES)))
                        };
                    }
                }
            }
        }
    }
}

/// Some columns of the right operand, in a panel or in place.
#[derive(Clone, Copy)]
struct Right<'a, T> {
    data: &'a [T],
    step: usize,
    depth: usize,
    width: usize,
}

/// Rows of the result, from one column on.
struct Out<'a, 'b, T> {
    c: &'a mut [&'b mut [T]],
    column: usize,
    /// Whether to add to the sums of earlier blocks.
    add: bool,
}

impl<T: Storable> Out<'_, '_, T> {
    /// Writes the next columns, and returns how many. The rows of `left` are contiguous.
    #[inline(always)]
    fn write<const R: usize, const N: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        left: Matrix<'_, T>,
        right: Right<'_, T>,
    ) -> usize {
        let Right { data, step, depth, width } = right;
        let last = self.c.len() - 1;
        for i in (0..=last).step_by(R) {
            // A missing row is replaced by the last one.
            let mut lines = [&left.data[..depth]; R];
            for (r, line) in lines.iter_mut().enumerate() {
                *line = &left.data[(i + r).min(last) * left.rows..][..depth];
            }
            // In a closure that is not inlined, these loops would be compiled without the CPU's vectors.
            let mut sums = [[v.splat(T::ZERO); N]; R];
            for p in 0..depth {
                let from = &data[p * step..][..width];
                let mut right = [v.splat(T::ZERO); N];
                for s in 0..N {
                    right[s] = v.load(&from[s * V::LANES..]);
                }
                for r in 0..R {
                    let a = v.splat(lines[r][p]);
                    for s in 0..N {
                        sums[r][s] = v.mul_add(a, right[s], sums[r][s]);
                    }
                }
            }
            for (row, sums) in self.c[i..].iter_mut().zip(sums) {
                let row = &mut row[self.column..][..width];
                for s in 0..N {
                    let to = &mut row[s * V::LANES..];
                    v.store(if self.add { v.add(sums[s], v.load(to)) } else { sums[s] }, to);
                }
            }
        }
        self.column += width;
        width
    }
}
