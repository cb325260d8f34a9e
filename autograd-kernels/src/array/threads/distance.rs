//! How far the threads are from each other: where the host of a virtual machine, or what it is made of,
//! puts their cores. It may change at any time.

use std::time::Duration;

use super::sync::{AtomicUsize, Ordering};

/// Nanoseconds, as long as nobody has come since there was no work for long.
pub(super) const USUAL: usize = 300;
/// From so many nanoseconds on, what another thread wrote is dear to read: of cores that share a last
/// cache one comes in 150 to 250, of others in 800 to 1100.
const FAR: usize = 600;
/// No thread that looks for work comes later, but for reasons of its own.
const LONGEST: Duration = Duration::from_micros(2);
/// So much work is kept from threads that were far until it is seen whether they still are.
const AGAIN: usize = 500;

/// How many nanoseconds it has taken of late until a thread that looked for work had it.
pub(super) struct Distance {
    pub(super) nanoseconds: AtomicUsize,
    /// How much work has been kept from threads that are far.
    pub(super) kept: AtomicUsize,
}

impl Distance {
    pub(super) fn nanoseconds(&self) -> usize {
        self.nanoseconds.load(Ordering::Relaxed)
    }

    /// So long it has taken once more. The mean of some counts.
    pub(super) fn note(&self, age: Duration) {
        let mean = self.nanoseconds() * 7 / 8 + age.min(LONGEST).as_nanos() as usize / 8;
        self.nanoseconds.store(mean, Ordering::Relaxed);
    }

    /// A thread has found no work for long: how late it was may have had reasons of that moment. That
    /// threads are far is remembered.
    pub(super) fn forget(&self) {
        if !self.is_far() {
            self.nanoseconds.store(USUAL, Ordering::Relaxed);
        }
    }

    /// Whether what another thread wrote is dear to read, so that only long work is worth it.
    pub(super) fn is_far(&self) -> bool {
        self.nanoseconds() >= FAR
    }

    /// Notes that work is kept from threads that are far, which would be shared with others. Now and then
    /// it is shared all the same, to see whether they still are. What two threads note at once may count
    /// as one.
    pub(super) fn tries_again(&self) -> bool {
        let kept = self.kept.load(Ordering::Relaxed) + 1;
        let again = kept >= AGAIN;
        self.kept.store(if again { 0 } else { kept }, Ordering::Relaxed);
        if again {
            // The next one that comes decides.
            self.nanoseconds.store(FAR - 1, Ordering::Relaxed);
        }
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance() -> Distance {
        Distance { nanoseconds: AtomicUsize::new(USUAL), kept: AtomicUsize::new(0) }
    }

    fn far() -> Distance {
        let distance = distance();
        (0..10).for_each(|_| distance.note(Duration::from_nanos(900)));
        distance
    }

    #[test]
    fn threads_that_come_late_are_far_and_one_that_waited_for_its_core_is_not() {
        assert!(!distance().is_far());
        assert!(far().is_far());
        let waited = distance();
        (0..20).for_each(|_| waited.note(Duration::from_nanos(180)));
        waited.note(Duration::from_millis(3));
        assert!(!waited.is_far());
    }

    #[test]
    fn how_late_a_thread_was_is_forgotten_but_not_that_it_is_far() {
        let near = distance();
        (0..20).for_each(|_| near.note(Duration::from_nanos(180)));
        near.forget();
        assert_eq!(near.nanoseconds(), USUAL);
        let far = far();
        far.forget();
        assert!(far.is_far());
    }

    #[test]
    fn threads_that_were_far_are_tried_again_and_found_near_or_far() {
        let tried = || {
            let distance = far();
            assert_eq!((0..).find(|_| distance.tries_again()), Some(AGAIN - 1));
            assert!(!distance.is_far());
            distance
        };
        let still = tried();
        still.note(Duration::from_nanos(1000));
        assert!(still.is_far());
        let moved = tried();
        (0..10).for_each(|_| moved.note(Duration::from_nanos(180)));
        assert!(moved.nanoseconds() < USUAL);
    }

    #[test]
    fn threads_that_moved_are_near_when_they_come_soon() {
        let distance = far();
        (0..10).for_each(|_| distance.note(Duration::from_nanos(180)));
        assert!(!distance.is_far());
    }
}
