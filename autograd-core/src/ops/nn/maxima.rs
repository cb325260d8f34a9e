//! The greatest element of each window of a picture, and the gradient's way back to where it lies.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::super::Float;
use super::window::Plan;
use crate::array::simd::{Kernel, dispatch};
use crate::array::threads::{each, each_chunk};

/// Windows side by side whose elements are compared at once.
const LANES: usize = 8;
/// Elements of windows, in whole channels, that a part of the work has at least.
const PART: usize = 64 * 1024;

/// Channels that are worth a part of the work.
fn part(plan: &Plan) -> usize {
    (PART / (plan.windows() * plan.taps()).max(1)).max(1)
}

/// Writes the greatest element of each window, NaN if any is, and where it lies in its channel,
/// which has no more elements than an `i32` counts. Every window has an element.
pub(super) fn maxima<T: Float>(plan: &Plan, x: &[T], best: &mut [T], places: &mut [i32]) {
    let (part, size) = (part(plan), plan.input[0] * plan.input[1]);
    let chunk = part * plan.windows();
    let outs = best.chunks_mut(chunk).zip(places.chunks_mut(chunk));
    let parts: Vec<_> = outs.map(Mutex::new).collect();
    each(parts.len(), &|index| {
        let mut out = parts[index].lock().unwrap_or_else(PoisonError::into_inner);
        let (best, places) = &mut *out;
        let x = &x[index * part * size..][..best.len() / plan.windows() * size];
        match plan.stride(1) {
            1 => dispatch(Maxima::<T, 1> { plan, x, best, places }),
            2 => dispatch(Maxima::<T, 2> { plan, x, best, places }),
            _ => dispatch(Maxima::<T, 0> { plan, x, best, places }),
        }
    });
}

/// `STEP` is how far windows are apart; 0 stands for any number.
struct Maxima<'a, T, const STEP: usize> {
    plan: &'a Plan,
    x: &'a [T],
    best: &'a mut [T],
    places: &'a mut [i32],
}

impl<T: Float, const STEP: usize> Kernel for Maxima<'_, T, STEP> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { plan, x, best, places } = self;
        let ([height, width], [lines, windows]) = (plan.input, plan.output);
        let ([kernel, columns], padding) = (plan.window.kernel, plan.window.padding);
        let (stride, step) = (plan.stride(0), if STEP == 0 { plan.stride(1) } else { STEP });
        // Windows that lie on the picture from their first column to their last.
        let inside = plan.columns([0, 0]).0.start..plan.columns([0, columns - 1]).0.end;
        let together = inside.len().min(LANES);
        let rows = best.chunks_exact_mut(windows).zip(places.chunks_exact_mut(windows));
        for (index, (best, places)) in rows.enumerate() {
            let channel = &x[index / lines * height * width..];
            let top = index % lines * stride;
            let rows = top.saturating_sub(padding[0])..(top + kernel - padding[0]).min(height);
            let mut one = |i: usize| {
                let left = i * step;
                let columns =
                    left.saturating_sub(padding[1])..(left + columns - padding[1]).min(width);
                (best[i], places[i]) = greatest(channel, width, rows.clone(), columns);
            };
            (0..inside.start).chain(inside.end..windows).for_each(&mut one);
            let mut next = inside.start;
            while next < inside.end {
                // The last ones are compared together with some that were compared before, few ones
                // with what lies behind them.
                let i = next.min(inside.end - together);
                let first = i * step - padding[1];
                let start = rows.start * width + first;
                let mut most = [T::LOWEST; LANES];
                let mut at: [i32; LANES] = std::array::from_fn(|i| (start + i * step) as i32);
                for row in rows.clone() {
                    for column in 0..columns {
                        let place = row * width + first + column;
                        let new = apart::<T, STEP>(&channel[place..], step);
                        for i in 0..LANES {
                            let more = is_more(new[i], most[i]);
                            most[i] = if more { new[i] } else { most[i] };
                            at[i] = if more { (place + i * step) as i32 } else { at[i] };
                        }
                    }
                }
                write(&most, &mut best[i..][..together]);
                write(&at, &mut places[i..][..together]);
                next = i + together;
            }
        }
    }
}

/// Whether an element takes the place of one before it: if it is greater, or the first NaN.
#[inline(always)]
fn is_more<T: Float>(new: T, old: T) -> bool {
    (new > old) | (num_traits::Float::is_nan(new) & !num_traits::Float::is_nan(old))
}

/// The first element and those that lie one, two .. steps further on; zeros where there are none.
#[inline(always)]
fn apart<T: Float, const STEP: usize>(from: &[T], step: usize) -> [T; LANES] {
    match STEP {
        1 => first(from),
        2 => {
            let from: [T; 2 * LANES] = first(from);
            std::array::from_fn(|i| from[2 * i])
        }
        _ => std::array::from_fn(|i| from.get(i * step).copied().unwrap_or(T::ZERO)),
    }
}

/// The first elements, and zeros where there are none.
#[inline(always)]
fn first<T: Float, const N: usize>(from: &[T]) -> [T; N] {
    let Some(first) = from.first_chunk() else {
        return std::array::from_fn(|i| from.get(i).copied().unwrap_or(T::ZERO));
    };
    *first
}

/// The first of these numbers, as many as there is room for.
#[inline(always)]
fn write<T: Copy>(from: &[T; LANES], to: &mut [T]) {
    match to.first_chunk_mut() {
        Some(to) => *to = *from,
        None => to.iter_mut().zip(from).for_each(|(to, &x)| *to = x),
    }
}

/// The greatest element of these rows and columns, and where it lies.
#[inline(always)]
fn greatest<T: Float>(
    channel: &[T],
    width: usize,
    rows: Range<usize>,
    columns: Range<usize>,
) -> (T, i32) {
    let mut best = (T::LOWEST, rows.start * width + columns.start);
    for row in rows {
        let start = row * width + columns.start;
        for (place, &x) in (start..).zip(&channel[start..][..columns.len()]) {
            if is_more(x, best.0) {
                best = (x, place);
            }
        }
    }
    (best.0, best.1 as i32)
}

/// Adds each number to the element of its channel that lies at its place.
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

/// The element of each channel at each place: the adjoint of [`put_back`].
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
