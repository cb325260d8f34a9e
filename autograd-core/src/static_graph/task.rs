//! One step with all that it reads: it can run anywhere.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use smallvec::{SmallVec, smallvec};

use super::ir::{Op, OpId, VarId};
use super::kind::Kind;
use super::plan::{Mode, Plan, Step};
use super::run::{Values, cross_entropy, cross_entropy_gradient, matrices, sum_of_rows};
use crate::array::matmul::ONE_SUM;
use crate::engine::{BackwardOptions, grad_any};
use crate::graph::{AnyTensor, Element, GradMode, Tensor, for_any};

/// What an operator left for its gradient: its inputs as leaves, and what it computed from them.
#[derive(Clone, Debug)]
pub(super) struct Record {
    leaves: Values,
    outputs: Values,
}

/// What a step reads; `None` for what it finds in a record.
pub(super) type Inputs = SmallVec<[Option<AnyTensor>; 4]>;

/// See the [module](self).
pub(super) struct Task<'p> {
    pub(super) plan: &'p Plan,
    pub(super) step: &'p Step,
    pub(super) op: &'p Op,
    pub(super) inputs: Inputs,
    /// For each output, what it may be written over.
    pub(super) spares: SmallVec<[Option<AnyTensor>; 2]>,
    pub(super) record: Option<Box<Record>>,
    /// What a gradient by a rule finds of its operator; of that operator, what it may write over.
    pub(super) note: Option<AnyTensor>,
}

/// What a step computed.
pub(super) struct Done {
    pub(super) outputs: Values,
    pub(super) record: Option<Box<Record>>,
    pub(super) note: Option<AnyTensor>,
    /// An output that is left to its update, as the matrices `a` and `b` of `aᵀ b`.
    pub(super) product: Option<(VarId, AnyTensor, AnyTensor)>,
}

/// Why a step failed, and which of its operators.
pub(super) struct Failed {
    pub(super) op: OpId,
    pub(super) why: String,
}

impl Failed {
    pub(super) fn at(op: OpId, why: impl Into<String>) -> Self {
        Self { op, why: why.into() }
    }
}

impl Done {
    fn plain(outputs: Values) -> Self {
        Self { outputs, record: None, note: None, product: None }
    }
}

