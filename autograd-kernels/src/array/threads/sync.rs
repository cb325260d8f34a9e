//! Primitives that threads share, and how threads wait; `models/` replaces them with a model checker's.

pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
pub(super) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread without work polls for more before it sleeps: the time between two large ops
/// of a training step. Polling yields the processor to other threads.
pub(super) const AWAKE: Duration = Duration::from_micros(150);
/// Polls before a waiting thread yields; some 10 µs.
const SPINS: usize = 200;

/// Locks a mutex, even if it is poisoned.
pub(super) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Polls `done` without sleeping, for about [`AWAKE`]; returns its last value.
pub(super) fn look(mut done: impl FnMut() -> bool) -> bool {
    let mut start = None;
    loop {
        for _ in 0..SPINS {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.get_or_insert_with(Instant::now).elapsed() >= AWAKE {
            return false;
        }
        std::thread::yield_now();
    }
}
