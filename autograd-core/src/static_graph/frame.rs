//! The values of one run, and how its steps read and leave them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::ir::{Kind, Op, Role, VarId};
use super::plan::{Plan, Step};
use super::record::Record;
use super::values::{Values, panic_message};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Tensor};

/// The values of one run.
pub(super) struct Frame<'p> {
    pub(super) plan: &'p Plan,
    /// Of each variable, while a step is to read it.
    values: Vec<Option<AnyTensor>>,
    /// Of each operator that a gradient walks back through.
    records: Vec<Option<Box<Record>>>,
    /// New values of what is kept, beside those of updates.
    set: Vec<(VarId, AnyTensor)>,
}

impl<'p> Frame<'p> {
    pub(super) fn new(plan: &'p Plan) -> Self {
        Self {
            plan,
            values: vec![None; plan.graph.vars.len()],
            records: vec![None; plan.graph.ops.len()],
            set: Vec::new(),
        }
    }

    /// Takes what is kept for a variable.
    pub(super) fn lend(&mut self, id: VarId, value: AnyTensor) {
        self.values[id] = Some(value);
    }

    /// Drops all that is kept, so that it can be changed where it is.
    pub(super) fn give_back(&mut self) {
        self.plan.kept.iter().for_each(|&id| self.values[id] = None);
    }

    /// The new values that operators give what is kept.
    pub(super) fn take_set(&mut self) -> Vec<(VarId, AnyTensor)> {
        std::mem::take(&mut self.set)
    }

    pub(super) fn feed<'f>(
        &mut self,
        feed: impl Iterator<Item = (&'f str, AnyTensor)>,
    ) -> Result<()> {
        let graph = &self.plan.graph;
        for (name, value) in feed {
            let wrong = |why: String| Err(Error::Run { variable: name.to_owned(), why });
            let data = graph.find(name).filter(|&id| graph.vars[id].role == Role::Data);
            let Some(id) = data else {
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
            if self.values[id].is_some() {
                return wrong("is fed twice".to_owned());
            }
            if let Some(misfit) = graph.vars[id].form.misfit(value.dtype(), value.shape()) {
                return wrong(misfit);
            }
            self.values[id] = Some(value);
        }
        match self.plan.feeds.iter().find(|&&id| self.values[id].is_none()) {
            Some(&id) => {
                let variable = graph.vars[id].name.clone();
                Err(Error::Run { variable, why: format!("must be fed: {}", graph.vars[id].form) })
            }
            None => Ok(()),
        }
    }

    pub(super) fn run(&mut self) -> Result<()> {
        let plan = self.plan;
        plan.steps.iter().try_for_each(|step| self.step(step))
    }

    /// Takes what a step reads out of the frame, and puts what it computes there.
    fn step(&mut self, step: &Step) -> Result<()> {
        let graph = &self.plan.graph;
        let op = &graph.ops[step.op];
        let mut given = Values::new();
        for &(id, last) in &step.reads {
            let value = if last { self.values[id].take() } else { self.values[id].clone() };
            let missing = || failed(op, &format!("`{}` has no value", graph.vars[id].name));
            given.push(value.ok_or_else(missing)?);
        }
        let mut record = match &op.kind {
            Kind::Grad(grad) if step.last => self.records[grad.of].take(),
            Kind::Grad(grad) => self.records[grad.of].clone(),
            _ => None,
        };
        let run = AssertUnwindSafe(|| step.run(self.plan, given, &mut record));
        let computed = catch_unwind(run).unwrap_or_else(|panic| Err(panic_message(&*panic)));
        let mut computed = computed.map_err(|why| failed(op, &why))?.into_iter();
        self.records[step.op] = record;
        for id in op.results() {
            let (var, value) = (&graph.vars[id], computed.next());
            let misfit = match &value {
                Some(value) => var.form.misfit(value.dtype(), value.shape()),
                None => Some("has no value".to_owned()),
            };
            if let Some(misfit) = misfit {
                return Err(failed(op, &format!("`{}` {misfit}", var.name)));
            }
            match (value, var.role) {
                (Some(value), Role::Kept { .. }) => self.set.push((id, value)),
                (value, _) => self.values[id] = value.filter(|_| self.plan.is_read[id]),
            }
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

    /// The gradient of an update. All fit once [`Self::check_gradients`] has said so.
    pub(super) fn gradient(&self, update: &Op) -> Option<&AnyTensor> {
        self.values[update.gradient()].as_ref()
    }

    /// That every update has its gradient, and it fits; so nothing of an update can fail.
    pub(super) fn check_gradients(&self) -> Result<()> {
        let graph = &self.plan.graph;
        for update in self.plan.updates.iter().map(|&id| &graph.ops[id]) {
            let parameter = &graph.vars[update.writes[0]];
            let misfit = match self.gradient(update) {
                None => Some("has no value".to_owned()),
                Some(gradient) => parameter.form.misfit(gradient.dtype(), gradient.shape()),
            };
            if let Some(misfit) = misfit {
                let name = &graph.vars[update.gradient()].name;
                return Err(failed(update, &format!("`{name}` {misfit}")));
            }
        }
        Ok(())
    }
}

fn failed(op: &Op, why: &str) -> Error {
    let name = op.kind.to_string();
    // What the engine says starts with the op's name.
    let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(why).to_owned();
    Error::Operator { op: name, why, location: op.place.to_string() }
}
