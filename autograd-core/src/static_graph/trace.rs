//! Tracing: a closure of eager ops becomes operators of a program, one for each op. The closure runs on
//! examples with different numbers and different lengths of free axes. A program must not fix what differs
//! between the runs: a length in a shape that depends on a free axis becomes free, a position in a slice may
//! count from the end of its axis, and any other difference is refused with the line of the op. Then the
//! program runs on the shorter examples too, and must compute what the closure did.

use std::panic::Location;

use super::assemble::{Assembled, assemble};
use super::backward::{append, zeros_like};
use super::eager::{across, equal_axes, example, on_each_example, on_examples};
use super::executor::{Executor, Feed, Fetch};
use super::ir::{BackwardInput, Graph, Kind, Op, Phase, Site, TracedCustomOp, VarId};
use super::program::{Program, Variable};
use super::py_func::{Arity, Building, Function, Outcome, PyFunc, Variables, parts};
use super::table;
use crate::engine::{BackwardOptions, grad_any, numbers, want_gradient};
use crate::error::Result;
use crate::graph::{AnyTensor, GradMode};
use crate::ops::Caller;
use crate::ops::table::{Attr, Computed, Form, Ran, Values};
use crate::ops::trace::{Note, is_equal};

impl Program {
    /// Adds a closure of eager ops as operators of this program, one for each op:
    /// `program.trace(|x: &Tensor<f32>| (x * 2.0).tanh())`. The closure itself is not kept.
    ///
    /// A trace fixes the behaviour of the closure on its examples:
    ///
    /// - tensors that it captures or creates, and numbers, are constants, to which no gradient flows;
    /// - a `#[py_layer]` op is one operator, built from the ops of its forward; its gradients are built from
    ///   the ops of its backward, which is called on examples too, with all gradients wanted;
    /// - each iteration of a loop adds its own operators;
    /// - lengths of axes are those of the inputs; a length in `reshape` or `broadcast_to` that depends on a
    ///   free axis is free too, and a start or an end of a slice may be at a fixed distance from the axis's
    ///   end. Nothing else may depend on the length of a free axis: no number, no count, no branch.
    ///
    /// The closure is called on several examples: numbers in (0, 1), and lengths of free axes from 1 to 34, which
    /// differ from axis to axis unless the closure fails then. Axes that were given one length for that reason must
    /// have one in each run, which an operator `same_lengths` checks. The closure must accept three lengths, from 8
    /// on, and may fail on shorter ones. The program is compared with it on these. An error names the line at which the
    /// closure does what a program cannot: it reads numbers that depend on its inputs (by `item`, `at`,
    /// `to_vec`, `to_ndarray`, `view`, or `any` and `all` of a mask), uses a length otherwise, draws random
    /// numbers, changes a tensor in place, or calls an op that programs do not have. Such a closure can be one
    /// operator: [`Program::eager`].
    ///
    /// Examples show what the closure does at their lengths. They cannot show a branch that none of them takes,
    /// as of `if n > 100` or `if n == 6`, nor a value that changes only there: the program then does at these
    /// lengths what the closure does at others. An assertion about a length is no part of the program either.
    ///
    /// ```
    /// use autograd_core::static_graph::{Executor, Program};
    /// use autograd_core::{DType, Tensor};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 2], DType::Float64)?;
    /// let scale = Tensor::from([1.0, 10.0]);
    /// let y = program.trace(move |x: &Tensor<f64>| (x * &scale).tanh().sum_axes(&[1])).x(&x).call()?;
    /// assert_eq!(y.shape(), [None]);
    /// assert!(program.to_string().contains("tanh_0: float64 [-1, 2] = tanh(mul_0)"));
    /// let input = Tensor::from([[0.5, 0.25], [0.0, 0.0], [1.0, 2.0]]);
    /// let run = Executor::new().run(&program, &[("x", &input)], &[&y])?;
    /// let scale = Tensor::from([1.0, 10.0]);
    /// let eager = (&input * &scale).tanh().sum_axes(&[1]);
    /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), eager.to_vec());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn trace<F, Marker, const M: usize, const N: usize>(&self, closure: F) -> TraceCall<M, N>
    where
        F: PyFunc<Marker, M, N>,
    {
        TraceCall(Building::new(self, Function::new(closure)))
    }

    /// A method of tensors as a method of variables: its eager ops, all with the place of the call.
    #[track_caller]
    pub(super) fn method(
        &self,
        name: &str,
        inputs: &[&Variable],
        run: impl Fn(Values) -> Ran + Send + Sync + 'static,
    ) -> Result<Vec<Variable>> {
        let call = move |inputs: &[Option<AnyTensor>]| -> Computed<_> {
            Ok(run(inputs.iter().flatten().cloned().collect())?.into_iter().map(Some).collect())
        };
        let mut building = Building::new(self, Function::of_list(call));
        building.inputs = Some(inputs.iter().map(|&x| x.clone()).collect());
        traced(building, inputs.len(), &Site::here(name), Some(Location::caller()))
    }
}

