//! Inference: the forms of an operator's outputs from those of its inputs, or why there are none.

use super::form::{Dims, Form, ShapeOf};
use super::values::message;
use super::{Inferred, Operator};
use crate::array::{DType, shape};
use crate::error::Plural;
use crate::ops::names::{Binary, takes_integers};

/// Returns the form of the only input, which must have a float type.
pub(crate) fn same_float(_: &Operator, inputs: &[&Form]) -> Inferred {
    let [x] = exactly(inputs)?;
    Ok(vec![float(x)?.clone()])
}

/// As [`same_float`], for an op along the axis that is its first attribute.
pub(crate) fn float_along(op: &Operator, inputs: &[&Form]) -> Inferred {
    float(exactly::<1>(inputs)?[0])?;
    same_along(op, inputs)
}

/// As [`float_along`], for any element type.
pub(crate) fn same_along(op: &Operator, inputs: &[&Form]) -> Inferred {
    let [x] = exactly(inputs)?;
    position(op.int(0), x.dims.len())?;
    Ok(vec![x.clone()])
}

/// Returns the form of floats that are reduced along the axes that are the first attribute.
pub(crate) fn float_reduced(op: &Operator, inputs: &[&Form]) -> Inferred {
    let [x] = exactly(inputs)?;
    Ok(vec![Form::new(float(x)?.dtype, reduced(&x.dims, op.ints(0), false)?)])
}

pub(crate) fn exactly<'a, const N: usize>(inputs: &[&'a Form]) -> Result<[&'a Form; N], String> {
    let takes = Plural(N, "input", "inputs");
    inputs.try_into().map_err(|_| format!("takes {takes}, found {}", inputs.len()))
}

pub(crate) fn float(x: &Form) -> Result<&Form, String> {
    if x.dtype.is_float() {
        return Ok(x);
    }
    Err(format!("takes float32 or float64, found {}; `cast(DType::Float64)` converts it", x.dtype))
}

pub(crate) fn arithmetic(op: Binary, x: &Form) -> Result<&Form, String> {
    match (op, x.dtype) {
        (op, _) if !takes_integers(op) => float(x),
        (_, DType::Bool) => Err("takes numbers, found bool".to_owned()),
        _ => Ok(x),
    }
}

pub(crate) fn same_dtype(a: &Form, b: &Form) -> Result<(), String> {
    if a.dtype == b.dtype {
        return Ok(());
    }
    Err(format!("its element types differ: {} and {}; cast one", a.dtype, b.dtype))
}

pub(crate) fn broadcast(a: &[Option<usize>], b: &[Option<usize>]) -> Result<Dims, String> {
    let rank = a.len().max(b.len());
    let at = |dims: &[Option<usize>], i: usize| {
        (i + dims.len()).checked_sub(rank).map_or(Some(1), |k| dims[k])
    };
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (Some(x), Some(y)) if x == y => Ok(Some(x)),
            (Some(1), other) | (other, Some(1)) => Ok(other),
            // In a run, the free axis must have this length, or 1.
            (None, other) | (other, None) => Ok(other),
            (Some(_), Some(_)) => Err(format!(
                "shapes {} and {} cannot be broadcast together",
                ShapeOf(a),
                ShapeOf(b)
            )),
        })
        .collect()
}

pub(crate) fn position(axis: isize, rank: usize) -> Result<usize, String> {
    shape::axis("", axis, rank).map_err(message)
}

pub(crate) fn reduced(dims: &[Option<usize>], axes: &[isize], keep: bool) -> Result<Dims, String> {
    let removed = shape::axes("", axes, dims.len()).map_err(message)?;
    let length = |(at, &dim): (usize, &Option<usize>)| match removed.contains(&at) {
        true => keep.then_some(Some(1)),
        false => Some(dim),
    };
    Ok(dims.iter().enumerate().filter_map(length).collect())
}
