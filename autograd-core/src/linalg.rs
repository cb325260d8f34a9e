//! Linear systems, inverses, determinants and Cholesky factors of matrices and stacks of matrices.
//!
//! Each is a [`macro@py_layer`] op with the gradient of the textbooks (M. Giles, "An extended
//! collection of matrix derivative results for forward and reverse mode algorithmic differentiation",
//! 2008). Gradients are composed of ops that have gradients, so derivatives of every order exist. The
//! factors are computed in f64 by [nalgebra](https://nalgebra.rs), for tensors of f32 too.
//!
//! Programs have no operators for them: a closure that calls one is placed with `Program::eager`, and
//! `Program::trace` returns an error that names the call.
//!
//! ```
//! use autograd_core::{Tensor, linalg};
//!
//! let a = Tensor::from([[2.0, 1.0], [1.0, 3.0]]);
//! a.set_stop_gradient(false);
//! let x = linalg::solve(&a, &Tensor::from([3.0, 5.0]))?;
//! assert!(x.allclose(&Tensor::from([0.8, 1.4]), 1e-12, 0.0));
//! x.sum().backward()?;
//! # Ok::<(), autograd_core::Error>(())
//! ```

use nalgebra::linalg::{Cholesky, LU};
use nalgebra::{DMatrix, Dyn};

use crate::array::shape::broadcast;
use crate::error::{Error, Plural, Result};
use crate::graph::{Composite, Tensor};
use crate::ops::Float;
#[cfg(feature = "verify")]
use crate::py_layer::Unverified;
use crate::py_layer::{BackwardContext, ForwardContext, py_layer};

/// Solves `a y = b` for `y`: `a` is `[.., n, n]`, `b` a vector `[n]` or `[.., n, k]`. Leading axes broadcast.
/// The gradients are `db = solve(aᵀ, dy)` and `da = -db yᵀ`.
///
/// # Errors
///
/// [`Error::Shape`] if `a` is not square or `b` does not have `n` rows, [`Error::Broadcast`] if the leading
/// axes do not broadcast, [`Error::Value`] if a matrix is singular.
#[track_caller]
pub fn solve<T: Float>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let n = square("solve", a)?;
    let column = if b.ndim() == 1 { &b.unsqueeze(1) } else { b };
    let rank = column.ndim();
    if rank < 2 || column.shape()[rank - 2] != n {
        let expected =
            format!("of shape [{n}] or [.., {n}, k], as `a` has {}", Plural(n, "row", "rows"));
        return Err(Error::shape("solve", "b", expected, b.shape()));
    }
    let stack = broadcast("solve", stack(a), stack(column))?;
    let _composite = Composite::here();
    let all = |x: &Tensor<T>| {
        let shape = [&stack[..], &x.shape()[x.ndim() - 2..]].concat();
        if x.shape() == shape { x.clone() } else { x.broadcast_to(shape) }
    };
    let x = Solve::apply(&all(a), &all(column))?;
    Ok(if b.ndim() == 1 { x.squeeze(-1) } else { x })
}

/// Returns the inverse `y` of each matrix `[.., n, n]`, with the gradient `-yᵀ dy yᵀ`. To solve a system,
/// [`solve`] is more accurate.
///
/// ```
/// use autograd_core::{Tensor, linalg};
///
/// let inverse = linalg::inv(&Tensor::from([[2.0, 0.0], [0.0, 4.0]]))?;
/// assert_eq!(inverse.to_vec(), [0.5, 0.0, 0.0, 0.25]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if the last two axes differ in length, [`Error::Value`] if a matrix is singular.
#[doc(alias = "inverse")]
#[track_caller]
pub fn inv<T: Float>(a: &Tensor<T>) -> Result<Tensor<T>> {
    square("inv", a)?;
    let _composite = Composite::here();
    Inv::apply(a)
}

