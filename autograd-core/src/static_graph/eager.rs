//! Eager code as an operator. While a program is built, the code is called on examples.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::ir::{Eager, Kind, Op, Phase, Site};
use super::program::{Program, Variable};
use super::py_func::{Arity, Building, Function, Outcome, PyFunc, Variables, parts};
use crate::array::{DType, Shape};
use crate::error::Result;
use crate::graph::{AnyTensor, Element, GradMode, Observing, Tensor, is_grad_enabled};
use crate::ops::table::values::panic_message;
use crate::ops::table::{Computed, Form, Ran, Values};
use crate::ops::trace::{Note, collect};
use crate::py_layer::shapes::{Capture, Dims};

impl Program {
    /// Adds a `#[py_layer]` op as an operator: `program.py_layer(CusTanh::apply)`. It works as in eager mode,
    /// for higher derivatives too. It must take a `&Tensor<T>` for each input and return tensors; an op with
    /// other parameters is called by a closure: `|x: &Tensor<f64>| ScaledTanh::apply(x, 2.0)`. The forms of the
    /// outputs are those of the op's `shapes(..)`, without a run of its forward. Without such a line, and if no
    /// `out` is given, calls on examples here find them; see [`Program::trace`].
    ///
    /// ```
    /// use autograd_core::prelude::*;
    /// use autograd_core::static_graph::{Executor, Program, gradients};
    /// use autograd_core::DType;
    ///
    /// #[py_layer]
    /// impl Cube {
    ///     type Saved = Tensor<f64>;
    ///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
    ///         ctx.save_for_backward(x);
    ///         x * x * x
    ///     }
    ///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
    ///         dy * ctx.saved_tensor().square() * 3.0
    ///     }
    /// }
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1], DType::Float64)?;
    /// x.set_stop_gradient(false);
    /// let y = program.py_layer(Cube::apply).x(&x).call()?;
    /// let dx = gradients(&[&y], &[&x])?.remove(0).unwrap();
    /// let fed = Tensor::from(vec![1.0, 2.0]);
    /// let fetched = Executor::new().run(&program, &[("x", &fed)], &[&y, &dx])?;
    /// assert_eq!(fetched[0].downcast_ref::<f64>().unwrap().to_vec(), [1.0, 8.0]);
    /// assert_eq!(fetched[1].downcast_ref::<f64>().unwrap().to_vec(), [3.0, 12.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn py_layer<F, Marker, const M: usize, const N: usize>(&self, op: F) -> EagerCall<M, N>
    where
        F: PyFunc<Marker, M, N>,
    {
        EagerCall(Building::new(self, Function::new(op)))
    }

    /// [`Program::py_layer`] for a closure of eager ops. It is called in every run, so it may depend on the
    /// numbers; captured values are constants. It runs with recording off; to compute a gradient inside it, use
    /// [`enable_grad`](crate::enable_grad)`().run(..)`. [`Program::trace`] adds one operator for each op instead.
    ///
    /// ```
    /// use autograd_core::static_graph::{Executor, Program};
    /// use autograd_core::{DType, Tensor};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1], DType::Float64)?;
    /// // The number of positive elements is known in a run only.
    /// let positive = |x: &Tensor<f64>| x.masked_select(&x.gt_scalar(0.0)).sum();
    /// let y = program.current_block().create_var("y", DType::Float64, ())?;
    /// let y = program.eager(positive).name("positive").x(&x).out(&y).call()?;
    /// let fed = Tensor::from([1.0, -2.0, 4.0]);
    /// let run = Executor::new().run(&program, &[("x", &fed)], &[&y])?;
    /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().item(), 5.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn eager<F, Marker, const M: usize, const N: usize>(&self, closure: F) -> EagerCall<M, N>
    where
        F: PyFunc<Marker, M, N>,
    {
        self.py_layer(closure)
    }
}

/// Eager code that is being added to a program: `M` inputs, `N` outputs. [`Program::eager`] has an example.
#[must_use = "nothing is added to the program before `call()`"]
pub struct EagerCall<const M: usize, const N: usize>(Building);

impl<const M: usize, const N: usize> EagerCall<M, N> {
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
        /// program.eager(product).name("product").x([&a, &b]).call()?;
        /// assert!(program.to_string().ends_with("product_0: float64 [2] = product(a, b)\n"));
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn x(variables: impl Variables<M>): inputs = Some(variables.list());

