//! A piece of work in parts, which threads take one by one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::sync::{Arc, AtomicUsize, Condvar, Mutex, Ordering, PoisonError, locked};
use super::wait::look;

/// A piece of work that threads take parts of.
pub(super) struct Job {
    /// Lives until all parts are done; see [`Job::take_parts`].
    work: *const (dyn Fn(usize) + Sync),
    parts: usize,
    /// How many parts are taken: the first ones by the thread that has the work, the last ones by
    /// others. So a thread meets what it had in its cache, where work of the same size comes again.
    taken: AtomicUsize,
    /// How many of them others have taken.
    by_others: AtomicUsize,
    /// How many threads have joined, and how many may.
    joined: AtomicUsize,
    pub(super) seats: usize,
    /// How many parts are done, and [`WAITED_FOR`].
    done: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    ended: Condvar,
}

// SAFETY: all fields but `work` are `Send` and `Sync`; what `work` points to is `Sync`, so it may be
// called from any thread, and it is called only while it lives, as `take_parts` explains.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

/// In the count of parts that are done: its owner sleeps until all are.
const WAITED_FOR: usize = 1 << (usize::BITS - 1);

/// Who takes parts.
pub(super) enum By {
    /// The thread that has the work, of which there is one.
    Owner,
    Other,
}

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
            taken: AtomicUsize::new(0),
            by_others: AtomicUsize::new(0),
            joined: AtomicUsize::new(0),
            seats,
            done: AtomicUsize::new(0),
            panic: Mutex::default(),
            ended: Condvar::new(),
        })
    }

    /// Does parts until none is left, from the first or, as others do, from the last on. The panic of
    /// a part ends those that nobody has begun.
    pub(super) fn take_parts(&self, by: By) {
        let mut done = 0;
        for own in 0.. {
            if self.taken.fetch_add(1, Ordering::Relaxed) >= self.parts {
                break;
            }
            // As many parts as are taken differ from each other: those from the first on and those
            // from the last on are no more than there are.
            let part = match by {
                By::Owner => own,
                By::Other => self.parts - 1 - self.by_others.fetch_add(1, Ordering::Relaxed),
            };
            // SAFETY: this part is not done until it is counted below, and `Workers::run`, whose
            // caller holds what is pointed to, waits until all parts are counted.
            let work = unsafe { &*self.work };
            let result = catch_unwind(AssertUnwindSafe(|| work(part)));
            done += 1;
            if let Err(panic) = result {
                // Parts that nobody has taken count as done.
                let taken = self.taken.swap(self.parts, Ordering::Relaxed);
                done += self.parts - taken.min(self.parts);
                locked(&self.panic).get_or_insert(panic);
            }
        }
        let before = self.done.fetch_add(done, Ordering::AcqRel);
        if before == self.parts - done + WAITED_FOR {
            // Who is about to sleep has the lock until it does.
            drop(locked(&self.panic));
            self.ended.notify_all();
        }
    }

    /// Waits until all parts are done; then all that they did can be seen.
    pub(super) fn wait(&self) {
        let is_done = || self.done.load(Ordering::Acquire) & !WAITED_FOR == self.parts;
        if look(is_done) {
            return;
        }
        let mut panic = locked(&self.panic);
        self.done.fetch_or(WAITED_FOR, Ordering::Relaxed);
        while !is_done() {
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

    /// Takes a seat, if a part and a seat are left.
    pub(super) fn join(&self) -> bool {
        let one_more = |joined| (joined < self.seats).then_some(joined + 1);
        self.taken.load(Ordering::Relaxed) < self.parts
            && self.joined.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }
}
