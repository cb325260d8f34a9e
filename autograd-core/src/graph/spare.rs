//! Memory of tensors that are gone, for the next ones of the same thread: a small tensor is then
//! made in place, without a call of the allocator.

use std::cell::RefCell;

use triomphe::Arc;

use super::any::Element;
use super::tensor::Inner;

/// How many a thread keeps of each element type; 200 bytes each.
const KEPT: usize = 1024;

/// Tensors without content that nobody else holds; each thread has such a list.
pub(super) struct Spare<T: Element>(RefCell<Vec<Arc<Inner<T>>>>);

impl<T: Element> Spare<T> {
    pub(super) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Memory for a tensor, if there is some.
    #[inline]
    pub(super) fn take(&self) -> Option<Arc<Inner<T>>> {
        self.0.borrow_mut().pop()
    }

    /// A handle goes; whether it was the last one, whose memory is to be kept.
    #[inline]
    pub(super) fn empties(inner: &mut Arc<Inner<T>>) -> bool {
        let Some(content) = Arc::get_mut(inner) else { return false };
        content.empty();
        true
    }

    /// Keeps the memory of an emptied tensor.
    #[inline]
    pub(super) fn give(&self, inner: Arc<Inner<T>>) {
        let list = &mut self.0.borrow_mut();
        if list.len() < KEPT {
            list.push(inner);
        }
    }
}
