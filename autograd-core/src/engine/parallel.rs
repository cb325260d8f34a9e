//! Many backwards on threads whose sums do not depend on how many threads there are.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};

use super::ordered::Sums;
use super::{after, anomaly};
use crate::error::Result;
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
/// element is [`Error::SeedMissing`](crate::Error::SeedMissing). No gradient is written then.
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
    let queue = Queue::new(count, threads * AHEAD);
    let mut total = Total { losses: Vec::with_capacity(count), sums: Sums::default() };
    let stopped = std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads.min(count) {
            let (sender, queue, loss) = (sender.clone(), &queue, &loss);
            scope.spawn(move || {
                while let Some(item) = queue.take() {
                    let done = catch_unwind(AssertUnwindSafe(|| differentiate(|| loss(item))));
                    if !matches!(done, Ok(Ok(_))) {
                        queue.close();
                    }
                    // The other end is there until all threads have ended.
                    let _ = sender.send((item, done));
                }
            });
        }
        drop(sender);
        total.collect(&receiver, &queue)
    });
    match stopped {
        None => {}
        Some(Stop::Failed(error)) => return Err(error),
        Some(Stop::Panicked(panic)) => resume_unwind(panic),
    }
    total.sums.commit()?;
    running.finish()?;
    Ok(total.losses)
}

/// What one item gives.
struct Item<T: Float> {
    loss: Tensor<T>,
    sums: Sums,
}

/// Why there is no result.
enum Stop {
    Failed(crate::Error),
    Panicked(Box<dyn Any + Send>),
}

/// A loss and its backward, without writing any gradient.
fn differentiate<T: Float>(loss: impl FnOnce() -> Result<Tensor<T>>) -> Result<Item<T>> {
    let loss = GradMode::of(true, loss)?;
    let sums = Sums::of("backward_parallel", &loss)?;
    Ok(Item { loss: loss.alias(), sums })
}

/// Which items are still to be done.
struct Queue {
    state: Mutex<State>,
    moved: Condvar,
    count: usize,
    ahead: usize,
}

#[derive(Default)]
struct State {
    next: usize,
    /// Items whose gradients are in the sums.
    added: usize,
    closed: bool,
}

impl Queue {
    fn new(count: usize, ahead: usize) -> Self {
        Self { state: Mutex::default(), moved: Condvar::new(), count, ahead }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next item, as soon as the sums are near enough to it: what waits to be added takes memory.
    fn take(&self) -> Option<usize> {
        let mut state = self.state();
        while !state.closed && state.next < self.count && state.next >= state.added + self.ahead {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed || state.next == self.count {
            return None;
        }
        state.next += 1;
        Some(state.next - 1)
    }

    fn added(&self) {
        self.state().added += 1;
        self.moved.notify_all();
    }

    /// No item is begun any more. Those before one that was begun have been begun too.
    fn close(&self) {
        self.state().closed = true;
        self.moved.notify_all();
    }
}

/// The sums over the items so far.
struct Total<T: Float> {
    losses: Vec<Tensor<T>>,
    sums: Sums,
}

type Done<T> = std::thread::Result<Result<Item<T>>>;

impl<T: Float> Total<T> {
    /// Adds what comes, in the order of the items; why it cannot go on.
    fn collect(&mut self, done: &mpsc::Receiver<(usize, Done<T>)>, queue: &Queue) -> Option<Stop> {
        let _mode = GradMode::set(false);
        let mut early = BTreeMap::new();
        let mut stopped = None;
        for (item, result) in done {
            early.insert(item, result);
            while let Some(result) = early.remove(&self.losses.len()).filter(|_| stopped.is_none())
            {
                let added = match result {
                    Ok(Ok(item)) => self.add(item).map_err(Stop::Failed),
                    Ok(Err(error)) => Err(Stop::Failed(error)),
                    Err(panic) => Err(Stop::Panicked(panic)),
                };
                match added {
                    Ok(()) => queue.added(),
                    Err(stop) => {
                        queue.close();
                        stopped = Some(stop);
                    }
                }
            }
        }
        stopped
    }

    fn add(&mut self, item: Item<T>) -> Result<()> {
        self.sums.add(item.sums)?;
        self.losses.push(item.loss);
        Ok(())
    }
}
