//! The threads that take parts of work, and how they learn that there is some.

use std::collections::VecDeque;

use super::job::Job;
use super::sync::{Arc, AtomicUsize, Condvar, Mutex, Ordering, PoisonError, locked, look};

/// Threads, and the work they may join.
pub(super) struct Workers {
    pub(super) jobs: Mutex<Jobs>,
    /// How many of them are waiting, which threads look at.
    pub(super) waiting: Apart<AtomicUsize>,
    /// How many threads are awake and in no work.
    pub(super) idle: Apart<AtomicUsize>,
    pub(super) more: Condvar,
}

/// What stands in a line of the caches of its own: threads that look at it are not disturbed when others
/// write what stands beside it.
#[repr(align(128))]
pub(super) struct Apart<T>(pub(super) T);

pub(super) struct Jobs {
    /// Each as often as threads may join it.
    pub(super) waiting: VecDeque<Arc<Job>>,
    /// How many scopes want threads that do not sleep.
    pub(super) scopes: usize,
    pub(super) asleep: usize,
}

impl Workers {
    /// Whether a thread is awake and has nothing to do.
    pub(super) fn are_awake(&self) -> bool {
        self.idle.0.load(Ordering::Relaxed) > 0
    }

    /// Does a piece of work, on this thread and on so many others, as far as they are free. A panic in one
    /// part is carried over to the caller when no thread is in the work any more.
    pub(super) fn run(&self, job: &Arc<Job>, others: usize) {
        self.change(others, |jobs| jobs.waiting.extend((0..others).map(|_| Arc::clone(job))));
        job.take_parts(true);
        self.change(0, |jobs| jobs.waiting.retain(|other| !Arc::ptr_eq(other, job)));
        job.wait();
    }

    /// Changes what threads wait for, and wakes so many of them.
    pub(super) fn change(&self, wake: usize, change: impl FnOnce(&mut Jobs)) {
        let mut jobs = locked(&self.jobs);
        change(&mut jobs);
        self.waiting.0.store(jobs.waiting.len(), Ordering::Relaxed);
        let asleep = jobs.asleep;
        drop(jobs);
        (0..wake.min(asleep)).for_each(|_| self.more.notify_one());
    }

    /// What a thread does for ever.
    pub(super) fn work(&self) -> ! {
        self.idle.0.fetch_add(1, Ordering::Relaxed);
        loop {
            self.turn();
        }
    }

    /// What an idle thread does, again and again: it joins a piece of work, or waits for more. Whether it
    /// joined one.
    pub(super) fn turn(&self) -> bool {
        look(|| self.waiting.0.load(Ordering::Relaxed) > 0);
        let mut jobs = locked(&self.jobs);
        if jobs.waiting.is_empty() && jobs.scopes == 0 {
            self.idle.0.fetch_sub(1, Ordering::Relaxed);
            jobs.asleep += 1;
            jobs = self.more.wait(jobs).unwrap_or_else(PoisonError::into_inner);
            jobs.asleep -= 1;
            self.idle.0.fetch_add(1, Ordering::Relaxed);
        }
        let job = jobs.waiting.pop_front();
        self.waiting.0.store(jobs.waiting.len(), Ordering::Relaxed);
        drop(jobs);
        let Some(job) = job else { return false };
        self.idle.0.fetch_sub(1, Ordering::Relaxed);
        job.take_parts(false);
        // At once: the caller may have more work before this thread has looked for it.
        self.idle.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}
