//! Backwards on many threads whose gradients are summed in the order of numbers, not of completion.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, PoisonError};

use super::anomaly;
use super::backward::Gradients;
use super::callbacks::Running;
use super::walk::{BackwardOptions, walk};
use crate::error::{Error, Result};
use crate::graph::{GradMode, HookId, Tensor};
use crate::ops::Float;
use crate::random::{self, Generator, ThreadGeneratorGuard};

/// Backwards on the user's own threads that together are one backward: each has a number, and gradients are
/// summed in the order of the numbers, so bit-identical for any number of threads.
/// [`backward_parallel`](crate::backward_parallel()) does the same on threads of the library.
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
/// Gradients that arrive early wait in memory for the numbers before them, from 0 on; after a gap, until
/// [`finish`](Self::finish). So assign numbers in order; gaps are allowed.
#[derive(Default)]
pub struct OrderedBackward {
    state: Mutex<InOrder>,
}

#[derive(Default)]
struct InOrder {
    sums: Gradients,
    next: usize,
    /// Later numbers, from the greatest to the least.
    early: Vec<(usize, Gradients)>,
}

impl InOrder {
    fn add(&mut self, item: usize, grads: Gradients) -> Result<()> {
        let _mode = GradMode::set(false);
        let place = self.early.partition_point(|&(early, _)| early > item);
        self.early.insert(place, (item, grads));
        while let Some((_, grads)) = self.early.pop_if(|(item, _)| *item == self.next) {
            self.next += 1;
            self.sums.append(grads)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        let _mode = GradMode::set(false);
        for (_, grads) in self.early.into_iter().rev() {
            self.sums.append(grads)?;
        }
        self.sums.commit(HookId::next_id())
    }
}

fn differentiate<T: Float>(op: &'static str, loss: &Tensor<T>) -> Result<Gradients> {
    let _mode = GradMode::set(false);
    let (mut found, options) = (Gradients::default(), BackwardOptions::new());
    let outputs = [loss.untyped()];
    found.retained = walk(op, &outputs, &[None], HookId::next_id(), options, &mut found)?;
    Ok(found)
}

impl OrderedBackward {
    /// Creates a backward without items.
    ///
    /// ```
    /// use autograd_core::{OrderedBackward, Tensor};
    ///
    /// let w = Tensor::from(2.0);
    /// w.set_stop_gradient(false);
    /// OrderedBackward::new().finish()?;
    /// assert!(w.grad().is_none());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs the backward of a loss of one element, as number `item`, on any thread, at the same time as others.
    /// No gradient is written before [`finish`](Self::finish).
    ///
    /// ```
    /// use autograd_core::{OrderedBackward, Tensor};
    ///
    /// let w = Tensor::from(2.0);
    /// w.set_stop_gradient(false);
    /// let all = OrderedBackward::new();
    /// all.backward(1, &(&w * 10.0))?;
    /// all.backward(0, &w.square())?;
    /// assert!(all.backward(0, &(&w * 3.0)).is_err());
    /// all.finish()?;
    /// assert_eq!(w.grad().unwrap().item(), 4.0 + 10.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] for a number that was used before; the errors of [`Tensor::backward`], after
    /// which the number may be used again.
    pub fn backward<T: Float>(&self, item: usize, loss: &Tensor<T>) -> Result<()> {
        const OP: &str = "OrderedBackward::backward";
        anomaly::check()?;
        let grads = differentiate(OP, loss)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if item < state.next || state.early.iter().any(|&(early, _)| early == item) {
            return Err(Error::Duplicate { op: OP, parameter: format!("item {item}") });
        }
        state.add(item, grads)
    }

    /// Adds the sums to `.grad` of the leaves, all of them or none; hooks on leaves run here, once.
    ///
    /// ```
    /// use autograd_core::{OrderedBackward, Tensor};
    ///
    /// let w = Tensor::from(2.0);
    /// w.set_stop_gradient(false);
    /// let all = OrderedBackward::new();
    /// all.backward(0, &w.square())?;
    /// assert!(w.grad().is_none());
    /// all.finish()?;
    /// assert_eq!(w.grad().unwrap().item(), 4.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of a hook. No gradient is written then.
    pub fn finish(self) -> Result<()> {
        let running = Running::start();
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
        running.finish()
    }
}

/// The number of items, for each thread, that may be ahead of the sums.
const MAX_AHEAD: usize = 2;

/// Computes a loss and its gradients for each of `count` items, on `threads` threads (0 for as many as the
/// machine has), and adds the gradients to `.grad` of the leaves: one backward of all the losses, with sums in
/// the order of the items, so bit-identical for any number of threads. Returns the losses, outside the graph.
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
/// - `loss(i)` runs with recording on, on a thread that is not the caller's. Open scopes of a thread
///   ([`no_grad`](crate::no_grad), [`detect_anomaly`](crate::detect_anomaly),
///   [`saved_tensors_hooks`](crate::saved_tensors_hooks)) inside of it.
/// - What an item draws, in a dropout for example, does not depend on the threads: each item has a generator,
///   made of its number and of one number that this function draws from the caller's generator.
/// - Hooks on leaves, and callbacks of [`after_backward`](crate::after_backward), run once, on this
///   thread, when all is done. Other hooks run in each backward, on its thread.
///
/// # Errors
///
/// That of the first item, in item order, whose `loss` or backward fails; a loss of more than one
/// element is [`Error::SeedMissing`]. No gradient is written then.
///
/// # Panics
///
/// With the panic of the first item that failed, if it panicked. No gradient is written then.
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
    let (ahead, moved) = (threads * MAX_AHEAD, Condvar::new());
    let state = Mutex::new(State {
        begun: 0,
        sums: InOrder::default(),
        losses: vec![None; count],
        failed: Vec::new(),
    });
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    // Takes the next item once the sums are close enough to it: gradients that wait to be added take memory.
    let take = || {
        let is_running = |state: &State<T>| state.failed.is_empty() && state.begun < count;
        let must_wait =
            |state: &mut State<T>| is_running(state) && state.begun >= state.sums.next + ahead;
        let waited = moved.wait_while(lock(), must_wait);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let item = is_running(&state).then_some(state.begun);
        state.begun += 1;
        item
    };
    let base = random::draw_u64();
    let run = |item| {
        let _drawn = ThreadGeneratorGuard::to(&Generator::of_part(&[base, item as u64]));
        let loss = GradMode::of(true, || loss(item))?;
        let grads = differentiate("backward_parallel", &loss)?;
        let mut state = lock();
        state.losses[item] = Some(loss.alias());
        state.sums.add(item, grads)
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(|| {
                while let Some(item) = take() {
                    let done = catch_unwind(AssertUnwindSafe(|| run(item)));
                    if let Some(failed) =
                        done.map_or_else(|e| Some(Err(e)), |done| done.err().map(Ok))
                    {
                        lock().failed.push((item, failed));
                    }
                    moved.notify_all();
                }
            });
        }
    });
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match state.failed.into_iter().min_by_key(|&(item, _)| item) {
        None => {}
        Some((_, Ok(error))) => return Err(error),
        Some((_, Err(panic))) => resume_unwind(panic),
    }
    state.sums.finish()?;
    running.finish()?;
    Ok(state.losses.into_iter().flatten().collect())
}

struct State<T: Float> {
    /// The number of items begun. All items before a failed one were begun, and none is begun after it.
    begun: usize,
    sums: InOrder,
    losses: Vec<Option<Tensor<T>>>,
    /// Errors and panics, by the items.
    failed: Vec<(usize, std::thread::Result<Error>)>,
}
