//! What threads share is made of, and how they wait; `models/` puts a model checker's in its place.

pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
pub(super) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So long a thread without work looks for more before it sleeps: what a step of training does
/// between two of its large ops. Others that want the processor get it.
pub(super) const AWAKE: Duration = Duration::from_micros(150);
/// How often a thread that waits looks before it lets others go first; some 10 µs.
const SPINS: usize = 200;

/// A lock that no panic spoils.
pub(super) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `done`, without sleep, for about [`AWAKE`]; what `done` said at last comes back.
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
