//! `Executor`: runs programs, and keeps parameters from run to run.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ndarray::{Array, Dimension};

use super::eager::detached;
use super::ir::{Op, Role, VarId};
use super::kind::Kind;
use super::plan::{Mode, Plan, Read, Step};
use super::program::{Program, Variable};
use crate::engine::{BackwardOptions, grad_any};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, GradMode, Tensor, for_any};

/// Runs programs. Parameters belong to the executor, by name, so programs that name the same ones
/// share them; clones of an executor share all.
///
/// A run that fails, also by a panic in user code, changes no parameter. Runs of one program may go
/// on at the same time on several threads: each sees the parameters as they were when it started,
/// and runs that change parameters wait for each other.
#[derive(Clone, Default)]
pub struct Executor {
    scope: Arc<Scope>,
}

#[derive(Default)]
struct Scope {
    kept: RwLock<HashMap<String, AnyTensor>>,
    /// Held by a run that changes what is kept, from its reading to its writing.
    step: Mutex<()>,
}

/// What can be fed: a tensor or an ndarray array, of any element type.
pub trait Feed {
    /// As a tensor that nobody else changes.
    #[doc(hidden)]
    fn tensor(&self) -> AnyTensor;
}

impl<T: Element> Feed for Tensor<T> {
    fn tensor(&self) -> AnyTensor {
        self.alias().into()
    }
}

impl Feed for AnyTensor {
    fn tensor(&self) -> AnyTensor {
        detached(self)
    }
}

impl<T: Element, D: Dimension> Feed for Array<T, D> {
    fn tensor(&self) -> AnyTensor {
        Tensor::from(self.view()).into()
    }
}

/// What can be fetched: a variable, or its name.
pub trait Fetch {
    /// The variable's name.
    #[doc(hidden)]
    fn name(&self) -> String;
}

impl Fetch for Variable {
    fn name(&self) -> String {
        Variable::name(self)
    }
}

impl Fetch for String {
    fn name(&self) -> String {
        self.clone()
    }
}

impl Fetch for &str {
    fn name(&self) -> String {
        (*self).to_owned()
    }
}

impl Executor {
    /// Without any parameters yet: run a [startup program](Program::startup) first.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs a program: `feed` names what its [data](Program::data) variables are this time,
    /// `fetch_list` what is asked for, by variable or name. Operators that nothing fetched depends
    /// on and that have no effect are not run; updates and user functions always are.
    ///
    /// Where an updated parameter is fetched, its new value comes.
    ///
    /// # Errors
    ///
    /// [`Error::Run`] for a feed of an unknown name, a missing one, one of another element type or
    /// shape, an unknown fetch, or a parameter without a value; [`Error::Operator`] where an
    /// operator fails: a user function that returns an error, panics, or returns another count,
    /// element type or shape than declared. Parameters are then as they were.
    pub fn run(
        &self,
        program: &Program,
        feed: &[(&str, &dyn Feed)],
        fetch_list: &[&dyn Fetch],
    ) -> Result<Vec<AnyTensor>> {
        let mut fetched = Vec::with_capacity(fetch_list.len());
        for fetch in fetch_list {
            let name = fetch.name();
            let Some(id) = program.graph().find(&name) else {
                let why = "is fetched, but the program has no variable of this name".to_owned();
                return Err(Error::Run { variable: name, why });
            };
            fetched.push(id);
        }
        let plan = program.plan(&fetched)?;
        let _step =
            plan.writes.then(|| self.scope.step.lock().unwrap_or_else(PoisonError::into_inner));
        let mut frame = Frame::new(&plan);
        frame.feed(feed)?;
        self.lend(&mut frame)?;
        GradMode::of(false, || frame.run())?;
        let fetched = frame.fetch()?;
        self.commit(frame);
        Ok(fetched)
    }

    /// The value that is kept under a name.
    pub fn parameter(&self, name: &str) -> Option<AnyTensor> {
        let kept = self.scope.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.get(name).map(detached)
    }

    /// Gives a parameter of any program that this executor runs a value.
    pub fn set_parameter(&self, name: &str, value: &dyn Feed) {
        let value = value.tensor();
        let _step = self.scope.step.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.scope.kept.write().unwrap_or_else(PoisonError::into_inner);
        kept.insert(name.to_owned(), value);
    }

