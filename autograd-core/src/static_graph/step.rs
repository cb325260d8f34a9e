//! How a step computes its values.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use smallvec::{SmallVec, smallvec};

use super::ir::{Grad, Kind, OpId, VarId};
use super::plan::{Mode, Plan, Step, Turn};
use super::values::{Computed, Pull, Values, panic_message};
use crate::array::matmul::ONE_SUM;
use crate::array::shape::broadcast;
use crate::array::threads::each_of;
use crate::array::{Shape, Value};
use crate::engine::{BackwardOptions, grad_any};
use crate::graph::{AnyTensor, Element, GradMode, Tensor, for_any};

/// Elements of a part, which stays in the second cache while a step's operators go over it.
const PART: usize = 16 * 1024;

/// What an operator left for its gradient: its inputs as leaves, and what it computed from them.
#[derive(Clone, Debug)]
pub(super) struct Record {
    leaves: Values,
    outputs: Values,
}

/// The values of a step: what it reads, and what it computes.
pub(super) type StepValues = SmallVec<[Option<AnyTensor>; 8]>;

/// A gradient of a matrix that is left to its update, as the matrices `a` and `b` of `aᵀ b`.
pub(super) type Product = (VarId, AnyTensor, AnyTensor);

impl Step {
    /// Computes values from those that are read; or says which operator failed, and why.
    pub(super) fn run(
        &self,
        plan: &Plan,
        values: &mut StepValues,
        record: &mut Option<Box<Record>>,
    ) -> Result<Option<Product>, (OpId, String)> {
        if self.in_parts && self.run_in_parts(plan, values).is_some() {
            return Ok(None);
        }
        let mut product = None;
        for turn in &self.turns {
            let run = AssertUnwindSafe(|| turn.run(plan, values, record));
            let run = catch_unwind(run).unwrap_or_else(|panic| Err(panic_message(&*panic)));
            product = run.map_err(|why| (turn.op, why))?;
        }
        Ok(product)
    }

    /// Runs all operators on one part of the rows after the other, so that what they compute is in a
    /// cache when it is read. `None` where there are not enough rows, an operator fails, or one that
    /// reduces is among them: then nothing is changed.
    fn run_in_parts(&self, plan: &Plan, values: &mut StepValues) -> Option<()> {
        let mut shape = Shape::new();
        for value in values.iter().flatten() {
            shape = broadcast("step", &shape, value.shape()).ok()?;
        }
        let len: usize = shape.iter().product();
        let rows = *shape.first()?;
        if len < 2 * PART || rows < 2 {
            return None;
        }
        let height = (PART * rows / len).max(1);
        let run = |part: usize| -> Option<Values> {
            let (start, end) = (part * height, rows.min((part + 1) * height));
            let mut own: StepValues = smallvec![None; self.values];
            for (own, value) in own.iter_mut().zip(values.iter()) {
                *own = value.as_ref().map(|value| rows_of(value, &shape, start..end));
            }
            for turn in &self.turns {
                turn.run(plan, &mut own, &mut None).ok()?;
                for &at in &turn.results {
                    let value = own[at].as_ref()?;
                    if value.shape()[..1] != [end - start] || value.shape()[1..] != shape[1..] {
                        return None;
                    }
                }
            }
            self.outputs.iter().map(|(_, at)| own[*at].take()).collect()
        };
        let run = |part: usize| {
            let run = AssertUnwindSafe(|| GradMode::of(false, || run(part)));
            catch_unwind(run).unwrap_or_default()
        };
        let first = run(0)?;
        let mut whole: Values =
            first.iter().map(|first| for_any!(first, x => uninitialized(x, &shape))).collect();
        let mut writers: Vec<Mutex<SmallVec<[Writer<'_>; 2]>>> = Vec::new();
        writers.resize_with(rows.div_ceil(height), Mutex::default);
        for whole in &mut whole {
            let each = for_any!(whole, whole => writers_of(whole, height * len / rows));
            for (writers, writer) in writers.iter_mut().zip(each) {
                writers.get_mut().unwrap_or_else(PoisonError::into_inner).push(writer);
            }
        }
        let write = |part: usize, found: &Values| {
            let mut writers = writers[part].lock().unwrap_or_else(PoisonError::into_inner);
            found.iter().zip(&mut *writers).for_each(|(part, write)| write(part));
        };
        write(0, &first);
        let is_done = AtomicBool::new(true);
        each_of(len, writers.len() - 1, &|part| match run(part + 1) {
            Some(found) => write(part + 1, &found),
            None => is_done.store(false, Ordering::Relaxed),
        });
        drop(writers);
        is_done.into_inner().then_some(())?;
        self.outputs.iter().zip(whole).for_each(|(&(_, at), value)| values[at] = Some(value));
        Some(())
    }
}

/// Copies a part to where it belongs.
type Writer<'a> = Box<dyn FnMut(&AnyTensor) + Send + 'a>;

fn writers_of<T: Element>(whole: &mut Tensor<T>, len: usize) -> Vec<Writer<'_>> {
    fn writer<'a, T: Element>(to: &'a mut [T]) -> Writer<'a> {
        Box::new(move |part| {
            if let Some(part) = part.downcast_ref::<T>() {
                to.copy_from_slice(part.read().contiguous().as_slice().unwrap_or_default());
            }
        })
    }
    whole.value_mut().make_mut().chunks_mut(len).map(writer).collect()
}

