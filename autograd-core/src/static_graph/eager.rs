//! Eager code as an operator: `#[py_layer]` ops and closures of eager ops. What they compute, and
//! what their gradients are, is left to the eager engine.

use super::form::Form;
use super::ir::{Effect, OpDef, UserOp};
use super::py_func::Function;
use super::values::Values;
use crate::graph::{AnyTensor, is_grad_enabled};

/// Eager code in a program.
#[derive(Clone, Debug)]
pub(super) struct Eager {
    function: Function,
    outputs: Vec<Form>,
}

/// A `#[py_layer]` op, or a closure of eager ops.
pub(super) static EAGER: OpDef = OpDef {
    infer: |op, _| Ok(op.user::<Eager>().outputs.clone()),
    run: |op, values| op.user::<Eager>().run(values),
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