        /// The outputs, if they are not to be found by a call: `&y`, or `[&y, &z]`.
        ///
        /// ```
        /// use autograd_core::static_graph::Program;
        /// use autograd_core::{DType, Tensor};
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [-1], DType::Float64)?;
        /// let y = program.current_block().create_var("y", DType::Float64, ())?;
        /// let y = program.eager(|x: &Tensor<f64>| x.sum()).x(&x).out(&y).call()?;
        /// assert_eq!((y.name().as_str(), y.ndim()), ("y", 0));
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn out(variables: impl Variables<N>): outputs = Some(variables.list());

        /// The name that texts, errors and files show; by default the op's own.
        ///
        /// ```
        /// use autograd_core::static_graph::Program;
        /// use autograd_core::{DType, Tensor};
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [-1], DType::Float64)?;
        /// let y = program.eager(|x: &Tensor<f64>| x * 2.0).name("double").x(&x).call()?;
        /// assert_eq!(y.name(), "double_0");
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn name(name: &str): function.name = name.into();
    }

    /// Adds the operator to the program.
    ///
    /// ```
    /// use autograd_core::static_graph::Program;
    /// use autograd_core::{DType, Tensor};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1], DType::Float64)?;
    /// let y = program.eager(|x: &Tensor<f64>| x.sum_axes_keep(0)).x(&x).call()?;
    /// assert_eq!(y.shape(), [Some(1)]);
    /// let error = program.eager(|x: &Tensor<i64>| x * 2).x(&x).call().unwrap_err();
    /// assert!(error.to_string().contains("takes int64, but `x` is float64"));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `x` is missing, a variable is of another program or of
    /// another element type than the parameter, or the call that finds the forms fails.
    #[track_caller]
    pub fn call(self) -> Result<<Arity<N> as Outcome>::Variables>
    where
        Arity<N>: Outcome,
    {
        let name = self.0.function.name.to_string();
        let site = Site::here(&name);
        let (inputs, forms) = self.0.given(M, &site)?;
        let Building { program, function, outputs, .. } = self.0;
        if N == 0 {
            return site.refuse("computes no tensor");
        }
        let said = forms_of_line(&function, &forms).map_err(|why| site.wrong(why))?;
        let found: Vec<Form> = match (&outputs, said) {
            (Some(outputs), said) => {
                let outputs: Vec<Form> = outputs.iter().map(Variable::form).collect();
                for (position, (output, said)) in
                    outputs.iter().zip(said.iter().flatten()).enumerate()
                {
                    if !output.agrees(said) {
                        let why = format!(
                            "`out`: output {position} is {output}, the op's `shapes(..)` says {said}"
                        );
                        return Err(site.wrong(why));
                    }
                }
                outputs
            }
            (None, Some(said)) => said,
            (None, None) => find_forms(&function, &forms).map_err(|why| {
                site.wrong(format!(
                    "called to find the forms of its outputs, which `out` can give instead: {why}"
                ))
            })?,
        };
        let kind = Kind::Eager(Arc::new(Eager { function, outputs: found }));
        let Some(outputs) = outputs else {
            let pushed = program.graph().push(kind, &inputs, Phase::Forward, &site.place)?;
            return Ok(Arity::<N>::of(program.variables(pushed)));
        };
        let own = program.own_all(&site, &outputs)?;
        let op = Op::new(kind, &inputs, &own, Phase::Forward, &site.place);
        program.graph().push_op(op)?;
        Ok(Arity::<N>::of(outputs))
    }
}

/// The forms of an op's outputs by its `shapes(..)`, without a run of its forward; `None` if the function is not one
/// call of an op with such a line, or the line does not say all of them. An error if the inputs do not fit the line.
fn forms_of_line(function: &Function, inputs: &[Form]) -> Computed<Option<Vec<Form>>> {
    let shapes = inputs.iter().map(|form| form.dims.iter().map(|n| n.unwrap_or(2)));
    let given: Values = inputs
        .iter()
        .zip(shapes)
        .map(|(form, shape)| example(form.dtype, &shape.collect::<Shape>(), 0))
        .collect();
    let capture = Observing::start(Capture::default());
    let returned = on_examples(function, given.clone(), false);
    let calls = capture.calls.take();
    let op = match (&returned, &calls[..]) {
        (Ok((_, notes)), [op]) if notes.is_empty() => op,
        // What else the function does, and how it may fail, shows when it is called on examples.
        _ => return Ok(None),
    };
    let returned = returned.into_iter().flat_map(|(returned, _)| returned);
    let position = |x: &AnyTensor| given.iter().position(|given| given.is_same(x));
    let dims = |x: &AnyTensor| match position(x) {
        Some(position) => inputs[position].dims.to_vec(),
        None => x.shape().iter().copied().map(Some).collect(),
    };
    let shapes: Vec<Vec<Dims>> =
        op.inputs.iter().map(|input| input.iter().map(dims).collect()).collect();
    let returned: Values = returned.collect();
    let forms = |said: Vec<Option<Dims>>| {
        let form = |x: &AnyTensor| {
            let output = op.outputs.iter().position(|output| output.is_same(x))?;
            Some(Form::new(x.dtype(), said.get(output)?.as_ref()?.iter().copied().collect()))
        };
        returned.iter().map(form).collect()
    };
    op.line.infer(&shapes, &op.integers).map(forms)
}

