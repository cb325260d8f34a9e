//! The rules of common ops without a node, for a walk that keeps operands itself.

use std::ops::Range;

use smallvec::SmallVec;

use super::elementwise::{Handle, Reduction};
use super::nn::activation;
use super::{Binary, Float, Input, binary as two, matmul as product};
use crate::array::Shape;
use crate::array::matmul::by_rows;
use crate::error::Result;
use crate::graph::Tensor;

impl<T> Handle<T> {
    /// Whether its results have the shape of what it reads, so that a chain can have it and its
    /// gradients.
    pub(crate) fn chains(&self) -> bool {
        matches!(self.info().reduction, Reduction::None)
    }

    /// What the gradient of an op of one tensor reads: its input, its output; `None` for an op of
    /// another kind.
    pub(crate) fn reads_one(&self) -> Option<[bool; 2]> {
        let info = self.info();
        let kept = [!info.keeps_reals.is_empty(), !info.keeps_outputs.is_empty()];
        super::elementwise::is_single(info).then_some(kept)
    }
}

/// `dx` of a function of each element, from what [`Handle::reads_one`] names.
pub(crate) fn function<T: Float>(
    op: &Handle<T>,
    dy: Tensor<T>,
    saved: Option<&Tensor<T>>,
) -> Tensor<T> {
    super::elementwise::gradient(op, dy, saved.map(Input::Ref))
}

/// `da` and `db` of `a op b`, of their own shapes.
pub(crate) fn binary<T: Float>(
    op: Binary,
    a: &Tensor<T>,
    b: &Tensor<T>,
    dy: Tensor<T>,
    wants: [bool; 2],
) -> Result<[Option<Tensor<T>>; 2]> {
    let same = a.shape() == b.shape();
    let shapes = (!same).then(|| [a.shape_owned(), b.shape_owned()]);
    two::pull_pair(op, [Some(a), Some(b)], shapes.as_ref(), dy, wants)
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

/// The gradients of what a mask chose from, of these shapes.
pub(crate) fn choice<T: Float>(
    mask: &Tensor<bool>,
    dy: &Tensor<T>,
    shapes: [&[usize]; 2],
    wants: [bool; 2],
) -> [Option<Tensor<T>>; 2] {
    super::compare::chosen(mask, dy, shapes, wants)
}

/// By what dropout multiplies a tensor of this shape; `p` is a probability above 0.
pub(crate) fn dropout_mask<T: Float>(shape: &[usize], p: f64) -> Tensor<T> {
    activation::dropout_mask(Shape::from_slice(shape), p)
}

/// What dropout makes of a tensor, or of its gradient, with these factors.
pub(crate) fn dropped<T: Float>(x: &Tensor<T>, factors: &Tensor<T>) -> Tensor<T> {
    activation::dropped(x, factors, std::panic::Location::caller())
}

/// `dx` of `x op s`, or of `s op x` where `swapped`.
pub(crate) fn binary_scalar<T: Float>(
    op: Binary,
    x: &Tensor<T>,
    s: T,
    swapped: bool,
    dy: Tensor<T>,
) -> Result<[Option<Tensor<T>>; 1]> {
    Ok([Some(two::scalar_gradient((op, s, swapped), Some(x), dy))])
}

/// `da` and `db` of the matrix product.
pub(crate) fn matmul<T: Float>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    dy: Tensor<T>,
    wants: [bool; 2],
) -> Result<[Option<Tensor<T>>; 2]> {
    product::pull((Some(a.clone()), Some(b.clone()), product::shapes(a, b)), dy, wants)
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
