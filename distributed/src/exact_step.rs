//! Gradients that do not depend on the number of ranks.

use autograd_core::{AnyTensor, Float, Generator, Tensor, rng_state, set_rng_state};

use crate::buckets::{Numbers, Slot};
use crate::call::{Call, Kind};
use crate::error::{Error, Result};
use crate::exact::{ExactSum, MAX_WEIGHT};
use crate::parallel::{DataParallel, value_of};

/// The most integers that are sent in one message with the counts of a step.
const MAX_TOGETHER: usize = 1 << 16;

/// The sums of the micro-batches of this rank, a bucket each, and of their losses.
pub(crate) struct Exact {
    pub(crate) micro_batch: usize,
    sums: Vec<ExactSum>,
    loss: ExactSum,
    /// What the random numbers of this step depend on.
    base: u64,
    spare: Vec<i64>,
}

impl Exact {
    pub(crate) fn new(micro_batch: usize, buckets: &[Numbers]) -> Self {
        let sums = buckets.iter().map(|numbers| ExactSum::zeros(numbers.len())).collect();
        Self { micro_batch, sums, loss: ExactSum::zeros(1), base: 0, spare: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.sums.iter_mut().chain([&mut self.loss]).for_each(ExactSum::clear);
        self.base = 0;
    }

    pub(crate) fn mean(&self, slot: &Slot, items: usize) -> Result<AnyTensor> {
        let (shape, len) = (slot.tensor.shape(), slot.tensor.len());
        let means = self.sums[slot.bucket].means(slot.start, len, items as u64);
        Ok(match &slot.tensor {
            AnyTensor::Float32(_) => {
                Tensor::from_vec(shape, means.map(|x| x as f32).collect())?.into()
            }
            _ => Tensor::from_vec(shape, means.collect::<Vec<f64>>())?.into(),
        })
    }
}

impl DataParallel<'_> {
    /// Differentiates the loss of each micro-batch of these rows.
    pub(crate) fn walk_micro_batches<T: Float>(
        &mut self,
        rows: &[i64],
        mut loss: impl FnMut(&Tensor<i64>) -> autograd_core::Result<Tensor<T>>,
    ) -> Result<()> {
        let Some(exact) = &mut self.exact else { return Ok(()) };
        // Drawn on every rank, also on one without rows.
        let mut generator = rng_state();
        exact.base = generator.next_u64() >> 1;
        set_rng_state(&generator);
        let base = exact.base;
        for rows in rows.chunks(exact.micro_batch) {
            let part: Vec<u64> = [base].into_iter().chain(rows.iter().map(|&x| x as u64)).collect();
            let rows = Tensor::from(rows);
            let loss = Generator::of_part(&part).run(|| loss(&rows))?;
            self.add_exactly(&loss, rows.len())?;
        }
        Ok(())
    }

    /// Adds the gradients of a loss, that of one micro-batch, all of them or none.
    pub(crate) fn add_exactly<T: Float>(&mut self, loss: &Tensor<T>, items: usize) -> Result<()> {
        let (value, grads) = (value_of(loss)?, self.gradients(loss)?);
        let Some(exact) = &mut self.exact else { return Ok(()) };
        let argument = |expected: String| Error::Argument {
            op: "reproducible",
            parameter: "items",
            expected,
            found: items.to_string(),
        };
        if items > exact.micro_batch {
            return Err(argument(format!("at most `micro_batch` = {}", exact.micro_batch)));
        }
        if (self.pending.items + items) as u64 > MAX_WEIGHT {
            return Err(argument(format!("at most {MAX_WEIGHT} in a step")));
        }
        let weight = items as u32;
        for (at, grad) in grads {
            let Slot { bucket, start, .. } = self.slots[at];
            match &grad {
                AnyTensor::Float32(grad) => add(&mut exact.sums[bucket], start, grad, weight),
                AnyTensor::Float64(grad) => add(&mut exact.sums[bucket], start, grad, weight),
                _ => unreachable!("a gradient is of floats"),
            }
            self.pending.used[at] = true;
        }
        exact.loss.add(0, &[value], weight);
        self.pending.count(items, value);
        Ok(())
    }

