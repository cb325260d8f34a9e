//! Memory of tensors and nodes that are gone, for the next ones of the same thread: a small tensor or a node
//! is then made in place, without a call of the allocator.

use std::cell::RefCell;
use std::thread::LocalKey;

use triomphe::Arc;

/// What nobody else holds and has no content; each thread has such a list of a type.
pub(super) struct Spare<T>(RefCell<Vec<Arc<T>>>);

impl<T> Spare<T> {
    pub(super) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    pub(super) fn empty(&self) {
        self.0.take();
    }

    /// The memory that came last, if there is some. A thread that is ending has none any more.
    #[inline]
    pub(super) fn take(list: &'static LocalKey<Self>) -> Option<Arc<T>> {
        list.try_with(|list| list.0.borrow_mut().pop()).ok().flatten()
    }

    /// Keeps this memory, if there are fewer than `most`.
    #[inline]
    pub(super) fn give(list: &'static LocalKey<Self>, memory: Arc<T>, most: usize) {
        let _ = list.try_with(|list| {
            let mut list = list.0.borrow_mut();
            if list.len() < most {
                list.push(memory);
            }
        });
    }
}
