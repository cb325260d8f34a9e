//! Sums and copies of gradients of any element type.

use crate::array::Value;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, Lost, Tensor, for_any, for_float};
use crate::ops::Float;

/// Lets a leaf want a gradient, if it can have one.
pub(crate) fn want_gradient(leaf: &AnyTensor) {
    for_float!(leaf, leaf => leaf.set_stop_gradient(false), _ => {});
}

/// The numbers of a tensor of floats; none of other tensors.
pub(crate) fn numbers(tensor: &AnyTensor) -> Vec<f64> {
    for_float!(tensor, t => t.to_vec().into_iter().map(Float::into_f64).collect(), _ => Vec::new())
}

/// Adds a gradient to the sum so far, in place if nobody else holds the buffer.
pub(super) fn accumulate(slot: &mut Option<AnyTensor>, grad: AnyTensor) -> Result<()> {
    *slot = Some(match (slot.take(), grad) {
        (None, grad) => grad,
        (Some(AnyTensor::Float32(a)), AnyTensor::Float32(b)) => (a + b).into(),
        (Some(AnyTensor::Float64(a)), AnyTensor::Float64(b)) => (a + b).into(),
        (Some(before), grad) => {
            return Err(Error::ElementType {
                op: "backward",
                parameter: "a gradient".into(),
                expected: before.dtype(),
                found: grad.dtype(),
            });
        }
    });
    Ok(())
}

pub(super) fn own(grad: AnyTensor) -> AnyTensor {
    for_any!(grad, t => t.owned().into())
}

/// Adds to the kept gradient of a tensor.
pub(super) fn keep(tensor: &AnyTensor, grad: AnyTensor) {
    fn add<T: Float>(tensor: &Tensor<T>, grad: Tensor<T>) {
        tensor.update_grad(|before| match before {
            Some(before) => (before + grad).owned(),
            None => grad,
        });
    }
    match (tensor, grad) {
        (AnyTensor::Float32(tensor), AnyTensor::Float32(grad)) => add(tensor, grad),
        (AnyTensor::Float64(tensor), AnyTensor::Float64(grad)) => add(tensor, grad),
        _ => unreachable!("a gradient has its tensor's element type"),
    }
}

impl<T: Element> Tensor<T> {
    /// A gradient to keep: materialized, not shared, and, if the backward is recorded, still in its graph.
    pub(super) fn owned(self) -> Tensor<T> {
        let owned = match (self.would_record(), self.producer()) {
            (true, Some(_)) => self.snapshot(),
            // A seed that wants a gradient itself.
            (true, None) => self.reshape(self.shape_owned()),
            (false, _) => match self.take() {
                Ok(value) => Tensor::from_value(value),
                Err(shared) => shared.alias(),
            }
            .with_lost(Lost::of_gradient()),
        };
        owned.fixed().map(Value::materialize);
        owned
    }
}
