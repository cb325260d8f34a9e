//! A piece of work in parts, which threads take one by one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::look;
use super::sync::{Arc, AtomicUsize, Condvar, Mutex, Ordering, PoisonError, locked};

/// A piece of work that threads take parts of.
pub(super) struct Job {
    /// Lives until all parts are done; see [`Job::take_parts`].
    work: *const (dyn Fn(usize) + Sync),
    parts: usize,
    /// The next part that nobody has taken.
    next: AtomicUsize,
    /// How many more threads may join.
    seats: AtomicUsize,
    /// How many parts are done; the one that ends the last tells who sleeps.
    done: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    ended: Condvar,
}

// SAFETY: all fields but `work` are `Send` and `Sync`; what `work` points to is `Sync`, so it may be
// called from any thread, and it is called only while it lives, as `take_parts` explains.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    pub(super) fn new(parts: usize, seats: usize, work: &(dyn Fn(usize) + Sync)) -> Arc<Self> {
        // SAFETY: the two types differ in a lifetime only. The pointer is followed only by
        // `take_parts`, for parts below `parts`, and `Workers::run` returns when all of them are done.
        let work = unsafe {
            std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work)
        };
        Arc::new(Self {
            work,
            parts,
            next: AtomicUsize::new(0),
            seats: AtomicUsize::new(seats),
            done: AtomicUsize::new(0),
            panic: Mutex::default(),
            ended: Condvar::new(),
        })
    }

    /// Does parts until none is left. The panic of a part ends the others that nobody has begun.
    pub(super) fn take_parts(&self) {
        loop {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            if part >= self.parts {
                // Nobody counts as far as to come round to 0.
                self.next.store(self.parts, Ordering::Relaxed);
                return;
            }
            // SAFETY: this part is not done until it is counted below, and `Workers::run`, whose
            // caller holds what is pointed to, waits until all parts are counted.
            let work = unsafe { &*self.work };
            let result = catch_unwind(AssertUnwindSafe(|| work(part)));
            let mut done = 1;
            if let Err(panic) = result {
                // Parts that nobody has taken count as done.
                let next = self.next.swap(self.parts, Ordering::Relaxed);
                done += self.parts - next.min(self.parts);
                locked(&self.panic).get_or_insert(panic);
            }
            if self.done.fetch_add(done, Ordering::AcqRel) + done == self.parts {
                // Who looked before this and is about to sleep has the lock until it does.
                drop(locked(&self.panic));
                self.ended.notify_all();
            }
        }
    }

    /// Whether all parts are done; then all that they did can be seen.
    fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.parts
    }

    pub(super) fn wait(&self) {
        if look(|| self.is_done()) {
            return;
        }
        let mut panic = locked(&self.panic);
        while !self.is_done() {
            panic = self.ended.wait(panic).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Carries the panic of a part over to the caller.
    pub(super) fn pass_on_panic(&self) {
        let panic = locked(&self.panic).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Whether a part and a seat are left; then the seat is taken.
    pub(super) fn join(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.parts
            && self
                .seats
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |seats| seats.checked_sub(1))
                .is_ok()
    }
}