    /// Puts what is kept where the run reads it.
    fn lend(&self, frame: &mut Frame<'_>) -> Result<()> {
        let kept = self.scope.kept.read().unwrap_or_else(PoisonError::into_inner);
        for &id in &frame.plan.reads {
            let var = &frame.plan.graph.vars[id];
            let Some(value) = kept.get(&var.name) else {
                let why = "has no value yet; run the startup program first".to_owned();
                return Err(Error::Run { variable: var.name.clone(), why });
            };
            if let Some(misfit) = var.form.misfit(value.dtype(), value.shape()) {
                return Err(Error::Run { variable: var.name.clone(), why: misfit });
            }
            frame.values[id] = Some(value.clone());
        }
        Ok(())
    }

    fn commit(&self, frame: Frame<'_>) {
        if frame.written.is_empty() {
            return;
        }
        let mut kept = self.scope.kept.write().unwrap_or_else(PoisonError::into_inner);
        for (id, value) in frame.written {
            kept.insert(frame.plan.graph.vars[id].name.clone(), value);
        }
    }
}

/// What an operator left for its gradient: its inputs as leaves, and what it computed from them.
struct Record {
    leaves: Vec<AnyTensor>,
    outputs: Vec<AnyTensor>,
}

/// The values of one run.
struct Frame<'p> {
    plan: &'p Plan,
    values: Vec<Option<AnyTensor>>,
    records: HashMap<usize, Record>,
    /// New values of what is kept.
    written: Vec<(VarId, AnyTensor)>,
}

impl<'p> Frame<'p> {
    fn new(plan: &'p Plan) -> Self {
        let values = vec![None; plan.graph.vars.len()];
        Self { plan, values, records: HashMap::new(), written: Vec::new() }
    }

