//! Panels: copies of a block that lie as a loop reads them, and their memory.

use crate::array::Storable;
use crate::array::simd::Vectors;

/// Numbers in a vector, at most.
pub(super) const WIDEST: usize = 16;

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
pub(super) fn pack<T: Storable>(
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
        // Several lines at once, so that what is written lies side by side.
        let together = if along == 1 { lines / 8 * 8 } else { 0 };
        for line in (0..together).step_by(8) {
            let from: [&[T]; 8] = std::array::from_fn(|r| &from[(line + r) * across..][..depth]);
            for (p, to) in panel.chunks_exact_mut(width).enumerate() {
                let numbers = std::array::from_fn(|r| from[r][p]);
                if let Some(to) = to[line..].first_chunk_mut::<8>() {
                    *to = numbers;
                }
            }
        }
        for line in together..lines {
            let from = &from[line * across..];
            for (p, to) in panel.chunks_exact_mut(width).enumerate() {
                to[line] = from[p * along];
            }
        }
    }
}

/// [`pack`] for panels of `R` lines: gapless ones are read side by side, and lines that lie side by
/// side are copied so.
#[inline(always)]
pub(super) fn pack_rows<T: Storable, const R: usize>(
    panels: &mut [T],
    [count, depth]: [usize; 2],
    from: &[T],
    [across, along]: [usize; 2],
) {
    let whole = if across == 1 || along == 1 { count / R } else { 0 };
    let (full, rest) = panels.split_at_mut(whole * R * depth);
    for (index, panel) in full.chunks_exact_mut(R * depth).enumerate() {
        let from = &from[index * R * across..];
        let (panel, _) = panel.as_chunks_mut::<R>();
        if across == 1 {
            for (p, to) in panel.iter_mut().enumerate() {
                if let Some(from) = from[p * along..].first_chunk() {
                    *to = *from;
                }
            }
        } else {
            let lines: [&[T]; R] = std::array::from_fn(|r| &from[r * across..][..depth]);
            for (p, to) in panel.iter_mut().enumerate() {
                *to = std::array::from_fn(|r| lines[r][p]);
            }
        }
    }
    if count > whole * R {
        let from = &from[whole * R * across..];
        pack(rest, [count - whole * R, depth], R, from, [across, along]);
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Memory for panels, from the pool and back to it.
pub(super) struct Buffer<T: Storable>(Vec<T>);

impl<T: Storable> Buffer<T> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// From the start of a cache line on: a vector that lies in two costs twice as much.
    pub(super) fn of(&mut self, len: usize) -> &mut [T] {
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
