//! The position of the greatest element of each window, and elements moved from these positions and back.

use std::ops::Range;

use super::super::Float;
use super::window::Plan;
use crate::array::threads::each_chunk;

/// Minimum number of window elements, in whole channels, in a part of the work.
const PART: usize = 64 * 1024;

/// The number of channels in a part of the work.
fn part(plan: &Plan) -> usize {
    (PART / (plan.windows() * plan.taps()).max(1)).max(1)
}

/// Writes the position, in its channel, of the greatest element of each window: the first NaN if there
/// is one. A channel has no more elements than an `i32` can count, and every window has an element.
pub(super) fn maxima<T: Float>(plan: &Plan, x: &[T], places: &mut [i32]) {
    let (part, size) = (part(plan), plan.input[0] * plan.input[1]);
    each_chunk(places, part * plan.windows(), &|index, places| {
        let channels = x[index * part * size..].chunks_exact(size);
        for (x, places) in channels.zip(places.chunks_exact_mut(plan.windows())) {
            for (y, places) in places.chunks_exact_mut(plan.output[1]).enumerate() {
                let rows = plan.inside(0, y);
                for (window, place) in places.iter_mut().enumerate() {
                    let columns = plan.inside(1, window);
                    *place = greatest(x, plan.input[1], rows.clone(), columns) as i32;
                }
            }
        }
    });
}

/// Returns the position of the greatest element in these rows and columns.
fn greatest<T: Float>(x: &[T], width: usize, rows: Range<usize>, columns: Range<usize>) -> usize {
    let first = rows.start * width + columns.start;
    let (mut best, mut most) = (first, x[first]);
    for row in rows {
        let start = row * width + columns.start;
        for (place, &x) in (start..).zip(&x[start..][..columns.len()]) {
            if x > most || num_traits::Float::is_nan(x) && !num_traits::Float::is_nan(most) {
                (best, most) = (place, x);
            }
        }
    }
    best
}

/// Adds each number to the element at its position in its channel.
pub(super) fn put_back<T: Float>(plan: &Plan, places: &[i32], dy: &[T], dx: &mut [T]) {
    let (part, size) = (part(plan), plan.input[0] * plan.input[1]);
    each_chunk(dx, part * size, &|index, dx| {
        dx.fill(T::ZERO);
        let (windows, first) = (plan.windows(), index * part * plan.windows());
        let from = dy[first..].chunks_exact(windows).zip(places[first..].chunks_exact(windows));
        for (dx, (dy, places)) in dx.chunks_exact_mut(size).zip(from) {
            for (&dy, &place) in dy.iter().zip(places) {
                dx[place as usize] = dx[place as usize] + dy;
            }
        }
    });
}

/// Reads the element of each channel at each position: the adjoint of [`put_back`].
pub(super) fn pick<T: Float>(plan: &Plan, places: &[i32], x: &[T], y: &mut [T]) {
    let (part, size) = (part(plan), plan.input[0] * plan.input[1]);
    each_chunk(y, part * plan.windows(), &|index, y| {
        let (windows, first) = (plan.windows(), index * part);
        let from = x[first * size..].chunks_exact(size);
        let places = places[first * windows..].chunks_exact(windows);
        for ((y, x), places) in y.chunks_exact_mut(windows).zip(from).zip(places) {
            y.iter_mut().zip(places).for_each(|(y, &place)| *y = x[place as usize]);
        }
    });
}
