//! The values of one run, and how its steps read and leave them.

use std::collections::HashMap;

use super::executor::Feed;
use super::ir::{Op, OpId, Role, VarId};
use super::kind::Kind;
use super::optim::Gradient;
use super::plan::{Mode, Plan, Read, Step};
use super::task::{Done, Failed, Inputs, Record, Task};
use super::threads;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Tensor};

/// The values of one run.
pub(super) struct Frame<'p> {
    pub(super) plan: &'p Plan,
    pub(super) values: Vec<Option<AnyTensor>>,
    records: HashMap<OpId, Box<Record>>,
    /// Gradients that only an update reads, as the two matrices whose product they are.
    products: HashMap<VarId, (AnyTensor, AnyTensor)>,
    /// First values of what is kept.
    pub(super) set: Vec<(VarId, AnyTensor)>,
}

impl<'p> Frame<'p> {
    pub(super) fn new(plan: &'p Plan) -> Self {
        let values = vec![None; plan.graph.vars.len()];
        let (records, products) = (HashMap::new(), HashMap::new());
        Self { plan, values, records, products, set: Vec::new() }
    }

    pub(super) fn feed(&mut self, feed: &[(&str, &dyn Feed)]) -> Result<()> {
        let graph = &self.plan.graph;
        for (name, value) in feed {
            let wrong = |why: String| Err(Error::Run { variable: (*name).to_owned(), why });
            let Some(id) = graph.find(name).filter(|&id| graph.vars[id].role == Role::Data) else {
                let known = graph.vars.iter().filter(|var| var.role == Role::Data);
                let known: Vec<String> = known.map(|var| format!("`{}`", var.name)).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return wrong(format!(
                    "is fed, but the program has no data variable of this name (it has {known})"
                ));
            };
            if self.values[id].is_some() {
                return wrong("is fed twice".to_owned());
            }
            let value = value.tensor();
            if let Some(misfit) = graph.vars[id].form.misfit(value.dtype(), value.shape()) {
                return wrong(misfit);
            }
            self.values[id] = Some(value);
        }
        for &id in &self.plan.feeds {
            if self.values[id].is_none() {
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

    /// Takes what a step reads out of the frame.
    fn prepare(&mut self, step: &'p Step) -> Result<Task<'p>> {
        let op = &self.plan.graph.ops[step.op];
        let mut inputs = Inputs::new();
        for &(id, read) in &step.inputs {
            let value = match read {
                Read::Not => {
                    inputs.push(None);
                    continue;
                }
                Read::Keep => self.values[id].clone(),
                Read::Take => self.values[id].take(),
            };
            let missing =
                || failed(op, &format!("`{}` has no value", self.plan.graph.vars[id].name));
            inputs.push(Some(value.ok_or_else(missing)?));
        }
        let record = match (&step.mode, &op.kind) {
            (Mode::FromRecord { last: true, .. }, Kind::Grad { of, .. }) => self.records.remove(of),
            (Mode::FromRecord { .. }, Kind::Grad { of, .. }) => self.records.get(of).cloned(),
            _ => None,
        };
        Ok(Task { plan: self.plan, step, op, inputs, record })
    }

    /// Puts what a step computed into the frame.
    fn finish(&mut self, step: &Step, done: Result<Done, Failed>) -> Result<()> {
        let op = &self.plan.graph.ops[step.op];
        let Done { outputs, record, product } =
            done.map_err(|Failed { op, why }| failed(&self.plan.graph.ops[op], &why))?;
        if let Some(record) = record {
            self.records.insert(step.op, record);
        }
        let deferred = product.as_ref().map(|(id, ..)| *id);
        let results = op.outputs.iter().chain(&op.writes).filter(|id| Some(**id) != deferred);
        for (position, (&id, value)) in results.zip(outputs).enumerate() {
            let var = &self.plan.graph.vars[id];
            if let Some(misfit) = var.form.misfit(value.dtype(), value.shape()) {
                return Err(failed(op, &format!("`{}` {misfit}", var.name)));
            }
            match position < op.outputs.len() {
                true => self.values[id] = Some(value),
                false => self.set.push((id, value)),
            }
        }
        if let Some((id, a, b)) = product {
            self.products.insert(id, (a, b));
        }
        Ok(())
    }

    /// What was asked for; for what the end of the run changes, anything.
    pub(super) fn fetch(&self) -> Result<Vec<AnyTensor>> {
        let one = |id: &VarId| {
            let set = || self.set.iter().find(|(set, _)| set == id).map(|(_, value)| value);
            if let Some(value) = self.values[*id].as_ref().or_else(set) {
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

    /// The gradients of the updates, in their order; they fit, so nothing of an update can fail.
    pub(super) fn gradients(&mut self) -> Result<Vec<Gradient>> {
        let mut found = Vec::with_capacity(self.plan.updates.len());
        for step in &self.plan.updates {
            if let Some((a, b)) = self.products.remove(&step.gradient) {
                found.push(Gradient::Product(a, b));
                continue;
            }
            let parameter = &self.plan.graph.vars[step.writes[0]];
            let gradient = self.values[step.gradient].clone();
            let why = match &gradient {
                None => Some("has no value".to_owned()),
                Some(gradient) => parameter.form.misfit(gradient.dtype(), gradient.shape()),
            };
            let (Some(gradient), None) = (gradient, &why) else {
                let name = &self.plan.graph.vars[step.gradient].name;
                let why = why.unwrap_or_default();
                return Err(failed(&self.plan.graph.ops[step.op], &format!("`{name}` {why}")));
            };
            found.push(Gradient::Whole(gradient));
        }
        Ok(found)
    }
}

pub(super) fn failed(op: &Op, why: &str) -> Error {
    let name = op.kind.to_string();
    // What the engine says starts with the op's name.
    let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(why).to_owned();
    Error::Operator { op: name, why, location: op.place.to_string() }
}
