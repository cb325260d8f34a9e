//! Results of ops that are not recorded, and why they are outside the graph.

use std::panic::Location;

use super::any::Element;
#[cfg(debug_assertions)]
use super::context::{Events, Recording};
use super::lost_gradients::{Lost, no_derivative};
use super::mode;
#[cfg(debug_assertions)]
use super::node::notify;
use super::tensor::Tensor;
use crate::array::Value;

type Place = &'static Location<'static>;

impl Lost {
    /// Why the result of an unrecorded op on this input is outside the graph.
    #[inline]
    pub(crate) fn of<T: Element>(op: &'static str, at: Place, input: &Tensor<T>) -> Self {
        Self::of_all(op, at, [input])
    }

    #[inline]
    pub(crate) fn of_all<'t, T: Element>(
        op: &'static str,
        at: Place,
        inputs: impl IntoIterator<Item = &'t Tensor<T>>,
    ) -> Self {
        let (mut lost, mut wants) = (Self::NONE, false);
        inputs.into_iter().for_each(|input| match input.stopped_by() {
            Some(before) => lost = lost.and(before),
            None => {
                wants = true;
                #[cfg(debug_assertions)]
                if mode::recording() == Recording::CustomOp {
                    let read = (input.address(), input.shape());
                    notify(Events::UNRECORDED, |observer| observer.unrecorded(read, op, at));
                }
            }
        });
        if wants && mode::loses_gradients() { lost.and_unrecorded(op, at) } else { lost }
    }

    #[inline]
    pub(crate) fn without_derivative<T: Element>(
        op: &'static str,
        at: Place,
        input: &Tensor<T>,
    ) -> Self {
        input.stopped_by().unwrap_or_else(|| no_derivative(op, at))
    }
}

pub(crate) fn unrecorded<T: Element, U: Element>(
    name: &'static str,
    caller: Place,
    inputs: &[&Tensor<T>],
    value: Value<U>,
) -> Tensor<U> {
    let lost = Lost::of_all(name, caller, inputs.iter().copied());
    Tensor::from_value(value).with_lost(lost)
}
