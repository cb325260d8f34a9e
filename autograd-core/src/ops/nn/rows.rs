//! What loops over rows share.

use super::super::Float;
use crate::array::Value;
use crate::array::feed::Feed;

/// Elements, in whole rows, that one thread takes at once.
pub(super) const CHUNK: usize = 16 * 1024;

/// What a loop writes over, where that is not in its place yet: it is copied there part by part, so that
/// each part is read from a cache again.
pub(super) struct Given<'a, T: Float>(Option<Feed<'a, T>>, usize);

impl<'a, T: Float> Given<'a, T> {
    /// From element `start` on.
    pub(super) fn new(from: Option<&'a Value<T>>, start: usize) -> Self {
        Self(from.map(|from| Feed::new(from, from.shape(), start)), start)
    }

    /// The next elements.
    pub(super) fn put(&mut self, place: &mut [T]) {
        let Self(Some(feed), start) = self else { return };
        feed.advance(place.len());
        place.copy_from_slice(feed.block(*start, place.len()));
        *start += place.len();
    }
}

/// Elements that are joined side by side; a constant, so that sums are the same on every CPU.
pub(super) const LANES: usize = 8;
/// The same of long rows: one addition waits for another, and `f` may take whole registers.
const MANY: usize = 4 * LANES;

/// `f` of every element of a row, joined in one.
#[inline(always)]
pub(super) fn joined<T: Copy>(
    row: &[T],
    start: T,
    f: impl Fn(T) -> T,
    join: impl Fn(T, T) -> T,
) -> T {
    let mut lanes = [start; LANES];
    let (blocks, row) = row.as_chunks::<MANY>();
    if !blocks.is_empty() {
        let mut many = [start; MANY];
        for block in blocks {
            for (lane, &x) in many.iter_mut().zip(block) {
                *lane = join(*lane, f(x));
            }
        }
        for part in many.as_chunks::<LANES>().0 {
            for (lane, &x) in lanes.iter_mut().zip(part) {
                *lane = join(*lane, x);
            }
        }
    }
    let (blocks, rest) = row.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane = join(*lane, f(x));
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = join(*lane, f(x));
    }
    lanes.into_iter().fold(start, join)
}

#[inline(always)]
pub(super) fn total<T: Float>(row: &[T]) -> T {
    joined(row, T::ZERO, |x| x, T::plus)
}
