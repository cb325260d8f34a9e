//! The heap data of values. Large buffers are aligned to cache lines.

use std::ops::{Deref, DerefMut};

use super::Storable;

/// Buffers of at least this many bytes are aligned: a vector that crosses a cache line costs two accesses.
const ALIGNED_BYTES: usize = 1024;
const CACHE_LINE: usize = 64;

/// Extra capacity beyond `len` that allows for alignment.
const fn spare<T>(len: usize) -> usize {
    if len * size_of::<T>() < ALIGNED_BYTES { 0 } else { CACHE_LINE / size_of::<T>() }
}

/// How many elements to skip at the start of a vector so that its data, `len` elements, is aligned.
fn start<T>(data: &[T], len: usize) -> usize {
    match spare::<T>(len) {
        0 => 0,
        _ => (data.as_ptr().addr().wrapping_neg() % CACHE_LINE) / size_of::<T>(),
    }
}

/// Elements. Memory from the pool returns there on drop.
pub struct Buffer<T: Storable> {
    data: Vec<T>,
    /// Elements before this one are unused, so that the data starts a cache line.
    start: usize,
    /// Whether the memory is from the pool. Foreign memory, which no op would reuse, is freed.
    pooled: bool,
}

impl<T: Storable> Buffer<T> {
    /// Creates a buffer of `len` elements with unspecified content.
    pub fn any(len: usize) -> Self {
        let mut data = T::any_buffer(len + spare::<T>(len));
        let start = start(&data, len);
        data.resize(start + len, T::ZERO);
        Self { data, start, pooled: true }
    }
}

impl<T: Storable> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.data[self.start..]
    }
}

impl<T: Storable> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data[self.start..]
    }
}

impl<T: Storable> Default for Buffer<T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl<T: Storable> From<Vec<T>> for Buffer<T> {
    fn from(data: Vec<T>) -> Self {
        Self { data, start: 0, pooled: false }
    }
}

impl<T: Storable> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.pooled {
            T::give_back(std::mem::take(&mut self.data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_start_with_a_cache_line() {
        for len in [256, 257, 1000, 10_000, 100_001] {
            // The second buffer may come from the pool.
            for _ in 0..2 {
                let any = Buffer::<f32>::any(len);
                assert_eq!((any.len(), any.as_ptr().addr() % CACHE_LINE), (len, 0));
                let bytes = Buffer::<u8>::any(4 * len);
                assert_eq!((bytes.len(), bytes.as_ptr().addr() % CACHE_LINE), (4 * len, 0));
            }
        }
    }

    #[test]
    fn what_was_a_vector_stays_where_it_is() {
        let data = vec![1.0_f32; 3000];
        let place = data.as_ptr();
        let buffer = Buffer::from(data);
        assert_eq!((buffer.as_ptr(), buffer.len()), (place, 3000));
    }
}
