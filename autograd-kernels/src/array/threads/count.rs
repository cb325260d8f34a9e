//! How many threads a large op may use.

use std::cell::Cell;

use super::sync::{AtomicUsize, Ordering};

const MAX_THREADS: usize = 256;

/// The number of threads of the process; 0 until it is set or first used.
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of threads in a scope of this thread; 0 outside of any.
    static SCOPED: Cell<usize> = const { Cell::new(0) };
}

pub fn num_threads() -> usize {
    match (SCOPED.get(), COUNT.load(Ordering::Relaxed)) {
        (0, 0) => detect(),
        (0, count) => count,
        (scoped, _) => scoped,
    }
}

#[cold]
fn detect() -> usize {
    let named = std::env::var("AUTOGRAD_NUM_THREADS").ok();
    let named = named.and_then(|text| text.trim().parse().ok()).filter(|&count| count > 0);
    let found = || std::thread::available_parallelism().map_or(1, usize::from);
    let count = named.unwrap_or_else(found).min(MAX_THREADS);
    // A count set in the meantime wins.
    let set = COUNT.compare_exchange(0, count, Ordering::Relaxed, Ordering::Relaxed);
    set.map_or_else(|meanwhile| meanwhile, |_| count)
}

pub fn set_num_threads(count: usize) {
    COUNT.store(count.clamp(1, MAX_THREADS), Ordering::Relaxed);
}

pub fn with_num_threads<R>(count: usize, f: impl FnOnce() -> R) -> R {
    struct Restore(usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            SCOPED.set(self.0);
        }
    }
    let _restore = Restore(SCOPED.replace(count.clamp(1, MAX_THREADS)));
    f()
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn the_count_is_that_of_the_innermost_scope() {
        let outside = num_threads();
        with_num_threads(3, || {
            assert_eq!(num_threads(), 3);
            with_num_threads(0, || assert_eq!(num_threads(), 1));
            assert_eq!(num_threads(), 3);
        });
        let outcome = catch_unwind(|| with_num_threads(2, || panic!("on purpose")));
        assert!(outcome.is_err());
        assert_eq!(num_threads(), outside);
    }
}
