//! The forms of what operators compute, from those of what they read, or why there are none.

use std::panic::Location;

use super::form::{Dims, Form, ShapeOf};
use super::ir::Inferred;
use crate::array::DType;
use crate::graph::{AnyTensor, OfElements, Tensor, for_any};
use crate::ops::{Binary, Conv2dOptions, conv2d_shape};

pub(super) fn exactly<'a, const N: usize>(inputs: &[&'a Form]) -> Result<[&'a Form; N], String> {
    inputs.try_into().map_err(|_| format!("takes {N} inputs, found {}", inputs.len()))
}

pub(super) fn float(x: &Form) -> Result<&Form, String> {
    if x.dtype.is_float() {
        return Ok(x);
    }
    Err(format!("takes float32 or float64, found {}; `cast(DType::Float64)` converts it", x.dtype))
}

pub(super) fn arithmetic(op: Binary, x: &Form) -> Result<&Form, String> {
    match (op, x.dtype) {
        (Binary::Pow, _) => float(x),
        (_, DType::Bool) => Err("takes numbers, found bool".to_owned()),
        _ => Ok(x),
    }
}

/// A number as a scalar of an element type, or why it is none.
pub(super) fn number(dtype: DType, number: f64) -> Result<AnyTensor, String> {
    let at = Location::caller();
    let cast = f64::cast_to(&Tensor::from(number), dtype, at);
    let same = for_any!(&cast, cast => cast.cast::<f64>().item()) == number;
    if dtype.is_float() || same {
        return Ok(cast);
    }
    Err(format!("{dtype} cannot hold the number {number:?}"))
}

pub(super) fn same_dtype(a: &Form, b: &Form) -> Result<(), String> {
    if a.dtype == b.dtype {
        return Ok(());
    }
    Err(format!("its element types differ: {} and {}; cast one", a.dtype, b.dtype))
}

pub(super) fn broadcast(a: &[Option<usize>], b: &[Option<usize>]) -> Result<Dims, String> {
    let rank = a.len().max(b.len());
    let at = |dims: &[Option<usize>], i: usize| {
        (i + dims.len()).checked_sub(rank).map_or(Some(1), |k| dims[k])
    };
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (Some(x), Some(y)) if x == y => Ok(Some(x)),
            (Some(1), other) | (other, Some(1)) => Ok(other),
            // A free axis that meets a longer one must have its length, or 1.
            (None, other) | (other, None) => Ok(other),
            (Some(_), Some(_)) => Err(format!(
                "shapes {} and {} cannot be broadcast together",
                ShapeOf(a),
                ShapeOf(b)
            )),
        })
        .collect()
}

pub(super) fn matmul(a: &[Option<usize>], b: &[Option<usize>]) -> Result<Dims, String> {
    if a.is_empty() || b.is_empty() {
        return Err("takes vectors, matrices or stacks of matrices, found a scalar".to_owned());
    }
    let (rows, k) = (a.len().checked_sub(2).map(|i| a[i]), a[a.len() - 1]);
    let (k2, columns) = match b.len().checked_sub(2) {
        Some(i) => (b[i], Some(b[i + 1])),
        None => (b[0], None),
    };
    if let (Some(k), Some(k2)) = (k, k2)
        && k != k2
    {
        return Err(format!("the inner lengths differ: {k} and {k2}"));
    }
    let lead = |dims: &[Option<usize>]| Dims::from_slice(&dims[..dims.len().saturating_sub(2)]);
    let mut out = broadcast(&lead(a), &lead(b))?;
    out.extend(rows);
    out.extend(columns);
    Ok(out)
}

/// A possibly negative axis as a position.
pub(super) fn position(axis: isize, rank: usize) -> Result<usize, String> {
    let position = if axis < 0 { axis + rank as isize } else { axis };
    usize::try_from(position).ok().filter(|&position| position < rank).ok_or_else(|| {
        format!(
            "axis {axis} does not exist (there {} {rank})",
            if rank == 1 { "is" } else { "are" }
        )
    })
}

