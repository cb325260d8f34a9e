//! Shapes, strides and the arithmetic of broadcasting.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::error::{Error, Result};

/// Lengths of the axes; up to four are stored inline.
pub type Shape = SmallVec<[usize; 4]>;

/// The number of elements of a shape. Written out by rank: a loop would be vectorized wherever it is inlined.
#[inline]
pub fn count(shape: &[usize]) -> usize {
    match *shape {
        [] => 1,
        [a] => a,
        [a, b] => a * b,
        [a, b, c] => a * b * c,
        _ => count_any(shape),
    }
}

#[inline(never)]
fn count_any(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// A copy of a shape. Written out by rank: a call to copy sixteen bytes costs more than the copy.
#[inline]
pub fn copied(shape: &[usize]) -> Shape {
    match *shape {
        [] => Shape::new(),
        [a] => Shape::from_buf_and_len([a, 0, 0, 0], 1),
        [a, b] => Shape::from_buf_and_len([a, b, 0, 0], 2),
        [a, b, c] => Shape::from_buf_and_len([a, b, c, 0], 3),
        [a, b, c, d] => Shape::from_buf([a, b, c, d]),
        _ => Shape::from_slice(shape),
    }
}

/// Writes a shape over another, number by number: a shape built elsewhere and moved here is read
/// back with wider loads than it was written with, and the processor stalls on them.
#[inline(always)]
pub fn assign(to: &mut Shape, from: &[usize]) {
    match (&mut to[..], from) {
        ([], []) => {}
        ([a], [x]) => *a = *x,
        ([a, b], [x, y]) => (*a, *b) = (*x, *y),
        ([a, b, c], [x, y, z]) => (*a, *b, *c) = (*x, *y, *z),
        _ => assign_any(to, from),
    }
}

#[cold]
fn assign_any(to: &mut Shape, from: &[usize]) {
    *to = copied(from);
}

/// Whether two shapes are equal. Written out for the same reason as [`copied`].
#[inline]
pub fn same(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(m, n)| m == n)
}

const MAX_ELEMENT_BYTES: usize = 8;

/// The number of elements; an error if they would not fit the address space. Every shape of a
/// tensor was checked here, or is no larger than one that was. So no product of lengths overflows
/// anywhere else, in bytes or after a cast either.
pub fn element_count(op: &'static str, shape: &[usize]) -> Result<usize> {
    // Axes of length 0 do not exempt the others: strides are computed from them too.
    let span = shape
        .iter()
        .filter(|&&n| n != 0)
        .try_fold(MAX_ELEMENT_BYTES, |product, &n| product.checked_mul(n))
        .filter(|&span| span <= isize::MAX as usize);
    match span {
        Some(_) => Ok(count(shape)),
        None => Err(Error::TooLarge { op, shape: shape.to_vec() }),
    }
}

pub fn row_major(shape: &[usize]) -> Shape {
    if let [_, n] = *shape {
        return copied(&[n.max(1), 1]);
    }
    let mut strides = Shape::from_elem(0, shape.len());
    let mut step = 1;
    for (stride, &n) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step *= n.max(1);
    }
    strides
}

/// The offset in the buffer of the element at `place` in row-major order.
pub fn offset(mut place: usize, shape: &[usize], strides: &[usize]) -> usize {
    let mut at = 0;
    for (&n, &stride) in shape.iter().zip(strides).rev() {
        at += place % n * stride;
        place /= n;
    }
    at
}

/// The strides that read data of `shape` as if it had the shape `to`: 0 along broadcast axes.
pub fn broadcast_strides(shape: &[usize], strides: &[usize], to: &[usize]) -> Shape {
    let skipped = to.len() - shape.len();
    (0..to.len())
        .map(|i| match i.checked_sub(skipped) {
            Some(k) if shape[k] != 1 || to[i] == 1 => strides[k],
            _ => 0,
        })
        .collect()
}

pub fn is_row_major(shape: &[usize], strides: &[usize]) -> bool {
    let mut step = 1;
    for (&n, &stride) in shape.iter().zip(strides).rev() {
        if n != 1 {
            if stride != step {
                return false;
            }
            step *= n;
        }
    }
    true
}

/// The common shape of two operands (NumPy's rule: align right, 1 broadcasts).
pub fn broadcast(op: &'static str, a: &[usize], b: &[usize]) -> Result<Shape> {
    let rank = a.len().max(b.len());
    let mut out = Shape::from_elem(1, rank);
    for (i, n) in out.iter_mut().enumerate() {
        let of = |s: &[usize]| (i + s.len()).checked_sub(rank).map_or(1, |k| s[k]);
        *n = match (of(a), of(b)) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => {
                return Err(Error::Broadcast { op, left: a.to_vec(), right: b.to_vec() });
            }
        };
    }
    if !same(&out, a) && !same(&out, b) {
        element_count(op, &out)?;
    }
    Ok(out)
}

pub fn axis(op: &'static str, axis: isize, rank: usize) -> Result<usize> {
    let position = if axis < 0 { axis + rank as isize } else { axis };
    if position < 0 || position >= rank as isize {
        return Err(Error::Axis { op, axis, rank, why: "does not exist" });
    }
    Ok(position as usize)
}

/// Converts possibly negative axes to sorted positions; an empty list means all axes.
pub fn axes(op: &'static str, given: &[isize], rank: usize) -> Result<Shape> {
    let mut out = Shape::new();
    for &a in given {
        let position = axis(op, a, rank)?;
        if out.contains(&position) {
            return Err(Error::Axis { op, axis: a, rank, why: "is given twice" });
        }
        out.push(position);
    }
    if given.is_empty() {
        out.extend(0..rank);
    }
    out.sort_unstable();
    Ok(out)
}

/// The positions of `len` items in order; equal ones keep theirs. Sorts are long to compile: this is one for
/// all that need no speed.
pub fn sorted(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}
