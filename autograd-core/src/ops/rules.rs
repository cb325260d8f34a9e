//! The rules of common ops without a node, for a walk that keeps operands itself.

use std::ops::Range;

use super::elementwise::Handle;
use super::{Binary, Float, Input, binary as two, matmul as product};
use crate::array::matmul::{by_rows, plus_row};
use crate::error::Result;
use crate::graph::Tensor;

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
    let shapes = (!same).then(|| Box::new([a.shape_owned(), b.shape_owned()]));
    two::pull((op, Some(a.clone()), Some(b.clone()), shapes), dy, wants)
}

/// `dx` of `x op s`, or of `s op x` where `swapped`.
pub(crate) fn binary_scalar<T: Float>(
    op: Binary,
    x: &Tensor<T>,
    s: T,
    swapped: bool,
    dy: Tensor<T>,
) -> Result<[Option<Tensor<T>>; 1]> {
    two::pull_scalar(((op, s, swapped), Some(x.clone())), dy, [true])
}

/// `da` and `db` of the matrix product.
pub(crate) fn matmul<T: Float>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    dy: Tensor<T>,
    wants: [bool; 2],
) -> Result<[Option<Tensor<T>>; 2]> {
    let shapes = (a.shape_owned(), b.shape_owned());
    product::pull((Some(a.clone()), Some(b.clone()), shapes), dy, wants)
}

/// `a b + row` of two matrices and a row, computed at once; `None` where they are others.
pub(crate) fn product_plus_row<T: Float>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    row: &Tensor<T>,
) -> Option<Tensor<T>> {
    plus_row(&a.read(), &b.read(), &row.read()).map(Tensor::new)
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
