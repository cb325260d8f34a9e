//! Padding.

use super::call::call;
use super::shape::copy;
use super::table::{
    Attr, Form, OpDef, Operator, Type, arithmetic, entries, exactly, for_programs, message, number,
};
use super::{Binary, Caller, Numeric, pairs};
use crate::array::Shape;
use crate::array::shape::element_count;
use crate::error::{Error, RECEIVER, Result};
use crate::graph::Tensor;

/// What [`Tensor::pad`] puts around a tensor.
///
/// ```
/// use autograd_core::{Padding, Tensor};
///
/// let x = Tensor::from([1, 2, 3]);
/// assert_eq!(x.pad(&[[2, 1]], Padding::Replicate).to_vec(), [1, 1, 1, 2, 3, 3]);
/// assert_eq!(x.pad(&[[2, 1]], Padding::Circular).to_vec(), [2, 3, 1, 2, 3, 1]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Padding {
    /// One number, converted to the element type as by Rust's `as`.
    Constant(f64),
    /// The elements mirrored at the first and last element, which are not repeated: `3 2 | 1 2 3 | 2 1`.
    Reflect,
    /// The first and the last element: `1 1 | 1 2 3 | 3 3`.
    Replicate,
    /// The elements from the other end: `2 3 | 1 2 3 | 1 2`.
    Circular,
}

impl Padding {
    /// Returns which of `n` elements is at a position; for a constant, any element outside.
    fn source(self, position: isize, n: usize) -> i64 {
        let n = n as isize;
        let at = match self {
            Self::Constant(_) | Self::Replicate => position.clamp(0, n - 1),
            Self::Circular => position.rem_euclid(n),
            Self::Reflect => {
                let period = (2 * (n - 1)).max(1);
                let at = position.rem_euclid(period);
                at.min(period - at).min(n - 1)
            }
        };
        at as i64
    }
}

entries! {
    PADS:

    PAD = OpDef {
        attrs: &[("widths", Type::Pairs), ("mode", Type::Int), ("value", Type::Number)],
        show: for_programs(|op| format!("widths={:?}, {:?}", op.pairs(0), padding_of(op))),
        infer: for_programs(|op, inputs| {
            let x = arithmetic(Binary::Add, exactly::<1>(inputs)?[0])?;
            let mut dims = x.dims.clone();
            let first = first_padded(dims.len(), op.pairs(0)).map_err(message)?;
            for (dim, [before, behind]) in dims[first..].iter_mut().zip(op.pairs(0)) {
                *dim = dim.map(|n| n.saturating_add(*before).saturating_add(*behind));
            }
            Ok(vec![Form::new(x.dtype, dims)])
        }),
        run: |op, x, at| number!(x, x => padded(&x, op.pairs(0), padding_of(op), at)),
        ..OpDef::new("pad")
    };
}

/// # Padding
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Pads the tensor: `widths` has `[before, after]` for each of the last axes. Elements that are
        /// mirrored or wrapped repeat several times if the padding is longer, as in NumPy.
        ///
        /// ```
        /// use autograd_core::{Padding, Tensor};
        ///
        /// let x = Tensor::from([[1, 2, 3]]);
        /// assert_eq!(x.pad(&[[1, 2]], Padding::Reflect).to_vec(), [2, 1, 2, 3, 2, 1]);
        /// assert_eq!(x.pad(&[[1, 0], [0, 1]], Padding::Constant(0.0)).to_vec(), [0, 0, 0, 0, 1, 2, 3, 0]);
        /// ```
        #[doc(alias = "pad_with_zeros")]
        pub fn pad, try_pad(&self, widths: &[[usize; 2]], padding: Padding) -> Tensor<T>,
            Count | TooLarge | Shape if "there are more pairs than axes, the result is too large, or an axis of \
                length 0 is padded with its own elements",
            use "Padding";
            "Tensor::from([1.0]).try_pad(&[[1, 0], [0, 1]], Padding::Reflect)" => Count {
            let (mode, value) = match padding {
                Padding::Constant(value) => (0, value),
                Padding::Reflect => (1, 0.0),
                Padding::Replicate => (2, 0.0),
                Padding::Circular => (3, 0.0),
            };
            let attrs = [Attr::Pairs(widths.to_vec()), Attr::Int(mode), Attr::Number(value)];
            call(&PAD, attrs, [self.untyped()])
        }
    }
}

/// Returns the first axis that is padded.
fn first_padded(rank: usize, widths: &[[usize; 2]]) -> Result<usize> {
    let what = || "pairs in `widths`, or fewer".into();
    let first = rank.checked_sub(widths.len());
    first.ok_or_else(|| Error::Count {
        op: "pad",
        what: what(),
        expected: rank,
        found: widths.len(),
    })
}

fn padding_of(op: &Operator) -> Padding {
    match op.int(1) {
        0 => Padding::Constant(op.number(2)),
        1 => Padding::Reflect,
        2 => Padding::Replicate,
        _ => Padding::Circular,
    }
}

fn padded<T: Numeric>(
    x: &Tensor<T>,
    widths: &[[usize; 2]],
    padding: Padding,
    caller: Caller,
) -> Result<Tensor<T>> {
    let op = "pad";
    let (rank, first) = (x.ndim(), first_padded(x.ndim(), widths)?);
    if widths.as_flattened().iter().all(|&width| width == 0) {
        return Ok(copy(x, caller));
    }
    let mut shape = x.shape_owned();
    for (n, [before, behind]) in shape[first..].iter_mut().zip(widths) {
        *n = n.saturating_add(*before).saturating_add(*behind);
    }
    element_count(op, &shape)?;
    let mut padded = x.clone();
    for (axis, &[before, behind]) in (first..).zip(widths) {
        let n = x.shape()[axis];
        if before + behind == 0 {
            continue;
        }
        if n == 0 {
            let Padding::Constant(value) = padding else {
                let expected = format!("of one element or more along axis {axis}");
                return Err(Error::shape(op, RECEIVER, expected, x.shape()));
            };
            let mut shape = padded.shape_owned();
            shape[axis] = before + behind;
            // Joined with the empty tensor, so that the result is in its graph.
            let constant = Tensor::full(shape, T::nearest(value));
            padded = Tensor::try_concat(&[&padded, &constant], axis as isize)?;
            continue;
        }
        let positions = -(before as isize)..(n + behind) as isize;
        let index: Vec<i64> = positions.clone().map(|at| padding.source(at, n)).collect();
        padded = padded.try_index_select(axis as isize, &Tensor::from(index))?;
        if let Padding::Constant(value) = padding {
            let inside: Vec<bool> = positions.map(|at| at >= 0 && at < n as isize).collect();
            let mut shape = Shape::from_elem(1, rank - axis);
            shape[0] = inside.len();
            let inside = Tensor::from(inside).try_reshape(shape)?;
            padded = inside.try_where_else(&padded, Tensor::from(T::nearest(value)))?;
        }
    }
    Ok(padded.apart_from(x))
}
