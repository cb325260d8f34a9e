//! Eager calls of ops of the table.

use std::panic::Location;

use super::table::attr::Attr;
use super::table::values::{self, Fault, Values};
use super::table::{OpDef, Operator};
use super::{Caller, trace};
use crate::array::Value;
use crate::error::Result;
use crate::graph::{AnyTensor, Composite, Element, Rule, Tensor, finish, is_noting};

/// Runs an op on eager tensors and returns its first result. An active trace notes the call.
#[track_caller]
pub(crate) fn call<T: Element, const N: usize>(
    def: &'static OpDef,
    attrs: [Attr; N],
    inputs: impl IntoIterator<Item = AnyTensor>,
) -> Result<Tensor<T>> {
    call_at(def, attrs, inputs, Location::caller())
}

pub(crate) fn call_at<T: Element, const N: usize>(
    def: &'static OpDef,
    attrs: [Attr; N],
    inputs: impl IntoIterator<Item = AnyTensor>,
    caller: Caller,
) -> Result<Tensor<T>> {
    first_as(def, call_any(def, attrs.into(), inputs.into_iter().collect(), caller))
}

fn first_as<T: Element>(def: &OpDef, result: Result<AnyTensor>) -> Result<Tensor<T>> {
    Ok(T::unwrap(result?).unwrap_or_else(|| unreachable!("{} has results of this type", def.name)))
}

pub(super) fn call_any(
    def: &'static OpDef,
    attrs: Vec<Attr>,
    inputs: Values,
    caller: Caller,
) -> Result<AnyTensor> {
    let op = Operator::new(def, attrs);
    let run = |inputs| {
        let _composite = Composite::at(caller);
        match (def.run)(&op, inputs, caller) {
            Ok(results) => Ok(values::first(results)),
            Err(Fault::Eager(error)) => Err(error),
            Err(Fault::Words(why)) => unreachable!("{}: {why}", def.name),
        }
    };
    if !is_noting() {
        return run(inputs);
    }
    let (attrs, noted) = (op.attrs.clone(), inputs.to_vec());
    trace::noted(
        trace::NotedCall::Op { def, attrs },
        noted,
        caller,
        || run(inputs),
        |y| vec![y.clone()],
    )
}

/// Creates the result of an op that is linear in its one tensor. From `kept`, `back` computes the
/// input's gradient, and `along` the output's tangent, whose shape is its last argument.
pub(super) fn linear<T: Element, K: Clone + Send + Sync + 'static>(
    name: &'static str,
    caller: Caller,
    x: &Tensor<T>,
    value: Value<T>,
    kept: K,
    // Not function pointers: a generic function is not compiled for elements without gradients.
    back: impl Fn(K, Tensor<T>) -> Result<Tensor<T>> + Send + Sync + 'static,
    along: impl Fn(K, &Tensor<T>, &[usize]) -> Result<Tensor<T>> + Send + Sync + 'static,
) -> Tensor<T> {
    finish(name, caller, &[x], value, || {
        let again = kept.clone();
        Rule::new([], move |_, dy, _| Ok([Some(back(kept.clone(), dy)?)])).with_push(
            move |_, tangents, shape| {
                tangents[0].as_ref().map(|dx| along(again.clone(), dx, shape)).transpose()
            },
        )
    })
}
