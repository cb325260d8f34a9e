//! A closure of eager ops as operators of a program, one by one.
//!
//! The closure runs on examples, twice, with other numbers and other lengths of free axes, and its
//! ops are noted. What differs between the two runs is what the program must not fix: a length in
//! a shape that follows a free axis becomes free, and anything else is refused, by the line of the
//! op. A third run proves that the program computes what the closure does.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;

use super::eager::call;
use super::executor::{Executor, Feed};
use super::ir::{Form, Graph, Phase, Place, Role, VarId, wrong};
use super::kind::Kind;
use super::layer::TracedLayer;
use super::merge::{merge, name_of};
use super::program::Program;
use super::py_func::{Arity, Function, Outcome, PyFunc, Variables};
use super::run::Values;
use super::task::panic_message;
use super::variable::Variable;
use crate::array::DType;
use crate::error::Result;
use crate::graph::{AnyTensor, Element, GradMode, Tensor, for_any};
use crate::ops::trace::{Call, Note, collect};

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
        let (program, function) = (self.clone(), Function::new(closure));
        TraceCall { program, function, inputs: Vec::new(), arity: PhantomData }
    }
}

/// A closure that is being traced: `M` inputs, `N` outputs.
#[must_use = "nothing is added to the program before `call()`"]
pub struct TraceCall<const M: usize, const N: usize> {
    program: Program,
    function: Function,
    inputs: Vec<Variable>,
    arity: PhantomData<([(); M], [(); N])>,
}

impl<const M: usize, const N: usize> TraceCall<M, N> {
    /// The inputs: `&x`, or `[&x, &w]`.
    pub fn x(mut self, variables: impl Variables<M>) -> Self {
        self.inputs = variables.list();
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
        if self.inputs.len() != M {
            return Err(refused(format!("takes {M} inputs, give them with `x`")));
        }
        let own = |variable: &Variable| self.program.own("trace", variable, &place);
        let inputs: Vec<VarId> = self.inputs.iter().map(own).collect::<Result<_>>()?;
        let forms: Vec<Form> = self.inputs.iter().map(Variable::form).collect();
        let params = self.function.signature.params.iter().flatten();
        for ((param, form), variable) in params.zip(&forms).zip(&self.inputs) {
            if param.dtype != form.dtype {
                let (found, given) = (param.dtype, variable.name());
                return Err(refused(format!("takes {found}, but `{given}` is {}", form.dtype)));
            }
        }
        let first = Run::on(&self.function, &forms, EXAMPLES[0]).map_err(refused)?;
        let second = Run::on(&self.function, &forms, EXAMPLES[1]).map_err(refused)?;
        let pairs = first.inputs.iter().zip(&second.inputs);
        let given: Vec<(Form, [AnyTensor; 2])> = forms
            .iter()
            .zip(pairs)
            .map(|(form, (a, b))| (form.clone(), [a.clone(), b.clone()]))
            .collect();
        let found = |tensor: &AnyTensor| (tensor.address(), tensor.clone());
        let pairs = first.outputs.iter().zip(&second.outputs);
        let results: Vec<[Found; 2]> = pairs.map(|(a, b)| [found(a), found(b)]).collect();
        let notes = [&first.notes[..], &second.notes[..]];
        let Assembled { graph: scratch, outputs, .. } =
            assemble(&given, notes, &results, false, &place)?;
        prove(&self.function, &forms, &scratch, &outputs).map_err(refused)?;
        let outputs =
            self.program.graph().attempt(|graph| insert(graph, &scratch, &inputs, &outputs))?;
        Ok(outputs.into_iter().map(|id| self.program.variable(id)).collect())
    }
}

/// A length for free axes, and where numbers start.
pub(super) type Example = (usize, usize);

pub(super) const EXAMPLES: [Example; 3] = [(5, 0), (7, 1), (6, 2)];

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

