//! The values of one run, how its steps compute them, and what they record for gradients.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use smallvec::SmallVec;

use super::ir::{Grad, Kind, Op, Role, Var, VarId};
use super::plan::{Plan, PlanStep};
use crate::array::{DType, Shape};
use crate::engine::{BackwardOptions, described, grad_along, want_gradient};
use crate::error::{Error, Result};
use crate::graph::{
    self, AnyTensor, Edge, Edges, Element, GradMode, NodeRef, Pull, SavedState, Slots, Tensor,
    for_any,
};
use crate::ops::table::values::{Fault, panic_message};
use crate::ops::table::{Form, Ran, Values};

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

    fn step(&mut self, step: &PlanStep) -> Result<()> {
        let graph = &self.plan.graph;
        let op = &graph.ops[step.op];
        let mut given = Values::new();
        for &(id, last) in &step.reads {
            let value = if last { self.values[id].take() } else { self.values[id].clone() };
            let missing = || failed(op, format!("`{}` has no value", graph.vars[id].name));
            given.push(value.ok_or_else(missing)?);
        }
        let before = match &op.kind {
            Kind::Grad(grad) if step.takes_record => self.records[grad.of].take(),
            Kind::Grad(grad) => self.records[grad.of].clone(),
            _ => None,
        };
        let run = AssertUnwindSafe(|| step.run(self.plan, given, before));
        let ran = catch_unwind(run).unwrap_or_else(|panic| Err(panic_message(&*panic).into()));
        let (computed, record) = ran.map_err(|why| failed(op, why))?;
        let mut computed = computed.into_iter();
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
    pub(super) fn commit(mut self, kept: &mut KeptValues, rates: &[f64]) {
        let graph = &self.plan.graph;
        let name = |id: VarId| &graph.vars[id].name;
        let gradient = |update: &Op| self.values[update.gradient()].clone();
        let gradients: Vec<Option<AnyTensor>> = self.updates().map(gradient).collect();
        // Drops the run's own references, so that the values can be changed in place.
        self.values.clear();
        kept.extend(self.set.drain(..).map(|(id, value)| (name(id).clone(), value)));
        for &id in self.updates().flat_map(|update| &update.writes) {
            // Copies happen here, if at all: memory is allocated before the first change.
            if let Some(value) = kept.get_mut(name(id)) {
                for_any!(value, tensor => drop(tensor.value_mut().make_mut()));
            }
        }
        for ((update, &rate), gradient) in self.updates().zip(rates).zip(gradients) {
            let Some(gradient) = gradient else { continue };
            let mut rule = update.kind.clone();
            rule.set_rate(rate);
            // The gradient takes the place of a value while that is moved; a rule of this crate does not panic.
            let take = |&id| Some(std::mem::replace(kept.get_mut(name(id))?, gradient.clone()));
            let mut values: Values = update.writes.iter().filter_map(take).collect();
            values.insert(1, gradient);
            let Ok(values) = rule.run(values) else { unreachable!("its inputs were checked") };
            for (&id, value) in update.writes.iter().zip(values) {
                if let Some(kept) = kept.get_mut(name(id)) {
                    *kept = value;
                }
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
        Some(misfit) => Err(failed(op, format!("`{}` {misfit}", var.name))),
        None => Ok(()),
    }
}

fn failed(op: &Op, why: impl Into<Fault>) -> Error {
    let (why, source) = match why.into() {
        Fault::Eager(error) => (error.to_string(), Some(error.into_source())),
        Fault::Words(why) => (why, None),
    };
    let name = op.kind.to_string();
    // Messages of the engine start with the op's name.
    let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(&why).to_owned();
    Error::Operator { op: name, why, source, location: op.place.to_string() }
}

/// The inputs and outputs of a run of an operator: places in a separate graph, which the eager engine walks.
#[derive(Clone)]
struct Record {
    inputs: RecordedValues,
    outputs: RecordedValues,
}

type RecordedValues = SmallVec<[RecordedValue; 2]>;

/// The edge of a value in the graph, and its form; the graph keeps the data that the gradient reads.
#[derive(Clone)]
struct RecordedValue {
    edge: Edge,
    dtype: DType,
    shape: Shape,
}

impl PlanStep {
    /// Computes the results, with their record if the step is recorded. `before` is the record of the operator whose
    /// gradient this step computes.
    fn run(
        &self,
        plan: &Plan,
        mut given: Values,
        before: Option<Box<Record>>,
    ) -> Ran<(Values, Option<Box<Record>>)> {
        let op = &plan.graph.ops[self.op];
        let mut inputs = RecordedValues::new();
        if self.recorded {
            for (value, &(var, _)) in given.iter_mut().zip(&self.reads) {
                value.unshare();
                match op.kind {
                    _ if !plan.wants[var] => {}
                    // A leaf, which user code cannot change in place.
                    Kind::Eager(_) => want_gradient(value),
                    _ => for_any!(value, x => attach(x)),
                }
                inputs.push(RecordedValue::of(value));
            }
        }
        let mut computed = match &op.kind {
            Kind::Grad(grad) => {
                let before = *before.ok_or("its operator left no record")?;
                let options = BackwardOptions::new().retain_graph(self.retain);
                let grads = before.pull(grad, given, options.create_graph(self.recorded))?;
                if self.recorded {
                    // Gradients do not flow to the forward operator's outputs: see `backward::wanted`.
                    let before = before.inputs.into_iter().chain(before.outputs);
                    inputs = before.chain(inputs).collect();
                }
                grads
            }
            kind => GradMode::of(self.recorded, || kind.run(given))?,
        };
        if !self.recorded {
            return Ok((computed, None));
        }
        let mut outputs = RecordedValues::new();
        // Kept variables that are written have no gradient.
        computed
            .iter()
            .take(op.outputs.len())
            .for_each(|value| outputs.push(RecordedValue::of(value)));
        for value in &mut computed {
            // The same value, detached from the graph.
            for_any!(value, x => if !x.try_in_place(|_| true) { *x = x.alias() });
        }
        Ok((computed, Some(Box::new(Record { inputs, outputs }))))
    }
}

impl Record {
    fn pull(&self, grad: &Grad, given: Values, options: BackwardOptions) -> Ran {
        let edges = |places: &RecordedValues, at: &[usize]| -> SmallVec<[Edge; 2]> {
            at.iter().map(|&at| places[at].edge.clone()).collect()
        };
        for (seed, &output) in given.iter().zip(&grad.seeds) {
            let RecordedValue { edge, shape, .. } = &self.outputs[output];
            if seed.shape() != &shape[..] {
                let (expected, found) = (shape.to_vec(), seed.shape().to_vec());
                let output = described(edge);
                return Err(Error::SeedShape { op: "grad", output, expected, found }.into());
            }
        }
        let (from, to) = (edges(&self.outputs, &grad.seeds), edges(&self.inputs, &grad.wants));
        let found = grad_along(&from, given, &to, options)?;
        let inputs = grad.wants.iter().map(|&at| &self.inputs[at]);
        Ok(found
            .into_iter()
            .zip(inputs)
            .map(|(grad, input)| grad.unwrap_or_else(|| input.zeros()))
            .collect())
    }
}

impl RecordedValue {
    fn of(value: &AnyTensor) -> Self {
        for_any!(value, x => Self { edge: x.edge(), dtype: x.dtype(), shape: x.shape_owned() })
    }

    fn zeros(&self) -> AnyTensor {
        match self.dtype {
            DType::Float32 => Tensor::<f32>::zeros(&self.shape[..]).into(),
            _ => Tensor::<f64>::zeros(&self.shape[..]).into(),
        }
    }
}

/// The op of the nodes of inputs; gradients end here.
struct Input;

impl graph::Op for Input {
    fn name(&self) -> &'static str {
        "input"
    }

    fn pull<'g>(&self, _: Slots, _: &mut Pull<'_, 'g>) -> Result<()> {
        Ok(())
    }
}

fn attach<T: Element>(value: &mut Tensor<T>) {
    let node =
        NodeRef::record(&Input, Edges::from_iter([]), SavedState::NOTHING, Location::caller());
    value.attach(node, 0);
}
