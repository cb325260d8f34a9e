//! Gradients that do not depend on the number of ranks.

use autograd_core::{AnyTensor, Float, Generator, Tensor, rng_state, set_rng_state};

use crate::buckets::{Numbers, Slot, either};
use crate::call::{Call, Kind};
use crate::error::{Error, Result};
use crate::exact::{MAX_TERMS, Size, count_special, special_of};
use crate::parallel::{DataParallel, value_of};

/// The gradients of the micro-batches of this rank, and then the sums of all ranks. The mean loss is the gradient of
/// a slot after the last.
pub(crate) struct Exact {
    pub(crate) micro_batch: usize,
    /// What the random numbers of this step depend on.
    base: u64,
    /// Slots, items and gradients, which are rounded when the largest of all ranks is known.
    terms: Vec<(usize, usize, Numbers)>,
    /// The most items of a micro-batch, whose weight is 1.
    most_items: usize,
    sizes: Vec<Size>,
    /// Where the elements of each slot start in the sums.
    starts: Vec<usize>,
    sums: Vec<i64>,
    /// How many terms are NaN or infinite, if any is.
    special: Vec<i64>,
    spare: Vec<i64>,
}

impl Exact {
    pub(crate) fn new(micro_batch: usize, slots: &[Slot]) -> Self {
        let lens = slots.iter().map(|slot| slot.tensor.len()).chain([1]);
        let next = |start: &mut usize, len| Some(std::mem::replace(start, *start + len));
        let starts = lens.clone().scan(0, next).collect();
        Self {
            micro_batch,
            base: 0,
            terms: Vec::new(),
            most_items: 0,
            sizes: vec![Size::NONE; slots.len() + 1],
            starts,
            // The items and the micro-batches come last.
            sums: vec![0; lens.sum::<usize>() + 2],
            special: Vec::new(),
            spare: Vec::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.base = 0;
        self.terms.clear();
        self.most_items = 0;
        self.sizes.fill(Size::NONE);
        self.special.clear();
    }

    fn add(&mut self, at: usize, items: usize, term: Numbers) {
        let size = either!(&term, list => Size::of(list));
        self.sizes[at] = self.sizes[at].max(size);
        self.most_items = self.most_items.max(items);
        self.terms.push((at, items, term));
    }

    /// Rounds and adds the terms.
    fn round(&mut self, items: usize, micro_batches: usize) {
        self.sums.fill(0);
        if self.sizes.iter().any(|size| size.special > 0) {
            self.special.resize(self.sums.len(), 0);
        }
        for (at, part, term) in self.terms.drain(..) {
            let (size, start) = (self.sizes[at], self.starts[at]);
            let weight = part as f64 / self.most_items as f64;
            either!(&term, list => {
                size.add(&mut self.sums[start..], list, weight);
                if size.special > 0 {
                    count_special(&mut self.special[start..], list);
                }
            });
        }
        if let [.., all_items, all_micro_batches] = &mut self.sums[..] {
            (*all_items, *all_micro_batches) = (items as i64, micro_batches as i64);
        }
    }

    fn means(&self, at: usize, len: usize, items: usize) -> impl Iterator<Item = f64> {
        let (start, weights) = (self.starts[at], items as f64 / self.most_items as f64);
        let means = self.sizes[at].means(&self.sums[start..start + len], weights);
        means.enumerate().map(move |(i, mean)| {
            let special = self.special.get(start + i).copied().and_then(special_of);
            special.unwrap_or(mean)
        })
    }

    pub(crate) fn mean(&self, at: usize, slot: &Slot, items: usize) -> Result<AnyTensor> {
        let (shape, means) = (slot.tensor.shape(), self.means(at, slot.tensor.len(), items));
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
        let argument = |parameter, expected: String, found: usize| {
            let (op, found) = ("reproducible", found.to_string());
            Err(Error::Argument { op, parameter, expected, found })
        };
        if items > exact.micro_batch {
            return argument(
                "items",
                format!("at most `micro_batch` = {}", exact.micro_batch),
                items,
            );
        }
        if self.pending.micro_batches == MAX_TERMS {
            return argument("micro-batches", format!("at most {MAX_TERMS}"), MAX_TERMS + 1);
        }
        for (at, grad) in grads {
            exact.add(at, items, Numbers::of(&grad));
        }
        exact.add(self.slots.len(), items, Numbers::F64(vec![value]));
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
        let mut most = vec![i64::from(walked.is_err()), base, !base, exact.most_items as i64];
        most.extend(exact.sizes.iter().flat_map(|size| [size.exponent, size.special]));
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
        for (size, pair) in exact.sizes.iter_mut().zip(most[4..].chunks_exact(2)) {
            *size = Size { exponent: pair[0], special: pair[1] };
        }
        exact.most_items = most[3] as usize;
        exact.round(self.pending.items, self.pending.micro_batches);
        let Exact { sums, special, spare, .. } = exact;
        calls.sum(Call::new(Kind::ExactSums, sums.len()), sums, spare)?;
        if !special.is_empty() {
            calls.sum(Call::new(Kind::SpecialNumbers, special.len()), special, spare)?;
        }
        let [.., items, micro_batches] = sums[..] else { unreachable!("it has these two") };
        let items = items as usize;
        check_cut(op, items, micro_batches as usize, exact.micro_batch)?;
        let loss = exact.means(self.slots.len(), 1, items).next().unwrap_or(f64::NAN);
        let used = exact.sizes.iter().map(|&size| size != Size::NONE);
        Ok((used.take(self.slots.len()).collect(), items, loss))
    }
}

fn check_cut(op: &'static str, items: usize, found: usize, micro_batch: usize) -> Result<()> {
    let error = |expected: String| {
        let (parameter, found) = ("micro-batches", found.to_string());
        Err(Error::Argument { op, parameter, expected, found })
    };
    if found > MAX_TERMS {
        return error(format!("at most {MAX_TERMS} of all ranks"));
    }
    let expected = items.div_ceil(micro_batch);
    if found != expected {
        return error(format!(
            "{expected} of {micro_batch} for {items} items, so that only the last is smaller (take the rows \
             from `DataParallel::epoch`)"
        ));
    }
    Ok(())
}