/// Numbers in (0, 1), indices of 0 and 1, masks of both.
pub(super) fn example(form: &Form, (free, start): Example) -> AnyTensor {
    fn filled<T: Element>(shape: &[usize], element: impl Fn(usize) -> T) -> AnyTensor {
        let n = shape.iter().product();
        Tensor::from((0..n).map(element).collect::<Vec<T>>()).reshape(shape).into()
    }
    let shape: Vec<usize> = form.dims.iter().map(|dim| dim.unwrap_or(free)).collect();
    let step = |i: usize| (i * (start + 2) + start) % 2;
    let number = |i: usize| ((i * 37 + start * 11 + 5) % 97 + 1) as f64 / 99.0;
    match form.dtype {
        DType::Float32 => filled(&shape, |i| number(i) as f32),
        DType::Float64 => filled(&shape, number),
        DType::Int32 => filled(&shape, |i| step(i) as i32),
        DType::Int64 => filled(&shape, |i| step(i) as i64),
        DType::UInt8 => filled(&shape, |i| step(i) as u8),
        DType::Bool => filled(&shape, |i| step(i) == 1),
    }
}

/// What an op of a run reads.
enum Source {
    /// The closure's input, or what an op before computed: by its order.
    Known(usize),
    Constant(AnyTensor),
}

/// A result of a run: the tensor, and the address under which it was noted.
pub(super) type Found = (*const (), AnyTensor);

/// Two runs as one graph, whose first variables are what they were given.
pub(super) struct Assembled {
    pub(super) graph: Graph,
    pub(super) outputs: Vec<VarId>,
    /// What was given and computed, in the order of its coming.
    pub(super) vars: Vec<VarId>,
}

/// The tensors of a run, in the order of their coming.
struct Known {
    places: HashMap<*const (), usize>,
    tensors: Vec<AnyTensor>,
    /// Whether a tensor that was never seen is one that holds the same: what a layer saved, or
    /// gave as a gradient, comes back as a tensor of its own.
    by_value: bool,
}

impl Known {
    fn new(by_value: bool) -> Self {
        Self { places: HashMap::new(), tensors: Vec::new(), by_value }
    }

    fn add(&mut self, tensor: &AnyTensor) {
        self.places.insert(tensor.address(), self.tensors.len());
        self.tensors.push(tensor.clone());
    }

    fn find(&self, tensor: &AnyTensor) -> Source {
        self.at(&(tensor.address(), tensor.clone()))
    }

    fn at(&self, (address, tensor): &Found) -> Source {
        if let Some(&at) = self.places.get(address) {
            return Source::Known(at);
        }
        let same = |known: &AnyTensor| self.by_value && is_same(known, tensor);
        match self.tensors.iter().rposition(same) {
            Some(at) => Source::Known(at),
            None => Source::Constant(tensor.clone()),
        }
    }
}

/// The operators of both runs, as a graph of its own, and what it computes.
pub(super) fn assemble(
    given: &[(Form, [AnyTensor; 2])],
    [first, second]: [&[Note]; 2],
    results: &[[Found; 2]],
    by_value: bool,
    place: &Place,
) -> Result<Assembled> {
    let mut graph = Graph::default();
    let mut known = [Known::new(by_value), Known::new(by_value)];
    // By the order of their coming.
    let mut vars: Vec<VarId> = Vec::new();
    for (position, (form, examples)) in given.iter().enumerate() {
        let name = format!("input_{position}");
        vars.push(graph.declare("trace", &name, form.clone(), Role::Data, false, place)?);
        known[0].add(&examples[0]);
        known[1].add(&examples[1]);
    }
    for (a, b) in first.iter().zip(second) {
        let place = Place::Line(a.caller);
        let (name, refused) =
            (name_of(&a.call), |why: String| wrong(name_of(&a.call), &place, why));
        if a.caller != b.caller || name != name_of(&b.call) || a.inputs.len() != b.inputs.len() {
            let why = format!(
                "is what the closure does on one example, but {} ({}) on another: its control flow \
                 follows numbers or lengths; place it with `eager` to keep that",
                name_of(&b.call),
                b.caller
            );
            return Err(refused(why));
        }
        let kind = match (&a.call, &b.call) {
            (Call::Layer(x), Call::Layer(y)) => {
                Kind::Layer(Arc::new(TracedLayer::of([(a, x), (b, y)], &place)?))
            }
            _ => merge(a, b).map_err(refused)?,
        };
        let mut inputs = Vec::with_capacity(a.inputs.len());
        for (x, y) in a.inputs.iter().zip(&b.inputs) {
            inputs.push(source(
                &mut graph,
                &vars,
                [known[0].find(x), known[1].find(y)],
                &place,
                name,
            )?);
        }
        let outputs = graph.push(kind, &inputs, Phase::Forward, &place)?;
        for ((&id, x), y) in outputs.iter().zip(&a.outputs).zip(&b.outputs) {
            let form = &graph.vars[id].form;
            let misfit = [x, y].into_iter().find_map(|t| form.misfit(t.dtype(), t.shape()));
            if let Some(misfit) = misfit {
                return Err(refused(format!(
                    "computes {form} in a program, the closure's {misfit}"
                )));
            }
            vars.push(id);
            known[0].add(x);
            known[1].add(y);
        }
    }
    if let Some(more) = first.get(second.len()).or(second.get(first.len())) {
        let why = "is what the closure does on one example only: its control flow follows numbers \
                   or lengths; place it with `eager` to keep that";
        return Err(wrong(name_of(&more.call), &Place::Line(more.caller), why));
    }
    let mut outputs = Vec::with_capacity(results.len());
    for [x, y] in results {
        let found = [known[0].at(x), known[1].at(y)];
        outputs.push(source(&mut graph, &vars, found, place, "trace")?);
    }
    graph.verify()?;
    Ok(Assembled { graph, outputs, vars })
}

