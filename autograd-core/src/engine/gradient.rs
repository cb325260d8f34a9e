//! Sums and copies of gradients, of whatever element type.

use crate::error::{Error, Result};
use crate::graph::AnyTensor;

/// Adds a gradient to what came before, in its buffer where nobody else holds it.
pub(super) fn accumulate(slot: &mut Option<AnyTensor>, grad: AnyTensor) -> Result<()> {
    *slot = Some(match slot.take() {
        Some(before) => sum(before, grad)?,
        None => grad,
    });
    Ok(())
}

fn sum(a: AnyTensor, b: AnyTensor) -> Result<AnyTensor> {
    match (a, b) {
        (AnyTensor::Float32(a), AnyTensor::Float32(b)) => Ok((a + b).into()),
        (AnyTensor::Float64(a), AnyTensor::Float64(b)) => Ok((a + b).into()),
        (a, b) => Err(Error::ElementType {
            op: "backward",
            parameter: "a gradient".into(),
            expected: a.dtype(),
            found: b.dtype(),
        }),
    }
}

/// A gradient to keep; see [`Tensor::owned`](crate::Tensor::owned).
pub(super) fn own(grad: AnyTensor) -> AnyTensor {
    match grad {
        AnyTensor::Float32(grad) => grad.owned().into(),
        AnyTensor::Float64(grad) => grad.owned().into(),
        other => other,
    }
}
