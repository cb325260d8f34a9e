//! Model checks of the thread pool: loom tries all orders of steps within its bound, and all values that a
//! relaxed read may see. Run by `.ci/sanitize loom`.
//!
//! The two files are the library's own, with loom's types in place of those of std.
#![cfg(test)]

#[path = "../../autograd-kernels/src/array/threads/job.rs"]
mod job;
#[allow(dead_code, reason = "some of it is asked by the library only")]
#[path = "../../autograd-kernels/src/array/threads/workers.rs"]
mod workers;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicUsize, Ordering};
    pub(super) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(super) use std::sync::PoisonError;

    pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls once: the order of steps decides whether the thread sleeps.
    pub(super) fn poll_until(mut done: impl FnMut() -> bool) -> bool {
        done()
    }
}

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use job::Job;
use loom::cell::UnsafeCell;
use sync::{Arc, AtomicUsize, Condvar, Mutex};
use workers::{CachePadded, Jobs, Workers};

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut all = loom::model::Builder::new();
    all.preemption_bound = Some(3);
    all.check(model);
}

/// Workers whose threads are those of the model.
fn workers() -> Arc<Workers> {
    Arc::new(Workers {
        jobs: Mutex::new(Jobs { waiting: VecDeque::new(), scopes: 0, asleep: 0 }),
        waiting: CachePadded(AtomicUsize::new(0)),
        idle: CachePadded(AtomicUsize::new(0)),
        more: Condvar::new(),
    })
}

/// The data that the parts write, and that is invalid after their caller continues. loom reports an access
/// that is not ordered after another access's write.
struct Data {
    parts: Vec<UnsafeCell<usize>>,
    alive: UnsafeCell<bool>,
}

// SAFETY: loom checks every access.
unsafe impl Sync for Data {}

impl Data {
    fn new(parts: usize) -> Self {
        let parts = (0..parts).map(|_| UnsafeCell::new(0)).collect();
        Self { parts, alive: UnsafeCell::new(true) }
    }

    /// The work of a part.
    fn write(&self, part: usize) {
        // SAFETY: loom checks every access.
        self.alive
            .with(|alive| assert!(unsafe { *alive }, "no part is run when the caller is gone"));
        // SAFETY: as above.
        self.parts[part].with_mut(|times| unsafe { *times += 1 });
    }

    /// Ends the data's life when the caller continues. Returns how often each part ran.
    fn end(&self) -> Vec<usize> {
        // SAFETY: as above.
        self.alive.with_mut(|alive| unsafe { *alive = false });
        // SAFETY: as above.
        self.parts.iter().map(|part| part.with(|times| unsafe { *times })).collect()
    }
}

/// A thread that looks for work and sleeps in turns, until it has joined a job.
fn worker(workers: &Arc<Workers>) -> loom::thread::JoinHandle<()> {
    let workers = Arc::clone(workers);
    loom::thread::spawn(move || while !workers.turn() {})
}

/// Queues a job that its owner does not run.
fn show(workers: &Workers, job: &Arc<Job>) {
    workers.change(1, |jobs| jobs.waiting.push_back(Arc::clone(job)));
}

/// Ends a worker that was too late for the earlier jobs. If a wake-up were lost, it would sleep for ever,
/// which loom reports.
fn send_home(workers: &Workers, worker: loom::thread::JoinHandle<()>) {
    show(workers, &Job::new(1, &|_| {}));
    worker.join().expect("no panic leaves a job");
}

#[test]
fn parts_are_done_once_and_seen_by_the_caller() {
    explore(|| {
        let workers = workers();
        let thread = worker(&workers);
        let data = Data::new(2);
        workers.run(&Job::new(2, &|part| data.write(part)), 1);
        assert_eq!(data.end(), [1, 1]);
        send_home(&workers, thread);
    });
}

#[test]
fn a_panic_comes_to_the_caller_when_nobody_is_in_the_work() {
    explore(|| {
        let workers = workers();
        let thread = worker(&workers);
        let data = Data::new(3);
        let work = |part| {
            data.write(part);
            if part == 0 {
                resume_unwind(Box::new("on purpose"));
            }
        };
        let job = Job::new(3, &work);
        let outcome = catch_unwind(AssertUnwindSafe(|| workers.run(&job, 1)));
        let panic = outcome.expect_err("a part panics");
        assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
        let times = data.end();
        assert!(times[0] == 1 && times.iter().all(|&times| times <= 1), "{times:?}");
        send_home(&workers, thread);
    });
}

#[test]
fn two_callers_share_a_worker() {
    explore(|| {
        let workers = workers();
        let thread = worker(&workers);
        let other = Arc::clone(&workers);
        let caller = loom::thread::spawn(move || {
            let data = Data::new(1);
            other.run(&Job::new(1, &|part| data.write(part)), 1);
            assert_eq!(data.end(), [1]);
        });
        let data = Data::new(1);
        workers.run(&Job::new(1, &|part| data.write(part)), 1);
        assert_eq!(data.end(), [1]);
        caller.join().expect("its part is done");
        send_home(&workers, thread);
    });
}

#[test]
fn a_worker_that_sleeps_or_is_about_to_wakes_for_a_scope() {
    explore(|| {
        let workers = workers();
        let sleeper = Arc::clone(&workers);
        let thread = loom::thread::spawn(move || {
            while sync::locked(&sleeper.jobs).scopes == 0 {
                sleeper.turn();
            }
        });
        workers.change(1, |jobs| jobs.scopes += 1);
        thread.join().expect("it is awake");
    });
}

#[test]
fn a_worker_comes_for_work_that_its_caller_does_not_do() {
    explore(|| {
        let workers = workers();
        let thread = worker(&workers);
        let data = Data::new(1);
        let job = Job::new(1, &|part| data.write(part));
        show(&workers, &job);
        job.wait();
        assert_eq!(data.end(), [1]);
        thread.join().expect("it joined the work");
    });
}
