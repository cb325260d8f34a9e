//! A closure of eager ops as operators of a program, one by one.
//!
//! The closure runs on examples, twice, with other numbers and other lengths of free axes, and its
//! ops are noted. What differs between the two runs is what the program must not fix: a length in
//! a shape that follows a free axis becomes free, and anything else is refused, by the line of the
//! op. A third run proves that the program computes what the closure does.

use std::panic::Location;

use super::assemble::{Assembled, assemble, is_same, pairs};
use super::eager::{on_examples, want_gradient};
use super::example::{EXAMPLES, example};
use super::form::Form;
use super::ir::{Graph, Phase, Site, VarId};
use super::layer::compute;
use super::program::{Program, Variable};
use super::py_func::{Arity, Building, Function, Outcome, PyFunc, Variables};
use super::values::{Computed, Ran, Values};
use crate::error::Result;
use crate::graph::{AnyTensor, GradMode};
use crate::ops::Caller;
use crate::ops::trace::Note;

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
        TraceCall(Building::new(self, Function::new(closure)))
    }

    /// A method of tensors as one of variables: its eager ops, all at the place of the call.
    #[track_caller]
    pub(super) fn method(
        &self,
        name: &str,
        inputs: &[&Variable],
        run: impl Fn(Values) -> Ran + Send + Sync + 'static,
    ) -> Result<Vec<Variable>> {
        let call = move |inputs: &[Option<AnyTensor>]| -> Computed<Vec<Option<AnyTensor>>> {
            Ok(run(inputs.iter().flatten().cloned().collect())?.into_iter().map(Some).collect())
        };
        let mut building = Building::new(self, Function::of_list(call));
        building.inputs = Some(inputs.iter().map(|&x| x.clone()).collect());
        traced(building, inputs.len(), &Site::here(name), Some(Location::caller()))
    }
}

/// A closure that is being traced: `M` inputs, `N` outputs.
#[must_use = "nothing is added to the program before `call()`"]
pub struct TraceCall<const M: usize, const N: usize>(Building);

impl<const M: usize, const N: usize> TraceCall<M, N> {
    /// The inputs: `&x`, or `[&x, &w]`.
    pub fn x(mut self, variables: impl Variables<M>) -> Self {
        self.0.inputs = Some(variables.list());
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
        Ok(Arity::<N>::of(traced(self.0, M, &Site::here("trace"), None)?))
    }
}

/// Adds the ops of what is being built, which takes so many inputs; all of them `at` a place, if one is given.
fn traced(
    building: Building,
    takes: usize,
    site: &Site<'_>,
    at: Option<Caller>,
) -> Result<Vec<Variable>> {
    let refused = |why: String| site.wrong(why);
    let (inputs, forms) = building.given(takes, site)?;
    let Building { program, function, .. } = building;
    let run = |example: usize| -> Result<Run> {
        let mut run = Run::on(&function, &forms, example).map_err(|why| match at {
            None => refused(format!("the closure, on an example: {why}")),
            Some(_) => refused(own_words(site.call, &why).to_owned()),
        })?;
        at.iter().for_each(|&at| run.notes.iter_mut().for_each(|note| note.caller = at));
        Ok(run)
    };
    let (first, second) = (run(0)?, run(1)?);
    let given = pairs(&first.inputs, &second.inputs);
    let results = pairs(&first.outputs, &second.outputs);
    let notes = [&first.notes[..], &second.notes];
    let Assembled { graph, outputs, .. } = assemble(&given, notes, &results, false, site)?;
    if !graph.ops.iter().any(|op| op.kind.draws()) {
        let Run { inputs, outputs: expected, .. } = run(2)?;
        let found = GradMode::of(false, || compute(&graph, inputs, &outputs));
        if !found.map_err(refused)?.iter().zip(&expected).all(|(x, y)| is_same(x, y)) {
            let why = "the operators' figures are not the closure's: it draws random numbers, changes \
                       a tensor in place, or does what follows the numbers themselves; place it with \
                       `eager`";
            return Err(refused(why.to_owned()));
        }
    }
    let mut own: Vec<Option<VarId>> = inputs.into_iter().map(Some).collect();
    own.resize(graph.vars.len(), None);
    let missing = || unreachable!("its operators read what is there");
    let insert = |into: &mut Graph| into.push_copy(&graph, &mut own, Phase::Forward, missing);
    program.graph().attempt(insert)?;
    let outputs = outputs.into_iter().filter_map(|output| own[output]).collect();
    Ok(program.variables(outputs))
}

/// What an eager op said, without its name.
fn own_words<'w>(name: &str, why: &'w str) -> &'w str {
    let why = why.strip_prefix("panicked: ").unwrap_or(why);
    why.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(why)
}

/// One run of the closure.
struct Run {
    inputs: Values,
    notes: Vec<Note>,
    outputs: Values,
}

impl Run {
    fn on(function: &Function, forms: &[Form], at: usize) -> Computed<Self> {
        let inputs: Values = forms.iter().map(|form| example(form, EXAMPLES[at])).collect();
        // Recorded, so that the backward of a layer can be asked for.
        inputs.iter().for_each(want_gradient);
        let run = on_examples(function, inputs.clone(), true);
        let (outputs, notes) = run?;
        Ok(Self { inputs, notes, outputs })
    }
}
