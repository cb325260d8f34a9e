//! Thread-local caches of the memory of dropped tensors and nodes, which save an allocation for each new one.

use std::cell::RefCell;
use std::thread::LocalKey;

use triomphe::UniqueArc;

/// A thread's list of empty allocations of one type.
pub(super) struct MemoryCache<T>(RefCell<Vec<UniqueArc<T>>>);

impl<T> MemoryCache<T> {
    pub(super) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    pub(super) fn empty(&self) {
        self.0.take();
    }

    /// Takes the memory that was added last. `None` if there is none, or if the thread is ending.
    #[inline]
    pub(super) fn take(list: &'static LocalKey<Self>) -> Option<UniqueArc<T>> {
        list.try_with(|list| list.0.borrow_mut().pop()).ok().flatten()
    }

    #[inline]
    pub(super) fn give(list: &'static LocalKey<Self>, memory: UniqueArc<T>, most: usize) {
        let _ = list.try_with(move |list| {
            let mut list = list.0.borrow_mut();
            if list.len() < most {
                list.push(memory);
            }
        });
    }
}