/// Returns the sign of the determinant of each matrix `[.., n, n]`, and the logarithm of its magnitude, both
/// of shape `[..]`; 0 and minus infinity for a singular matrix, whose backward is an error. The sign has no
/// gradient; that of the logarithm is `dy` times the transposed inverse.
///
/// ```
/// use autograd_core::{Tensor, linalg};
///
/// let (sign, log) = linalg::slogdet(&Tensor::from([[0.0, 2.0], [1.0, 0.0]]))?;
/// assert_eq!((sign.item(), log.item()), (-1.0, 2_f64.ln()));
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if the last two axes differ in length.
#[doc(alias = "det")]
#[doc(alias = "logdet")]
#[track_caller]
pub fn slogdet<T: Float>(a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<T>)> {
    square("slogdet", a)?;
    let _composite = Composite::here();
    LogDet::apply(a)
}

/// Returns the lower triangular `l` with `l lᵀ = a` of each symmetric positive definite matrix `[.., n, n]`,
/// of which only the lower triangle is read. The gradient is the symmetric part of `l⁻ᵀ p l⁻¹`, where `p` is
/// the lower triangle of `lᵀ dl` with its diagonal halved (I. Murray, "Differentiation of the Cholesky
/// decomposition", 2016).
///
/// ```
/// use autograd_core::{Tensor, linalg};
///
/// let l = linalg::cholesky(&Tensor::from([[4.0, 2.0], [2.0, 2.0]]))?;
/// assert_eq!(l.to_vec(), [2.0, 0.0, 1.0, 1.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if `a` is not square, [`Error::Value`] if a matrix is not positive definite.
#[track_caller]
pub fn cholesky<T: Float>(a: &Tensor<T>) -> Result<Tensor<T>> {
    square("cholesky", a)?;
    let _composite = Composite::here();
    // The gradient is symmetric, and only one triangle is read, so differences of single elements do not verify it.
    #[cfg(feature = "verify")]
    let _unverified = Unverified::start();
    LowerFactor::apply(a)
}

#[py_layer]
impl<T: Float> Solve<T> {
    type Saved = (Tensor<T>, Tensor<T>);

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
        let all =
            matrices("solve", a).into_iter().zip(matrices("solve", b)).map(|(a, b)| solved(a, b));
        let x = stacked("solve", INVERTIBLE, b.shape(), all)?;
        ctx.save_for_backward((a, &x));
        Ok(x)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Result<(Tensor<T>, Tensor<T>)> {
        let (a, x) = ctx.saved_tensor();
        let db = solve(&a.transpose(), dy)?;
        Ok((-db.matmul(&x.transpose()), db))
    }
}

#[py_layer]
impl<T: Float> Inv<T> {
    type Saved = Tensor<T>;

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<T>) -> Result<Tensor<T>> {
        let one = |a: DMatrix<f64>| DMatrix::identity(a.nrows(), a.nrows());
        let all = matrices("inv", a).into_iter().map(|a| solved(a.clone(), one(a)));
        let y = stacked("inv", INVERTIBLE, a.shape(), all)?;
        ctx.save_for_backward(&y);
        Ok(y)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let transposed = ctx.saved_tensor().transpose();
        -transposed.matmul(dy).matmul(&transposed)
    }
}

#[py_layer]
impl<T: Float> LogDet<T> {
    type Saved = Tensor<T>;

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<T>)> {
        let (mut signs, mut logs) = (Vec::new(), Vec::new());
        for matrix in matrices("slogdet", a) {
            let (sign, log) = log_determinant(matrix);
            signs.push(T::from_f64(sign));
            logs.push(T::from_f64(log));
        }
        let sign = Tensor::from_vec(stack(a), signs)?;
        let log = Tensor::from_vec(stack(a), logs)?;
        ctx.mark_non_differentiable(&sign);
        ctx.save_for_backward(a);
        Ok((sign, log))
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        _dsign: &Tensor<T>,
        dlog: &Tensor<T>,
    ) -> Result<Tensor<T>> {
        let inverse = inv(ctx.saved_tensor()).map_err(|error| error.called("slogdet"))?;
        Ok(inverse.transpose() * dlog.unsqueeze_axes(&[-2, -1]))
    }
}

