//! QR factors, and the systems of more equations than unknowns that they solve.

use super::factors::orthogonal;
use super::matrices::{factored, full_rank_mark, refused, sides, with_columns};
use super::solve_triangular;
use crate::error::{Error, Result};
use crate::graph::{Composite, Tensor};
use crate::ops::Float;
use crate::py_layer::{BackwardContext, ForwardContext, py_layer};

/// Returns the reduced factors `q`, `[.., m, k]`, and `r`, `[.., k, n]`, of each matrix `[.., m, n]`, where `k`
/// is the smaller of `m` and `n`: `q r = a`, the columns of `q` are orthonormal, `r` is upper triangular.
/// No element on the diagonal of `r` is negative, so the factors of a matrix of full rank are unique.
///
/// For `m >= n` the gradient is `(dq + q s) r⁻ᵀ`, where `s` is the symmetric matrix with the lower triangle of
/// `r drᵀ - dqᵀ q` (S. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions", 2012).
/// For `m < n` the first `m` columns are factored, and the rest of `r` is `qᵀ` times the other columns.
/// The gradient is NaN if an element on the diagonal of `r` counts as zero (see the [module](super)'s docs).
///
/// ```
/// use autograd_core::{Tensor, linalg};
///
/// let (q, r) = linalg::qr(&Tensor::from([[3.0], [4.0]]))?;
/// assert!(q.allclose(&Tensor::from([[0.6], [0.8]]), 1e-12, 0.0));
/// assert!(r.allclose(&Tensor::from([[5.0]]), 1e-12, 0.0));
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if `a` has fewer than two axes, [`Error::Value`] if an element is NaN or infinite.
#[track_caller]
pub fn qr<T: Float>(a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<T>)> {
    let [m, n] = sides("qr", a)?;
    let _composite = Composite::here("qr");
    if m >= n {
        return Qr::apply(a, "qr");
    }
    let (q, r) = Qr::apply(&a.narrow(-1, 0, m), "qr")?;
    let rest = q.transpose().matmul(&a.narrow(-1, m, n - m));
    let r = Tensor::concat(&[&r, &rest], -1);
    Ok((q, r))
}

/// Returns the `y` with the least `|a y - b|`, for `a`, `[.., m, n]`, of full column rank, and `b`, a vector
/// `[m]` or `[.., m, k]`: `y` is `[n]` or `[.., n, k]`. Leading axes broadcast.
///
/// `y` is `r⁻¹ qᵀ b` with the factors of [`qr`], and so is its gradient: `db = q r⁻ᵀ dy` and
/// `da = -db yᵀ + (b - a y) (r⁻¹ r⁻ᵀ dy)ᵀ` (G. Golub, V. Pereyra, "The differentiation of pseudo-inverses and
/// nonlinear least squares problems whose variables separate", 1973).
///
/// ```
/// use autograd_core::{Tensor, linalg};
///
/// let a = Tensor::from([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]);
/// let line = linalg::lstsq(&a, &Tensor::from([1.0, 3.0, 5.0]))?;
/// assert!(line.allclose(&Tensor::from([1.0, 2.0]), 1e-12, 1e-12));
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if `m < n` or `b` does not have `m` rows, [`Error::Broadcast`] if the leading axes do not
/// broadcast, [`Error::Value`] if an element of `a` is NaN or infinite, or an element on the diagonal of `r`
/// counts as zero (see the [module](super)'s docs).
#[track_caller]
pub fn lstsq<T: Float>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let [m, n] = sides("lstsq", a)?;
    if m < n {
        let expected = "a matrix [m, n] with m >= n, or a stack of them";
        return Err(Error::shape("lstsq", "a", expected, a.shape()));
    }
    with_columns(["lstsq", "a"], a, b, |a, b| {
        let (q, r) = Qr::apply(a, "lstsq")?;
        let marks = T::to_vec(&full_rank_mark(&r.detach().diagonal(0), m)?);
        if let Some(at) = marks.iter().position(|mark| mark.is_nan()) {
            return Err(refused(["lstsq", "a"], ["of full column rank", "one of lower rank"], at));
        }
        solve_triangular(&r, &q.transpose().matmul(b), true)
    })
}

#[py_layer(shapes(a: [s.., m, n] -> ([s.., m, n], [s.., n, n])))]
impl<T: Float> Qr<T> {
    type Saved = (Tensor<T>, Tensor<T>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        a: &Tensor<T>,
        op: &'static str,
    ) -> Result<(Tensor<T>, Tensor<T>)> {
        let [m, n] = sides(op, a)?;
        let [q, r] = factored(op, a, [&[m, n], &[n, n]], |a| Some(orthogonal(a)))?;
        ctx.save_for_backward((&q, &r));
        Ok((q, r))
    }

    fn backward(ctx: &BackwardContext<Self>, dq: &Tensor<T>, dr: &Tensor<T>) -> Result<Tensor<T>> {
        let (q, r) = ctx.saved_tensor();
        let r = r + full_rank_mark(&r.detach().diagonal(0), q.shape()[q.ndim() - 2])?.unsqueeze(-1);
        let product = r.matmul(&dr.transpose()) - dq.transpose().matmul(q);
        let symmetric = product.tril(0) + product.tril(-1).transpose();
        let left = dq + q.matmul(&symmetric);
        Ok(solve_triangular(&r, &left.transpose(), true)?.transpose())
    }
}
