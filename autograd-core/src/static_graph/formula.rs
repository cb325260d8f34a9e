//! Users' elementwise ops as operators: formulas, which chains can have.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use smallvec::SmallVec;

use super::eager::{Eager, call};
use super::ir::Form;
use super::kind::Kind;
use super::py_func::Function;
use super::run::{Need, Needs, Values, typed, wanted};
use super::trace::example;
use crate::array::DType;
use crate::graph::{AnyTensor, GradMode, Tensor};
use crate::ops::elementwise::Handle;
use crate::ops::trace::{Call, Note, collect};
use crate::ops::{Float, rules};

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

    /// Whether one pass over memory can have it among others.
    pub(super) fn chains(&self) -> bool {
        for_handle!(self, op => op.chains(), false)
    }

    /// What the gradient reads of inputs of these forms, and of the outputs; `None` for an op that reduces.
    pub(super) fn reads(&self, inputs: &[&Form]) -> Option<Needs> {
        fn typed<T: Float>(op: &Handle<T>, inputs: &[&Form]) -> Option<Needs> {
            if let Some(reads) = op.reads_one() {
                return Some(reads.map(Need::of).into());
            }
            let info = op.info();
            let mut numbers = 0;
            let input = |form: &&Form| {
                if form.dtype == DType::Bool {
                    return Need::Value;
                }
                numbers += 1;
                let is_kept = info.keeps_reals.contains(&(numbers - 1));
                if is_kept { Need::Value } else { Need::Shape }
            };
            let mut needs: Needs = inputs.iter().map(input).collect();
            needs.extend((0..info.outputs).map(|at| Need::of(info.keeps_outputs.contains(&at))));
            op.chains().then_some(needs)
        }
        for_handle!(self, op => typed(op, inputs), None)
    }

    pub(super) fn run(&self, inputs: &[AnyTensor]) -> Result<Values, String> {
        fn typed<T: Float>(op: &Handle<T>, inputs: &[AnyTensor]) -> Result<Values, String> {
            let reals: Vec<&Tensor<T>> =
                inputs.iter().filter_map(AnyTensor::downcast_ref).collect();
            let masks: Vec<&Tensor<bool>> =
                inputs.iter().filter_map(AnyTensor::downcast_ref).collect();
            let caller = std::panic::Location::caller();
            let outputs = T::elementwise(op.clone(), &reals, &masks, caller);
            let outputs = outputs.map_err(|error| error.to_string())?;
            Ok(outputs.into_iter().map(AnyTensor::from).collect())
        }
        for_handle!(self, op => typed(op, inputs), Err("is an op of no float type".to_owned()))
    }

    /// The gradients of inputs `wants`.
    pub(super) fn pull<T: Float>(
        &self,
        inputs: &[Option<AnyTensor>],
        outputs: &[Option<AnyTensor>],
        dys: &mut [Option<AnyTensor>],
        wants: &[usize],
    ) -> Result<Values, String> {
        let op = self.typed::<T>().ok_or("is an op of another float type")?;
        if let Some(reads) = op.reads_one() {
            let saved = match reads {
                [true, _] => Some(typed(inputs[0].as_ref())?),
                [_, true] => Some(typed(outputs[0].as_ref())?),
                _ => None,
            };
            let dy = dys[0].take().and_then(AnyTensor::downcast);
            let dy = dy.ok_or("the gradient of its output is missing")?;
            return wanted([Some(rules::function(op, dy, saved))], wants);
        }
        let given: Option<SmallVec<[&AnyTensor; 4]>> = inputs.iter().map(Option::as_ref).collect();
        let given = given.ok_or("a value that its gradient needs is missing")?;
        let operands: SmallVec<[&Tensor<T>; 4]> =
            given.iter().filter_map(|input| input.downcast_ref()).collect();
        let masks: SmallVec<[&Tensor<bool>; 2]> =
            given.iter().filter_map(|input| input.downcast_ref()).collect();
        let results: SmallVec<[Option<&Tensor<T>>; 2]> =
            outputs.iter().map(|output| output.as_ref()?.downcast_ref()).collect();
        let mut grads: SmallVec<[Option<Tensor<T>>; 2]> =
            dys.iter_mut().map(|dy| dy.take().and_then(AnyTensor::downcast)).collect();
        // Of each input: whether it has a gradient, and that is wanted.
        let mut differentiable = op.info().differentiable.iter();
        let has = given.iter().map(|input| {
            input.downcast_ref::<T>().is_some() && differentiable.next().copied().unwrap_or(false)
        });
        let has: SmallVec<[bool; 4]> = has.collect();
        let asked = has.iter().enumerate().filter(|(_, has)| **has);
        let asked: SmallVec<[bool; 4]> = asked.map(|(input, _)| wants.contains(&input)).collect();
        let found = rules::formula(op, &operands, &masks, &results, &mut grads, &asked);
        let mut found = found.into_iter();
        let all = given.iter().zip(has).map(|(input, has)| match has {
            true => found.next().flatten(),
            false => Some(Tensor::zeros(input.shape())),
        });
        wanted(all, wants)
    }
}

/// The operator for eager code: its formula, where the code is the `apply` of an elementwise op
/// without parameters, and else whatever it does.
pub(super) fn eager_kind(function: Function, inputs: &[Form], outputs: Vec<Form>) -> Kind {
    match function.is_apply.then(|| found(&function, inputs)).flatten() {
        Some((name, op)) => Kind::Formula { name, op, outputs },
        None => Kind::Eager(Arc::new(Eager::new(function, outputs))),
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
