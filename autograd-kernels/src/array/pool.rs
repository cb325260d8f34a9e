//! Free buffers, kept for the next op.
//!
//! A fresh buffer of a few megabytes costs more to map than most ops cost to run, so buffers from
//! [`POOLED_BYTES`] on go back to a bounded pool when their tensor is dropped. They keep their
//! numbers: a kernel that writes every element needs no zeros first.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::LocalKey;

/// Smaller buffers do not go to the pools.
pub const POOLED_BYTES: usize = 16 * 1024;

/// Buffers of these sizes are cached by each thread: the allocator is several times slower for them than
/// for smaller ones, and the shared pools take as long as a small op. Smaller buffers are left to the
/// allocator.
const NEAR_BYTES: RangeInclusive<usize> = 1024..=64 * 1024;

/// So many of them at most: with the layers of a small net, all of its buffers.
const NEAR: usize = 32;

/// Bytes that all pools together may keep.
static LIMIT: AtomicUsize = AtomicUsize::new(512 << 20);
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Free buffers of one element type, ordered by capacity; of equal ones the last returned comes first. A sorted
/// vector, since the buffers are large and their number is small.
pub struct Pool<T>(Mutex<Vec<Vec<T>>>);

/// Free buffers that a thread keeps, the last one that came back at the end.
pub struct Near<T>(RefCell<Vec<Vec<T>>>);

impl<T> Near<T> {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    fn take(&self, len: usize) -> Option<Vec<T>> {
        let mut free = self.0.borrow_mut();
        // A larger one would be missing where its own size is asked for.
        let fits = |vec: &Vec<T>| (len..=len + len / 16).contains(&vec.capacity());
        let at = free.iter().rposition(fits)?;
        Some(free.swap_remove(at))
    }

    /// Keeps a buffer, and gives back the one that was here longest where there are too many.
    fn give(&self, vec: Vec<T>) -> Option<Vec<T>> {
        let mut free = self.0.borrow_mut();
        let oldest = (free.len() == NEAR).then(|| free.remove(0));
        free.push(vec);
        oldest
    }
}

fn is_near<T>(len: usize) -> bool {
    NEAR_BYTES.contains(&(len * size_of::<T>()))
}

impl<T: Pooled> Pool<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// A vector with room for `len` elements, and any content.
    pub(super) fn any(&self, len: usize) -> Vec<T> {
        // A thread that ends has none any more.
        if is_near::<T>(len)
            && let Ok(Some(vec)) = T::near().try_with(|near| near.take(len))
        {
            return vec;
        }
        if len * size_of::<T>() >= POOLED_BYTES {
            let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let at = free.partition_point(|vec| vec.capacity() < len);
            // A little larger is welcome; much larger would waste what others need.
            if free.get(at).is_some_and(|vec| vec.capacity() <= len + len / 4) {
                let vec = free.remove(at);
                HELD.fetch_sub(vec.capacity() * size_of::<T>(), Ordering::Relaxed);
                return vec;
            }
        }
        with_room(len)
    }

    /// Takes a vector back, or frees it where the pools are full.
    pub fn give(&self, mut vec: Vec<T>) {
        if is_near::<T>(vec.capacity()) && LIMIT.load(Ordering::Relaxed) > 0 {
            // A thread that ends frees it.
            match T::near().try_with(|near| near.give(vec)) {
                Ok(Some(oldest)) => vec = oldest,
                _ => return,
            }
        }
        let bytes = vec.capacity() * size_of::<T>();
        if bytes < POOLED_BYTES {
            return;
        }
        if HELD.fetch_add(bytes, Ordering::Relaxed) + bytes > LIMIT.load(Ordering::Relaxed) {
            HELD.fetch_sub(bytes, Ordering::Relaxed);
            return;
        }
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = free.partition_point(|other| other.capacity() < vec.capacity());
        free.insert(at, vec);
    }

    fn empty(&self) {
        let _ = T::near().try_with(|near| near.0.take());
        let free = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let bytes: usize = free.iter().map(|vec| vec.capacity() * size_of::<T>()).sum();
        HELD.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Elements whose buffers are pooled.
pub trait Pooled: Copy + Default + 'static {
    /// The name that users know.
    const ELEMENT_NAME: &'static str;
    /// Free buffers of this element type.
    fn pool() -> &'static Pool<Self>;
    /// A buffer with room for so many elements, and any content. This and the next would be compiled
    /// in every crate that makes or drops a tensor if they were generic.
    fn any_buffer(len: usize) -> Vec<Self>;
    /// Takes a buffer back.
    fn give_back(buffer: Vec<Self>);
    /// Free buffers of this element type that this thread keeps.
    fn near() -> &'static LocalKey<Near<Self>>;
}

