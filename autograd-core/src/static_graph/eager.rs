//! Eager code as an operator: `#[py_layer]` ops, closures of eager ops, and users' elementwise ops. What they
//! compute, and what their gradients are, is left to the eager engine.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::ir::Eager;
use super::py_func::Function;
use super::values::{Computed, Values, panic_message};
use crate::graph::{AnyTensor, GradMode, is_grad_enabled};
use crate::ops::trace::{Note, collect};

impl Eager {
    pub(super) fn run(&self, inputs: Values) -> Computed<Values> {
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

fn call(function: &Function, inputs: Values) -> Computed<Values> {
    let inputs: Vec<_> = inputs.into_iter().map(Some).collect();
    let outputs = (function.call)(&inputs)?;
    outputs.into_iter().map(|output| output.ok_or_else(|| "returned nothing".to_owned())).collect()
}

/// Has gradients flow to a value, if it can have one.
pub(super) fn want_gradient(value: &AnyTensor) {
    match value {
        AnyTensor::Float32(value) => value.set_stop_gradient(false),
        AnyTensor::Float64(value) => value.set_stop_gradient(false),
        _ => {}
    }
}

/// Runs eager code on examples while a program is built, and notes its ops. A panic is an error.
pub(super) fn on_examples(
    function: &Function,
    inputs: Values,
    recorded: bool,
) -> Computed<(Values, Vec<Note>)> {
    let run = || GradMode::of(recorded, || collect(|| call(function, inputs)));
    let (outputs, notes) =
        catch_unwind(AssertUnwindSafe(run)).map_err(|panic| panic_message(&*panic))?;
    Ok((outputs?, notes))
}