/// A closure that is being traced: `M` inputs, `N` outputs. [`Program::trace`] has an example.
#[must_use = "nothing is added to the program before `call()`"]
pub struct TraceCall<const M: usize, const N: usize>(Building);

impl<const M: usize, const N: usize> TraceCall<M, N> {
    parts! {
        /// The inputs: `&x`, or `[&x, &w]`.
        ///
        /// ```
        /// use autograd_core::static_graph::Program;
        /// use autograd_core::{DType, Tensor};
        ///
        /// let program = Program::new();
        /// let a = program.data("a", [2], DType::Float64)?;
        /// let b = program.data("b", [2], DType::Float64)?;
        /// let product = |a: &Tensor<f64>, b: &Tensor<f64>| a * b;
        /// program.trace(product).x([&a, &b]).call()?;
        /// assert!(program.to_string().ends_with("mul_0: float64 [2] = mul(a, b)\n"));
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn x(variables: impl Variables<M>): inputs = Some(variables.list());
    }

    /// Adds the closure's ops to the program, and returns the closure's results as variables.
    ///
    /// ```
    /// use autograd_core::static_graph::Program;
    /// use autograd_core::{DType, Tensor};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1], DType::Float64)?;
    /// let y = program.trace(|x: &Tensor<f64>| (x * 2.0).exp()).x(&x).call()?;
    /// assert_eq!((y.name().as_str(), y.shape()), ("exp_0", vec![None]));
    /// let branch = |x: &Tensor<f64>| if x.sum().item() > 0.0 { x * 2.0 } else { x * 3.0 };
    /// assert!(program.trace(branch).x(&x).call().is_err());
    /// assert_eq!(program.current_block().op_count(), 2);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `x` is missing, a variable is of another program or
    /// element type, or the closure fails on an example or cannot be traced. The program is then unchanged.
    #[track_caller]
    pub fn call(self) -> Result<<Arity<N> as Outcome>::Variables>
    where
        Arity<N>: Outcome,
    {
        Ok(Arity::<N>::of(traced(self.0, M, &Site::here("trace"), None)?))
    }
}

/// Adds the ops of a call that takes so many inputs; all of them get the place `at`, if it is given.
fn traced(
    building: Building,
    takes: usize,
    site: &Site<'_>,
    at: Option<Caller>,
) -> Result<Vec<Variable>> {
    let refused = |why: String| site.wrong(why);
    let (inputs, forms) = building.given(takes, site)?;
    let Building { program, function, .. } = building;
    let runs = on_each_example(&forms, |inputs| Run::on(&function, inputs));
    let (mut runs, which) = runs.map_err(|why| match at {
        None => refused(format!("the closure, on an example: {why}")),
        Some(_) => {
            let of_op = why.strip_prefix(site.call).and_then(|rest| rest.strip_prefix(": "));
            refused(of_op.unwrap_or(&why).to_owned())
        }
    })?;
    if let Some(at) = at {
        runs.iter_mut().flat_map(|run| &mut run.notes).for_each(|note| note.caller = at);
    }
    let given = across(runs.iter().map(|run| &run.inputs[..]));
    let results = across(runs.iter().map(|run| &run.outputs[..]));
    let notes: Vec<&[Note]> = runs.iter().map(|run| &run.notes[..]).collect();
    let Assembled { graph, outputs, .. } = assemble(&given, &notes, &results, (0..0, &[]), site)?;
    if !graph.ops.iter().any(|op| op.kind.draws()) {
        // The longest examples cost the most, and the others show as much.
        for run in &runs[2..] {
            let found = GradMode::of(false, || compute(&graph, run.inputs.clone(), &outputs));
            if !found.map_err(refused)?.iter().zip(&run.outputs).all(|(x, y)| is_equal(x, y)) {
                return site.refuse(
                    "the operators' figures are not the closure's: it draws random numbers, changes a tensor in \
                     place, or does what follows the numbers or the lengths of free axes; place it with `eager`",
                );
            }
        }
        // The library's own functions do not stop gradients.
        if at.is_none() {
            check_gradients(&graph, &outputs, &runs[2], site)?;
        }
    }
    let mut own: Vec<Option<VarId>> = vec![None; graph.vars.len()];
    let missing = || unreachable!("its operators read what is there");
    let equal = equal_axes(&forms, which);
    let insert = |into: &mut Graph| {
        for (position, &input) in inputs.iter().enumerate() {
            own[position] = Some(same_lengths(into, &inputs, input, &equal[position], site)?);
        }
        into.push_copy(&graph, &mut own, Phase::Forward, missing)
    };
    program.graph().attempt(insert)?;
    let outputs = outputs.into_iter().filter_map(|output| own[output]).collect();
    Ok(program.variables(outputs))
}