/// The variable that both runs read at one place.
fn source(
    graph: &mut Graph,
    vars: &[VarId],
    found: [Source; 2],
    place: &Place,
    op: &str,
) -> Result<VarId> {
    match found {
        [Source::Known(a), Source::Known(b)] if a == b => Ok(vars[a]),
        [Source::Constant(a), Source::Constant(b)] if is_same(&a, &b) => {
            Ok(graph.push(Kind::Constant(a.alias()), &[], Phase::Forward, place)?[0])
        }
        [Source::Constant(a), _] | [_, Source::Constant(a)] => {
            let made = for_any!(&a, a => a.origin().map(|node| (node.name(), node.location)));
            let made = made.map_or(String::new(), |(name, line)| format!(", by {name} ({line})"));
            let why = format!(
                "reads a tensor of shape {:?} that the closure makes anew each time{made}: from \
                 numbers or lengths of its inputs by an op that programs do not have, from random \
                 numbers, or through `to_vec`, `item` and the like; place it with `eager`",
                a.shape()
            );
            Err(wrong(op, place, why))
        }
        _ => {
            Err(wrong(op, place, "reads another tensor on another example; place it with `eager`"))
        }
    }
}

/// Whether two tensors hold the same, bit for bit where they are finite.
fn is_same(a: &AnyTensor, b: &AnyTensor) -> bool {
    fn same<T: Element>(a: &Tensor<T>, b: &AnyTensor) -> bool {
        b.downcast_ref::<T>().is_some_and(|b| {
            // Only NaN is unlike itself.
            let pairs = a.to_vec().into_iter().zip(b.to_vec());
            #[allow(clippy::eq_op, reason = "it tells NaN from numbers")]
            let same = |(x, y): (T, T)| x == y || (x != x && y != y);
            a.shape() == b.shape() && pairs.into_iter().all(same)
        })
    }
    for_any!(a, a => same(a, b))
}

/// Runs the program of the trace, and the closure, on a third example.
fn prove(
    function: &Function,
    forms: &[Form],
    scratch: &Graph,
    outputs: &[VarId],
) -> Result<(), String> {
    let random = |kind: &Kind| matches!(kind, Kind::Dropout { training: true, .. });
    if scratch.ops.iter().any(|op| random(&op.kind)) {
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
    let fetch: Vec<&dyn super::Fetch> = fetched.iter().map(|x| x as &dyn super::Fetch).collect();
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
    let mut own: Vec<VarId> = vec![0; scratch.vars.len()];
    own[..inputs.len()].copy_from_slice(inputs);
    for op in &scratch.ops {
        let given: Vec<VarId> = op.inputs.iter().map(|&input| own[input]).collect();
        let made = graph.push(op.kind.clone(), &given, Phase::Forward, &op.place)?;
        op.outputs.iter().zip(made).for_each(|(&before, id)| own[before] = id);
    }
    Ok(outputs.iter().map(|&output| own[output]).collect())
}
