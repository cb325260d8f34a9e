//! Large products, in Goto's form (Goto and van de Geijn 2008): blocks of both operands are copied to
//! panels that lie as the innermost loop reads them, and that loop keeps a tile of the result in
//! registers. Gapless rows are not copied where that loop reads them as fast.

#![allow(clippy::needless_range_loop, reason = "an index names a place in several operands")]

use super::Matrix;
use super::panels::{Buffer, LINE, load, pack, pack_rows, store};
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
/// Rows of a tile where whole ones do not fit.
const SHORT: usize = 4;
/// Up to so many rows of the result, gapless rows of the right operand are read too seldom for
/// packing to pay.
const SELDOM: usize = 256;
/// From so many products a number on, it pays to call for the place of the sums beforehand.
const LONG: usize = 256;
/// Rows that all tiles divide.
pub(in crate::array) const ROW_STEP: usize = 12;
/// Columns that all tiles of `f64` and `f32` divide.
pub(super) const COLUMN_STEP: usize = 64;

/// Operands that are copied to panels where they must be, block by block.
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
        // Where a vector is half as wide, finding a place in each row takes as long as what is
        // multiplied there.
        let in_place = const { V::REGISTERS >= 32 };
        let rows_in_place = in_place && a.columns == 1;
        let columns_in_place = in_place && b.columns == 1 && m <= SELDOM;
        let (mut left, mut right) = (Buffer::new(), Buffer::new());
        for j0 in (0..n).step_by(RIGHT_PANELS * width) {
            let columns = (n - j0).min(RIGHT_PANELS * width);
            // What is left over is no wider than it must be.
            let whole = columns / width * width;
            let rest = (columns - whole).next_multiple_of(V::LANES);
            for p0 in (0..k).step_by(KC) {
                let depth = (k - p0).min(KC);
                let packed = if columns_in_place { 0 } else { whole };
                let (panels, last) = right.of((packed + rest) * depth).split_at_mut(packed * depth);
                let right = &b.data[b.rows * p0 + b.columns * j0..];
                let steps = [b.columns, b.rows];
                pack(v, panels, [packed, depth], width, right, steps);
                if rest > 0 {
                    let right = &right[b.columns * whole..];
                    pack(v, last, [columns - whole, depth], rest, right, steps);
                }
                for i0 in (0..m).step_by(LEFT_PANELS * R) {
                    let rows = (m - i0).min(LEFT_PANELS * R);
                    let (tall, short) = tiles::<R>(rows);
                    let from = &a.data[a.rows * i0 + a.columns * p0..];
                    let left = if rows_in_place {
                        Left::Rows(from, a.rows)
                    } else {
                        let (size, steps) = ([tall, short, rows, depth], [a.rows, a.columns]);
                        Left::packed::<R, V>(v, &mut left, size, from, steps)
                    };
                    let mut c = Out { c: &mut c[i0..][..rows], tall, add: p0 > 0 };
                    for j in (0..whole + rest).step_by(width) {
                        let (data, step) = if j == whole {
                            (&*last, rest)
                        } else if columns_in_place {
                            (&right[j..], b.rows)
                        } else {
                            (&panels[j * depth..], width)
                        };
                        let right = Right { data, step, depth };
                        match (whole + rest - j) / V::LANES {
                            1 if const { N > 1 } => c.write::<R, 1, V>(v, left, right, j0 + j),
                            2 if const { N > 2 } => c.write::<R, 2, V>(v, left, right, j0 + j),
                            3 if const { N > 3 } => c.write::<R, 3, V>(v, left, right, j0 + j),
                            _ => c.write::<R, N, V>(v, left, right, j0 + j),
                        }
                    }
                }
            }
        }
    }
}

/// How many of so many rows tiles of `R` take, of which the last may be too long, and how many those
/// of [`SHORT`]: of all ways one in which the fewest are computed in vain.
pub(super) fn tiles<const R: usize>(rows: usize) -> (usize, usize) {
    let ways = [0, SHORT, 2 * SHORT];
    let tall = |short: usize| rows.saturating_sub(short).next_multiple_of(R);
    let short = ways.into_iter().min_by_key(|&short| tall(short) + short).unwrap_or(0);
    (tall(short), short)
}