/// A tensor of the element type of `like`, to be written over.
fn uninitialized<T: Element>(_: &Tensor<T>, shape: &[usize]) -> AnyTensor {
    Tensor::new(Value::<T>::written(Shape::from_slice(shape), |_| {})).into()
}

/// Those rows of an operand that is broadcast to `shape`.
fn rows_of(value: &AnyTensor, shape: &[usize], rows: std::ops::Range<usize>) -> AnyTensor {
    if value.shape().len() < shape.len() || value.shape().first() != shape.first() {
        return value.clone();
    }
    for_any!(value, x => x.slice_axis(0, rows.start, rows.end, 1).into())
}

impl Turn {
    /// Reads values and puts what it computes among them; or the product that is left to an update.
    fn run(
        &self,
        plan: &Plan,
        values: &mut StepValues,
        record: &mut Option<Box<Record>>,
    ) -> Computed<Option<Product>> {
        let op = &plan.graph.ops[self.op];
        let mut read = |read: &Option<(usize, bool)>| match *read {
            Some((at, true)) => values[at].take(),
            Some((at, false)) => values[at].clone(),
            None => None,
        };
        let mut all = || -> Values { self.reads.iter().filter_map(&mut read).collect() };
        let mut product = None;
        let computed: Values = match (&op.kind, self.mode) {
            (Kind::Grad(Grad { of, wants, seeds, forms, .. }), Mode::Rule { deferred }) => {
                let forward = &plan.graph.ops[*of];
                let (n, m) = (forward.inputs.len(), forward.outputs.len());
                let mut given: SmallVec<[Option<AnyTensor>; 4]> =
                    self.reads.iter().map(read).collect();
                let mut dys: SmallVec<[Option<AnyTensor>; 2]> = smallvec![None; m];
                seeds.iter().zip(given.drain(n + m..)).for_each(|(&slot, dy)| dys[slot] = dy);
                let mut wants = &wants[..];
                if deferred
                    && let (Some(a), Some(dy)) = (&given[0], &dys[0])
                    && is_smaller_than_product(a, dy)
                {
                    product = op.outputs.last().map(|&var| (var, a.clone(), dy.clone()));
                    wants = &wants[..wants.len() - 1];
                }
                let (inputs, outputs) = given.split_at(n);
                match wants.is_empty() {
                    true => Values::new(),
                    false => {
                        forward.kind.pull(Pull { inputs, outputs, dys: &mut dys, wants, forms })?
                    }
                }
            }
            (Kind::Grad(Grad { wants, seeds, .. }), mode) => {
                let last = record.take().ok_or("its operator left no record")?;
                let given = all();
                let (retain, recorded) = match mode {
                    Mode::FromRecord { retain, recorded, .. } => (retain, recorded),
                    _ => (true, false),
                };
                let given: Values = match recorded {
                    true => {
                        let seeds = &op.inputs[op.inputs.len() - given.len()..];
                        let leaf =
                            |(&var, value): (&VarId, &AnyTensor)| leaf(value, plan.wants[var]);
                        seeds.iter().zip(&given).map(leaf).collect()
                    }
                    false => given,
                };
                let grads = last.pull([wants, seeds], &given, retain, recorded)?;
                let values = grads.iter().map(AnyTensor::alias).collect();
                if recorded {
                    // Gradients do not flow to the forward operator's outputs: see `backward::wanted`.
                    let outputs = last.outputs.iter().map(AnyTensor::alias);
                    let leaves = last.leaves.iter().cloned().chain(outputs).chain(given).collect();
                    *record = Some(Box::new(Record { leaves, outputs: grads }));
                }
                values
            }
            (kind, Mode::Recorded) => {
                let given = op.inputs.iter().zip(all());
                let leaves: Values = given.map(|(&var, x)| leaf(&x, plan.wants[var])).collect();
                let mut outputs = GradMode::of(true, || kind.run(leaves.clone()))?;
                let values = outputs.iter().map(AnyTensor::alias).collect();
                // What it writes has no gradient.
                outputs.truncate(op.outputs.len());
                *record = Some(Box::new(Record { leaves, outputs }));
                values
            }
            (kind, _) => kind.run(all())?,
        };
        self.results.iter().zip(computed).for_each(|(&at, value)| values[at] = Some(value));
        Ok(product)
    }
}

