//! The threads that take parts of work, and how they learn that there is some.

use std::collections::VecDeque;

use super::job::Job;
use super::look;
use super::sync::{Arc, AtomicUsize, Condvar, Mutex, Ordering, PoisonError, locked};

/// Threads, and the work they may join.
pub(super) struct Workers {
    pub(super) jobs: Mutex<Jobs>,
    /// How many pieces of work there have been.
    pub(super) posted: AtomicUsize,
    /// How many threads are awake and look for work.
    pub(super) idle: AtomicUsize,
    pub(super) more: Condvar,
}

pub(super) struct Jobs {
    pub(super) waiting: VecDeque<Arc<Job>>,
    pub(super) threads: usize,
    pub(super) asleep: usize,
}

impl Workers {
    /// Whether a thread is awake and has nothing to do.
    pub(super) fn are_awake(&self) -> bool {
        self.idle.load(Ordering::Relaxed) > 0
    }

    /// Does a piece of work, on this thread and on so many others as far as they are free; `start`
    /// starts one, if it can. A panic in one part is carried over to the caller when no thread is in
    /// the work any more.
    pub(super) fn run(&self, job: &Arc<Job>, others: usize, start: fn() -> bool) {
        self.post(job, others, start);
        job.take_parts();
        job.wait();
        locked(&self.jobs).waiting.retain(|other| !Arc::ptr_eq(other, job));
        job.pass_on_panic();
    }

    /// Shows a piece of work to so many threads, which are started where they are not there yet.
    pub(super) fn post(&self, job: &Arc<Job>, wanted: usize, start: fn() -> bool) {
        let mut jobs = locked(&self.jobs);
        jobs.waiting.push_back(Arc::clone(job));
        self.posted.fetch_add(1, Ordering::Release);
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

    /// What a thread does, again and again: it joins a piece of work, or waits for more. Whether it
    /// joined one.
    pub(super) fn turn(&self) -> bool {
        let seen = self.posted.load(Ordering::Acquire);
        let job = locked(&self.jobs).waiting.iter().find(|job| job.join()).cloned();
        if let Some(job) = job {
            job.take_parts();
            return true;
        }
        self.idle.fetch_add(1, Ordering::Relaxed);
        let more = look(|| self.posted.load(Ordering::Acquire) != seen);
        self.idle.fetch_sub(1, Ordering::Relaxed);
        if !more {
            let mut jobs = locked(&self.jobs);
            while self.posted.load(Ordering::Acquire) == seen {
                jobs.asleep += 1;
                jobs = self.more.wait(jobs).unwrap_or_else(PoisonError::into_inner);
                jobs.asleep -= 1;
            }
        }
        false
    }
}