impl Task<'_> {
    /// About how many multiplications it takes; none for user code.
    pub(super) fn work(&self) -> usize {
        let len = |at: usize| -> usize {
            self.inputs[at].as_ref().map_or(0, |input| input.shape().iter().product())
        };
        let all = || (0..self.inputs.len()).map(len).sum::<usize>();
        let product = || {
            let columns = self.inputs[1].as_ref().and_then(|w| w.shape().last()).copied();
            len(0) * columns.unwrap_or(1)
        };
        if let Some(chain) = &self.step.chain {
            return if chain.head.is_some() { product() } else { 8 * all() };
        }
        match &self.op.kind {
            Kind::PyFunc(_) | Kind::Eager(_) => 0,
            Kind::Matmul => product(),
            Kind::Grad { of, .. } => match &self.plan.graph.ops[*of].kind {
                Kind::PyFunc(_) | Kind::Eager(_) => 0,
                // As the product, for each operand.
                Kind::Matmul => {
                    let dy = self.inputs.last().and_then(Option::as_ref);
                    2 * len(0) * dy.and_then(|dy| dy.shape().last()).copied().unwrap_or(1)
                }
                _ => 8 * all(),
            },
            _ => 8 * all(),
        }
    }

    pub(super) fn run(self) -> Result<Done, Failed> {
        let op = self.step.op;
        let computing = AssertUnwindSafe(|| self.compute());
        let panicked = |panic: Box<dyn Any + Send>| Err(Failed::at(op, panic_message(&*panic)));
        catch_unwind(computing).unwrap_or_else(panicked)
    }

    fn compute(self) -> Result<Done, Failed> {
        let op = self.step.op;
        let done = match &self.step.mode {
            Mode::Plain => self.plain(),
            Mode::Noted => self.noted(),
            Mode::Recorded => self.record(),
            Mode::Bias => self.bias(),
            Mode::Direct { deferred } => self.pull(*deferred),
            Mode::FromRecord { recorded, retain, .. } => {
                let (recorded, retain) = (*recorded, *retain);
                self.pull_record(recorded, retain)
            }
            Mode::Chain => match &self.step.chain {
                Some(chain) => {
                    let inputs: SmallVec<[VarId; 8]> =
                        self.step.inputs.iter().map(|(var, _)| *var).collect();
                    let between = (&inputs[..], &self.step.outputs[..]);
                    let done = chain.run(&self.plan.graph, between, self.inputs, self.spares);
                    return done.map(Done::plain);
                }
                None => Err("has no links".to_owned()),
            },
        };
        done.map_err(|why| Failed::at(op, why))
    }

    /// What an output may be written over.
    fn spare(&mut self, output: usize) -> Option<AnyTensor> {
        self.spares.get_mut(output).and_then(Option::take)
    }

    fn plain(mut self) -> Result<Done, String> {
        if self.op.kind.is_matmul()
            && let Some(spare) = self.spare(0)
            && let (Some(a), Some(b)) = (&self.inputs[0], &self.inputs[1])
            && let Some(product) = matrices([a, b], [false; 2], Some(spare))
        {
            return Ok(Done::plain(smallvec![product]));
        }
        // To the pool, where the operator finds it.
        self.spares.clear();
        let inputs = self.inputs.into_iter().flatten().collect();
        self.op.kind.run(inputs).map(Done::plain)
    }

    /// A loss that leaves what its gradient reads.
    fn noted(mut self) -> Result<Done, String> {
        let note = self.note.take();
        let (loss, note) = cross_entropy(&self.inputs, note)?;
        Ok(Done { note: Some(note), ..Done::plain(smallvec![loss]) })
    }

    fn bias(mut self) -> Result<Done, String> {
        let Kind::Grad { wants, .. } = &self.op.kind else {
            return Err("is no gradient".to_owned());
        };
        let row = wants.iter().position(|&input| input == 1).unwrap_or_default();
        let spare = self.spare(row);
        let dy = self.inputs.pop().flatten().ok_or("the gradient of its output is missing")?;
        let sum = sum_of_rows(&dy, spare)?;
        Ok(Done::plain(match wants.len() {
            1 => smallvec![sum],
            _ => smallvec![dy, sum],
        }))
    }

    /// Runs an operator on leaves of its own and keeps what the engine records.
    fn record(self) -> Result<Done, String> {
        let wants = &self.plan.wants;
        let values = self.op.inputs.iter().zip(self.inputs);
        let leaves: Values =
            values.filter_map(|(&id, value)| Some(leaf(&value?, wants[id]))).collect();
        let mut outputs = GradMode::of(true, || self.op.kind.run(leaves.clone()))?;
        let values = outputs.iter().map(AnyTensor::alias).collect();
        // What it writes has no gradient.
        outputs.truncate(self.op.outputs.len());
        let record = Some(Box::new(Record { leaves, outputs }));
        Ok(Done { record, ..Done::plain(values) })
    }

    /// A gradient by a rule on values.
    fn pull(mut self, deferred: bool) -> Result<Done, String> {
        let Kind::Grad { of, wants, seeds, forms, .. } = &self.op.kind else {
            return Err("is no gradient".to_owned());
        };
        let forward = &self.plan.graph.ops[*of];
        let (n, m) = (forward.inputs.len(), forward.outputs.len());
        let missing = "the gradient of its output is missing";
        let mut dys: SmallVec<[Option<AnyTensor>; 2]> = smallvec![None; m];
        for (&slot, given) in seeds.iter().zip(self.inputs.drain(n + m..)) {
            dys[slot] = given;
        }
        let left = if deferred { self.inputs[0].as_ref() } else { None };
        let dy = dys.iter().flatten().next().ok_or(missing)?;
        let left = left.filter(|a| is_smaller_than_product(a, dy)).cloned();
        let product = match (left, self.op.outputs.last()) {
            (Some(a), Some(&id)) => Some((id, a, dy.clone())),
            _ => None,
        };
        let computed = match product {
            Some(_) => &wants[..wants.len() - 1],
            None => wants,
        };
        if computed.is_empty() {
            return Ok(Done { product, ..Done::plain(Values::new()) });
        }
        let dy = dy.clone();
        let wanted = [computed.contains(&0), computed.contains(&1)];
        if let Some(outputs) = self.pull_in_place(forward, &dy, wanted)? {
            return Ok(Done { product, ..Done::plain(outputs) });
        }
        // Where nobody else holds it, it is written over.
        drop(dy);
        let (inputs, outputs) = self.inputs.split_at(n);
        let grads = forward.kind.pull(inputs, outputs, &mut dys, (computed, forms))?;
        Ok(Done { product, ..Done::plain(grads) })
    }

    /// The gradients that are written to given places, where shapes allow it.
    fn pull_in_place(
        &mut self,
        forward: &Op,
        dy: &AnyTensor,
        wanted: [bool; 2],
    ) -> Result<Option<Values>, String> {
        if let Kind::CrossEntropy = forward.kind {
            let (note, spare) = (self.note.take(), self.spare(0));
            let dx = cross_entropy_gradient(&self.inputs, note, dy, spare)?;
            return Ok(Some(smallvec![dx]));
        }
        let (true, Some(a), Some(b)) =
            (forward.kind.is_matmul(), self.inputs[0].clone(), self.inputs[1].clone())
        else {
            return Ok(None);
        };
        let mut grads = Values::new();
        if wanted[0] {
            match matrices([dy, &b], [false, true], self.spare(0)) {
                Some(da) => grads.push(da),
                None => return Ok(None),
            }
        }
        if wanted[1] {
            match matrices([&a, dy], [true, false], self.spare(grads.len())) {
                Some(db) => grads.push(db),
                None => return Ok(None),
            }
        }
        Ok(Some(grads))
    }

    /// A gradient by the engine, from what the operator left.
    fn pull_record(self, recorded: bool, retain: bool) -> Result<Done, String> {
        let Kind::Grad { wants, seeds, .. } = &self.op.kind else {
            return Err("is no gradient".to_owned());
        };
        let record = self.record.ok_or("its operator left no record")?;
        let given = self.op.inputs.iter().zip(self.inputs);
        // Read are the gradients of the outputs alone.
        let given: Vec<AnyTensor> = given
            .filter_map(|(&id, value)| {
                let value = value?;
                Some(if recorded { leaf(&value, self.plan.wants[id]) } else { value })
            })
            .collect();
        let outputs: Vec<AnyTensor> =
            seeds.iter().map(|&output| record.outputs[output].clone()).collect();
        let leaves: Vec<AnyTensor> =
            wants.iter().map(|&input| record.leaves[input].clone()).collect();
        let options = BackwardOptions::new().retain_graph(retain).create_graph(recorded);
        let seeds: Vec<Option<AnyTensor>> = given.iter().cloned().map(Some).collect();
        let found = grad_any(&outputs, &leaves, &seeds, options).map_err(|e| e.to_string())?;
        let zero = |leaf: &AnyTensor| for_any!(leaf, t => zeros_like(t));
        let pairs = found.into_iter().zip(&leaves);
        let grads: Values = pairs.map(|(grad, leaf)| grad.unwrap_or_else(|| zero(leaf))).collect();
        if !recorded {
            return Ok(Done::plain(grads));
        }
        let mut leaves = record.leaves;
        // Gradients do not flow to the forward operator's outputs: see `backward::wanted`.
        leaves.extend(record.outputs.iter().map(AnyTensor::alias));
        leaves.extend(given);
        let values = grads.iter().map(AnyTensor::alias).collect();
        let record = Some(Box::new(Record { leaves, outputs: grads }));
        Ok(Done { record, ..Done::plain(values) })
    }
}

/// Whether `aᵀ b` is better left to where it is used, block by block: it is larger than the two
/// matrices, and its figures are the same so.
fn is_smaller_than_product(a: &AnyTensor, b: &AnyTensor) -> bool {
    let (&[k, m], &[_, n]) = (a.shape(), b.shape()) else { return false };
    let gapless = for_any!(b, b => b.read().as_slice().is_some());
    k <= ONE_SUM && k * (m + n) < m * n && gapless
}

fn zeros_like<T: Element>(tensor: &Tensor<T>) -> AnyTensor {
    Tensor::<T>::zeros_like(tensor).into()
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

/// What a panic said.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panicked: {}", text.unwrap_or_else(|| "without a message".to_owned()))
}
