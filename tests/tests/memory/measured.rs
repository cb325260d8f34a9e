//! Memory in use, counted by the allocator, for one test at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use autograd_core::empty_buffer_pool;
use peak_alloc::PeakAlloc;

/// Counts all threads, so tests that read it take turns.
#[global_allocator]
pub(crate) static MEMORY: PeakAlloc = PeakAlloc;

/// Held while a test measures. A thread frees its buffers when it ends, possibly during the next
/// test; so they are freed at the end of the turn.
pub(crate) struct Turn {
    _lock: MutexGuard<'static, ()>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        empty_buffer_pool();
    }
}

/// Waits for this test's turn, which starts with an empty pool.
pub(crate) fn turn() -> Turn {
    static LOCK: Mutex<()> = Mutex::new(());
    let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    empty_buffer_pool();
    Turn { _lock: lock }
}

/// The peak of bytes held during `f`, in addition to those held before.
pub(crate) fn peak(f: impl FnOnce()) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    f();
    // The thread of the previous test may free its last bytes meanwhile, so that less is in use.
    MEMORY.peak_usage().saturating_sub(before)
}
