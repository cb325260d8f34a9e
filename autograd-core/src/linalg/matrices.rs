//! Tensors as stacks of matrices, and the checks of their shapes.

use nalgebra::DMatrix;

use crate::array::shape::broadcast;
use crate::error::{Error, Result};
use crate::graph::{Composite, Tensor};
use crate::ops::Float;

fn to_rows(matrix: &DMatrix<f64>) -> Vec<f64> {
    matrix.transpose().as_slice().to_vec()
}

pub(super) fn stack<T: Float>(x: &Tensor<T>) -> &[usize] {
    &x.shape()[..x.ndim() - 2]
}

/// An op and its parameter, for errors.
pub(super) type Names = [&'static str; 2];

pub(super) fn square<T: Float>([op, name]: Names, a: &Tensor<T>) -> Result<usize> {
    match a.shape() {
        [.., m, n] if m == n => Ok(*n),
        found => Err(Error::shape(op, name, "a square matrix [n, n], or a stack of them", found)),
    }
}

pub(super) fn sides<T: Float>(op: &'static str, a: &Tensor<T>) -> Result<[usize; 2]> {
    match a.shape() {
        [.., m, n] => Ok([*m, *n]),
        found => Err(Error::shape(op, "a", "a matrix [m, n], or a stack of them", found)),
    }
}

/// Runs `op` on `a` and `b` with their leading axes broadcast; a vector `b` becomes a column, and back.
#[track_caller]
pub(super) fn with_columns<T: Float>(
    [op, name]: Names,
    a: &Tensor<T>,
    b: &Tensor<T>,
    run: impl FnOnce(&Tensor<T>, &Tensor<T>) -> Result<Tensor<T>>,
) -> Result<Tensor<T>> {
    let rows = a.shape()[a.ndim() - 2];
    let column = if b.ndim() == 1 { &b.unsqueeze(1) } else { b };
    let rank = column.ndim();
    if rank < 2 || column.shape()[rank - 2] != rows {
        let expected = format!("of shape [{rows}] or [.., {rows}, k], as `{name}` has {rows} rows");
        return Err(Error::shape(op, "b", expected, b.shape()));
    }
    let stack = broadcast(op, stack(a), stack(column))?;
    let _composite = Composite::here(op);
    let all = |x: &Tensor<T>| {
        let shape = [&stack[..], &x.shape()[x.ndim() - 2..]].concat();
        if x.shape() == shape { x.clone() } else { x.broadcast_to(shape) }
    };
    let x = run(&all(a), &all(column))?;
    Ok(if b.ndim() == 1 { x.squeeze(-1) } else { x })
}

#[track_caller]
pub(super) fn matrices<T: Float>(op: &'static str, x: &Tensor<T>) -> Vec<DMatrix<f64>> {
    x.is_read(op);
    let (count, rank) = (stack(x).iter().product(), x.ndim());
    let (m, n) = (x.shape()[rank - 2], x.shape()[rank - 1]);
    let data: Vec<f64> = T::to_vec(x).into_iter().map(T::into_f64).collect();
    (0..count).map(|at| DMatrix::from_row_slice(m, n, &data[at * m * n..][..m * n])).collect()
}

pub(super) const INVERTIBLE: [&str; 2] = ["with an inverse", "a singular one"];

/// Joins column-major matrices to a tensor; an error names the first that is missing.
pub(super) fn stacked<T: Float>(
    names: Names,
    words: [&str; 2],
    shape: &[usize],
    matrices: impl Iterator<Item = Option<DMatrix<f64>>>,
) -> Result<Tensor<T>> {
    let mut data = Vec::new();
    for (at, matrix) in matrices.enumerate() {
        let matrix = matrix.ok_or_else(|| refused(names, words, at))?;
        data.extend(to_rows(&matrix).into_iter().map(T::from_f64));
    }
    Tensor::from_vec(shape, data)
}

/// The error about a matrix of a stack.
pub(super) fn refused([op, name]: Names, [expected, found]: [&str; 2], at: usize) -> Error {
    let expected = format!("a matrix, or a stack of matrices, {expected}");
    let place = if at == 0 { String::new() } else { format!(" (matrix {at} of the stack)") };
    Error::value(op, name, expected, format!("{found}{place}"))
}

/// The factors of each matrix, with these last axes; all are empty if the matrices are.
pub(super) fn factored<T: Float, const N: usize>(
    op: &'static str,
    a: &Tensor<T>,
    last_axes: [&[usize]; N],
    factors: impl Fn(DMatrix<f64>) -> Option<[DMatrix<f64>; N]>,
) -> Result<[Tensor<T>; N]> {
    let mut data = [(); N].map(|()| Vec::new());
    for (at, matrix) in matrices(op, a).into_iter().enumerate() {
        if !matrix.iter().all(|x| x.is_finite()) {
            let words = ["of finite numbers", "one with NaN or infinity"];
            return Err(refused([op, "a"], words, at));
        }
        if matrix.is_empty() {
            continue;
        }
        let words = ["whose factors converge", "one whose factors do not"];
        let found = factors(matrix).ok_or_else(|| refused([op, "a"], words, at))?;
        for (data, factor) in data.iter_mut().zip(&found) {
            data.extend(to_rows(factor).into_iter().map(T::from_f64));
        }
    }
    let mut results = Vec::new();
    for (data, last) in data.into_iter().zip(last_axes) {
        results.push(Tensor::from_vec([stack(a), last].concat(), data)?);
    }
    Ok(results.try_into().expect("one for each factor"))
}

/// The largest difference of equal values: `size` roundings of the largest.
pub(super) fn tolerance<T: Float>(values: &[T], size: usize) -> T {
    let largest = values.iter().fold(T::zero(), |most, x| most.max(x.abs()));
    T::from_f64(size as f64) * T::epsilon() * largest
}

/// 0 for each row of values that are above rounding, NaN for a row with one that is not: `[.., 1]`.
pub(super) fn full_rank_mark<T: Float>(values: &Tensor<T>, size: usize) -> Result<Tensor<T>> {
    let mut shape = values.shape().to_vec();
    let count = std::mem::replace(&mut shape[values.ndim() - 1], 1);
    if count == 0 {
        return Ok(Tensor::zeros(shape));
    }
    let is_zero = |row: &[T]| row.iter().any(|x| x.abs() <= tolerance(row, size));
    let mark = |row| if is_zero(row) { T::nan() } else { T::zero() };
    Tensor::from_vec(shape, T::to_vec(values).chunks(count).map(mark).collect())
}