#[py_layer]
impl<T: Float> LowerFactor<T> {
    type Saved = Tensor<T>;

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<T>) -> Result<Tensor<T>> {
        let all = matrices("cholesky", a).into_iter().map(lower_factor);
        let l = stacked("cholesky", ["positive definite", "one that is not"], a.shape(), all)?;
        ctx.save_for_backward(&l);
        Ok(l)
    }

    fn backward(ctx: &BackwardContext<Self>, dl: &Tensor<T>) -> Result<Tensor<T>> {
        let upper = ctx.saved_tensor().transpose();
        let product = upper.matmul(dl);
        let halved = (product.tril(0) + product.tril(-1)) * 0.5;
        let left = solve(&upper, &halved)?;
        let both = solve(&upper, &left.transpose())?;
        Ok((&both + both.transpose()) * 0.5)
    }
}

// These are compiled here, and not in the crates that call the functions above.

fn solved(a: DMatrix<f64>, b: DMatrix<f64>) -> Option<DMatrix<f64>> {
    // nalgebra's loop underflows if there are no rows.
    if a.is_empty() { Some(b) } else { LU::new(a).solve(&b) }
}

fn log_determinant(a: DMatrix<f64>) -> (f64, f64) {
    let factors: LU<f64, Dyn, Dyn> = LU::new(a);
    let diagonal = factors.u().diagonal();
    let sign = |x: &f64| if *x == 0.0 { 0.0 } else { x.signum() };
    let swaps: f64 = factors.p().determinant();
    let log = diagonal.iter().fold(0.0, |sum, x| sum + x.abs().ln());
    (diagonal.iter().map(sign).product::<f64>() * swaps, log)
}

fn lower_factor(a: DMatrix<f64>) -> Option<DMatrix<f64>> {
    Some(Cholesky::new(a)?.l())
}

fn from_rows(rows: usize, columns: usize, data: &[f64]) -> DMatrix<f64> {
    DMatrix::from_row_slice(rows, columns, data)
}

fn to_rows(matrix: &DMatrix<f64>) -> Vec<f64> {
    matrix.transpose().as_slice().to_vec()
}

fn stack<T: Float>(x: &Tensor<T>) -> &[usize] {
    &x.shape()[..x.ndim() - 2]
}

fn square<T: Float>(op: &'static str, a: &Tensor<T>) -> Result<usize> {
    match a.shape() {
        [.., m, n] if m == n => Ok(*n),
        found => Err(Error::shape(op, "a", "a square matrix [n, n], or a stack of them", found)),
    }
}

#[track_caller]
fn matrices<T: Float>(op: &'static str, x: &Tensor<T>) -> Vec<DMatrix<f64>> {
    x.is_read(op);
    let (count, rank) = (stack(x).iter().product(), x.ndim());
    let (m, n) = (x.shape()[rank - 2], x.shape()[rank - 1]);
    let data: Vec<f64> = T::to_vec(x).into_iter().map(T::into_f64).collect();
    (0..count).map(|at| from_rows(m, n, &data[at * m * n..][..m * n])).collect()
}

const INVERTIBLE: [&str; 2] = ["with an inverse", "a singular one"];

/// Joins column-major matrices to a tensor; an error names the first that is missing.
fn stacked<T: Float>(
    op: &'static str,
    [expected, found]: [&str; 2],
    shape: &[usize],
    matrices: impl Iterator<Item = Option<DMatrix<f64>>>,
) -> Result<Tensor<T>> {
    let mut data = Vec::new();
    for (at, matrix) in matrices.enumerate() {
        let Some(matrix) = matrix else {
            let expected = format!("a matrix, or a stack of matrices, {expected}");
            let place =
                if at == 0 { String::new() } else { format!(" (matrix {at} of the stack)") };
            return Err(Error::value(op, "a", expected, format!("{found}{place}")));
        };
        data.extend(to_rows(&matrix).into_iter().map(T::from_f64));
    }
    Tensor::from_vec(shape, data)
}
