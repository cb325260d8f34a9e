//! The values of one run, and how its steps read and leave them.

use std::sync::PoisonError;

use super::executor::Feed;
use super::ir::{Op, Role, VarId};
use super::kind::Kind;
use super::optim::{Gradient, Update};
use super::plan::{Mode, Plan, Read, Step, UpdateStep};
use super::task::{Done, Failed, Inputs, Record, Task};
use super::threads;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Tensor};

/// The values of one run.
pub(super) struct Frame<'p> {
    pub(super) plan: &'p Plan,
    pub(super) memory: Memory,
}

/// What one run needs, and leaves to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Of each variable, while it is alive.
    values: Vec<Option<AnyTensor>>,
    /// What nobody reads any more, in the plan's slots.
    slots: Vec<Option<AnyTensor>>,
    /// Of each operator that a gradient walks back through.
    records: Vec<Option<Box<Record>>>,
    /// What operators left for their gradients by a rule; overwritten in the next run.
    notes: Vec<Option<AnyTensor>>,
    /// Gradients that only an update reads, as the two matrices whose product they are.
    products: Vec<(VarId, AnyTensor, AnyTensor)>,
    /// First values of what is kept.
    set: Vec<(VarId, AnyTensor)>,
    /// How parameters are changed, for each of the plan's updates.
    pub(super) rules: Vec<Update>,
    /// Where a scope, by its id, keeps what the plan names.
    pub(super) places: (u64, Vec<usize>),
}

impl Memory {
    fn new(plan: &Plan) -> Self {
        Self {
            values: vec![None; plan.graph.vars.len()],
            slots: vec![None; plan.slots.count],
            records: vec![None; plan.graph.ops.len()],
            notes: vec![None; plan.graph.ops.len()],
            ..Self::default()
        }
    }

    /// Leaves a value that is read no more to the slot of its variable.
    fn release(&mut self, plan: &Plan, id: VarId) {
        if let Some(value) = self.values[id].take()
            && let Some(slot) = plan.slots.of[id]
        {
            self.slots[slot] = Some(value);
        }
    }
}

impl<'p> Frame<'p> {
    /// In the buffers of a run that is over, if there was one.
    pub(super) fn new(plan: &'p Plan) -> Self {
        let mut free = plan.memories.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = free.pop();
        drop(free);
        Self { plan, memory: memory.unwrap_or_else(|| Memory::new(plan)) }
    }

    /// Leaves the buffers to the next run. After an error there is none to leave: what the run was
    /// at is dropped.
    pub(super) fn end(mut self) {
        for id in 0..self.memory.values.len() {
            self.memory.release(self.plan, id);
        }
        self.memory.products.clear();
        self.memory.set.clear();
        self.plan.memories.lock().unwrap_or_else(PoisonError::into_inner).push(self.memory);
    }

    /// Takes what is kept for a variable.
    pub(super) fn lend(&mut self, id: VarId, value: AnyTensor) {
        self.memory.values[id] = Some(value);
    }

    /// Drops all that is kept, so that it can be changed where it is.
    pub(super) fn give_back(&mut self) {
        self.plan.kept.iter().for_each(|&id| self.memory.values[id] = None);
    }

    /// The first values that the run gives what is kept.
    pub(super) fn take_set(&mut self) -> Vec<(VarId, AnyTensor)> {
        std::mem::take(&mut self.memory.set)
    }

    pub(super) fn feed(&mut self, feed: &[(&str, &dyn Feed)]) -> Result<()> {
        let graph = &self.plan.graph;
        for (name, value) in feed {
            let wrong = |why: String| Err(Error::Run { variable: (*name).to_owned(), why });
            let read = self.plan.feeds.iter().copied().find(|&id| graph.vars[id].name == *name);
            let data = || graph.find(name).filter(|&id| graph.vars[id].role == Role::Data);
            let Some(id) = read.or_else(data) else {
                let known = graph.vars.iter().filter(|var| var.role == Role::Data);
                let known: Vec<String> = known.map(|var| format!("`{}`", var.name)).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return wrong(match graph.find(name) {
                    Some(_) => format!("is fed, but it is no data variable (these are: {known})"),
                    None => format!(
                        "is fed, but the program has no data variable of this name (it has {known})"
                    ),
                });
            };
            if self.memory.values[id].is_some() {
                return wrong("is fed twice".to_owned());
            }
            let value = value.tensor();
            if let Some(misfit) = graph.vars[id].form.misfit(value.dtype(), value.shape()) {
                return wrong(misfit);
            }
            self.memory.values[id] = Some(value);
        }
        for &id in &self.plan.feeds {
            if self.memory.values[id].is_none() {
                let variable = graph.vars[id].name.clone();
                let why = format!("must be fed: {}", graph.vars[id].form);
                return Err(Error::Run { variable, why });
            }
        }
        Ok(())
    }

    pub(super) fn run(&mut self, threads: usize) -> Result<()> {
        let plan = self.plan;
        if threads < 2 {
            for step in &plan.steps {
                let task = self.prepare(step)?;
                let done = task.run();
                self.finish(step, done)?;
            }
            return Ok(());
        }
        for wave in plan.steps.chunk_by(|a, b| a.wave == b.wave) {
            let tasks: Vec<Task<'_>> =
                wave.iter().map(|step| self.prepare(step)).collect::<Result<_>>()?;
            for (step, done) in
                wave.iter().zip(threads::each(tasks, threads, Task::work, Task::run))
            {
                self.finish(step, done)?;
            }
        }
        Ok(())
    }

