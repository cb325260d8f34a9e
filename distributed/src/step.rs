//! A backward of all ranks: the walk of this one, and the sums.

use std::time::Instant;

use autograd_core::{
    AnyTensor, BackwardOptions, Float, HookResult, Tensor, as_one_backward, backward_each,
    leaves_of, no_grad,
};

use crate::buckets::{Numbers, Slot};
use crate::call::{Call, Kind};
use crate::error::{Error, Result};
use crate::parallel::{DataParallel, Pending, Report, value_of};
use crate::reducer::Reducer;

impl DataParallel<'_> {
    /// Runs the walks of this rank, and writes the mean gradients of all ranks, in one backward.
    pub(crate) fn finish(
        &mut self,
        op: &'static str,
        walk: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Report> {
        let _busy = self.world.start_backward(op)?;
        let mut failed = None;
        let done = as_one_backward(|| {
            let done = self.run(op, walk);
            // What was accumulated is part of these gradients, or dropped after an error.
            self.clear();
            done.map_err(|error| {
                failed = Some(error.clone());
                autograd_core::Error::custom(error)
            })
        });
        done.map_err(|error| failed.unwrap_or(Error::Core(error)))
    }

    fn run(
        &mut self,
        op: &'static str,
        walk: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Report> {
        let start = Instant::now();
        let walked = walk(self);
        let walk = start.elapsed();
        let (used, items, loss) = match self.exact.is_some() {
            true => self.sum_exactly(op, walked)?,
            false => self.sum_buckets(op, walked)?,
        };
        if items > 0 {
            let means = self.slots.iter().enumerate().filter(|(at, _)| used[*at]);
            let means = means.map(|(at, slot)| Ok((&slot.tensor, self.mean(at, slot, items)?)));
            let means = means.collect::<Result<Vec<_>>>()?;
            let others = self.pending.others.iter().map(|(leaf, grad)| (leaf, grad.clone()));
            means.into_iter().chain(others).try_for_each(|(leaf, grad)| add_grad(leaf, grad))?;
        }
        let unused = self.slots.iter().zip(&used).rev().filter(|(_, used)| !**used);
        let unused = unused.map(|(slot, _)| slot.name.clone()).collect();
        Ok(Report { unused, items, loss, walk, wait: start.elapsed() - walk })
    }

    fn mean(&self, at: usize, slot: &Slot, items: usize) -> Result<AnyTensor> {
        let shape = slot.tensor.shape();
        match &self.exact {
            Some(exact) => exact.mean(at, slot, items),
            None => self.numbers[slot.bucket].mean(slot.start, shape, items as f64),
        }
    }

    fn clear(&mut self) {
        match &mut self.exact {
            Some(exact) => exact.clear(),
            None => self.numbers.iter_mut().for_each(Numbers::clear),
        }
        self.pending = Pending { used: vec![false; self.slots.len()], ..Pending::default() };
    }

    /// Walks through the graph of a loss and adds its gradients; sends buckets that are complete, except the last:
    /// that one is sent after the walk has succeeded or failed.
    pub(crate) fn walk<T: Float>(&mut self, loss: &Tensor<T>, items: usize) -> Result<()> {
        if self.exact.is_some() {
            return self.add_exactly(loss, items);
        }
        if !self.overlap || self.numbers.len() < 2 || self.world.size() == 1 {
            return self.add_later(loss, items);
        }
        let value = value_of(loss)?;
        let outputs = [AnyTensor::from(loss.clone())];
        let Self { numbers, places, slots, frozen, pending, world, reducer, .. } = self;
        let Pending { used, others, sent, .. } = pending;
        let reducer = reducer.get_or_insert_with(|| Reducer::start(world.calls().clone()));
        let mut waiting = vec![0_usize; numbers.len()];
        for leaf in leaves_of(&outputs) {
            if let Some(&at) = places.get(&leaf.id()) {
                waiting[slots[at].bucket] += 1;
            }
        }
        let last = numbers.len() - 1;
        let mut send = |numbers: &mut [Numbers], waiting: &[usize]| -> HookResult<()> {
            while *sent < last && waiting[*sent] == 0 {
                let bucket = std::mem::replace(&mut numbers[*sent], Numbers::none());
                reducer.send(*sent, bucket).ok_or("the thread that sums has ended")?;
                *sent += 1;
            }
            Ok(())
        };
        send(numbers, &waiting).map_err(autograd_core::Error::custom)?;
        backward_each(&outputs, &[None], BackwardOptions::new(), &mut |leaf, grad| {
            let Some(&at) = places.get(&leaf.id()) else {
                check_frozen(frozen, leaf)?;
                others.push((leaf.clone(), grad));
                return Ok(());
            };
            let Slot { bucket, start, .. } = slots[at];
            numbers[bucket].add(start, &grad, items);
            used[at] = true;
            waiting[bucket] -= 1;
            send(numbers, &waiting)
        })?;
        pending.count(items, value);
        Ok(())
    }

    /// Adds the gradients of a loss to the buckets, all of them or none.
    pub(crate) fn add_later<T: Float>(&mut self, loss: &Tensor<T>, items: usize) -> Result<()> {
        let (value, grads) = (value_of(loss)?, self.gradients(loss)?);
        for (at, grad) in grads {
            let Slot { bucket, start, .. } = self.slots[at];
            self.numbers[bucket].add(start, &grad, items);
            self.pending.used[at] = true;
        }
        self.pending.count(items, value);
        Ok(())
    }

    /// The gradients of a loss by slot. Those of other leaves are kept apart.
    pub(crate) fn gradients<T: Float>(
        &mut self,
        loss: &Tensor<T>,
    ) -> Result<Vec<(usize, AnyTensor)>> {
        let (mut grads, mut others) = (Vec::with_capacity(self.slots.len()), Vec::new());
        backward_each(
            &[loss.clone().into()],
            &[None],
            BackwardOptions::new(),
            &mut |leaf, grad| {
                match self.places.get(&leaf.id()) {
                    Some(&at) => grads.push((at, grad)),
                    None => {
                        check_frozen(&self.frozen, leaf)?;
                        others.push((leaf.clone(), grad));
                    }
                }
                Ok(())
            },
        )?;
        self.pending.others.extend(others);
        Ok(grads)
    }

    /// Sums what has not been sent. Returns which slots have a gradient on some rank, and the items and the mean loss
    /// of all ranks. `walked` is the outcome on this rank.
    fn sum_buckets(
        &mut self,
        op: &'static str,
        walked: Result<()>,
    ) -> Result<(Vec<bool>, usize, f64)> {
        let calls = self.world.calls();
        let mut summed = Ok(());
        for at in 0..self.numbers.len() {
            if at < self.pending.sent {
                let received = self.reducer.as_ref().and_then(Reducer::receive);
                let Some((at, numbers, result)) = received else {
                    self.world.abort("the thread that sums gradients has ended");
                };
                self.numbers[at] = numbers;
                summed = summed.and(result);
            } else {
                summed = summed.and_then(|()| self.numbers[at].sum(calls, at, &mut self.spare));
            }
        }
        summed?;
        let Pending { items, loss, used, .. } = &self.pending;
        let mut status = vec![f64::from(u8::from(walked.is_err())), *items as f64, *loss];
        status.extend(used.iter().map(|&used| f64::from(u8::from(used))));
        let call = Call::new(Kind::Status, status.len());
        calls.sum(call, &mut status, &mut self.spare.1)?;
        if status[0] > 0.0 {
            self.world.agree_on(op, walked)?;
        }
        let used = status[3..].iter().map(|&used| used > 0.0).collect();
        Ok((used, status[1] as usize, status[2] / status[1]))
    }
}

impl Pending {
    pub(crate) fn count(&mut self, items: usize, loss: f64) {
        self.items += items;
        self.micro_batches += 1;
        self.loss += items as f64 * loss;
    }
}

fn check_frozen(
    frozen: &std::collections::HashMap<autograd_core::TensorId, String>,
    leaf: &AnyTensor,
) -> HookResult<()> {
    match frozen.get(&leaf.id()) {
        Some(name) => Err(format!(
            "the parameter `{name}` wanted no gradient when DataParallel::new was called; make a new one"
        )
        .into()),
        None => Ok(()),
    }
}

fn add_grad(leaf: &AnyTensor, grad: AnyTensor) -> Result<()> {
    fn add<T: Float>(leaf: &Tensor<T>, grad: Tensor<T>) -> Result<()> {
        let sum = match leaf.grad() {
            Some(before) => no_grad().run(|| before + grad),
            None => grad,
        };
        Ok(leaf.set_grad(Some(&sum))?)
    }
    match (leaf, grad) {
        (AnyTensor::Float32(leaf), AnyTensor::Float32(grad)) => add(leaf, grad),
        (AnyTensor::Float64(leaf), AnyTensor::Float64(grad)) => add(leaf, grad),
        _ => unreachable!("a gradient has the element type of its leaf"),
    }
}