pub(super) fn reduced(dims: &[Option<usize>], axes: &[isize], keep: bool) -> Result<Dims, String> {
    let mut gone = vec![axes.is_empty(); dims.len()];
    for &axis in axes {
        let position = position(axis, dims.len())?;
        if std::mem::replace(&mut gone[position], true) {
            return Err(format!("axis {axis} stands twice"));
        }
    }
    let kept = dims.iter().zip(gone);
    Ok(kept
        .filter_map(|(&dim, gone)| if gone { keep.then_some(Some(1)) } else { Some(dim) })
        .collect())
}

pub(super) fn cross_entropy(inputs: &[&Form]) -> Inferred {
    let [logits, targets] = exactly(inputs)?;
    float(logits)?;
    if targets.dtype != DType::Int64 {
        return Err(format!("its classes must be int64, found {}", targets.dtype));
    }
    let ([rows, _], [count]) = (&logits.dims[..], &targets.dims[..]) else {
        return Err("takes logits [n, classes] and n classes".to_owned());
    };
    match (rows, count) {
        (Some(rows), Some(count)) if rows != count => {
            Err(format!("{rows} rows of logits need as many classes, found {count}"))
        }
        _ => Ok(vec![Form::new(logits.dtype, Dims::new())]),
    }
}

pub(super) fn reshaped(from: &[Option<usize>], to: &[Option<usize>]) -> Result<Dims, String> {
    if to.iter().filter(|dim| dim.is_none()).count() > 1 {
        return Err("at most one axis of the new shape can be -1".to_owned());
    }
    let known = known_count(to)?;
    let mut out = Dims::from_slice(to);
    if from.contains(&None) {
        return Ok(out);
    }
    let count = known_count(from)?;
    let free = out.iter_mut().find(|dim| dim.is_none());
    let fits = match free {
        Some(dim) if known > 0 && count.is_multiple_of(known) => {
            *dim = Some(count / known);
            true
        }
        Some(_) => false,
        None => known == count,
    };
    if fits {
        return Ok(out);
    }
    Err(format!("{} has {count} elements, which do not fit {}", ShapeOf(from), ShapeOf(to)))
}

/// The product of the lengths that are known.
fn known_count(dims: &[Option<usize>]) -> Result<usize, String> {
    let count = dims.iter().flatten().try_fold(1_usize, |count, &n| count.checked_mul(n));
    count.ok_or_else(|| format!("{} is too large for this machine", ShapeOf(dims)))
}

pub(super) fn permuted(dims: &[Option<usize>], order: &[isize]) -> Result<Dims, String> {
    if order.len() != dims.len() {
        return Err(format!("{} axes need as many positions, found {}", dims.len(), order.len()));
    }
    let mut seen = vec![false; dims.len()];
    order
        .iter()
        .map(|&axis| {
            let at = position(axis, dims.len())?;
            match std::mem::replace(&mut seen[at], true) {
                true => Err(format!("axis {axis} stands twice")),
                false => Ok(dims[at]),
            }
        })
        .collect()
}

pub(super) fn concat(inputs: &[&Form], axis: isize) -> Inferred {
    let Some((first, rest)) = inputs.split_first() else {
        return Err("takes one input or more, found none".to_owned());
    };
    let at = position(axis, first.dims.len())?;
    let mut out = (*first).clone();
    for form in rest {
        same_dtype(first, form)?;
        if form.dims.len() != out.dims.len() {
            return Err(format!(
                "shapes {} and {} differ in rank",
                ShapeOf(&first.dims),
                ShapeOf(&form.dims)
            ));
        }
        for (i, (dim, other)) in out.dims.iter_mut().zip(&form.dims).enumerate() {
            *dim = match (*dim, *other) {
                (Some(a), Some(b)) if i == at => Some(a.checked_add(b).ok_or_else(|| {
                    format!("{a} and {b} on axis {axis} are too large for this machine")
                })?),
                (_, _) if i == at => None,
                (Some(a), Some(b)) if a != b => {
                    return Err(format!(
                        "shapes {} and {} differ beside axis {axis}",
                        ShapeOf(&first.dims),
                        ShapeOf(&form.dims)
                    ));
                }
                (a, b) => a.or(b),
            };
        }
    }
    Ok(vec![out])
}