impl Record {
    /// The gradients of inputs `wants` by the engine, from those of outputs `seeds`.
    fn pull(
        &self,
        [wants, seeds]: [&[usize]; 2],
        given: &[AnyTensor],
        retain: bool,
        recorded: bool,
    ) -> Computed<Values> {
        let pick = |from: &Values, at: &[usize]| -> Vec<AnyTensor> {
            at.iter().map(|&at| from[at].clone()).collect()
        };
        let leaves = pick(&self.leaves, wants);
        let options = BackwardOptions::new().retain_graph(retain).create_graph(recorded);
        let given: Vec<Option<AnyTensor>> = given.iter().cloned().map(Some).collect();
        let found = grad_any(&pick(&self.outputs, seeds), &leaves, &given, options);
        let found = found.map_err(|error| error.to_string())?;
        fn zeros<T: Element>(like: &Tensor<T>) -> AnyTensor {
            Tensor::<T>::zeros_like(like).into()
        }
        let grad = |(grad, leaf): (Option<AnyTensor>, &AnyTensor)| {
            grad.unwrap_or_else(|| for_any!(leaf, leaf => zeros(leaf)))
        };
        Ok(found.into_iter().zip(&leaves).map(grad).collect())
    }
}

/// Whether `aᵀ b` is better left to where it is used, block by block: it is larger than the two
/// matrices, and its figures are the same so.
fn is_smaller_than_product(a: &AnyTensor, b: &AnyTensor) -> bool {
    let (&[k, m], &[_, n]) = (a.shape(), b.shape()) else { return false };
    let is_contiguous = for_any!(b, b => b.read().as_slice().is_some());
    k <= ONE_SUM && k * (m + n) < m * n && is_contiguous
}

/// A value as a leaf of a small graph of its own.
fn leaf(value: &AnyTensor, wants: bool) -> AnyTensor {
    let leaf = value.alias();
    match &leaf {
        AnyTensor::Float32(t) => t.set_stop_gradient(!wants),
        AnyTensor::Float64(t) => t.set_stop_gradient(!wants),
        _ => {}
    }
    leaf
}
