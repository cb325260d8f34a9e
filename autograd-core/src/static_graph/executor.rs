//! `Executor`: runs programs, and keeps parameters from run to run.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ndarray::{Array, Dimension};

use super::eager::detached;
use super::ir::{Op, OpId, Role, VarId};
use super::kind::Kind;
use super::plan::{Link, Mode, Plan, Read, Step};
use super::program::{Program, Variable};
use crate::engine::{BackwardOptions, grad_any};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, GradMode, Tensor, for_any};
use crate::ops::{Float, chain};

/// Runs programs. Parameters belong to the executor, by name, so programs that name the same ones
/// share them; clones of an executor share all.
///
/// A run that fails, also by a panic in user code, changes no parameter. Runs of one program may go
/// on at the same time on several threads: each sees the parameters as they were when it started,
/// and runs that change parameters wait for each other.
#[derive(Clone, Default)]
pub struct Executor {
    scope: Arc<Scope>,
    /// On how many threads a run may compute; 0 is one.
    threads: usize,
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

    /// The same executor, with the same parameters, that runs heavy operators which do not depend
    /// on each other on up to so many threads. The figures are the same; user code and random
    /// numbers keep their order.
    pub fn with_threads(&self, threads: usize) -> Self {
        Self { scope: Arc::clone(&self.scope), threads }
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
        let plan = program.plan(&fetched, self.threads > 1)?;
        let _step =
            plan.writes.then(|| self.scope.step.lock().unwrap_or_else(PoisonError::into_inner));
        let mut frame = Frame::new(&plan);
        frame.feed(feed)?;
        self.lend(&mut frame)?;
        GradMode::of(false, || frame.run(self.threads))?;
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
#[derive(Clone)]
struct Record {
    leaves: Vec<AnyTensor>,
    outputs: Vec<AnyTensor>,
}

/// The values of one run.
struct Frame<'p> {
    plan: &'p Plan,
    values: Vec<Option<AnyTensor>>,
    records: HashMap<OpId, Record>,
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

    fn run(&mut self, threads: usize) -> Result<()> {
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
            let tasks = wave.iter().map(|step| self.prepare(step)).collect::<Result<_>>()?;
            for (step, done) in wave.iter().zip(run_together(tasks, threads)) {
                self.finish(step, done)?;
            }
        }
        Ok(())
    }

