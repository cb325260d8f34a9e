//! The position of the greatest element of each window, and elements moved from these positions and back.

use std::ops::Range;

use super::super::Float;
use super::window::Plan;
use crate::array::threads::each_chunk;

/// Minimum number of window elements, in whole channels, in a part of the work.
const PART: usize = 64 * 1024;

fn part(plan: &Plan) -> usize {
    (PART / (plan.windows() * plan.taps()).max(1)).max(1)
}

/// Writes the position, in its channel, of each window's greatest element, or first NaN. No window is empty.
pub(super) fn maxima<T: Float>(plan: &Plan, x: &[T], positions: &mut [i32]) {
    let (part, size) = (part(plan), plan.input[0] * plan.input[1]);
    each_chunk(positions, part * plan.windows(), &|index, positions| {
        let channels = x[index * part * size..].chunks_exact(size);
        for (x, positions) in channels.zip(positions.chunks_exact_mut(plan.windows())) {
            for (y, positions) in positions.chunks_exact_mut(plan.output[1]).enumerate() {
                let rows = plan.inside(0, y);
                for (window, position) in positions.iter_mut().enumerate() {
                    let columns = plan.inside(1, window);
                    *position = greatest(x, plan.input[1], rows.clone(), columns) as i32;
                }
            }
        }
    });
}

fn greatest<T: Float>(x: &[T], width: usize, rows: Range<usize>, columns: Range<usize>) -> usize {
    let first = rows.start * width + columns.start;
    let (mut best, mut most) = (first, x[first]);
    for row in rows {
        let start = row * width + columns.start;
        for (position, &x) in (start..).zip(&x[start..][..columns.len()]) {
            if x > most || num_traits::Float::is_nan(x) && !num_traits::Float::is_nan(most) {
                (best, most) = (position, x);
            }
        }
    }
    best
}

/// Adds each number to the element at its position in its channel.
pub(super) fn scatter_maxima<T: Float>(plan: &Plan, positions: &[i32], dy: &[T], dx: &mut [T]) {
    let (part, size) = (part(plan), plan.input[0] * plan.input[1]);
    each_chunk(dx, part * size, &|index, dx| {
        dx.fill(T::ZERO);
        let (windows, first) = (plan.windows(), index * part * plan.windows());
        let from = dy[first..].chunks_exact(windows).zip(positions[first..].chunks_exact(windows));
        for (dx, (dy, positions)) in dx.chunks_exact_mut(size).zip(from) {
            for (&dy, &position) in dy.iter().zip(positions) {
                dx[position as usize] = dx[position as usize] + dy;
            }
        }
    });
}

/// Reads the element of each channel at each position: the adjoint of [`scatter_maxima`].
pub(super) fn gather_maxima<T: Float>(plan: &Plan, positions: &[i32], x: &[T], y: &mut [T]) {
    let (part, size) = (part(plan), plan.input[0] * plan.input[1]);
    each_chunk(y, part * plan.windows(), &|index, y| {
        let (windows, first) = (plan.windows(), index * part);
        let from = x[first * size..].chunks_exact(size);
        let positions = positions[first * windows..].chunks_exact(windows);
        for ((y, x), positions) in y.chunks_exact_mut(windows).zip(from).zip(positions) {
            y.iter_mut().zip(positions).for_each(|(y, &position)| *y = x[position as usize]);
        }
    });
}