macro_rules! pooled {
    ($($t:ty: $name:literal;)*) => {$(
        impl Pooled for $t {
            const ELEMENT_NAME: &'static str = $name;
            fn pool() -> &'static Pool<Self> {
                static POOL: Pool<$t> = Pool::new();
                &POOL
            }
            fn any_buffer(len: usize) -> Vec<Self> {
                Self::pool().any(len)
            }
            fn give_back(buffer: Vec<Self>) {
                Self::pool().give(buffer);
            }
            fn near() -> &'static LocalKey<Near<Self>> {
                thread_local! {
                    static NEAR: Near<$t> = const { Near::new() };
                }
                &NEAR
            }
        }
    )*};
}

pooled! {
    f32: "float32";
    f64: "float64";
    i32: "int32";
    i64: "int64";
    u8: "uint8";
    bool: "bool";
}

/// An empty vector with room for `len` elements. Where there is none this is a panic, which can be
/// caught; left to itself, a vector ends the process.
#[track_caller]
pub fn with_room<T: Pooled>(len: usize) -> Vec<T> {
    let mut vec = Vec::new();
    if vec.try_reserve_exact(len).is_err() {
        panic!("out of memory: a buffer of {len} elements of {}", T::ELEMENT_NAME);
    }
    vec
}

/// Gives all free buffers back to the allocator, and those that this thread keeps.
pub fn empty() {
    f32::pool().empty();
    f64::pool().empty();
    i32::pool().empty();
    i64::pool().empty();
    u8::pool().empty();
    bool::pool().empty();
}

/// Sets how many bytes of free buffers are kept for reuse; 0 turns the pool off.
pub fn set_buffer_pool_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// How many bytes of free buffers are kept now, beside those of each thread.
pub fn buffer_pool_bytes() -> usize {
    HELD.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_free_buffer_that_is_large_enough_comes_back() {
        let pool = Pool::<f64>::new();
        // Too large to stay with the thread.
        let buffers = [20_000, 10_000, 11_000, 10_000].map(with_room::<f64>);
        let [large, small, middle, _] = buffers.each_ref().map(Vec::as_ptr);
        buffers.into_iter().for_each(|buffer| pool.give(buffer));
        let found: Vec<_> = (0..3).map(|_| pool.any(9_000)).collect();
        assert_eq!(found.iter().map(Vec::capacity).collect::<Vec<_>>(), [10_000, 10_000, 11_000]);
        assert_eq!(found[2].as_ptr(), middle);
        // Of those that are kept, none is so small, and one is too large.
        assert_eq!(pool.any(9_000).capacity(), 9_000);
        found.into_iter().for_each(|buffer| pool.give(buffer));
        let found = [pool.any(16_001), pool.any(16_001)];
        assert_eq!((found[0].as_ptr(), found[1].capacity()), (large, 16_001));
        let mut again = [pool.any(10_000), pool.any(10_000)];
        again.sort_by_key(|buffer| buffer.as_ptr() != small);
        assert_eq!(again[0].as_ptr(), small);
        // The last that came back is the first to go, and nothing is kept of what went.
        let last = again[1].as_ptr();
        again.into_iter().for_each(|buffer| pool.give(buffer));
        let found = pool.any(10_000);
        assert_eq!(found.as_ptr(), last);
        assert_eq!(pool.0.lock().unwrap().len(), 2);
        pool.empty();
    }
}