/// The input of a trace behind a comparison of the lengths that its examples had in common with other inputs.
fn same_lengths(
    graph: &mut Graph,
    inputs: &[VarId],
    input: VarId,
    equal: &[(usize, usize, usize)],
    site: &Site<'_>,
) -> Result<VarId> {
    if equal.is_empty() {
        return Ok(input);
    }
    let axes = equal.iter().flat_map(|&(axis, _, other)| [axis as isize, other as isize]);
    let kind = Kind::of(&table::SAME_LENGTHS, [Attr::Ints(axes.collect())]);
    let others = equal.iter().map(|&(_, other, _)| inputs[other]);
    let read: Vec<VarId> = std::iter::once(input).chain(others).collect();
    Ok(graph.push(kind, &read, Phase::Forward, &site.place)?[0])
}

struct Run {
    inputs: Values,
    notes: Vec<Note>,
    outputs: Values,
}

impl Run {
    fn on(function: &Function, inputs: Values) -> Computed<Self> {
        // Recorded, so that the backward of a custom op can be called.
        inputs.iter().for_each(want_gradient);
        let run = on_examples(function, inputs.clone(), true);
        let (outputs, notes) = run?;
        Ok(Self { inputs, notes, outputs })
    }
}

fn check_gradients(graph: &Graph, outputs: &[VarId], run: &Run, site: &Site<'_>) -> Result<()> {
    let scratch = Program::new();
    let inputs: Vec<usize> =
        (0..run.inputs.len()).filter(|&at| !run.inputs[at].stop_gradient()).collect();
    let (mut from, mut targets, mut seeds) = (Vec::new(), Vec::new(), Vec::new());
    let found = {
        let mut all = scratch.graph();
        *all = graph.clone();
        inputs.iter().for_each(|&at| all.vars[at].stop_gradient = false);
        for (at, (&var, output)) in outputs.iter().zip(&run.outputs).enumerate() {
            if !output.dtype().is_float() || outputs[..at].contains(&var) {
                continue;
            }
            let seed = example(output.dtype(), output.shape(), at);
            let constant = Kind::of(&table::CONSTANT, [Attr::Tensor(seed.clone())]);
            from.push((var, Some(all.push(constant, &[], Phase::Forward, &site.place)?[0])));
            targets.push(output.clone());
            seeds.push(Some(seed));
        }
        // A gradient that programs refuse is not a wrong gradient.
        append(&mut all, &from, &inputs, site).unwrap_or_default()
    };
    if found.is_empty() || from.is_empty() {
        return Ok(());
    }
    let wants: Vec<AnyTensor> = inputs.iter().map(|&at| run.inputs[at].clone()).collect();
    let expected = grad_any(&targets, &wants, &seeds, BackwardOptions::new())
        .map_err(|error| site.wrong(format!("the closure's backward, on an example: {error}")))?;
    let names = graph.vars.iter().map(|var| &var.name[..]);
    let feed: Vec<(&str, &dyn Feed)> =
        names.zip(&run.inputs).map(|(name, value)| (name, value as &dyn Feed)).collect();
    let fetched = scratch.variables(found.iter().copied().flatten().collect());
    let fetched: Vec<&dyn Fetch> = fetched.iter().map(|var| var as &dyn Fetch).collect();
    let mut computed = Executor::new().run(&scratch, &feed, &fetched)?.into_iter();
    for (expected, found) in expected.into_iter().zip(&found) {
        let found = found.and_then(|_| computed.next());
        if !are_close(expected.as_ref(), found.as_ref()) {
            return site.refuse(
                "the operators' gradients are not the closure's: it stops or changes gradients (`no_grad`, \
                 `set_stop_gradient`, `register_hook`); place it with `eager`",
            );
        }
    }
    Ok(())
}

