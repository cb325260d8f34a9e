//! The position of the greatest element of each window.

use std::ops::Range;

use super::super::Float;
use super::window::Plan;
use crate::array::threads::each_chunk;

/// Minimum number of window elements, in whole channels, in a part of the work.
const PART: usize = 64 * 1024;

/// Writes the position, in its channel, of each window's greatest element, or first NaN. No window is empty.
pub(super) fn maxima<T: Float>(plan: &Plan, x: &[T], positions: &mut [i64]) {
    let size = plan.input[0] * plan.input[1];
    let part = (PART / (plan.windows() * plan.taps()).max(1)).max(1);
    each_chunk(positions, part * plan.windows(), &|index, positions| {
        let channels = x[index * part * size..].chunks_exact(size);
        for (x, positions) in channels.zip(positions.chunks_exact_mut(plan.windows())) {
            for (y, positions) in positions.chunks_exact_mut(plan.output[1]).enumerate() {
                let rows = plan.inside(0, y);
                for (window, position) in positions.iter_mut().enumerate() {
                    let columns = plan.inside(1, window);
                    *position = greatest(x, plan.input[1], rows.clone(), columns) as i64;
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
