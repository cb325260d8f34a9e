//! Memory in use, counted by the allocator, of a test that runs alone.

use std::sync::{Mutex, MutexGuard, PoisonError};

use autograd_core::empty_buffer_pool;
use peak_alloc::PeakAlloc;

/// Counts all threads, so that tests which read it take turns.
#[global_allocator]
pub(crate) static MEMORY: PeakAlloc = PeakAlloc;

/// Held while a test measures. A thread gives its free buffers back when it ends, which would be in
/// the middle of the next test: they go at the end of the turn.
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

/// The most bytes that `f` held at once, above what was held before.
pub(crate) fn peak(f: impl FnOnce()) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    f();
    // The thread of the test before may let go of its last bytes meanwhile, and leave less in use.
    MEMORY.peak_usage().saturating_sub(before)
}
