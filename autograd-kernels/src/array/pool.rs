//! Element types, each with a pool of free buffers for later ops: mapping a fresh buffer of a few
//! megabytes costs more than most ops. Buffers from [`POOLED_BYTES`] on return to a bounded pool when
//! their tensor is dropped. Their content is kept: a kernel that writes every element needs no zeros first.

use std::cell::RefCell;
use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::LocalKey;

/// Bytes of data that a tensor stores inline: one register of the widest instruction set.
pub const INLINE_BYTES: usize = 64;

pub const POOLED_BYTES: usize = 16 * 1024;

/// Each thread caches buffers of these sizes, for which the allocator and a shared pool are slow.
const CACHED_BYTES: RangeInclusive<usize> = 1024..=64 * 1024;

/// The maximum number of buffers cached by a thread: enough for all buffers of the layers of a small net.
const MAX_CACHED: usize = 32;

/// Bytes that all pools together may keep.
static LIMIT: AtomicUsize = AtomicUsize::new(512 << 20);
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Free buffers of one element type, sorted by capacity; of equal ones the last returned is first.
pub struct Pool<T>(Mutex<Vec<Vec<T>>>);

pub struct ThreadCache<T>(RefCell<Vec<Vec<T>>>);

impl<T> ThreadCache<T> {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    fn take(&self, len: usize) -> Option<Vec<T>> {
        let mut free = self.0.borrow_mut();
        // A larger buffer is kept for requests of its own size.
        let fits = |vec: &Vec<T>| (len..=len + len / 16).contains(&vec.capacity());
        let at = free.iter().rposition(fits)?;
        Some(free.swap_remove(at))
    }

    /// Caches a buffer; returns the oldest one if there are too many.
    fn give(&self, vec: Vec<T>) -> Option<Vec<T>> {
        let mut free = self.0.borrow_mut();
        let oldest = (free.len() == MAX_CACHED).then(|| free.remove(0));
        free.push(vec);
        oldest
    }
}

fn is_cached_size<T>(len: usize) -> bool {
    CACHED_BYTES.contains(&(len * size_of::<T>()))
}

impl<T: Storable> Pool<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub(super) fn any(&self, len: usize) -> Vec<T> {
        // A thread that is ending has no cache any more.
        if is_cached_size::<T>(len)
            && let Ok(Some(vec)) = T::thread_cache().try_with(|cache| cache.take(len))
        {
            return vec;
        }
        if len * size_of::<T>() >= POOLED_BYTES {
            let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let at = free.partition_point(|vec| vec.capacity() < len);
            // A slightly larger buffer is accepted; a much larger one would waste memory that other ops need.
            if free.get(at).is_some_and(|vec| vec.capacity() <= len + len / 4) {
                let vec = free.remove(at);
                HELD.fetch_sub(vec.capacity() * size_of::<T>(), Ordering::Relaxed);
                return vec;
            }
        }
        with_capacity(len)
    }

    pub fn give(&self, mut vec: Vec<T>) {
        if is_cached_size::<T>(vec.capacity()) && LIMIT.load(Ordering::Relaxed) > 0 {
            // A thread that is ending frees the buffer.
            match T::thread_cache().try_with(|cache| cache.give(vec)) {
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
        let _ = T::thread_cache().try_with(|cache| cache.0.take());
        let free = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let bytes: usize = free.iter().map(|vec| vec.capacity() * size_of::<T>()).sum();
        HELD.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// An element type.
pub trait Storable:
    Copy + Default + Send + Sync + Debug + PartialEq + PartialOrd + 'static
{
    const ELEMENT_NAME: &'static str;
    const ZERO: Self;
    const ONE: Self;
    /// `[Self; INLINE_BYTES / size_of::<Self>()]`
    type Inline: Copy
        + AsRef<[Self]>
        + AsMut<[Self]>
        + for<'a> TryFrom<&'a [Self]>
        + Send
        + Sync
        + 'static;
    const INLINE: Self::Inline;
    fn pool() -> &'static Pool<Self>;
    /// A buffer with capacity for `len` elements and unspecified content. This method and the next are not
    /// generic: otherwise every crate that creates or drops a tensor would compile them.
    fn any_buffer(len: usize) -> Vec<Self>;
    fn give_back(buffer: Vec<Self>);
    fn thread_cache() -> &'static LocalKey<ThreadCache<Self>>;
}

macro_rules! storable {
    ($($t:ty: $name:literal, $zero:expr, $one:expr;)*) => {
        pub fn empty() {
            $(<$t>::pool().empty();)*
        }

        $(impl Storable for $t {
            const ELEMENT_NAME: &'static str = $name;
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            type Inline = [$t; INLINE_BYTES / size_of::<$t>()];
            const INLINE: Self::Inline = [$zero; INLINE_BYTES / size_of::<$t>()];
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
            fn thread_cache() -> &'static LocalKey<ThreadCache<Self>> {
                thread_local! {
                    static CACHE: ThreadCache<$t> = const { ThreadCache::new() };
                }
                &CACHE
            }
        })*
    };
}

storable! {
    f32: "float32", 0.0, 1.0;
    f64: "float64", 0.0, 1.0;
    i32: "int32", 0, 1;
    i64: "int64", 0, 1;
    u8: "uint8", 0, 1;
    bool: "bool", false, true;
}

/// Panics if memory is exhausted, which can be caught; a vector's own allocation would abort.
#[track_caller]
pub fn with_capacity<T: Storable>(len: usize) -> Vec<T> {
    let mut vec = Vec::new();
    if vec.try_reserve_exact(len).is_err() {
        panic!("out of memory: a buffer of {len} elements of {}", T::ELEMENT_NAME);
    }
    vec
}

pub fn set_buffer_pool_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

pub fn buffer_pool_bytes() -> usize {
    HELD.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_free_buffer_that_is_large_enough_comes_back() {
        let pool = Pool::<f64>::new();
        // Too large for the thread's cache.
        let buffers = [20_000, 10_000, 11_000, 10_000].map(with_capacity::<f64>);
        let [large, small, middle, _] = buffers.each_ref().map(Vec::as_ptr);
        buffers.into_iter().for_each(|buffer| pool.give(buffer));
        let found: Vec<_> = (0..3).map(|_| pool.any(9_000)).collect();
        assert_eq!(found.iter().map(Vec::capacity).collect::<Vec<_>>(), [10_000, 10_000, 11_000]);
        assert_eq!(found[2].as_ptr(), middle);
        // The remaining buffer is too large for this request.
        assert_eq!(pool.any(9_000).capacity(), 9_000);
        found.into_iter().for_each(|buffer| pool.give(buffer));
        let found = [pool.any(16_001), pool.any(16_001)];
        assert_eq!((found[0].as_ptr(), found[1].capacity()), (large, 16_001));
        let mut again = [pool.any(10_000), pool.any(10_000)];
        again.sort_by_key(|buffer| buffer.as_ptr() != small);
        assert_eq!(again[0].as_ptr(), small);
        // The last buffer returned is the first to be reused, and the pool keeps no copy of it.
        let last = again[1].as_ptr();
        again.into_iter().for_each(|buffer| pool.give(buffer));
        let found = pool.any(10_000);
        assert_eq!(found.as_ptr(), last);
        assert_eq!(pool.0.lock().unwrap().len(), 2);
        pool.empty();
    }
}
