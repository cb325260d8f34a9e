//! A closure of eager ops as operators of a program, one by one.
//!
//! The closure runs on examples, twice, with other numbers and other lengths of free axes, and its
//! ops are noted. What differs between the two runs is what the program must not fix: a length in
//! a shape that follows a free axis becomes free, and anything else is refused, by the line of the
//! op. A third run proves that the program computes what the closure does.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use super::assemble::{Assembled, Found, assemble, is_same};
use super::eager::call;
use super::eager_call::Closure;
use super::example::{EXAMPLES, Example, example};
use super::executor::{Executor, Feed, Fetch};
use super::form::Form;
use super::ir::{Graph, Phase, Place, VarId, wrong};
use super::program::{Program, Variable};
use super::py_func::{Arity, Function, Outcome, PyFunc, Variables};
use super::values::{Values, panic_message};
use crate::error::Result;
use crate::graph::{AnyTensor, GradMode};
use crate::ops::trace::{Note, collect};

impl Program {
    /// A closure of eager ops as operators of this program, one for each op:
    /// `program.trace(|x: &Tensor<f32>| (x * 2.0).tanh())`. They are printed, drawn, differentiated
    /// and saved as all others are, and run with the closure's figures; the closure itself is not
    /// kept.
    ///
    /// A trace fixes what the closure does on its examples:
    ///
    /// - tensors that it captures or makes, and numbers, are constants of the program; gradients do
    ///   not flow to them;
    /// - a `#[py_layer]` op is one operator, made of the ops of its forward; its gradients are the ops
    ///   of its backward, which is called for that on examples too, with all gradients wanted;
    /// - `if` and loops go the way that they went: a loop is as many operators as it had turns;
    /// - lengths of axes are those of the inputs. Where an input's axis is free, a length in
    ///   `reshape` or `broadcast_to` that follows it is free too.
    ///
    /// The closure is called three times, on numbers in (0, 1) and on lengths of free axes that
    /// differ, and the program is compared with it: what depends on the numbers themselves (control
    /// flow, random numbers, `item()`, a change in place), and an op that programs do not have, is
    /// an error that names the line of the op. Such a closure can be one operator:
    /// [`Program::eager`].
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
        TraceCall(Closure::new(self, closure))
    }
}

/// A closure that is being traced: `M` inputs, `N` outputs.
#[must_use = "nothing is added to the program before `call()`"]
pub struct TraceCall<const M: usize, const N: usize>(Closure<M, N>);

impl<const M: usize, const N: usize> TraceCall<M, N> {
    /// The inputs: `&x`, or `[&x, &w]`.
    pub fn x(mut self, variables: impl Variables<M>) -> Self {
        self.0.inputs = variables.list();
        self
    }

    /// Adds the closure's ops to the program, and gives what it returns.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `x` is missing, a variable is of another
    /// program or of another element type than the parameter, if the closure fails on an example,
    /// or does what a trace cannot hold: see [`Program::trace`]. The program is then as it was.
    #[track_caller]
    pub fn call(self) -> Result<<Arity<N> as Outcome>::Variables>
    where
        Arity<N>: Outcome,
    {
        let outputs = self.finish(Location::caller())?;
        Ok(Arity::<N>::of(outputs))
    }

    fn finish(self, location: &'static Location<'static>) -> Result<Vec<Variable>> {
        let place = Place::Line(location);
        let refused = |why: String| wrong("trace", &place, why);
        let (inputs, forms) = self.0.given("trace", &place)?;
        let Closure { program, function, .. } = self.0;
        let first = Run::on(&function, &forms, EXAMPLES[0]).map_err(refused)?;
        let second = Run::on(&function, &forms, EXAMPLES[1]).map_err(refused)?;
        let pairs = first.inputs.iter().zip(&second.inputs);
        let examples: Vec<(Form, [AnyTensor; 2])> = forms
            .iter()
            .zip(pairs)
            .map(|(form, (a, b))| (form.clone(), [a.clone(), b.clone()]))
            .collect();
        let found = |tensor: &AnyTensor| (tensor.address(), tensor.clone());
        let pairs = first.outputs.iter().zip(&second.outputs);
        let results: Vec<[Found; 2]> = pairs.map(|(a, b)| [found(a), found(b)]).collect();
        let notes = [&first.notes[..], &second.notes[..]];
        let Assembled { graph: scratch, outputs, .. } =
            assemble(&examples, notes, &results, false, &place)?;
        prove(&function, &forms, &scratch, &outputs).map_err(refused)?;
        let outputs =
            program.graph().attempt(|graph| insert(graph, &scratch, &inputs, &outputs))?;
        Ok(outputs.into_iter().map(|id| program.variable(id)).collect())
    }
}

/// One run of the closure.
struct Run {
    inputs: Values,
    notes: Vec<Note>,
    outputs: Values,
}

impl Run {
    fn on(function: &Function, forms: &[Form], with: Example) -> Result<Self, String> {
        let inputs: Values = forms.iter().map(|form| example(form, with)).collect();
        // Recorded, so that the backward of a layer can be asked for.
        for input in &inputs {
            match input {
                AnyTensor::Float32(input) => input.set_stop_gradient(false),
                AnyTensor::Float64(input) => input.set_stop_gradient(false),
                _ => {}
            }
        }
        let given = inputs.clone();
        let run = || GradMode::of(true, || collect(|| call(function, given)));
        let (outputs, notes) = catch_unwind(AssertUnwindSafe(run))
            .map_err(|panic| format!("the closure, on an example, {}", panic_message(&*panic)))?;
        let outputs = outputs.map_err(|why| format!("the closure, on an example: {why}"))?;
        Ok(Self { inputs, notes, outputs })
    }
}

/// Runs the program of the trace, and the closure, on a third example.
fn prove(
    function: &Function,
    forms: &[Form],
    scratch: &Graph,
    outputs: &[VarId],
) -> Result<(), String> {
    if scratch.ops.iter().any(|op| op.kind.draws()) {
        return Ok(());
    }
    let expected = Run::on(function, forms, EXAMPLES[2])?;
    let program = Program::new();
    *program.graph() = scratch.clone();
    let names: Vec<String> = (0..forms.len()).map(|at| format!("input_{at}")).collect();
    let feed: Vec<(&str, &dyn Feed)> = names
        .iter()
        .zip(&expected.inputs)
        .map(|(name, x)| (name.as_str(), x as &dyn Feed))
        .collect();
    let fetched: Vec<Variable> = outputs.iter().map(|&id| program.variable(id)).collect();
    let fetch: Vec<&dyn Fetch> = fetched.iter().map(|x| x as &dyn Fetch).collect();
    let found = Executor::new().run(&program, &feed, &fetch).map_err(|e| e.to_string())?;
    if found.iter().zip(&expected.outputs).all(|(x, y)| is_same(x, y)) {
        return Ok(());
    }
    Err("the operators' figures are not the closure's: it draws random numbers, changes a tensor in \
         place, or does what follows the numbers themselves; place it with `eager`"
        .to_owned())
}

/// Adds the operators to a program.
fn insert(
    graph: &mut Graph,
    scratch: &Graph,
    inputs: &[VarId],
    outputs: &[VarId],
) -> Result<Vec<VarId>> {
    let missing = || unreachable!("a trace was verified");
    let mut own: Vec<Option<VarId>> = inputs.iter().copied().map(Some).collect();
    own.resize(scratch.vars.len(), None);
    graph.push_copy(scratch, &mut own, Phase::Forward, missing)?;
    outputs.iter().map(|&output| own[output].ok_or_else(missing)).collect()
}
