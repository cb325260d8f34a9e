//! Cached memory.

use super::any::empty_tensors;
use super::node::empty_nodes;
use crate::array::pool;

/// Gives the memory of all free buffers back to the allocator.
///
/// Buffers of 16 KiB and more are cached when their tensor is dropped, up to
/// [`set_buffer_pool_limit`](crate::set_buffer_pool_limit) bytes in all. Each thread also caches, for each
/// element type, the last 32 buffers of 1 to 64 KiB and 1,024 tensors of 200 bytes, and up to 131,072 graph
/// nodes of 136 bytes; the caches of the calling thread are emptied too. A program of the static graph keeps
/// memory for its next run until the program is dropped.
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
