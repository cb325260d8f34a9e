//! The threads that take parts of work, and how they learn that there is some.

use std::collections::VecDeque;

use super::job::{By, Job};
use super::sync::{Arc, AtomicUsize, Condvar, Mutex, Ordering, PoisonError, locked};
use super::wait::look;

/// Threads, and the work they may join.
pub(super) struct Workers {
    pub(super) jobs: Mutex<Jobs>,
    /// How often threads were woken.
    pub(super) posted: Apart<AtomicUsize>,
    /// How many threads are awake and in no work.
    pub(super) idle: Apart<AtomicUsize>,
    /// How many scopes want threads that do not sleep.
    pub(super) scopes: AtomicUsize,
    pub(super) more: Condvar,
}

/// What stands in a line of the caches of its own: threads that look at it are not disturbed when others
/// write what stands beside it.
#[repr(align(128))]
pub(super) struct Apart<T>(pub(super) T);

pub(super) struct Jobs {
    pub(super) waiting: VecDeque<Arc<Job>>,
    pub(super) threads: usize,
    pub(super) asleep: usize,
}

impl Workers {
    /// Whether a thread is awake and has nothing to do.
    pub(super) fn are_awake(&self) -> bool {
        self.idle.0.load(Ordering::Relaxed) > 0
    }

    /// Does a piece of work, on this thread and on as many others as it has seats for, as far as they are
    /// free; `start` starts one, if it can. A panic in one part is carried over to the caller when no thread
    /// is in the work any more.
    pub(super) fn run(&self, job: &Arc<Job>, start: fn() -> bool) {
        self.post(Some(job), job.seats, start);
        job.take_parts(By::Owner);
        job.wait();
        locked(&self.jobs).waiting.retain(|other| !Arc::ptr_eq(other, job));
        job.pass_on_panic();
    }

    /// Wakes so many threads, which are started where they are not there yet, and shows them a piece of work.
    pub(super) fn post(&self, job: Option<&Arc<Job>>, wanted: usize, start: fn() -> bool) {
        let mut jobs = locked(&self.jobs);
        jobs.waiting.extend(job.map(Arc::clone));
        self.posted.0.fetch_add(1, Ordering::Release);
        // Without another thread the caller does all of it.
        while jobs.threads < wanted && start() {
            jobs.threads += 1;
        }
        let asleep = jobs.asleep;
        drop(jobs);
        for _ in 0..wanted.min(asleep) {
            self.more.notify_one();
        }
    }

    /// From now on so many threads do not sleep, until [`Workers::end`] has been called as often.
    pub(super) fn begin(&self, wanted: usize, start: fn() -> bool) {
        self.scopes.fetch_add(1, Ordering::Relaxed);
        self.post(None, wanted, start);
    }

    pub(super) fn end(&self) {
        self.scopes.fetch_sub(1, Ordering::Relaxed);
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
        let seen = self.posted.0.load(Ordering::Acquire);
        if self.join() {
            return true;
        }
        if look(|| self.posted.0.load(Ordering::Acquire) != seen) {
            return self.join();
        }
        if self.scopes.load(Ordering::Relaxed) > 0 {
            return false;
        }
        self.idle.0.fetch_sub(1, Ordering::Relaxed);
        let mut jobs = locked(&self.jobs);
        while self.posted.0.load(Ordering::Acquire) == seen {
            jobs.asleep += 1;
            jobs = self.more.wait(jobs).unwrap_or_else(PoisonError::into_inner);
            jobs.asleep -= 1;
        }
        drop(jobs);
        self.idle.0.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Joins a piece of work, if there is any.
    fn join(&self) -> bool {
        let job = locked(&self.jobs).waiting.iter().find(|job| job.join()).map(Arc::clone);
        let Some(job) = job else { return false };
        self.idle.0.fetch_sub(1, Ordering::Relaxed);
        job.take_parts(By::Other);
        // At once: the caller may have more work before this thread has looked for it.
        self.idle.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}
