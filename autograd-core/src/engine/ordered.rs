//! Backwards on the user's own threads whose sums have an order.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};

use super::backward::commit;
use super::options::BackwardOptions;
use super::walk::{Leaves, Outcome};
use super::{after, anomaly};
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
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
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
        let State { sums, next, early } = &mut *state;
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
        let running = after::Running::start();
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (_, sums) in state.early {
            state.sums.add(sums)?;
        }
        state.sums.commit()?;
        running.finish()
    }
}