pub(super) fn indices(index: &Form) -> Result<&Form, String> {
    if index.dtype == DType::Int64 {
        return Ok(index);
    }
    Err(format!("its index must be int64, found {}", index.dtype))
}

/// Axes broadcast to `to`; one that is free there keeps its length.
pub(super) fn broadcast_to(from: &[Option<usize>], to: &[Option<usize>]) -> Result<Dims, String> {
    let wrong = || format!("{} cannot be broadcast to {}", ShapeOf(from), ShapeOf(to));
    let lead = to.len().checked_sub(from.len()).ok_or_else(wrong)?;
    let length =
        |(at, &to): (usize, &Option<usize>)| match (at.checked_sub(lead).map(|at| from[at]), to) {
            (Some(kept), None) => Ok(kept),
            (None, None) => Err(format!("{}: a new axis cannot be free", wrong())),
            (Some(Some(n)), Some(to)) if n != 1 && n != to => Err(wrong()),
            (_, to) => Ok(to),
        };
    to.iter().enumerate().map(length).collect()
}

pub(super) fn sliced(
    x: &Form,
    axis: isize,
    [start, step]: [usize; 2],
    end: Option<usize>,
) -> Result<Form, String> {
    let at = position(axis, x.dims.len())?;
    let wrong =
        |end: usize| Err(format!("{start}..{end} by {step} is no part of axis {axis} of {x}"));
    let length = |end: usize| (end - start).div_ceil(step);
    let mut out = x.clone();
    out.dims[at] = match (x.dims[at], end) {
        (_, end) if step == 0 => return wrong(end.unwrap_or(0)),
        (Some(n), end) => match end.unwrap_or(n) {
            end if start <= end && end <= n => Some(length(end)),
            end => return wrong(end),
        },
        (None, Some(end)) if start > end => return wrong(end),
        (None, end) => end.map(length),
    };
    Ok(out)
}

/// Pictures whose batch may be free.
pub(super) fn pictures(x: &Form) -> Result<Vec<usize>, String> {
    let (batch, rest) = x.dims.split_first().ok_or("takes pictures, found a scalar")?;
    let rest: Option<Vec<usize>> = rest.iter().copied().collect();
    let rest =
        rest.ok_or_else(|| format!("of pictures, only the first axis can be free, found {x}"))?;
    Ok(std::iter::once(batch.unwrap_or(1)).chain(rest).collect())
}

/// Pictures of this shape, as many as `x` has.
pub(super) fn open_batch(x: &Form, shape: [usize; 4]) -> Form {
    let mut dims: Dims = shape.into_iter().map(Some).collect();
    dims[0] = x.dims[0];
    Form::new(x.dtype, dims)
}

pub(super) fn conv2d(inputs: &[&Form], options: Conv2dOptions) -> Inferred {
    let (x, weight, bias) = match inputs {
        [x, weight] => (x, weight, None),
        [x, weight, bias] => (x, weight, Some(bias)),
        _ => {
            return Err(format!(
                "takes pictures, weights and perhaps a bias, found {}",
                inputs.len()
            ));
        }
    };
    let fixed = |form: &Form| -> Result<Vec<usize>, String> {
        let lengths: Option<Vec<usize>> = form.dims.iter().copied().collect();
        lengths.ok_or_else(|| format!("its weights and bias have no free axis, found {form}"))
    };
    same_dtype(float(x)?, weight)?;
    if let Some(bias) = bias {
        same_dtype(x, bias)?;
    }
    let bias = bias.map(|bias| fixed(bias)).transpose()?;
    let shape = conv2d_shape(&pictures(x)?, &fixed(weight)?, bias.as_deref(), options);
    Ok(vec![open_batch(x, shape.map_err(|error| error.to_string())?)])
}
