//! Primitives that threads share, and how threads wait; `models/` replaces them with a model checker's.

pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
pub(super) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread without work polls for more before it sleeps: the time between two large ops
/// of a training step. Polling yields the processor to other threads.
pub(super) const POLL_TIME: Duration = Duration::from_micros(150);
/// Polls before a waiting thread yields; some 10 µs.
const POLLS_PER_YIELD: usize = 200;

pub(super) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Polls `done` without sleeping, for about [`POLL_TIME`]; returns its last value.
pub(super) fn poll_until(mut done: impl FnMut() -> bool) -> bool {
    let mut start = None;
    loop {
        for _ in 0..POLLS_PER_YIELD {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.get_or_insert_with(Instant::now).elapsed() >= POLL_TIME {
            return false;
        }
        std::thread::yield_now();
    }
}
