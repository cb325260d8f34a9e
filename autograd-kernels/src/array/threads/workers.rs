//! The worker threads, and how they are notified of work.

use std::collections::VecDeque;

use super::job::Job;
use super::sync::{Arc, AtomicUsize, Condvar, Mutex, Ordering, PoisonError, locked, poll_until};

pub(super) struct Workers {
    pub(super) jobs: Mutex<Jobs>,
    /// The length of [`Jobs::waiting`], which threads poll.
    pub(super) waiting: CachePadded<AtomicUsize>,
    pub(super) idle: CachePadded<AtomicUsize>,
    pub(super) more: Condvar,
}

/// A value in a cache line of its own: threads that poll it are not disturbed by writes to its neighbours.
#[repr(align(128))]
pub(super) struct CachePadded<T>(pub(super) T);

pub(super) struct Jobs {
    /// Each job occurs as often as threads may join it.
    pub(super) waiting: VecDeque<Arc<Job>>,
    pub(super) scopes: usize,
    pub(super) asleep: usize,
}

impl Workers {
    pub(super) fn are_awake(&self) -> bool {
        self.idle.0.load(Ordering::Relaxed) > 0
    }

    /// Does a job on this thread and on up to `others` more, if they are free. The panic of a part is
    /// propagated to the caller once no thread is in the work any more.
    pub(super) fn run(&self, job: &Arc<Job>, others: usize) {
        self.change(others, |jobs| jobs.waiting.extend((0..others).map(|_| Arc::clone(job))));
        job.take_parts(true);
        self.change(0, |jobs| jobs.waiting.retain(|other| !Arc::ptr_eq(other, job)));
        job.wait();
    }

    pub(super) fn change(&self, wake: usize, change: impl FnOnce(&mut Jobs)) {
        let mut jobs = locked(&self.jobs);
        change(&mut jobs);
        self.waiting.0.store(jobs.waiting.len(), Ordering::Relaxed);
        let asleep = jobs.asleep;
        drop(jobs);
        (0..wake.min(asleep)).for_each(|_| self.more.notify_one());
    }

    pub(super) fn work(&self) -> ! {
        self.idle.0.fetch_add(1, Ordering::Relaxed);
        loop {
            self.turn();
        }
    }

    /// One turn of an idle thread: joins a job, or waits for one. Returns whether it joined one.
    pub(super) fn turn(&self) -> bool {
        poll_until(|| self.waiting.0.load(Ordering::Relaxed) > 0);
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
        // Idle at once: the caller may have more work before this thread polls again.
        self.idle.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}
