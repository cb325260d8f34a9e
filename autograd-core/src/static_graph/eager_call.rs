//! Placing eager code in a program.

use std::sync::Arc;

use super::eager::on_examples;
use super::example::{example, form_of};
use super::form::Form;
use super::ir::{Eager, Kind, Op, Phase, Site};
use super::program::{Program, Variable};
use super::py_func::{Arity, Building, Function, Outcome, PyFunc, Variables};
use super::values::{Computed, Values};
use crate::error::Result;
use crate::graph::AnyTensor;

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
        EagerCall(Building::new(self, Function::new(op)))
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
pub struct EagerCall<const M: usize, const N: usize>(Building);

impl<const M: usize, const N: usize> EagerCall<M, N> {
    /// The inputs: `&x`, or `[&x, &w]`.
    pub fn x(mut self, variables: impl Variables<M>) -> Self {
        self.0.inputs = Some(variables.list());
        self
    }

    /// The outputs, where they are not to be found by a call: `&y`, or `[&y, &z]`.
    pub fn out(mut self, variables: impl Variables<N>) -> Self {
        self.0.outputs = Some(variables.list());
        self
    }

    /// The name that texts, errors and files show; by default the op's own.
    pub fn name(mut self, name: &str) -> Self {
        self.0.function.name = name.into();
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
        let name = self.0.function.name.to_string();
        let site = Site::here(&name);
        let (inputs, forms) = self.0.given(M, &site)?;
        let Building { program, function, outputs, .. } = self.0;
        if N == 0 {
            return Err(site.wrong("computes no tensor"));
        }
        let found = match &outputs {
            Some(outputs) => outputs.iter().map(Variable::form).collect(),
            None => find_forms(&function, &forms).map_err(|why| {
                let why = format!(
                    "called to find the forms of its outputs, which `out` can give instead: {why}"
                );
                site.wrong(why)
            })?,
        };
        let kind = Kind::Eager(Arc::new(Eager { function, outputs: found }));
        let outputs = match outputs {
            Some(outputs) => {
                let own = program.own_all(&site, &outputs)?;
                program.graph().push_op(Op::new(
                    kind,
                    &inputs,
                    &own,
                    Phase::Forward,
                    &site.place,
                ))?;
                outputs
            }
            None => {
                let pushed = program.graph().push(kind, &inputs, Phase::Forward, &site.place);
                program.variables(pushed?)
            }
        };
        Ok(Arity::<N>::of(outputs))
    }
}

/// The forms of what a function returns: an axis that follows the free ones is free.
fn find_forms(function: &Function, inputs: &[Form]) -> Computed<Vec<Form>> {
    let seen = |free: usize| -> Computed<Values> {
        let inputs = inputs.iter().map(|form| example(form, (free, 0))).collect();
        Ok(on_examples(function, inputs, false)?.0)
    };
    let short = seen(2)?;
    let is_free = inputs.iter().any(|form| form.dims.contains(&None));
    let long = if is_free { seen(3)? } else { short.clone() };
    let form = |(short, long): (&AnyTensor, &AnyTensor)| {
        if short.shape().len() != long.shape().len() {
            return Err("its output's rank follows the length of an axis".to_owned());
        }
        Ok(form_of(short, long))
    };
    short.iter().zip(&long).map(form).collect()
}
