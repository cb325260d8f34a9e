//! Memory of tensors that are gone, for the next ones of the same thread: a small tensor is then
//! made in place, without a call of the allocator. Nodes have the same (`node`).

use std::cell::RefCell;

use triomphe::Arc;

use super::any::{Element, empty_tensors};
use super::node::empty_nodes;
use super::tensor::Inner;
use crate::array::pool;

/// Gives the memory of all free buffers back to the allocator.
///
/// Buffers of 16 KiB and more are kept for reuse when their tensor is dropped, up to
/// [`set_buffer_pool_limit`](crate::set_buffer_pool_limit) bytes in all. Beside these each thread keeps, for
/// each element type, the last 16 buffers of 1 to 64 KiB and 1,024 tensors of 200 bytes, and up to 131,072 nodes
/// of the graph of 128 bytes; those of the calling thread are given back too. What a program of the static
/// graph keeps for its next run is not free: it goes with the program.
///
/// ```
/// drop(autograd_core::Tensor::<f32>::zeros([1000, 1000]));
/// autograd_core::empty_buffer_pool();
/// assert_eq!(autograd_core::buffer_pool_bytes(), 0);
/// ```
pub fn empty_buffer_pool() {
    pool::empty();
    empty_tensors();
    empty_nodes();
}

/// How many a thread keeps of each element type; 200 bytes each.
const KEPT: usize = 1024;

/// Tensors without content that nobody else holds; each thread has such a list.
pub(super) struct Spare<T: Element>(RefCell<Vec<Arc<Inner<T>>>>);

impl<T: Element> Spare<T> {
    pub(super) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    pub(super) fn empty(&self) {
        self.0.take();
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