/// Whether two gradients agree up to rounding; an absent gradient is zero.
fn are_close(a: Option<&AnyTensor>, b: Option<&AnyTensor>) -> bool {
    let [mut a, mut b] = [a, b].map(|grad| grad.map_or_else(Vec::new, numbers));
    let len = a.len().max(b.len());
    a.resize(len, 0.0);
    b.resize(len, 0.0);
    let largest = a.iter().map(|x| x.abs()).filter(|x| x.is_finite()).fold(1.0, f64::max);
    let agree =
        |(a, b): (f64, f64)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() < 1e-3 * largest;
    a.into_iter().zip(b).all(agree)
}

/// A `#[py_layer]` op of a traced closure: its forward is one operator, and the operators of its backward are
/// added when gradients are requested.
impl TracedCustomOp {
    /// Checks that the parts, which may come from a file, form one custom op of so many inputs.
    pub(super) fn check(&self, inputs: usize) -> Computed<()> {
        let fits = self.results.iter().all(|&var| var < self.forward.vars.len())
            && self.given.len() <= self.backward.vars.len()
            && self.given.iter().all(|given| match *given {
                BackwardInput::Input(at) => at < inputs,
                BackwardInput::Result(at) | BackwardInput::Grad(at) => at < self.results.len(),
            })
            && self.found.len() == inputs
            && self.found.iter().flatten().all(|&var| var < self.backward.vars.len())
            && inputs <= self.forward.vars.len()
            && self.forward.ops.iter().chain(&self.backward.ops).all(|op| !op.kind.writes());
        if fits { Ok(()) } else { Err(format!("the parts of the op `{}` do not fit", self.name)) }
    }

    pub(super) fn outputs(&self) -> Vec<Form> {
        self.results.iter().map(|&var| self.forward.vars[var].form.clone()).collect()
    }

    pub(super) fn run(&self, inputs: Values) -> Computed<Values> {
        compute(&self.forward, inputs, &self.results)
    }

    pub(super) fn add_gradients(
        &self,
        graph: &mut Graph,
        op: &Op,
        grads: &[Option<VarId>],
        wants: &[usize],
    ) -> Result<Vec<VarId>> {
        let mut own: Vec<Option<VarId>> = vec![None; self.backward.vars.len()];
        for (own, given) in own.iter_mut().zip(&self.given) {
            *own = match *given {
                BackwardInput::Input(input) => Some(op.inputs[input]),
                BackwardInput::Result(result) => op.outputs.get(result).copied(),
                BackwardInput::Grad(output) if grads[output].is_some() => grads[output],
                BackwardInput::Grad(output) => {
                    Some(zeros_like(graph, op.outputs[output], &op.place)?)
                }
            };
        }
        let missing = || op.wrong("its backward reads what is not kept");
        graph.push_copy(&self.backward, &mut own, Phase::Backward, missing)?;
        let grad = |&input: &usize| match self.found[input].and_then(|var| own[var]) {
            Some(grad) => Ok(grad),
            None => zeros_like(graph, op.inputs[input], &op.place),
        };
        wants.iter().map(grad).collect()
    }
}

pub(super) fn compute(graph: &Graph, inputs: Values, results: &[VarId]) -> Computed<Values> {
    let mut values: Vec<Option<AnyTensor>> = inputs.into_iter().map(Some).collect();
    values.resize(graph.vars.len(), None);
    let read = |values: &[Option<AnyTensor>], vars: &[VarId]| -> Computed<Values> {
        let found: Option<Values> = vars.iter().map(|&var| values[var].clone()).collect();
        found.ok_or_else(|| "a value is missing".to_owned())
    };
    for op in &graph.ops {
        let computed = op.kind.run(read(&values, &op.inputs)?).map_err(String::from);
        let computed = computed.map_err(|why| format!("{} ({}): {why}", op.kind, op.place))?;
        op.outputs.iter().zip(computed).for_each(|(&id, value)| values[id] = Some(value));
    }
    read(&values, results)
}
