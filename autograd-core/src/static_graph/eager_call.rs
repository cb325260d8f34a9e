//! Placing eager code in a program.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use super::eager::call;
use super::eager::eager_op;
use super::example::simple;
use super::form::{Dims, Form};
use super::ir::{Op, Phase, Place, VarId, wrong};
use super::program::{Program, Variable};
use super::py_func::{Arity, Function, Outcome, PyFunc, Variables};
use super::values::panic_message;
use crate::array::DType;
use crate::error::Result;
use crate::graph::GradMode;

impl Program {
    /// A `#[py_layer]` op as an operator: `program.py_layer(CusTanh::apply)`. What it saves, its
    /// contexts and its backward work as in eager mode, also for higher derivatives.
    ///
    /// Its parameters are `&Tensor<T>` for each input, and it returns tensors. An op with other
    /// parameters is called by a closure: `|x: &Tensor<f64>| ScaledTanh::apply(x, 2.0)`.
    ///
    /// Where no `out` is given, the forms of the outputs are found by calling the op once here, on
    /// small numbers, or twice where an axis is free.
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
        EagerCall { closure: Closure::new(self, op), outputs: None }
    }

    /// A closure of eager ops as one operator, with its gradients: `|x: &Tensor<f32>| x.tanh()`.
    /// The same as [`Program::py_layer`]: the closure runs in every run, so it may do what follows
    /// the numbers; what it captures is a constant. [`Program::trace`] makes an operator of each of
    /// its ops instead.
    pub fn eager<F, Marker, const M: usize, const N: usize>(&self, closure: F) -> EagerCall<M, N>
    where
        F: PyFunc<Marker, M, N>,
    {
        self.py_layer(closure)
    }
}

/// Eager code that is being placed in a program: `M` inputs, `N` outputs.
#[must_use = "nothing is added to the program before `call()`"]
pub struct EagerCall<const M: usize, const N: usize> {
    closure: Closure<M, N>,
    outputs: Option<Vec<Variable>>,
}

impl<const M: usize, const N: usize> EagerCall<M, N> {
    /// The inputs: `&x`, or `[&x, &w]`.
    pub fn x(mut self, variables: impl Variables<M>) -> Self {
        self.closure.inputs = variables.list();
        self
    }

    /// The outputs, where they are not to be found by a call: `&y`, or `[&y, &z]`.
    pub fn out(mut self, variables: impl Variables<N>) -> Self {
        self.outputs = Some(variables.list());
        self
    }

    /// The name that texts, errors and files show; by default the op's own.
    pub fn name(mut self, name: &str) -> Self {
        self.closure.function.name = name.into();
        self
    }

    /// Adds the operator to the program.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `x` is missing, a variable is of another
    /// program or of another element type than the parameter, or where no `out` is given and the
    /// call that looks for its form fails.
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
        let Self { closure, outputs } = self;
        let name = closure.function.name.to_string();
        let (inputs, forms) = closure.given(&name, &place)?;
        let Closure { program, function, .. } = closure;
        if N == 0 {
            return Err(wrong(&name, &place, "computes no tensor"));
        }
        let found = match &outputs {
            Some(outputs) => outputs.iter().map(Variable::form).collect(),
            None => find_forms(&function, &forms).map_err(|why| {
                let why = format!(
                    "called to find the forms of its outputs, which `out` can give instead: {why}"
                );
                wrong(&name, &place, why)
            })?,
        };
        let op = eager_op(function, &forms, found);
        let Some(outputs) = outputs else {
            let outputs = program.graph().push(op, &inputs, Phase::Forward, &place)?;
            return Ok(outputs.into_iter().map(|id| program.variable(id)).collect());
        };
        let own = outputs.iter().map(|variable| program.own(&name, variable, &place));
        let own: Vec<VarId> = own.collect::<Result<_>>()?;
        program.graph().push_op(Op::new(op, inputs, &own, Phase::Forward, &place))?;
        Ok(outputs)
    }
}

/// Eager code and its inputs: `M` of them, and `N` outputs.
pub(super) struct Closure<const M: usize, const N: usize> {
    pub(super) program: Program,
    pub(super) function: Function,
    pub(super) inputs: Vec<Variable>,
    arity: PhantomData<([(); M], [(); N])>,
}

impl<const M: usize, const N: usize> Closure<M, N> {
    pub(super) fn new<Marker>(program: &Program, code: impl PyFunc<Marker, M, N>) -> Self {
        let (program, function) = (program.clone(), Function::new(code));
        Self { program, function, inputs: Vec::new(), arity: PhantomData }
    }

    /// The positions and forms of its inputs, by the name of the call.
    pub(super) fn given(&self, call: &str, place: &Place) -> Result<(Vec<VarId>, Vec<Form>)> {
        if self.inputs.len() != M {
            return Err(wrong(call, place, format!("takes {M} inputs, give them with `x`")));
        }
        let own = self.inputs.iter().map(|variable| self.program.own(call, variable, place));
        let own = own.collect::<Result<_>>()?;
        let forms: Vec<Form> = self.inputs.iter().map(Variable::form).collect();
        let params = self.function.signature.params.iter().flatten();
        for ((param, form), variable) in params.zip(&forms).zip(&self.inputs) {
            if param.dtype != form.dtype {
                let (takes, name) = (param.dtype, variable.name());
                let why = format!("takes {takes}, but `{name}` is {}", form.dtype);
                return Err(wrong(call, place, why));
            }
        }
        Ok((own, forms))
    }
}

/// The forms of what a function returns: an axis that follows the free ones is free.
fn find_forms(function: &Function, inputs: &[Form]) -> Result<Vec<Form>, String> {
    let seen = |free: usize| -> Result<Vec<(DType, Vec<usize>)>, String> {
        let examples = inputs.iter().map(|form| simple(form, free)).collect();
        let run = || GradMode::of(false, || call(function, examples));
        let outputs = catch_unwind(AssertUnwindSafe(run))
            .unwrap_or_else(|panic| Err(panic_message(&*panic)))?;
        Ok(outputs.iter().map(|output| (output.dtype(), output.shape().to_vec())).collect())
    };
    let short = seen(2)?;
    let is_free = inputs.iter().any(|form| form.dims.contains(&None));
    let long = if is_free { seen(3)? } else { short.clone() };
    short
        .into_iter()
        .zip(long)
        .map(|((dtype, short), (_, long))| {
            if short.len() != long.len() {
                return Err("its output's rank follows the length of an axis".to_owned());
            }
            let dims: Dims = short.iter().zip(&long).map(|(a, b)| (a == b).then_some(*a)).collect();
            Ok(Form::new(dtype, dims))
        })
        .collect()
}
