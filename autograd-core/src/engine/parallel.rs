//! Many backwards on threads whose sums do not depend on how many threads there are.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::ordered::Sums;
use super::{after, anomaly};
use crate::error::{Error, Result};
use crate::graph::{GradMode, Tensor};
use crate::ops::Float;

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
    let running = after::Running::start();
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
