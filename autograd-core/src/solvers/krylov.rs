//! Linear systems of a map that has no matrix.

use crate::error::{Error, Result};
use crate::graph::Tensor;
use crate::ops::Float;

/// Systems of more unknowns may need more steps, each of which keeps a vector, than this.
const MAX_STEPS: usize = 500;

/// What a relative residual must not exceed: between the rounding error and its square root.
pub(super) fn tolerance<T: Float>() -> f64 {
    T::epsilon().into_f64().powf(0.75)
}

/// Solves `a(x) = b` by GMRES without restarts (Y. Saad, M. Schultz, "GMRES: a generalized minimal residual
/// algorithm", 1986). A system of `n` unknowns takes at most `n` steps.
pub(super) fn gmres<T: Float>(
    op: &'static str,
    a: impl Fn(&Tensor<T>) -> Result<Tensor<T>>,
    b: &Tensor<T>,
) -> Result<Tensor<T>> {
    let size = norm(b);
    if size == 0.0 {
        return Ok(b.detach());
    }
    let steps = b.len().min(MAX_STEPS);
    let mut basis = vec![b / size];
    // The triangular factor of the projected map by columns, its rotations, and the projected `b`.
    let (mut columns, mut rotations, mut rest) =
        (Vec::<Vec<f64>>::new(), Vec::new(), vec![1.0_f64]);
    while columns.len() < steps && rest[columns.len()].abs() > tolerance::<T>() {
        let step = columns.len();
        let mut next = a(&basis[step])?;
        let length = norm(&next);
        let mut column = Vec::with_capacity(step + 2);
        for unit in &basis {
            let part = (unit * &next).sum().item().into_f64();
            next -= unit * part;
            column.push(part);
        }
        let left = norm(&next);
        column.push(left);
        for (at, &(cosine, sine)) in rotations.iter().enumerate() {
            let (x, y): (f64, f64) = (column[at], column[at + 1]);
            (column[at], column[at + 1]) = (cosine * x + sine * y, cosine * y - sine * x);
        }
        let diagonal = column[step].hypot(left);
        if diagonal.is_nan() || diagonal <= length * T::epsilon().into_f64() {
            break;
        }
        let (cosine, sine) = (column[step] / diagonal, left / diagonal);
        column[step] = diagonal;
        rotations.push((cosine, sine));
        rest.push(-sine * rest[step]);
        rest[step] *= cosine;
        columns.push(column);
        basis.push(next / left);
    }
    let residual = rest[columns.len()].abs();
    if residual > tolerance::<T>() {
        let why = format!(
            "the linear system of the gradient has a relative residual of {residual:e} after {} \
             steps; the derivative of `f` by `x` may be singular",
            columns.len()
        );
        return Err(Error::NotConverged { op, why });
    }
    let mut sum = Tensor::zeros(b.shape());
    for step in (0..columns.len()).rev() {
        let part = rest[step] / columns[step][step];
        for (at, rest) in rest[..step].iter_mut().enumerate() {
            *rest -= part * columns[step][at];
        }
        sum += &basis[step] * (part * size);
    }
    Ok(sum)
}

fn norm<T: Float>(x: &Tensor<T>) -> f64 {
    x.norm().item().into_f64()
}
