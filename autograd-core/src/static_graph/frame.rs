//! The values of one run, and how its steps read and leave them.

use super::ir::{Kind, Op, Role, VarId};
use super::plan::{Mode, Plan, Read, Step, Update};
use super::rule::Gradient;
use super::step::{Product, Record, StepValues};
use crate::array::Value;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, Tensor, for_any};

/// The values of one run.
pub(super) struct Frame<'p> {
    pub(super) plan: &'p Plan,
    /// Of each variable, while somebody reads it.
    values: Vec<Option<AnyTensor>>,
    /// Of each operator that a gradient walks back through.
    records: Vec<Option<Box<Record>>>,
    /// Gradients that only an update reads, as the two matrices whose product they are.
    products: Vec<Product>,
    /// New values of what is kept, beside those of updates.
    set: Vec<(VarId, AnyTensor)>,
}

impl<'p> Frame<'p> {
    pub(super) fn new(plan: &'p Plan) -> Self {
        Self {
            plan,
            values: vec![None; plan.graph.vars.len()],
            records: vec![None; plan.graph.ops.len()],
            products: Vec::new(),
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
        let (plan, graph) = (self.plan, &self.plan.graph);
        let mut values = StepValues::with_capacity(step.values);
        for &(id, read) in &step.inputs {
            let Some(value) = self.values[id].take() else {
                let why = format!("`{}` has no value", graph.vars[id].name);
                return Err(failed(&graph.ops[step.turns[0].op], &why));
            };
            match read {
                Read::Last if plan.shape_read[id] => self.values[id] = Some(shape_of(&value)),
                Read::Last => {}
                Read::Shape | Read::Keep => self.values[id] = Some(value.clone()),
            }
            values.push(Some(value));
        }
        values.resize(step.values, None);
        let turn = &step.turns[0];
        let mut record = match (turn.mode, &graph.ops[turn.op].kind) {
            (Mode::FromRecord { last: true, .. }, Kind::Grad(grad)) => self.records[grad.of].take(),
            (Mode::FromRecord { .. }, Kind::Grad(grad)) => self.records[grad.of].clone(),
            _ => None,
        };
        let product = step.run(plan, &mut values, &mut record);
        let product = product.map_err(|(op, why)| failed(&graph.ops[op], &why))?;
        if record.is_some() {
            self.records[turn.op] = record;
        }
        for &(id, at) in &step.outputs {
            let var = &graph.vars[id];
            let is_left = matches!(&product, Some((left, ..)) if *left == id);
            let value = match values[at].take() {
                None if is_left => continue,
                value => value,
            };
            let misfit = match &value {
                Some(value) => var.form.misfit(value.dtype(), value.shape()),
                None => Some("has no value".to_owned()),
            };
            if let Some(misfit) = misfit {
                let turn = step.turns.iter().find(|turn| turn.results.contains(&at));
                let op = &graph.ops[turn.unwrap_or(&step.turns[0]).op];
                return Err(failed(op, &format!("`{}` {misfit}", var.name)));
            }
            match (value, var.role) {
                (Some(value), Role::Kept { .. }) => self.set.push((id, value)),
                (Some(value), _) if !plan.is_read[id] && plan.shape_read[id] => {
                    self.values[id] = Some(shape_of(&value));
                }
                (value, _) => self.values[id] = value,
            }
        }
        self.products.extend(product);
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
    pub(super) fn gradient(&self, update: &Update) -> Option<Gradient<'_>> {
        let mut products = self.products.iter();
        match products.find(|(id, ..)| *id == update.gradient) {
            Some((_, a, b)) => Some(Gradient::Product(a, b)),
            None => self.values[update.gradient].as_ref().map(Gradient::Whole),
        }
    }

    /// That every update has its gradient, and it fits; so nothing of an update can fail.
    pub(super) fn check_gradients(&self) -> Result<()> {
        for update in &self.plan.updates {
            let parameter = &self.plan.graph.vars[update.writes[0]];
            let why = match self.gradient(update) {
                None => Some("has no value".to_owned()),
                Some(Gradient::Product(..)) => None,
                Some(Gradient::Whole(gradient)) => {
                    parameter.form.misfit(gradient.dtype(), gradient.shape())
                }
            };
            if let Some(why) = why {
                let name = &self.plan.graph.vars[update.gradient].name;
                return Err(failed(&self.plan.graph.ops[update.op], &format!("`{name}` {why}")));
            }
        }
        Ok(())
    }
}

/// A tensor of the same element type and shape, of one number.
fn shape_of(value: &AnyTensor) -> AnyTensor {
    fn of<T: Element>(x: &Tensor<T>) -> AnyTensor {
        Tensor::new(Value::scalar(T::ZERO).broadcast_to(x.shape())).into()
    }
    for_any!(value, x => of(x))
}

fn failed(op: &Op, why: &str) -> Error {
    let name = op.kind.to_string();
    // What the engine says starts with the op's name.
    let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(why).to_owned();
    Error::Operator { op: name, why, location: op.place.to_string() }
}
