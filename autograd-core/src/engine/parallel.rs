//! Many backwards on threads, the library's or the user's own, whose sums have an order: that of their numbers,
//! and not of the clock.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::after::Running;
use super::anomaly;
use super::backward::{BackwardOptions, Leaves, Outcome, commit};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, GradMode, HookId, Tensor};
use crate::ops::Float;

/// Backwards on threads of one's own, a pool's say, that together are one backward: each has a
/// number, and the gradients are summed in the order of the numbers, whichever thread is done
/// first. So every bit of the sums is the same each time, for any number of threads.
///
/// [`backward_parallel`](crate::backward_parallel()) is the same where the threads may be the
/// library's. [`Tensor::backward`] on several threads adds in the order of the clock.
///
/// ```
/// use autograd_core::{OrderedBackward, Tensor};
///
/// let w = Tensor::from([0.5, -0.25]);
/// w.set_stop_gradient(false);
/// let all = OrderedBackward::new();
/// std::thread::scope(|threads| {
///     for worker in 0..4 {
///         let (w, all) = (&w, &all);
///         threads.spawn(move || {
///             for item in (worker..100).step_by(4) {
///                 let loss = (w * (item as f64).sin()).tanh().sum();
///                 all.backward(item, &loss)?;
///             }
///             Ok::<(), autograd_core::Error>(())
///         });
///     }
/// });
/// assert!(w.grad().is_none());
/// all.finish()?;
/// assert!(w.grad().is_some());
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// What comes early waits in memory for the numbers before it, from 0 on; so hand numbers out in
/// their order. Gaps are allowed, and cost that memory until the end.
#[derive(Default)]
pub struct OrderedBackward {
    state: Mutex<InOrder>,
}

#[derive(Default)]
struct InOrder {
    sums: Sums,
    /// The number that is added next.
    next: usize,
    early: BTreeMap<usize, Sums>,
}

/// Gradients on their way to leaves and to tensors that keep theirs.
#[derive(Default)]
pub(super) struct Sums {
    leaves: Leaves,
    retained: Vec<(AnyTensor, AnyTensor)>,
}

impl Sums {
    /// The backward of one loss, without writing any gradient.
    pub(super) fn of<T: Float>(op: &'static str, loss: &Tensor<T>) -> Result<Self> {
        let _mode = GradMode::set(false);
        let outputs = [loss.clone().into()];
        let found = Outcome::of(op, &outputs, &[None], None, BackwardOptions::new())?;
        Ok(Self { leaves: found.leaves, retained: found.retained.unwrap_or_default() })
    }

    pub(super) fn add(&mut self, next: Self) -> Result<()> {
        for (leaf, grad) in next.leaves.into_grads() {
            self.leaves.add(&leaf, grad)?;
        }
        self.retained.extend(next.retained);
        Ok(())
    }

    pub(super) fn commit(self) -> Result<()> {
        let _mode = GradMode::set(false);
        commit(self.leaves.grads, self.retained, HookId::coming())
    }
}

impl OrderedBackward {
    /// Nothing summed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The backward of a loss of one element, as number `item`. It may run on any thread, at the
    /// same time as others; no gradient is written before [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] for a number that has been there, and those of [`Tensor::backward`]. The
    /// item has no part in the sums then, and its number may come again.
    pub fn backward<T: Float>(&self, item: usize, loss: &Tensor<T>) -> Result<()> {
        const OP: &str = "OrderedBackward::backward";
        anomaly::check()?;
        let sums = Sums::of(OP, loss)?;
        let _mode = GradMode::set(false);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = || Error::Duplicate { op: OP, parameter: format!("item {item}") };
        if item < state.next {
            return Err(taken());
        }
        match state.early.entry(item) {
            Entry::Occupied(_) => return Err(taken()),
            Entry::Vacant(place) => place.insert(sums),
        };
        let InOrder { sums, next, early } = &mut *state;
        while let Some(item) = early.remove(next) {
            *next += 1;
            sums.add(item)?;
        }
        Ok(())
    }

    /// Adds the sums to `.grad` of the leaves, all of them or none; hooks on leaves run here, once.
    ///
    /// # Errors
    ///
    /// That of a hook. No gradient is written then.
    pub fn finish(self) -> Result<()> {
        let running = Running::start();
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (_, sums) in state.early {
            state.sums.add(sums)?;
        }
        state.sums.commit()?;
        running.finish()
    }
}

/// Items a thread may be ahead of the sums by, for each thread.
const AHEAD: usize = 2;

