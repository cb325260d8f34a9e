//! Matrix products, by strides: a transposed operand is never copied.

use super::gemm::{FloatMultiply, Matrix, at_once};
use super::integer::Overflow;
use super::shape::{broadcast, broadcast_strides, copied, element_count, offset};
use super::threads::each_chunk_of;
use super::{Shape, Storable, Value};
use crate::error::Result;

/// `c = a b`, where `a` is m by k, `b` k by n, and `c` row-major m by n, with unspecified content. Overflow is
/// recorded.
pub type MatrixProduct<T> = fn([usize; 3], Matrix<'_, T>, Matrix<'_, T>, &mut [T], &Overflow);

/// `a @ b`, for matrices or stacks of them that fit each other, whose leading axes broadcast.
pub fn matmul<T: Storable>(
    a: &Value<T>,
    b: &Value<T>,
    product: MatrixProduct<T>,
) -> Result<Value<T>> {
    let (lead_a, [m, k]) = split(a);
    let (lead_b, [_, n]) = split(b);
    let lead = broadcast("matmul", lead_a, lead_b)?;
    let mut shape = copied(&lead);
    [m, n].into_iter().for_each(|side| shape.push(side));
    element_count("matmul", &shape)?;

    if m * n * k == 0 {
        return Ok(Value::full(shape, T::ZERO));
    }
    let (steps_a, steps_b) = (a.strides(), b.strides());
    let from_a = broadcast_strides(lead_a, &steps_a[..lead_a.len()], &lead);
    let from_b = broadcast_strides(lead_b, &steps_b[..lead_b.len()], &lead);
    let (raw_a, raw_b) = (a.raw(), b.raw());
    let overflow = Overflow::default();
    let products = |first: usize, data: &mut [T]| {
        for (index, block) in (first..).zip(data.chunks_exact_mut(m * n)) {
            let start = |strides: &Shape| offset(index, &lead, strides);
            let x = operand(&raw_a[start(&from_a)..], &steps_a[lead_a.len()..]);
            let y = operand(&raw_b[start(&from_b)..], &steps_b[lead_b.len()..]);
            product([m, k, n], x, y, block, &overflow);
        }
    };
    let value = Value::written(shape, &mut |data| {
        let count = at_once([m, k, n], data.len() / (m * n));
        each_chunk_of(data.len() * k, data, count * m * n, &|part, data| {
            products(part * count, data);
        });
    });
    overflow.check::<T>("matmul")?;
    Ok(value)
}

/// The product of two matrices, each optionally transposed; the same numbers as [`matmul`]. `None` if an
/// operand is not a matrix or the sizes do not match.
pub fn matrix_product<T: FloatMultiply>(
    operands: [&Value<T>; 2],
    transposed: [bool; 2],
) -> Option<Value<T>> {
    let sizes = [0, 1].map(|i| match (operands[i].shape(), transposed[i]) {
        (&[rows, columns], false) | (&[columns, rows], true) => Some([rows, columns]),
        _ => None,
    });
    let [Some([m, k]), Some([k2, n])] = sizes else { return None };
    if k != k2 || m * n * k == 0 {
        return None;
    }
    element_count("matmul", &[m, n]).ok()?;
    let [a, b] = [0, 1].map(|i| {
        let matrix = operand(operands[i].raw(), &operands[i].strides());
        if transposed[i] { matrix.transposed() } else { matrix }
    });
    Some(Value::written(copied(&[m, n]), &mut |out| T::float_product([m, k, n], a, b, out, n)))
}

fn operand<'a, T>(data: &'a [T], strides: &[usize]) -> Matrix<'a, T> {
    Matrix { data, rows: strides[0], columns: strides[1] }
}

fn split<T: Storable>(v: &Value<T>) -> (&[usize], [usize; 2]) {
    let (lead, last) = v.shape().split_at(v.rank() - 2);
    (lead, [last[0], last[1]])
}
