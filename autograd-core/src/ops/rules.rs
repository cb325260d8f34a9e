//! The rules of common ops without a node, for a walk that keeps operands itself.

use std::ops::Range;

use smallvec::SmallVec;

use super::elementwise::Handle;
use super::{Float, Input};
use crate::array::matmul::by_rows;
use crate::graph::Tensor;

/// `dx` of a function of each element, from what [`Handle::reads_one`] names.
pub(crate) fn function<T: Float>(
    op: &Handle<T>,
    dy: Tensor<T>,
    saved: Option<&Tensor<T>>,
) -> Tensor<T> {
    super::elementwise::gradient(op, dy, saved.map(Input::Ref))
}

/// The gradients of an op's differentiable operands, as far as they are wanted, from all operands and
/// masks, from those outputs that [`Info::keeps_outputs`](super::elementwise::Info) names, and from
/// the gradients of the outputs.
pub(crate) fn formula<T: Float>(
    op: &Handle<T>,
    operands: &[&Tensor<T>],
    masks: &[&Tensor<bool>],
    outputs: &[Option<&Tensor<T>>],
    grads: &mut [Option<Tensor<T>>],
    wanted: &[bool],
) -> SmallVec<[Option<Tensor<T>>; 2]> {
    super::elementwise::gradients_of(op.clone(), (operands, masks), outputs, grads, wanted)
}

/// Hands `aᵀ b` over in blocks of whole rows, of about `part` elements each: where they stand, and
/// what they are.
pub(crate) fn product_by_rows<T: Float>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    part: usize,
    take: &mut impl FnMut(Range<usize>, &[T]),
) {
    let (a, b) = (a.read(), b.read());
    by_rows(&a, &b, part, take);
}
