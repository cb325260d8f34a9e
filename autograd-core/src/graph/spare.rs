//! Memory of tensors that are gone, for the next ones of the same thread: a small tensor is then
//! made in place, without a call of the allocator. Nodes have the same (`node`).

use std::cell::RefCell;

use triomphe::Arc;

/// How many a thread keeps of each element type; 200 bytes each.
const KEPT: usize = 1024;

/// Tensors without content that nobody else holds; each thread has such a list.
pub(super) struct Spare<T>(RefCell<Vec<Arc<T>>>);

impl<T> Spare<T> {
    pub(super) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    pub(super) fn empty(&self) {
        self.0.take();
    }

    /// Memory for a tensor, if there is some.
    #[inline]
    pub(super) fn take(&self) -> Option<Arc<T>> {
        self.0.borrow_mut().pop()
    }

    /// Keeps the memory of an emptied tensor.
    #[inline]
    pub(super) fn give(&self, inner: Arc<T>) {
        let list = &mut self.0.borrow_mut();
        if list.len() < KEPT {
            list.push(inner);
        }
    }
}