/// The forms of a function's results; an axis whose length differs between examples is free.
fn find_forms(function: &Function, inputs: &[Form]) -> Computed<Vec<Form>> {
    let (runs, _) = on_each_example(inputs, |inputs| Ok(on_examples(function, inputs, false)?.0))?;
    let form = |values: Values| {
        if values.iter().any(|value| value.shape().len() != values[0].shape().len()) {
            return Err("its output's rank follows the length of an axis".to_owned());
        }
        Ok(form_of(&values))
    };
    across(runs.iter().map(|run| &run[..])).into_iter().map(form).collect()
}

impl Eager {
    pub(super) fn run(&self, inputs: Values) -> Ran {
        let outputs = match is_grad_enabled() {
            // The inputs become leaves of a separate graph.
            true => call(&self.function, inputs)?,
            false => {
                // No other operator sees changes that the function makes to its inputs, now or later through
                // a handle that it kept.
                let lent = inputs.iter().map(AnyTensor::alias).collect();
                drop(inputs);
                call(&self.function, lent)?.into_iter().map(AnyTensor::unshared).collect()
            }
        };
        Function::require_count(outputs.len(), self.outputs.len())?;
        for (position, (form, output)) in self.outputs.iter().zip(&outputs).enumerate() {
            if let Some(misfit) = form.misfit(output.dtype(), output.shape()) {
                return Err(format!("output {position} {misfit}").into());
            }
        }
        Ok(outputs)
    }
}

fn call(function: &Function, inputs: Values) -> Ran {
    let inputs: Vec<_> = inputs.into_iter().map(Some).collect();
    let outputs = (function.call)(&inputs)?;
    outputs.into_iter().map(|output| output.ok_or_else(|| "returned nothing".into())).collect()
}

/// Runs eager code on examples while a program is built, and records its ops. A panic is an error.
pub(super) fn on_examples(
    function: &Function,
    inputs: Values,
    recorded: bool,
) -> Computed<(Values, Vec<Note>)> {
    let given = if recorded { inputs.to_vec() } else { Vec::new() };
    GradMode::of(recorded, || noted(given, || Ok(call(function, inputs)?)))
}

/// Runs eager code and notes its ops. A panic, or a read that depends on `given`, is an error.
pub(super) fn noted<R>(
    given: Vec<AnyTensor>,
    run: impl FnOnce() -> Computed<R>,
) -> Computed<(R, Vec<Note>)> {
    let run = AssertUnwindSafe(|| collect(given, run));
    let (done, notes) = catch_unwind(run).map_err(|panic| panic_message(&*panic))?;
    Ok((done?, notes))
}

/// Lengths of free axes in examples: far apart, on both sides of powers of two, and of all remainders by 2 to 5.
/// One more example has length 1 on all of them.
const LENGTHS: [usize; 7] = [34, 21, 13, 8, 5, 3, 2];

/// The number of examples, the longest, that a closure must accept. The others may be too short for it.
const REQUIRED: usize = 3;

/// The length of a free axis in examples, as a number, from the number of free axes before it and from its position.
/// Axes of the same number have one length in all examples.
type Which = fn(usize, usize) -> usize;