/// Rows of the left operand.
#[derive(Clone, Copy)]
enum Left<'a, T> {
    /// In panels: those of whole tiles, and those of short ones.
    Panels(&'a [T], &'a [T]),
    /// Where they lie, so far apart.
    Rows(&'a [T], usize),
}

impl<'a, T: Storable> Left<'a, T> {
    #[inline(always)]
    fn packed<const R: usize, V: Vectors<T>>(
        v: V,
        buffer: &'a mut Buffer<T>,
        [tall, short, rows, depth]: [usize; 4],
        from: &[T],
        steps: [usize; 2],
    ) -> Self {
        let (panels, last) = buffer.of((tall + short) * depth).split_at_mut(tall * depth);
        pack_rows::<T, R, V>(v, panels, [rows.min(tall), depth], from, steps);
        if short > 0 {
            let from = &from[tall * steps[0]..];
            pack_rows::<T, SHORT, V>(v, last, [rows - tall, depth], from, steps);
        }
        Self::Panels(panels, last)
    }
}

/// Columns of the right operand, in a panel or where they lie: the numbers at one depth stand side by
/// side, `step` further on than those at the one before.
#[derive(Clone, Copy)]
struct Right<'a, T> {
    data: &'a [T],
    step: usize,
    depth: usize,
}

/// Rows of the result.
struct Out<'a, 'b, T> {
    c: &'a mut [&'b mut [T]],
    /// How many of them whole tiles take.
    tall: usize,
    /// Whether the products of earlier panels stand there.
    add: bool,
}

impl<T: Storable> Out<'_, '_, T> {
    /// The products of all left rows and some right columns, from column `j` on.
    #[inline(always)]
    fn write<const R: usize, const N: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        left: Left<'_, T>,
        right: Right<'_, T>,
        j: usize,
    ) {
        for i in (0..self.tall).step_by(R) {
            self.tile::<R, N, V>(v, left, right, [i, j]);
        }
        for i in (self.tall..self.c.len()).step_by(SHORT) {
            self.tile::<SHORT, N, V>(v, left, right, [i, j]);
        }
    }

    #[inline(always)]
    fn tile<const R: usize, const N: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        left: Left<'_, T>,
        right: Right<'_, T>,
        [i, j]: [usize; 2],
    ) {
        let (depth, count) = (right.depth, (self.c.len() - i).min(R));
        // Rows of a large result are far apart: they come from a far cache while the sums are made.
        if depth >= LONG {
            for row in &self.c[i..][..count] {
                let lines = row[j..].chunks(const { LINE / size_of::<T>() });
                let some = const { N * V::LANES * size_of::<T>() / LINE };
                lines.take(some).for_each(|line| v.prefetch(line));
            }
        }
        let tile = match left {
            Left::Panels(tall, short) => {
                let (panels, i) = if i < self.tall { (tall, i) } else { (short, i - self.tall) };
                let panel = panels[i * depth..][..R * depth].chunks_exact(R);
                tile::<T, R, N, V, _>(v, panel, |a, r| a[r], right)
            }
            Left::Rows(from, step) => {
                // Of rows that are missing the last one is read again.
                let row = |r: usize| &from[(i + r.min(count - 1)) * step..][..depth];
                let rows: [&[T]; R] = std::array::from_fn(row);
                tile::<T, R, N, V, _>(v, 0..depth, |&p, r| rows[r][p], right)
            }
        };
        let out = &mut self.c[i..][..count];
        // A whole tile goes from the registers to its place.
        let width = N * V::LANES;
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
            return;
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

/// The product of rows and columns. What `left` gives for a depth is asked for the number of each row.
#[inline(always)]
fn tile<T: Storable, const R: usize, const N: usize, V: Vectors<T>, L>(
    v: V,
    left: impl Iterator<Item = L>,
    number: impl Fn(&L, usize) -> T,
    right: Right<'_, T>,
) -> [[V::Vector; N]; R] {
    let mut sums = [[v.splat(T::ZERO); N]; R];
    for (p, a) in (0..right.depth).zip(left) {
        let b = &right.data[p * right.step..][..N * V::LANES];
        let b: [V::Vector; N] = std::array::from_fn(|s| v.load(&b[s * V::LANES..]));
        for r in 0..R {
            let a = v.splat(number(&a, r));
            for s in 0..N {
                sums[r][s] = v.mul_add(a, b[s], sums[r][s]);
            }
        }
    }
    sums
}
