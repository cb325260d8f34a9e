//! The values of one run, and how its steps read and write them.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::ir::{Kind, Op, Role, Var, VarId};
use super::plan::{Plan, Step};
use super::record::Record;
use super::rule::Rule;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, for_any};
use crate::ops::table::values::panic_message;
use crate::ops::table::{Form, Values};

pub(super) type KeptValues = HashMap<String, AnyTensor>;

pub(super) struct Frame<'p> {
    plan: &'p Plan,
    /// For each variable, its value, while a step still reads it.
    values: Vec<Option<AnyTensor>>,
    records: Vec<Option<Box<Record>>>,
    /// New values of kept variables, except those of updates.
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

    pub(super) fn take(&mut self, kept: &KeptValues) -> Result<()> {
        for &id in &self.plan.kept {
            let var = &self.plan.graph.vars[id];
            let wrong = |why: String| Err(Error::Run { variable: var.name.clone(), why });
            let Some(value) = kept.get(&var.name) else {
                return wrong("has no value yet; run the startup program first".to_owned());
            };
            if let Some(misfit) = var.form.misfit(value.dtype(), value.shape()) {
                return wrong(misfit);
            }
            self.values[id] = self.plan.is_read[id].then(|| value.clone());
        }
        Ok(())
    }

    pub(super) fn run(&mut self) -> Result<()> {
        let plan = self.plan;
        plan.steps.iter().try_for_each(|step| self.step(step))
    }

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
            check(op, var, &var.form, value.as_ref())?;
            match (value, var.role) {
                (Some(value), Role::Kept { .. }) => self.set.push((id, value)),
                (value, _) => self.values[id] = value.filter(|_| self.plan.is_read[id]),
            }
        }
        Ok(())
    }

    /// The fetched values; `None` for variables that the end of the run changes.
    pub(super) fn fetch(&self) -> Result<Vec<Option<AnyTensor>>> {
        let one = |&id: &VarId| match &self.values[id] {
            _ if self.plan.graph.vars[id].is_written() => Ok(None),
            Some(value) => Ok(Some(value.alias())),
            None => Err(Error::Run {
                variable: self.plan.graph.vars[id].name.clone(),
                why: "is fetched, but no operator computes it".to_owned(),
            }),
        };
        self.plan.fetched.iter().map(one).collect()
    }

    fn updates(&self) -> impl Iterator<Item = &'p Op> + Clone {
        let graph = &self.plan.graph;
        self.plan.updates.iter().map(|&id| &graph.ops[id])
    }

    pub(super) fn check_gradients(&self) -> Result<()> {
        let vars = &self.plan.graph.vars;
        for update in self.updates() {
            let (parameter, gradient) = (update.writes[0], update.gradient());
            check(update, &vars[gradient], &vars[parameter].form, self.values[gradient].as_ref())?;
        }
        Ok(())
    }

    /// Changes the kept values; nothing can fail any more. Values that others have fetched are copied first.
    pub(super) fn commit(mut self, kept: &mut KeptValues, rules: &[Rule]) {
        let graph = &self.plan.graph;
        // Drops the run's own references, so that the values can be changed in place.
        self.plan.kept.iter().for_each(|&id| self.values[id] = None);
        let set = std::mem::take(&mut self.set).into_iter();
        kept.extend(set.map(|(id, value)| (graph.vars[id].name.clone(), value)));
        let mut own: Vec<Option<&mut AnyTensor>> = graph.vars.iter().map(|_| None).collect();
        for (name, value) in kept {
            if let Some(id) = graph.find(name) {
                own[id] = Some(value);
            }
        }
        for &id in self.updates().flat_map(|update| &update.writes) {
            // Copies happen here, if at all: memory is allocated before the first change.
            if let Some(value) = &mut own[id] {
                for_any!(value, tensor => drop(tensor.value_mut().make_mut()));
            }
        }
        for (update, rule) in self.updates().zip(rules) {
            let own = update.writes.iter().filter_map(|&id| own[id].take()).collect();
            if let Some(gradient) = &self.values[update.gradient()] {
                rule.step(own, gradient);
            }
        }
    }
}

fn check(op: &Op, var: &Var, form: &Form, value: Option<&AnyTensor>) -> Result<()> {
    let misfit = match value {
        Some(value) => form.misfit(value.dtype(), value.shape()),
        None => Some("has no value".to_owned()),
    };
    match misfit {
        Some(misfit) => Err(failed(op, &format!("`{}` {misfit}", var.name))),
        None => Ok(()),
    }
}

fn failed(op: &Op, why: &str) -> Error {
    let name = op.kind.to_string();
    // Messages of the engine start with the op's name.
    let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(why).to_owned();
    Error::Operator { op: name, why, location: op.place.to_string() }
}
