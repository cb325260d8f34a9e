//! The heap data of values. Large buffers are aligned to cache lines.

use std::mem::take;
use std::ops::{Deref, DerefMut};

use ndarray::{ArcArray1, Array1, s};

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
    data: Data<T>,
    /// Elements before this one are unused, so that the data starts a cache line.
    start: usize,
    /// Whether the memory is from the pool. Foreign memory, which no op would reuse, is freed.
    pooled: bool,
}

enum Data<T> {
    Own(Vec<T>),
    /// Held by arrays too, until these are dropped or the elements are written.
    Lent(ArcArray1<T>),
    /// Only read. A write copies them first.
    Foreign(Foreign<T>),
}

/// Elements that somebody else allocated.
struct Foreign<T> {
    data: *const T,
    len: usize,
    /// Its drop ends the lending.
    _owner: Box<dyn Send + Sync>,
}

// SAFETY: the elements are only read, and the caller of `Buffer::foreign` has promised that nobody writes them
// while the owner lives, on whatever thread that is.
unsafe impl<T: Send + Sync> Send for Foreign<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Foreign<T> {}

impl<T> Foreign<T> {
    fn as_slice(&self) -> &[T] {
        // SAFETY: the caller of `Buffer::foreign` has promised that there are so many elements, aligned and
        // initialized, which do not change while the owner lives; the owner lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T: Storable> Buffer<T> {
    /// Creates a buffer of `len` elements with unspecified content.
    pub fn any(len: usize) -> Self {
        let mut data = T::any_buffer(len + spare::<T>(len));
        let start = start(&data, len);
        data.resize(start + len, T::ZERO);
        Self { data: Data::Own(data), start, pooled: true }
    }

    /// A buffer over memory of somebody else, which is only read: a write copies the elements first.
    ///
    /// # Safety
    ///
    /// There are `len` initialized elements at `data`, which is aligned and not null. They do not change before
    /// `owner` is dropped, which may happen on any thread.
    pub unsafe fn foreign(data: *const T, len: usize, owner: Box<dyn Send + Sync>) -> Self {
        let data = Data::Foreign(Foreign { data, len, _owner: owner });
        Self { data, start: 0, pooled: false }
    }

    /// The elements as an array that holds them, without a copy. A later write copies them if the array lives.
    pub fn lend(&mut self) -> ArcArray1<T> {
        if let Data::Foreign(_) = self.data {
            self.own();
        }
        if let Data::Own(data) = &mut self.data {
            self.data = Data::Lent(Array1::from_vec(take(data)).into_shared());
        }
        self.lent().unwrap_or_else(|| unreachable!("it was lent here"))
    }

    /// As [`lend`](Self::lend), if there is such an array already.
    pub fn lent(&self) -> Option<ArcArray1<T>> {
        match &self.data {
            Data::Own(_) | Data::Foreign(_) => None,
            Data::Lent(array) => Some(array.clone().slice_move(s![self.start..])),
        }
    }

    /// Makes the elements the buffer's own: copies them if an array still holds them, or if they are foreign.
    #[cold]
    fn own(&mut self) {
        self.take_back();
        if let Data::Lent(_) | Data::Foreign(_) = self.data {
            let mut copy = Self::any(self.len());
            copy.copy_from_slice(self);
            *self = copy;
        }
    }

    /// Takes the elements back from an array that nobody else holds.
    fn take_back(&mut self) {
        if let Data::Lent(array) = &mut self.data
            && array.is_unique()
            && let Ok(array) = take(array).try_into_owned_nocopy()
        {
            self.data = Data::Own(array.into_raw_vec_and_offset().0);
        }
    }
}

impl<T: Storable> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.data {
            Data::Own(data) => &data[self.start..],
            Data::Lent(array) => &array.as_slice().unwrap_or(&[])[self.start..],
            Data::Foreign(foreign) => foreign.as_slice(),
        }
    }
}

impl<T: Storable> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        if let Data::Lent(_) | Data::Foreign(_) = self.data {
            self.own();
        }
        match &mut self.data {
            Data::Own(data) => &mut data[self.start..],
            Data::Lent(_) | Data::Foreign(_) => unreachable!("its elements are its own now"),
        }
    }
}

impl<T: Storable> Default for Buffer<T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl<T: Storable> From<Vec<T>> for Buffer<T> {
    fn from(data: Vec<T>) -> Self {
        Self { data: Data::Own(data), start: 0, pooled: false }
    }
}

impl<T: Storable> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.take_back();
        if self.pooled
            && let Data::Own(data) = &mut self.data
        {
            T::give_back(take(data));
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
    fn an_array_holds_the_elements_and_a_write_leaves_them_to_it() {
        let mut buffer = Buffer::<f32>::any(1000);
        buffer.fill(1.0);
        let place = buffer.as_ptr();
        let array = buffer.lend();
        assert_eq!((array.as_ptr(), array.len(), buffer.as_ptr()), (place, 1000, place));
        assert_eq!(buffer.lent().map(|array| array.as_ptr()), Some(place));
        buffer.fill(2.0);
        assert_ne!(buffer.as_ptr(), place);
        assert_eq!((array[0], buffer[999]), (1.0, 2.0));
        // Nobody else has the elements, so they are written where they are.
        let place = buffer.as_ptr();
        drop(buffer.lend());
        buffer.fill(3.0);
        assert_eq!((buffer.as_ptr(), buffer[0]), (place, 3.0));
    }

    #[test]
    fn foreign_elements_are_read_in_place_and_copied_by_a_write() {
        let (data, owner) = (std::sync::Arc::new(vec![1.0_f32; 3000]), std::sync::Arc::new(()));
        let place = data.as_ptr();
        let foreign = || {
            let owner: Box<dyn Send + Sync> = Box::new(std::sync::Arc::clone(&owner));
            // SAFETY: the vector outlives the buffers of this test, and is not written.
            unsafe { Buffer::foreign(place, 3000, owner) }
        };
        let mut buffer = foreign();
        assert_eq!((buffer.as_ptr(), buffer.len()), (place, 3000));
        buffer[0] = 2.0;
        assert_ne!(buffer.as_ptr(), place);
        assert_eq!((buffer[0], buffer[1], data[0]), (2.0, 1.0, 1.0));
        assert_eq!(std::sync::Arc::strong_count(&owner), 1, "the copy needs no owner");
        let mut buffer = foreign();
        let array = buffer.lend();
        assert_ne!(array.as_ptr(), place);
        drop((buffer, array, foreign()));
        assert_eq!(std::sync::Arc::strong_count(&owner), 1);
    }

    #[test]
    fn what_was_a_vector_stays_where_it_is() {
        let data = vec![1.0_f32; 3000];
        let place = data.as_ptr();
        let buffer = Buffer::from(data);
        assert_eq!((buffer.as_ptr(), buffer.len()), (place, 3000));
    }
}