    fn feed(&mut self, feed: &[(&str, &dyn Feed)]) -> Result<()> {
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

    fn run(&mut self) -> Result<()> {
        for step in &self.plan.steps {
            self.step(step)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let op = &self.plan.graph.ops[step.op];
        let computing = AssertUnwindSafe(|| self.compute(op, step));
        let computed = catch_unwind(computing).unwrap_or_else(|panic| Err(panic_message(&*panic)));
        let outputs = computed.map_err(|why| failed(op, &why))?;
        let results = op.outputs.iter().chain(&op.writes);
        for (position, (&id, value)) in results.zip(outputs).enumerate() {
            let var = &self.plan.graph.vars[id];
            if let Some(misfit) = var.form.misfit(value.dtype(), value.shape()) {
                return Err(failed(op, &format!("`{}` {misfit}", var.name)));
            }
            match position < op.outputs.len() {
                true => self.values[id] = Some(value),
                false => self.written.push((id, value)),
            }
        }
        Ok(())
    }

    fn compute(&mut self, op: &Op, step: &Step) -> Result<Vec<AnyTensor>, String> {
        match step.mode {
            Mode::Plain => op.kind.run(self.inputs(op, step)?),
            Mode::Recorded => self.record(op, step),
            Mode::Direct => self.pull(op, step),
            Mode::FromRecord { last, recorded } => self.pull_record(op, step, last, recorded),
        }
    }

    /// The values that an operator reads.
    fn inputs(&mut self, op: &Op, step: &Step) -> Result<Vec<AnyTensor>, String> {
        let mut inputs = Vec::with_capacity(op.inputs.len());
        for (&id, read) in op.inputs.iter().zip(&step.inputs) {
            inputs.extend(self.read(id, *read)?);
        }
        Ok(inputs)
    }

    fn read(&mut self, id: VarId, read: Read) -> Result<Option<AnyTensor>, String> {
        let value = match read {
            Read::Not => return Ok(None),
            Read::Keep => self.values[id].clone(),
            Read::Take => self.values[id].take(),
        };
        let missing = || format!("`{}` has no value", self.plan.graph.vars[id].name);
        value.map(Some).ok_or_else(missing)
    }

    /// Runs an operator on leaves of its own and keeps what the engine records.
    fn record(&mut self, op: &Op, step: &Step) -> Result<Vec<AnyTensor>, String> {
        let inputs = self.inputs(op, step)?;
        let leaves: Vec<AnyTensor> = op
            .inputs
            .iter()
            .zip(inputs)
            .map(|(&id, value)| leaf(&value, self.plan.wants[id]))
            .collect();
        let outputs = GradMode::of(true, || op.kind.run(leaves.clone()))?;
        let values = outputs.iter().map(detached).collect();
        self.records.insert(step.op, Record { leaves, outputs });
        Ok(values)
    }

    /// A gradient by a rule on values.
    fn pull(&mut self, op: &Op, step: &Step) -> Result<Vec<AnyTensor>, String> {
        let Kind::Grad { of, wants, .. } = &op.kind else {
            return Err("is no gradient".to_owned());
        };
        let forward = &self.plan.graph.ops[*of];
        let mut values: Vec<Option<AnyTensor>> = Vec::with_capacity(op.inputs.len());
        for (&id, read) in op.inputs.iter().zip(&step.inputs) {
            let value = self.read(id, *read)?;
            values.push(value);
        }
        let n = forward.inputs.len();
        let dy = values.pop().flatten().ok_or("the gradient of its output is missing")?;
        let second = if n > 1 { values[1].as_ref() } else { None };
        let wanted = [wants.contains(&0), wants.contains(&1)];
        let (inputs, output) = ([values[0].as_ref(), second], values[n].as_ref());
        let grads = forward.kind.pull(inputs, output, dy, wanted)?;
        wants
            .iter()
            .map(|&input| grads[input].clone().ok_or("its rule gave no gradient".to_owned()))
            .collect()
    }

    /// A gradient by the engine, from what the operator left.
    fn pull_record(
        &mut self,
        op: &Op,
        step: &Step,
        last: bool,
        recorded: bool,
    ) -> Result<Vec<AnyTensor>, String> {
        let Kind::Grad { of, wants, seeds, .. } = &op.kind else {
            return Err("is no gradient".to_owned());
        };
        let mut given = self.inputs(op, step)?;
        if recorded {
            let forward = &self.plan.graph.ops[*of];
            let ids = op.seeds_of(forward, &op.inputs);
            for (seed, &id) in given.iter_mut().zip(ids) {
                *seed = leaf(seed, self.plan.wants[id]);
            }
        }
        let record = self.records.get(of).ok_or("its operator left no record")?;
        let outputs: Vec<AnyTensor> =
            seeds.iter().map(|&output| record.outputs[output].clone()).collect();
        let leaves: Vec<AnyTensor> =
            wants.iter().map(|&input| record.leaves[input].clone()).collect();
        let options = BackwardOptions::new().retain_graph(recorded || !last).create_graph(recorded);
        let seeds: Vec<Option<AnyTensor>> = given.iter().cloned().map(Some).collect();
        let found = grad_any(&outputs, &leaves, &seeds, options).map_err(|e| e.to_string())?;
        let zero = |leaf: &AnyTensor| for_any!(leaf, t => zeros_like(t));
        let grads: Vec<AnyTensor> = found
            .into_iter()
            .zip(&leaves)
            .map(|(grad, leaf)| grad.unwrap_or_else(|| zero(leaf)))
            .collect();
        if !recorded {
            if last {
                self.records.remove(of);
            }
            return Ok(grads);
        }
        let mut leaves = record.leaves.clone();
        // Gradients do not flow to the forward operator's outputs: see `backward::wanted`.
        leaves.extend(record.outputs.iter().map(detached));
        leaves.extend(given);
        let values = grads.iter().map(detached).collect();
        self.records.insert(step.op, Record { leaves, outputs: grads });
        Ok(values)
    }

    fn fetch(&self) -> Result<Vec<AnyTensor>> {
        let one = |id: &VarId| {
            let written = self.written.iter().find(|(written, _)| written == id);
            let value = written.map(|(_, value)| value).or(self.values[*id].as_ref());
            value.map(detached).ok_or_else(|| {
                let variable = self.plan.graph.vars[*id].name.clone();
                Error::Run { variable, why: "is fetched, but no operator computes it".to_owned() }
            })
        };
        self.plan.fetched.iter().map(one).collect()
    }
}

fn zeros_like<T: Element>(tensor: &Tensor<T>) -> AnyTensor {
    Tensor::<T>::zeros_like(tensor).into()
}

/// A value as a leaf of a small graph of its own.
fn leaf(value: &AnyTensor, wants: bool) -> AnyTensor {
    let leaf = detached(value);
    match &leaf {
        AnyTensor::Float32(t) => t.set_stop_gradient(!wants),
        AnyTensor::Float64(t) => t.set_stop_gradient(!wants),
        _ => {}
    }
    leaf
}

fn failed(op: &Op, why: &str) -> Error {
    let name = op.kind.to_string();
    // What the engine says starts with the op's name.
    let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(why).to_owned();
    Error::Operator { op: name, why, location: op.place.to_string() }
}

/// What a panic said.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panicked: {}", text.unwrap_or_else(|| "without a message".to_owned()))
}