    /// Takes what a step reads out of the frame.
    fn prepare(&mut self, step: &'p Step) -> Result<Task<'p>> {
        let op = &self.plan.graph.ops[step.op];
        let mut inputs = Vec::with_capacity(step.inputs.len());
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
    fn finish(&mut self, step: &Step, done: Result<Done, String>) -> Result<()> {
        let op = &self.plan.graph.ops[step.op];
        let Done { outputs, record } = done.map_err(|why| failed(op, &why))?;
        if let Some(record) = record {
            self.records.insert(step.op, record);
        }
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

/// One step with all that it reads: it can run anywhere.
struct Task<'p> {
    plan: &'p Plan,
    step: &'p Step,
    op: &'p Op,
    inputs: Vec<Option<AnyTensor>>,
    record: Option<Record>,
}

/// What a step computed.
struct Done {
    outputs: Vec<AnyTensor>,
    record: Option<Record>,
}

impl Done {
    fn plain(outputs: Vec<AnyTensor>) -> Self {
        Self { outputs, record: None }
    }
}

/// About as many multiplications as are worth a thread.
const HEAVY: usize = 1 << 20;

/// Runs steps that do not depend on each other; heavy ones on threads. Results come in the order
/// of the steps.
fn run_together(tasks: Vec<Task<'_>>, threads: usize) -> Vec<Result<Done, String>> {
    let heavy = tasks.iter().filter(|task| task.work() >= HEAVY).count();
    if heavy < 2 {
        return tasks.into_iter().map(Task::run).collect();
    }
    let mut lots: Vec<Vec<(usize, Task<'_>)>> = (0..threads).map(|_| Vec::new()).collect();
    let mut next = 0;
    for (at, task) in tasks.into_iter().enumerate() {
        // Light ones, and user code, stay on this thread.
        let lot = if task.work() >= HEAVY { next % threads } else { 0 };
        next += usize::from(task.work() >= HEAVY);
        lots[lot].push((at, task));
    }
    let run = |lot: Vec<(usize, Task<'_>)>| -> Vec<(usize, Result<Done, String>)> {
        GradMode::of(false, || lot.into_iter().map(|(at, task)| (at, task.run())).collect())
    };
    let mut lots = lots.into_iter();
    let own = lots.next().unwrap_or_default();
    let mut done: Vec<(usize, Result<Done, String>)> = std::thread::scope(|scope| {
        let others: Vec<_> = lots.map(|lot| scope.spawn(|| run(lot))).collect();
        let mut done = run(own);
        for other in others {
            // A step's panic is its error, so the thread itself ends well.
            done.extend(other.join().unwrap_or_default());
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, done)| done).collect()
}

impl Task<'_> {
    /// About how many multiplications it takes; none for user code.
    fn work(&self) -> usize {
        let len = |at: usize| -> usize {
            self.inputs[at].as_ref().map_or(0, |input| input.shape().iter().product())
        };
        let all = || (0..self.inputs.len()).map(len).sum::<usize>();
        match &self.op.kind {
            Kind::PyFunc(_) | Kind::Eager(_) => 0,
            Kind::Matmul => {
                len(0)
                    * self.inputs[1].as_ref().and_then(|w| w.shape().last()).copied().unwrap_or(1)
            }
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

    fn run(self) -> Result<Done, String> {
        let computing = AssertUnwindSafe(|| self.compute());
        catch_unwind(computing).unwrap_or_else(|panic| Err(panic_message(&*panic)))
    }

    fn compute(self) -> Result<Done, String> {
        match &self.step.mode {
            Mode::Plain => {
                let inputs = self.inputs.into_iter().flatten().collect();
                self.op.kind.run(inputs).map(Done::plain)
            }
            Mode::Recorded => self.record(),
            Mode::Direct => self.pull(),
            Mode::FromRecord { recorded, retain, .. } => {
                let (recorded, retain) = (*recorded, *retain);
                self.pull_record(recorded, retain)
            }
            Mode::Chain(links) => run_chain(self.plan, links, self.inputs).map(Done::plain),
        }
    }

    /// Runs an operator on leaves of its own and keeps what the engine records.
    fn record(self) -> Result<Done, String> {
        let wants = &self.plan.wants;
        let values = self.op.inputs.iter().zip(self.inputs);
        let leaves: Vec<AnyTensor> =
            values.filter_map(|(&id, value)| Some(leaf(&value?, wants[id]))).collect();
        let outputs = GradMode::of(true, || self.op.kind.run(leaves.clone()))?;
        let values = outputs.iter().map(detached).collect();
        Ok(Done { outputs: values, record: Some(Record { leaves, outputs }) })
    }

    /// A gradient by a rule on values.
    fn pull(mut self) -> Result<Done, String> {
        let Kind::Grad { of, wants, .. } = &self.op.kind else {
            return Err("is no gradient".to_owned());
        };
        let forward = &self.plan.graph.ops[*of];
        let n = forward.inputs.len();
        let dy = self.inputs.pop().flatten().ok_or("the gradient of its output is missing")?;
        let second = if n > 1 { self.inputs[1].as_ref() } else { None };
        let wanted = [wants.contains(&0), wants.contains(&1)];
        let (inputs, output) = ([self.inputs[0].as_ref(), second], self.inputs[n].as_ref());
        let mut grads = forward.kind.pull(inputs, output, dy, wanted)?;
        let found =
            wants.iter().map(|&input| grads[input].take().ok_or("its rule gave no gradient"));
        Ok(Done::plain(found.collect::<Result<_, _>>()?))
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
        let grads: Vec<AnyTensor> =
            pairs.map(|(grad, leaf)| grad.unwrap_or_else(|| zero(leaf))).collect();
        if !recorded {
            return Ok(Done::plain(grads));
        }
        let mut leaves = record.leaves;
        // Gradients do not flow to the forward operator's outputs: see `backward::wanted`.
        leaves.extend(record.outputs.iter().map(detached));
        leaves.extend(given);
        let values = grads.iter().map(detached).collect();
        Ok(Done { outputs: values, record: Some(Record { leaves, outputs: grads }) })
    }
}

/// Functions of each element in one pass, or one by one where shapes do not fit that.
fn run_chain(
    plan: &Plan,
    links: &[Link],
    mut inputs: Vec<Option<AnyTensor>>,
) -> Result<Vec<AnyTensor>, String> {
    let ops: Vec<(&Kind, &Link)> =
        links.iter().map(|link| (&plan.graph.ops[link.op].kind, link)).collect();
    let x = inputs[0].take().ok_or("an input is missing")?;
    let x = match x {
        AnyTensor::Float32(x) => chain_typed(x, &ops, &inputs),
        AnyTensor::Float64(x) => chain_typed(x, &ops, &inputs),
        other => Err(other),
    };
    let mut x = match x {
        Ok(done) => return Ok(vec![done]),
        Err(x) => x,
    };
    for (kind, link) in ops {
        let other = link.other.and_then(|at| inputs[at].clone());
        let operands = match (other, link.swapped) {
            (None, _) => vec![x],
            (Some(other), false) => vec![x, other],
            (Some(other), true) => vec![other, x],
        };
        x = kind.run(operands)?.pop().ok_or("computed nothing")?;
    }
    Ok(vec![x])
}

fn chain_typed<T: Float>(
    x: Tensor<T>,
    ops: &[(&Kind, &Link)],
    inputs: &[Option<AnyTensor>],
) -> Result<AnyTensor, AnyTensor> {
    let mut parts = Vec::with_capacity(ops.len());
    for (kind, link) in ops {
        let other = || inputs[link.other?].as_ref()?.downcast_ref::<T>();
        parts.push(match kind {
            Kind::Unary(op) => chain::Link::Unary(*op),
            Kind::Scalar { op, scalar, swapped } => {
                chain::Link::Scalar { op: *op, scalar: T::from_f64(*scalar), swapped: *swapped }
            }
            Kind::Binary(op) => match other() {
                Some(other) => chain::Link::With { op: *op, other, swapped: link.swapped },
                None => return Err(x.into()),
            },
            _ => return Err(x.into()),
        });
    }
    chain::chain(x, &parts).map(AnyTensor::from).map_err(AnyTensor::from)
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
