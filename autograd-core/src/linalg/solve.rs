//! Systems of linear equations, inverses and determinants, by LU factors.

use nalgebra::linalg::LU;
use nalgebra::{DMatrix, Dyn};

use super::matrices::{INVERTIBLE, matrices, square, stack, stacked, with_columns};
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::graph::{Composite, Tensor};
use crate::ops::Float;
use crate::py_layer::{BackwardContext, ForwardContext, py_layer};

/// Solves `a y = b` for `y`: `a` is `[.., n, n]`, `b` a vector `[n]` or `[.., n, k]`. Leading axes broadcast.
/// The gradients are `db = solve(aᵀ, dy)` and `da = -db yᵀ` (Giles 2008).
///
/// ```
/// use autograd_core::{Tensor, linalg};
///
/// let a = Tensor::from([[2.0, 0.0], [0.0, 4.0]]);
/// assert_eq!(linalg::solve(&a, &Tensor::from([2.0, 8.0]))?.to_vec(), [1.0, 2.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if `a` is not square or `b` does not have `n` rows, [`Error::Broadcast`] if the leading
/// axes do not broadcast, [`Error::Value`] if a matrix is singular.
#[track_caller]
pub fn solve<T: Float>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    square(["solve", "a"], a)?;
    with_columns(["solve", "a"], a, b, |a, b| Solve::apply(a, b))
}

/// Returns the inverse `y` of each matrix `[.., n, n]`, with the gradient `-yᵀ dy yᵀ` (Giles
/// 2008). To solve a system, [`solve`] is more accurate.
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
    square(["inv", "a"], a)?;
    let _composite = Composite::here("inv");
    Inv::apply(a)
}

/// Returns the sign of the determinant of each matrix `[.., n, n]`, and the logarithm of its magnitude, both
/// of shape `[..]`; 0 and minus infinity for a singular matrix, whose backward is an error. The sign has no
/// gradient; that of the logarithm is `dy` times the transposed inverse (Giles 2008).
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
    square(["slogdet", "a"], a)?;
    let _composite = Composite::here("slogdet");
    LogDet::apply(a)
}

#[py_layer(shapes(a: [s.., n, n], b: [s.., n, k] -> [s.., n, k]))]
impl<T: Float> Solve<T> {
    type Saved = (Tensor<T>, Tensor<T>);

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
        let all =
            matrices("solve", a).into_iter().zip(matrices("solve", b)).map(|(a, b)| solved(a, b));
        let x = stacked(["solve", "a"], INVERTIBLE, b.shape(), all)?;
        ctx.save_for_backward((a, &x));
        Ok(x)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Result<(Tensor<T>, Tensor<T>)> {
        let (a, x) = ctx.saved_tensor();
        let db = solve(&a.transpose(), dy)?;
        Ok((-db.matmul(&x.transpose()), db))
    }
}

#[py_layer(shapes(a: [s.., n, n] -> [s.., n, n]))]
impl<T: Float> Inv<T> {
    type Saved = Tensor<T>;

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<T>) -> Result<Tensor<T>> {
        let one = |a: DMatrix<f64>| DMatrix::identity(a.nrows(), a.nrows());
        let all = matrices("inv", a).into_iter().map(|a| solved(a.clone(), one(a)));
        let y = stacked(["inv", "a"], INVERTIBLE, a.shape(), all)?;
        ctx.save_for_backward(&y);
        Ok(y)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let transposed = ctx.saved_tensor().transpose();
        -transposed.matmul(dy).matmul(&transposed)
    }
}

#[py_layer(shapes(a: [s.., n, n] -> ([s..], [s..])))]
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