/// Calls `run` on inputs of these forms that differ in numbers and in the lengths of free axes; returns its
/// results, and which lengths are equal. Each free axis has its own length. If `run` does not accept that, those
/// at the same position of several inputs have one length, or else all have.
pub(super) fn on_each_example<R>(
    forms: &[Form],
    run: impl Fn(Values) -> Computed<R>,
) -> Computed<(Vec<R>, Which)> {
    let families: [Which; 3] = [|free, _| free, |_, axis| axis, |_, _| 0];
    let (mut before, mut why) = (Vec::new(), String::new());
    for which in families {
        let shapes = example_shapes(forms, which);
        if shapes == before {
            continue;
        }
        let mut each = shapes.iter().enumerate().map(|(start, shapes)| {
            let inputs = forms.iter().zip(shapes).enumerate();
            // No two inputs have the same numbers.
            let start = |position| start + 8 * position;
            let one = |(position, (form, shape)): (usize, (&Form, &Shape))| {
                example(form.dtype, shape, start(position))
            };
            run(inputs.map(one).collect())
        });
        match each.by_ref().take(REQUIRED).collect::<Computed<Vec<R>>>() {
            Ok(mut runs) => {
                runs.extend(each.flatten());
                return Ok((runs, which));
            }
            Err(error) => why = error,
        }
        before = shapes;
    }
    Err(why)
}

/// For each input the free axes, each with those of inputs that had the same length in all examples. The first of
/// several is compared with all others, and each of these with the first.
pub(super) fn equal_axes(forms: &[Form], which: Which) -> Vec<Vec<(usize, usize, usize)>> {
    let free = forms.iter().enumerate().flat_map(|(input, form)| {
        let is_free =
            move |(axis, dim): (usize, &Option<usize>)| dim.is_none().then_some((input, axis));
        form.dims.iter().enumerate().filter_map(is_free)
    });
    let mut groups: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for (before, (input, axis)) in free.enumerate() {
        groups.entry(which(before, axis)).or_default().push((input, axis));
    }
    let mut equal = vec![Vec::new(); forms.len()];
    for group in groups.into_values() {
        let (first, axis) = group[0];
        for &(other, its_axis) in &group[1..] {
            equal[first].push((axis, other, its_axis));
            if other != first {
                equal[other].push((its_axis, first, axis));
            }
        }
    }
    equal
}

/// The shapes of the inputs in each example.
fn example_shapes(forms: &[Form], which: Which) -> Vec<Vec<Shape>> {
    let shapes = |example: usize| {
        let mut free = 0;
        let mut length = |axis: usize| {
            let at = which(free, axis);
            free += 1;
            match example < LENGTHS.len() {
                true => LENGTHS[(example + at) % LENGTHS.len()] + at / LENGTHS.len(),
                false => 1,
            }
        };
        let mut shape = |form: &Form| {
            let dims = form.dims.iter().enumerate();
            dims.map(|(axis, dim)| dim.unwrap_or_else(|| length(axis))).collect()
        };
        forms.iter().map(&mut shape).collect()
    };
    let is_free = forms.iter().any(|form| form.dims.contains(&None));
    (0..if is_free { LENGTHS.len() + 1 } else { REQUIRED }).map(shapes).collect()
}

/// Numbers in (0, 1), indices of 0 and 1, masks of both; if numbers start at 0, all indices and masks are 0.
pub(super) fn example(dtype: DType, shape: &[usize], start: usize) -> AnyTensor {
    fn filled<T: Element>(shape: &[usize], element: impl Fn(usize) -> T) -> AnyTensor {
        let n = shape.iter().product();
        Tensor::from((0..n).map(element).collect::<Vec<T>>()).reshape(shape).into()
    }
    let step = |i: usize| (i * (start + 2) + start) % 2;
    let number = |i: usize| ((i * 37 + start * 11 + 5) % 97 + 1) as f64 / 99.0;
    match dtype {
        DType::Float32 => filled(shape, |i| number(i) as f32),
        DType::Float64 => filled(shape, number),
        DType::Int32 => filled(shape, |i| step(i) as i32),
        DType::Int64 => filled(shape, |i| step(i) as i64),
        DType::UInt8 => filled(shape, |i| step(i) as u8),
        DType::Bool => filled(shape, |i| step(i) == 1),
    }
}

/// The values at each position of lists that examples gave.
pub(super) fn across<'v>(lists: impl Iterator<Item = &'v [AnyTensor]> + Clone) -> Vec<Values> {
    let count = lists.clone().map(<[_]>::len).min().unwrap_or(0);
    (0..count).map(|at| lists.clone().map(|list| list[at].clone()).collect()).collect()
}

/// The form of a value in all examples: an axis whose length differs is free.
pub(super) fn form_of(values: &[AnyTensor]) -> Form {
    let length = |(axis, &n): (usize, &usize)| {
        values.iter().all(|value| value.shape().get(axis) == Some(&n)).then_some(n)
    };
    Form::new(values[0].dtype(), values[0].shape().iter().enumerate().map(length).collect())
}