    /// As `sum_buckets`, exactly.
    pub(crate) fn sum_exactly(
        &mut self,
        op: &'static str,
        walked: Result<()>,
    ) -> Result<(Vec<bool>, usize, f64)> {
        let (calls, Some(exact)) = (self.world.calls(), &mut self.exact) else {
            unreachable!("it was called for that")
        };
        let base = exact.base as i64;
        let mut most = vec![i64::from(walked.is_err()), base, !base];
        for sum in exact.sums.iter().chain([&exact.loss]) {
            most.extend([sum.top(), i64::from(sum.has_special())]);
        }
        calls.max(Call::new(Kind::Scales, most.len()), &mut most)?;
        if most[0] > 0 {
            self.world.agree_on(op, walked)?;
        }
        if most[1] != !most[2] {
            return Err(Error::Argument {
                op,
                parameter: "the process-wide generator",
                expected:
                    "in the same state on all ranks: call `autograd_core::seed` with one number"
                        .into(),
                found: "different states".into(),
            });
        }
        let mut scales = most[3..].chunks_exact(2).map(|pair| (pair[0], pair[1] > 0));
        let tops = exact.sums.iter_mut().chain([&mut exact.loss]).zip(&mut scales);
        let special: Vec<bool> = tops
            .map(|(sum, (top, special))| {
                sum.raise(top);
                special
            })
            .collect();
        let (items, micro_batches) = (self.pending.items, self.pending.micro_batches);
        let mut status = vec![items as i64, micro_batches as i64];
        status.extend_from_slice(exact.loss.integers_mut());
        status.push(exact.loss.special_mut()[0]);
        status.extend(self.pending.used.iter().map(|&used| i64::from(used)));
        let (flags, len) = (
            status.len(),
            exact.sums.iter_mut().map(|sum| sum.integers_mut().len()).sum::<usize>(),
        );
        let spare = &mut exact.spare;
        // A small net takes one message.
        let one = len <= MAX_TOGETHER;
        if one {
            exact.sums.iter_mut().for_each(|sum| status.extend_from_slice(sum.integers_mut()));
        }
        calls.sum(Call::new(Kind::Status, status.len()), &mut status, spare)?;
        let mut rest = status.split_off(flags);
        exact.loss.integers_mut().copy_from_slice(&status[2..4]);
        exact.loss.special_mut()[0] = status[4];
        let items = status[0] as usize;
        check_cut(op, items, status[1] as usize, exact.micro_batch)?;
        for (at, (sum, special)) in exact.sums.iter_mut().zip(special).enumerate() {
            let integers = sum.integers_mut();
            if one {
                integers.copy_from_slice(&rest[..integers.len()]);
                rest.drain(..integers.len());
            } else {
                let call = Call::new(Kind::ExactBucket, integers.len()).part(at);
                calls.sum(call, integers, spare)?;
            }
            if special {
                let counts = sum.special_mut();
                let call = Call::new(Kind::SpecialNumbers, counts.len()).part(at);
                calls.sum(call, counts, spare)?;
            }
        }
        let loss = exact.loss.means(0, 1, items as u64).next().unwrap_or(f64::NAN);
        Ok((status[5..].iter().map(|&used| used > 0).collect(), items, loss))
    }
}

fn check_cut(op: &'static str, items: usize, found: usize, micro_batch: usize) -> Result<()> {
    let error = |parameter, expected: String, found: usize| {
        Err(Error::Argument { op, parameter, expected, found: found.to_string() })
    };
    if items as u64 > MAX_WEIGHT {
        return error("items", format!("at most {MAX_WEIGHT} of all ranks"), items);
    }
    let expected = items.div_ceil(micro_batch);
    if found != expected {
        let expected = format!(
            "{expected} of {micro_batch} for {items} items, so that only the last is smaller (take the rows \
             from `DataParallel::epoch`)"
        );
        return error("micro-batches", expected, found);
    }
    Ok(())
}

fn add<T: Float + Into<f64>>(sum: &mut ExactSum, start: usize, grad: &Tensor<T>, weight: u32) {
    match grad.view().as_slice() {
        Some(grad) => sum.add(start, grad, weight),
        None => sum.add(start, &grad.to_vec(), weight),
    }
}