/// Computes a loss and its gradients for each of `count` items, on so many threads, and adds the
/// gradients to `.grad` of the leaves: one backward of all the losses, whose sums are in the order
/// of the items. So every bit of the result is the same for any number of threads. Returns the
/// losses, outside the graph.
///
/// Separate calls of [`Tensor::backward`] may run at the same time on threads that share leaves, and
/// nothing is lost; but each adds its gradients when it is done, so the order of the sums, and with
/// it their last bit, is that of the clock. This function is for training on several threads and
/// getting the same model each time; [`OrderedBackward`](crate::OrderedBackward) is for threads of
/// one's own.
///
/// ```
/// use autograd_core::{Result, Tensor, backward_parallel};
///
/// let w = Tensor::from([0.5, -0.25]);
/// w.set_stop_gradient(false);
/// let samples: Vec<_> = (0..100).map(|i| Tensor::from([1.0, f64::from(i).sin()])).collect();
/// let loss = |i: usize| -> Result<Tensor<f64>> { Ok((&samples[i] * &w).tanh().mean()) };
///
/// let losses = backward_parallel(samples.len(), 4, loss)?;
/// assert_eq!(losses.len(), 100);
/// let grad = w.grad().unwrap();
///
/// w.clear_grad();
/// backward_parallel(samples.len(), 1, loss)?;
/// assert_eq!(w.grad().unwrap().to_vec(), grad.to_vec());
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// - `loss(i)` runs with recording on, on some thread; what belongs to a thread (the scopes of
///   [`no_grad`](crate::no_grad), [`detect_anomaly`](crate::detect_anomaly) and
///   [`saved_tensors_hooks`](crate::saved_tensors_hooks)) is opened in it. A loss that draws from the
///   process-wide random numbers draws them in the order of the clock: give it a
///   [`Generator`](crate::Generator) for each item.
/// - Hooks on leaves, and what [`after_backward`](crate::after_backward) was given on this thread,
///   run once, on this thread, when all is done. Other hooks run in each backward, on its thread.
/// - `threads` 0 is as many as the machine has. One thread too is another one than the caller's.
///
/// # Errors
///
/// That of the first item, in their order, whose `loss` or backward fails; a loss of more than one
/// element is [`Error::SeedMissing`]. No gradient is written then.
///
/// # Panics
///
/// With what the first item panicked with. No gradient is written then, and every tensor stays
/// usable.
pub fn backward_parallel<T: Float>(
    count: usize,
    threads: usize,
    loss: impl Fn(usize) -> Result<Tensor<T>> + Sync,
) -> Result<Vec<Tensor<T>>> {
    anomaly::check()?;
    let running = Running::start();
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, Into::into),
        threads => threads,
    };
    let state = State {
        begun: 0,
        early: BTreeMap::new(),
        losses: Vec::with_capacity(count),
        sums: Sums::default(),
        closed: false,
        stopped: None,
    };
    let ahead = threads * AHEAD;
    let items = Items { state: Mutex::new(state), moved: Condvar::new(), count, ahead };
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(|| {
                while let Some(item) = items.take() {
                    let done = catch_unwind(AssertUnwindSafe(|| differentiate(|| loss(item))));
                    items.put(item, done);
                }
            });
        }
    });
    let state = items.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match state.stopped {
        None => {}
        Some(Ok(error)) => return Err(error),
        Some(Err(panic)) => resume_unwind(panic),
    }
    state.sums.commit()?;
    running.finish()?;
    Ok(state.losses)
}

struct Item<T: Float> {
    loss: Tensor<T>,
    sums: Sums,
}

/// A loss and its backward, without writing any gradient.
fn differentiate<T: Float>(loss: impl FnOnce() -> Result<Tensor<T>>) -> Result<Item<T>> {
    let loss = GradMode::of(true, loss)?;
    let sums = Sums::of("backward_parallel", &loss)?;
    Ok(Item { loss: loss.alias(), sums })
}

/// The items that threads take, and the sums over those that are done, in their order.
struct Items<T: Float> {
    state: Mutex<State<T>>,
    moved: Condvar,
    count: usize,
    ahead: usize,
}

type Done<T> = std::thread::Result<Result<Item<T>>>;

struct State<T: Float> {
    begun: usize,
    /// What waits for the items before it.
    early: BTreeMap<usize, Done<T>>,
    /// Of the items whose gradients are in the sums.
    losses: Vec<Tensor<T>>,
    sums: Sums,
    /// No item is begun any more. Those before one that was begun have been begun too.
    closed: bool,
    /// Why there is no result: an error, or a panic.
    stopped: Option<std::thread::Result<Error>>,
}

impl<T: Float> Items<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next item, as soon as the sums are near enough to it: what waits to be added takes memory.
    fn take(&self) -> Option<usize> {
        let must_wait = |state: &mut State<T>| {
            let is_far = state.begun >= state.losses.len() + self.ahead;
            !state.closed && state.begun < self.count && is_far
        };
        let state = self.moved.wait_while(self.state(), must_wait);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.closed || state.begun == self.count {
            return None;
        }
        state.begun += 1;
        Some(state.begun - 1)
    }

    /// Adds what can be added now that an item is done.
    fn put(&self, item: usize, done: Done<T>) {
        let mut state = self.state();
        state.closed |= !matches!(done, Ok(Ok(_)));
        state.early.insert(item, done);
        while state.stopped.is_none() {
            let next = state.losses.len();
            let Some(done) = state.early.remove(&next) else { break };
            let add = |item: Result<_>| catch_unwind(AssertUnwindSafe(|| state.add(item?)));
            state.stopped = match done.and_then(add) {
                Ok(added) => added.err().map(Ok),
                Err(panic) => Some(Err(panic)),
            };
        }
        state.closed |= state.stopped.is_some();
        drop(state);
        self.moved.notify_all();
    }
}

impl<T: Float> State<T> {
    fn add(&mut self, item: Item<T>) -> Result<()> {
        let _mode = GradMode::set(false);
        self.sums.add(item.sums)?;
        self.losses.push(item.loss);
        Ok(())
    }
}
