//! Eager code as an operator: `#[py_layer]` ops, closures of eager ops, and users' elementwise ops. What they
//! compute, and what their gradients are, is left to the eager engine.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::example::example;
use super::form::Form;
use super::ir::{Effect, OpDef, Operator, UserOp};
use super::py_func::Function;
use super::values::{Computed, Values, message};
use crate::array::DType;
use crate::graph::{AnyTensor, GradMode, Tensor, is_grad_enabled};
use crate::ops::Float;
use crate::ops::elementwise::Handle;
use crate::ops::trace::{Call, Note, collect};

/// Eager code in a program.
#[derive(Clone, Debug)]
pub(super) struct Eager {
    function: Function,
    outputs: Vec<Form>,
}

/// A `#[py_layer]` op, or a closure of eager ops.
pub(super) static EAGER: OpDef = OpDef {
    infer: |op, _| Ok(op.user::<Eager>().outputs.clone()),
    run: |op, values, _| Ok(op.user::<Eager>().run(values)?),
    effect: Effect::UserCode,
    ..OpDef::new("eager")
};

impl UserOp for Eager {
    fn name(&self) -> &str {
        &self.function.name
    }
}

impl Eager {
    pub(super) fn new(function: Function, outputs: Vec<Form>) -> Self {
        Self { function, outputs }
    }

    fn run(&self, inputs: Values) -> Result<Values, String> {
        let outputs = match is_grad_enabled() {
            // Its inputs are leaves of its own.
            true => call(&self.function, inputs)?,
            false => {
                // What the function writes, no other operator reads; what it kept a handle of, it may
                // change later.
                let lent = inputs.iter().map(AnyTensor::alias).collect();
                drop(inputs);
                call(&self.function, lent)?.into_iter().map(AnyTensor::unshared).collect()
            }
        };
        for (position, (form, output)) in self.outputs.iter().zip(&outputs).enumerate() {
            if let Some(misfit) = form.misfit(output.dtype(), output.shape()) {
                return Err(format!("output {position} {misfit}"));
            }
        }
        Ok(outputs)
    }
}

pub(super) fn call(function: &Function, inputs: Values) -> Result<Values, String> {
    let inputs: Vec<_> = inputs.into_iter().map(Some).collect();
    let outputs = (function.call)(&inputs)?;
    outputs.into_iter().map(|output| output.ok_or_else(|| "returned nothing".to_owned())).collect()
}

/// An elementwise op of a user.
#[derive(Debug)]
pub(super) struct UserFormula {
    pub(super) name: &'static str,
    pub(super) formula: Formula,
    pub(super) outputs: Vec<Form>,
}

pub(super) static FORMULA: OpDef = OpDef {
    infer: |op, _| Ok(op.user::<UserFormula>().outputs.clone()),
    run: |op, values, _| Ok(op.user::<UserFormula>().formula.run(&values)?),
    ..OpDef::new("formula")
};

impl UserOp for UserFormula {
    fn name(&self) -> &str {
        self.name
    }
}

impl UserFormula {
    pub(super) fn operator(self) -> Operator {
        Operator::of_user(&FORMULA, self)
    }
}

/// The formulas of an elementwise op, for either float type.
#[derive(Clone)]
pub(super) struct Formula(Arc<dyn Any + Send + Sync>);

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Formula")
    }
}

/// Runs an expression on the handle of whichever type the formulas are for.
macro_rules! for_handle {
    ($formula:expr, $op:ident => $body:expr, $none:expr) => {
        match ($formula.typed::<f32>(), $formula.typed::<f64>()) {
            (Some($op), _) => $body,
            (_, Some($op)) => $body,
            _ => $none,
        }
    };
}

impl Formula {
    /// A `Handle` of a float type.
    pub(super) fn new(op: Arc<dyn Any + Send + Sync>) -> Self {
        Self(op)
    }

    pub(super) fn typed<T: Float>(&self) -> Option<&Handle<T>> {
        self.0.downcast_ref()
    }

    fn run(&self, inputs: &[AnyTensor]) -> Computed<Values> {
        fn typed<T: Float>(op: &Handle<T>, inputs: &[AnyTensor]) -> Computed<Values> {
            let reals: Vec<&Tensor<T>> =
                inputs.iter().filter_map(AnyTensor::downcast_ref).collect();
            let masks: Vec<&Tensor<bool>> =
                inputs.iter().filter_map(AnyTensor::downcast_ref).collect();
            let caller = std::panic::Location::caller();
            let outputs = T::elementwise(op.clone(), &reals, &masks, caller).map_err(message)?;
            Ok(outputs.into_iter().map(AnyTensor::from).collect())
        }
        for_handle!(self, op => typed(op, inputs), Err("is an op of no float type".to_owned()))
    }
}

/// The operator for eager code: its formula, where the code is the `apply` of an elementwise op
/// without parameters, and else whatever it does.
pub(super) fn eager_op(function: Function, inputs: &[Form], outputs: Vec<Form>) -> Operator {
    match function.is_apply.then(|| found(&function, inputs)).flatten() {
        Some((name, formula)) => UserFormula { name, formula, outputs }.operator(),
        None => Operator::of_user(&EAGER, Eager::new(function, outputs)),
    }
}

/// What `apply` does on an example: it is the same in every call, for it has neither parameters nor
/// anything captured.
fn found(function: &Function, inputs: &[Form]) -> Option<(&'static str, Formula)> {
    let examples: Values = inputs.iter().map(|form| example(form, (2, 0))).collect();
    let given = examples.clone();
    let run = || GradMode::of(false, || collect(|| call(function, given)));
    let (outputs, notes) = catch_unwind(AssertUnwindSafe(run)).ok()?;
    let (outputs, [note]) = (outputs.ok()?, <[Note; 1]>::try_from(notes).ok()?);
    let same = |a: &[AnyTensor], b: &[AnyTensor]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.address() == b.address())
    };
    // The numbers come first, whatever the order of the parameters.
    let (masks, numbers): (Values, Values) =
        examples.into_iter().partition(|input| input.dtype() == DType::Bool);
    let examples: Values = numbers.into_iter().chain(masks).collect();
    if !same(&note.inputs, &examples) || !same(&note.outputs, &outputs) {
        return None;
    }
    let Call::Formula { name, op } = note.call else { return None };
    let op = Formula::new(op);
    let fixed = for_handle!(op, op => matches!(op, Handle::Static(_)), false);
    (fixed && *name == *function.name).then_some((name, op))
}
