//! A piece of work in parts, which threads take one by one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::sync::{Arc, AtomicUsize, Condvar, Mutex, Ordering, PoisonError, locked, poll_until};

pub(super) struct Job {
    /// Valid until all parts are done; see [`Job::take_parts`].
    work: *const (dyn Fn(usize) + Sync),
    parts: usize,
    /// The number of parts taken: the first ones by the owner of the work, the last ones by other threads.
    /// So a thread finds its data in its cache if work of the same size repeats.
    taken: AtomicUsize,
    /// How many of them other threads took.
    by_others: AtomicUsize,
    done: AtomicUsize,
    end: Mutex<End>,
    ended: Condvar,
}

#[derive(Default)]
struct End {
    panic: Option<Box<dyn Any + Send>>,
    /// Whether the owner sleeps until all parts are done.
    is_awaited: bool,
}

// SAFETY: all fields but `work` are `Send` and `Sync`; what `work` points to is `Sync`, so it may be
// called from any thread, and it is called only while it lives, as `take_parts` explains.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    pub(super) fn new(parts: usize, work: &(dyn Fn(usize) + Sync)) -> Arc<Self> {
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
            done: AtomicUsize::new(0),
            end: Mutex::default(),
            ended: Condvar::new(),
        })
    }

    /// Does parts until none is left: the owner from the first one on, other threads from the last. If a
    /// part panics, parts that no thread has begun are skipped.
    pub(super) fn take_parts(&self, has_the_work: bool) {
        let mut done = 0;
        for own in 0.. {
            if self.taken.fetch_add(1, Ordering::Relaxed) >= self.parts {
                break;
            }
            // All parts taken are distinct: the owner counts up, the others count down, and together they
            // take at most `parts`.
            let part = match has_the_work {
                true => own,
                false => self.parts - 1 - self.by_others.fetch_add(1, Ordering::Relaxed),
            };
            // SAFETY: this part is not done until it is counted below, and `Workers::run`, whose caller
            // holds the closure, waits until all parts are counted.
            let work = unsafe { &*self.work };
            let result = catch_unwind(AssertUnwindSafe(|| work(part)));
            done += 1;
            if let Err(panic) = result {
                // Parts that nobody has taken count as done.
                let taken = self.taken.swap(self.parts, Ordering::Relaxed);
                done += self.parts - taken.min(self.parts);
                locked(&self.end).panic.get_or_insert(panic);
            }
        }
        let before = self.done.fetch_add(done, Ordering::AcqRel);
        if before + done == self.parts && locked(&self.end).is_awaited {
            self.ended.notify_one();
        }
    }

    /// Waits until all parts are done and their writes are visible. Propagates the panic of a part.
    pub(super) fn wait(&self) {
        let is_done = || self.done.load(Ordering::Acquire) == self.parts;
        poll_until(is_done);
        let mut end = locked(&self.end);
        while !is_done() {
            end.is_awaited = true;
            end = self.ended.wait(end).unwrap_or_else(PoisonError::into_inner);
        }
        let panic = end.panic.take();
        drop(end);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}