    /// Takes what a step reads out of the frame, and what it writes over.
    fn prepare(&mut self, step: &'p Step) -> Result<Task<'p>> {
        let op = &self.plan.graph.ops[step.op];
        let memory = &mut self.memory;
        let mut inputs = Inputs::new();
        for &(id, read) in &step.inputs {
            let value = match read {
                Read::Not => {
                    inputs.push(None);
                    continue;
                }
                Read::Keep | Read::Last | Read::Held => memory.values[id].clone(),
                Read::Take => memory.values[id].take(),
            };
            let missing =
                || failed(op, &format!("`{}` has no value", self.plan.graph.vars[id].name));
            inputs.push(Some(value.ok_or_else(missing)?));
        }
        let spare = |id: &VarId| memory.slots[self.plan.slots.from[*id]?].take();
        let spares = step.outputs.iter().map(spare).collect();
        let (mut record, mut note) = (None, None);
        match (&step.mode, &op.kind) {
            (Mode::FromRecord { last: true, .. }, Kind::Grad { of, .. }) => {
                record = memory.records[*of].take();
            }
            (Mode::FromRecord { .. }, Kind::Grad { of, .. }) => {
                record.clone_from(&memory.records[*of]);
            }
            (Mode::Direct { .. }, Kind::Grad { of, .. }) => note.clone_from(&memory.notes[*of]),
            (Mode::Noted, _) => note = memory.notes[step.op].take(),
            _ => {}
        }
        Ok(Task { plan: self.plan, step, op, inputs, spares, record, note })
    }

    /// Puts what a step computed into the frame.
    fn finish(&mut self, step: &Step, done: Result<Done, Failed>) -> Result<()> {
        let (plan, memory) = (self.plan, &mut self.memory);
        let op = &plan.graph.ops[step.op];
        let Done { outputs, record, note, product } =
            done.map_err(|Failed { op, why }| failed(&plan.graph.ops[op], &why))?;
        if record.is_some() {
            memory.records[step.op] = record;
        }
        if note.is_some() {
            memory.notes[step.op] = note;
        }
        let deferred = product.as_ref().map(|(id, ..)| *id);
        let results = step.outputs.iter().chain(&op.writes).filter(|id| Some(**id) != deferred);
        for (position, (&id, value)) in results.zip(outputs).enumerate() {
            let var = &plan.graph.vars[id];
            if let Some(misfit) = var.form.misfit(value.dtype(), value.shape()) {
                return Err(failed(op, &format!("`{}` {misfit}", var.name)));
            }
            match position < step.outputs.len() {
                true => memory.values[id] = Some(value),
                false => memory.set.push((id, value)),
            }
        }
        for &(id, read) in &step.inputs {
            match read {
                Read::Last => memory.release(plan, id),
                // It is whole, as it would have been larger in parts.
                Read::Held if deferred.is_none() => memory.values[id] = None,
                _ => {}
            }
        }
        memory.products.extend(product);
        Ok(())
    }

    /// What was asked for; for what the end of the run changes, anything.
    pub(super) fn fetch(&self) -> Result<Vec<AnyTensor>> {
        let one = |id: &VarId| {
            let set = || self.memory.set.iter().find(|(set, _)| set == id).map(|(_, value)| value);
            if let Some(value) = self.memory.values[*id].as_ref().or_else(set) {
                return Ok(value.alias());
            }
            if self.plan.written[*id] {
                return Ok(Tensor::from(false).into());
            }
            let variable = self.plan.graph.vars[*id].name.clone();
            Err(Error::Run { variable, why: "is fetched, but no operator computes it".to_owned() })
        };
        self.plan.fetched.iter().map(one).collect()
    }

    /// The gradient of an update. All fit once [`Self::check_gradients`] has said so.
    pub(super) fn gradient(&self, step: &UpdateStep) -> Option<Gradient<'_>> {
        let mut products = self.memory.products.iter();
        match products.find(|(id, ..)| *id == step.gradient) {
            Some((_, a, b)) => Some(Gradient::Product(a, b)),
            None => self.memory.values[step.gradient].as_ref().map(Gradient::Whole),
        }
    }

    /// That every update has its gradient, and it fits; so nothing of an update can fail.
    pub(super) fn check_gradients(&self) -> Result<()> {
        for step in &self.plan.updates {
            let parameter = &self.plan.graph.vars[step.writes[0]];
            let why = match self.gradient(step) {
                None => Some("has no value".to_owned()),
                Some(Gradient::Product(..)) => None,
                Some(Gradient::Whole(gradient)) => {
                    parameter.form.misfit(gradient.dtype(), gradient.shape())
                }
            };
            if let Some(why) = why {
                let name = &self.plan.graph.vars[step.gradient].name;
                return Err(failed(&self.plan.graph.ops[step.op], &format!("`{name}` {why}")));
            }
        }
        Ok(())
    }
}

pub(super) fn failed(op: &Op, why: &str) -> Error {
    let name = op.kind.to_string();
    // What the engine says starts with the op's name.
    let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(why).to_owned();
    Error::Operator { op: name, why, location: op.place.to_string() }
}
