//! Panels: copies of a block that lie as a loop reads them, and their memory.

use super::Matrix;
use crate::array::Storable;
use crate::array::simd::{VectorKernel, Vectors};

/// Numbers in a vector, at most.
pub(super) const WIDEST: usize = 16;

/// So many numbers at least that are less than a vector are turned as a part of one.
const FEW_NUMBERS: usize = 3;

/// The first `LANES` numbers, or as many as there are.
#[inline(always)]
pub(super) fn load<T, V: Vectors<T>>(v: V, from: &[T]) -> V::Vector {
    if from.len() >= V::LANES { v.load(from) } else { v.load_part(from) }
}

#[inline(always)]
pub(super) fn store<T, V: Vectors<T>>(v: V, x: V::Vector, to: &mut [T]) {
    if to.len() >= V::LANES { v.store(x, to) } else { v.store_part(x, to) }
}

/// Copies `count` lines of `depth` numbers to panels of `width` lines, in which the numbers at one
/// depth stand side by side; missing lines are zeros. `across` steps from line to line, `along`
/// along a line.
#[inline(always)]
pub(super) fn pack<T: Storable, V: Vectors<T>>(
    v: V,
    panels: &mut [T],
    [count, depth]: [usize; 2],
    width: usize,
    from: &[T],
    [across, along]: [usize; 2],
) {
    for (index, panel) in panels.chunks_exact_mut(width * depth).enumerate() {
        let first = index * width;
        let lines = (count - first).min(width);
        let from = &from[first * across..];
        if lines < width {
            panel.fill(T::ZERO);
        }
        if across == 1 {
            for (p, to) in panel.chunks_exact_mut(width).enumerate() {
                to[..lines].copy_from_slice(&from[p * along..][..lines]);
            }
            continue;
        }
        // Squares of gapless lines are turned; what is left over is copied one by one, but where parts of
        // vectors are as good as whole ones.
        let parts = const { V::REGISTERS >= 32 };
        let turned = |count: usize| match along {
            1 if parts && count % V::LANES >= FEW_NUMBERS => count,
            1 => count / V::LANES * V::LANES,
            _ => 0,
        };
        for line in (0..turned(lines)).step_by(V::LANES) {
            let side = (lines - line).min(V::LANES);
            for p in (0..turned(depth)).step_by(V::LANES) {
                let length = (depth - p).min(V::LANES);
                let mut square = [v.splat(T::ZERO); WIDEST];
                let square = &mut square[..V::LANES];
                for (r, numbers) in square.iter_mut().enumerate().take(side) {
                    *numbers = load(v, &from[(line + r) * across + p..][..length]);
                }
                v.transpose(square);
                let places = panel[p * width..].chunks_exact_mut(width).take(length);
                for (to, &numbers) in places.zip(&*square) {
                    store(v, numbers, &mut to[line..][..side]);
                }
            }
        }
        for line in 0..lines {
            let done = if line < turned(lines) { turned(depth) } else { 0 };
            for p in done..depth {
                panel[p * width + line] = from[line * across + p * along];
            }
        }
    }
}

/// A copy of a matrix with gapless rows.
pub(super) struct Gapless<'a, T> {
    pub(super) size: [usize; 2],
    pub(super) matrix: Matrix<'a, T>,
    pub(super) to: &'a mut [T],
}

impl<T: Storable> VectorKernel<T> for Gapless<'_, T> {
    #[inline(always)]
    fn run<V: Vectors<T>>(self, v: V) {
        let ([rows, columns], Matrix { data, rows: down, columns: across }) =
            (self.size, self.matrix);
        // Its columns are the lines of one panel.
        pack(v, self.to, [columns, rows], columns, data, [across, down]);
    }
}

/// [`pack`] for panels of `R` lines: gapless ones are read side by side, and lines that lie side by
/// side are copied so.
#[inline(always)]
pub(super) fn pack_rows<T: Storable, const R: usize, V: Vectors<T>>(
    v: V,
    panels: &mut [T],
    [count, depth]: [usize; 2],
    from: &[T],
    [across, along]: [usize; 2],
) {
    let whole = if across == 1 || along == 1 { count / R } else { 0 };
    let (full, rest) = panels.split_at_mut(whole * R * depth);
    if across == 1 {
        // Some lines of a cache at a time: those of the next panel are the same ones.
        for p in (0..depth).step_by(TOGETHER) {
            let together = (depth - p).min(TOGETHER);
            for (index, panel) in full.chunks_exact_mut(R * depth).enumerate() {
                let (panel, _) = panel[p * R..][..together * R].as_chunks_mut::<R>();
                let from = &from[index * R + p * along..];
                for (p, to) in panel.iter_mut().enumerate() {
                    if let Some(from) = from[p * along..].first_chunk() {
                        *to = *from;
                    }
                }
            }
        }
    } else {
        for (index, panel) in full.chunks_exact_mut(R * depth).enumerate() {
            let from = &from[index * R * across..];
            let (panel, _) = panel.as_chunks_mut::<R>();
            let lines: [&[T]; R] = std::array::from_fn(|r| &from[r * across..][..depth]);
            for (p, to) in panel.iter_mut().enumerate() {
                *to = std::array::from_fn(|r| lines[r][p]);
            }
        }
    }
    if count > whole * R {
        let from = &from[whole * R * across..];
        pack(v, rest, [count - whole * R, depth], R, from, [across, along]);
    }
}

/// So many numbers along a line are copied for all panels before the next ones are.
const TOGETHER: usize = 16;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Memory for panels, from the pool and back to it.
pub(super) struct Buffer<T: Storable>(Vec<T>);

impl<T: Storable> Buffer<T> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// From the start of a cache line on: a vector that lies in two costs twice as much.
    pub(super) fn of(&mut self, len: usize) -> &mut [T] {
        if len == 0 {
            return &mut [];
        }
        let room = len + LINE / size_of::<T>();
        if self.0.len() < room {
            T::pool().give(std::mem::replace(&mut self.0, T::pool().take_filled(room)));
        }
        let first = self.0.as_ptr().align_offset(LINE).min(room - len);
        &mut self.0[first..][..len]
    }
}

impl<T: Storable> Drop for Buffer<T> {
    fn drop(&mut self) {
        T::pool().give(std::mem::take(&mut self.0));
    }
}
