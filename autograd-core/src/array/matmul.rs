//! Matrix products, by strides: a transposed operand is never copied.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, LinalgScalar, ShapeBuilder};

use super::shape::broadcast;
use super::{Shape, Storable, Value};
use crate::error::{Error, Result};

/// `a @ b`: matrices, or stacks of matrices whose leading axes broadcast. Both have at least two
/// axes.
pub(crate) fn matmul<T: Storable + LinalgScalar>(a: &Value<T>, b: &Value<T>) -> Result<Value<T>> {
    let (lead_a, [m, k]) = split(a);
    let (lead_b, [k2, n]) = split(b);
    if k != k2 {
        return Err(Error::Shape {
            op: "matmul",
            parameter: "other".into(),
            expected: format!(
                "a matrix of {k} rows, as many as the left operand of shape {:?} has columns",
                a.shape()
            ),
            found: b.shape().to_vec(),
        });
    }
    let lead = broadcast("matmul", lead_a, lead_b)?;
    let mut shape = lead.clone();
    shape.extend([m, n]);
    super::shape::element_count("matmul", &shape, size_of::<T>())?;

    let with_lead = |v: &Value<T>| {
        let mut full = lead.clone();
        full.extend_from_slice(&v.shape()[v.rank() - 2..]);
        v.broadcast_to(&full)
    };
    let (a, b) = (with_lead(a), with_lead(b));
    let (strides_a, strides_b) = (a.strides(), b.strides());
    let mut out = Value::full(shape, T::ZERO);
    let Some(data) = out.as_mut_slice() else {
        unreachable!("a new value is not shared");
    };
    if m * n * k == 0 {
        return Ok(out);
    }
    let rank = lead.len();
    for (index, block) in data.chunks_exact_mut(m * n).enumerate() {
        let (start_a, start_b) = (at(index, &lead, &strides_a), at(index, &lead, &strides_b));
        let x = ArrayView2::from_shape(
            (m, k).strides((strides_a[rank], strides_a[rank + 1])),
            &a.raw()[start_a..],
        );
        let y = ArrayView2::from_shape(
            (k, n).strides((strides_b[rank], strides_b[rank + 1])),
            &b.raw()[start_b..],
        );
        let z = ArrayViewMut2::from_shape((m, n), block);
        let (Ok(x), Ok(y), Ok(mut z)) = (x, y, z) else {
            unreachable!("a value's strides stay inside its buffer");
        };
        general_mat_mul(T::one(), &x, &y, T::zero(), &mut z);
    }
    Ok(out)
}

fn split<T: Storable>(v: &Value<T>) -> (&[usize], [usize; 2]) {
    let (lead, last) = v.shape().split_at(v.rank() - 2);
    (lead, [last[0], last[1]])
}

/// Where matrix `index` of a stack starts.
fn at(mut index: usize, lead: &Shape, strides: &[usize]) -> usize {
    let mut start = 0;
    for (&n, &stride) in lead.iter().zip(strides).rev() {
        start += index % n * stride;
        index /= n;
    }
    start
}
