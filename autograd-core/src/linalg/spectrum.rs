//! Eigenvalues, singular values, and the pseudoinverse.

use super::factors::{eigen, pseudo, singular};
use super::matrices::{factored, full_rank_mark, sides, square, tolerance};
use crate::error::{Error, Result};
use crate::graph::{Composite, Tensor};
use crate::ops::Float;
#[cfg(feature = "verify")]
use crate::py_layer::Unverified;
use crate::py_layer::{BackwardContext, ForwardContext, py_layer};

/// Returns the eigenvalues `w`, `[.., n]`, in ascending order, and the orthonormal eigenvectors of each
/// symmetric matrix `[.., n, n]`, of which only the lower triangle is read. The vectors are the columns of `v`,
/// `[.., n, n]`: `v diag(w) vᵀ = a`. The largest component of each is positive; of components that differ by
/// less than 1e-9 of the largest, the first is.
///
/// The gradient is the symmetric part of `v (diag(dw) + f ∘ vᵀ dv) vᵀ`, with `f[i, j] = 1 / (w[j] - w[i])`, and 0
/// on the diagonal (Giles, 2008, section 2.3.1). Where two eigenvalues count as equal (see the [module](super)'s
/// docs), the eigenvectors have no derivative: a gradient that comes from `v` is NaN, also if it would cancel.
/// That of the eigenvalues alone is right for functions that do not distinguish equal ones, such as their sum.
///
/// ```
/// use autograd_core::{Tensor, linalg};
///
/// let (w, v) = linalg::eigh(&Tensor::from([[2.0, 0.0], [0.0, 1.0]]))?;
/// assert_eq!(w.to_vec(), [1.0, 2.0]);
/// assert_eq!(v.to_vec(), [0.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if `a` is not square, [`Error::Value`] if an element is NaN or infinite.
#[doc(alias = "eigvalsh")]
#[doc(alias = "symeig")]
#[track_caller]
pub fn eigh<T: Float>(a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<T>)> {
    square(["eigh", "a"], a)?;
    let _composite = Composite::here("eigh");
    // As for `cholesky`: one triangle is read, and the gradient is symmetric.
    #[cfg(feature = "verify")]
    let _unverified = Unverified::start();
    Eigh::apply(a)
}

/// Returns the reduced factors `u`, `[.., m, k]`, `s`, `[.., k]`, and `vt`, `[.., k, n]`, of each matrix
/// `[.., m, n]`, where `k` is the smaller of `m` and `n`: `u diag(s) vt = a`, the columns of `u` and the rows of
/// `vt` are orthonormal, the singular values `s` are in descending order and not negative. The largest
/// component of each column of `u` is positive, as for [`eigh`].
///
/// The gradient is `u (diag(ds) + (f ∘ (p - pᵀ)) diag(s) + diag(s) (f ∘ (q - qᵀ))) vt`, with `p = uᵀ du`,
/// `q = vt dvtᵀ`, `f[i, j] = 1 / (s[j]² - s[i]²)`, and 0 on the diagonal, and for oblong matrices
/// `(du - u p) diag(s)⁻¹ vt + u diag(s)⁻¹ (dvt - qᵀ vt)` (J. Townsend, "Differentiating the singular value
/// decomposition", 2016). Where two singular values count as equal, or one as zero (see the [module](super)'s
/// docs), a gradient that comes from `u` or `vt` is NaN. That of `s` alone is `u diag(ds) vt` everywhere.
///
/// ```
/// use autograd_core::{Tensor, linalg};
///
/// let (u, s, vt) = linalg::svd(&Tensor::from([[0.0, 2.0], [-1.0, 0.0]]))?;
/// assert_eq!(s.to_vec(), [2.0, 1.0]);
/// assert_eq!(u.to_vec(), [1.0, 0.0, 0.0, 1.0]);
/// assert_eq!(vt.to_vec(), [0.0, 1.0, -1.0, 0.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if `a` has fewer than two axes, [`Error::Value`] if an element is NaN or infinite.
#[doc(alias = "svdvals")]
#[track_caller]
pub fn svd<T: Float>(a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<T>, Tensor<T>)> {
    sides("svd", a)?;
    let _composite = Composite::here("svd");
    Svd::apply(a)
}

/// Returns the Moore-Penrose pseudoinverse `p`, `[.., n, m]`, of each matrix `[.., m, n]`. Singular values of at
/// most `rcond` times the largest count as zero; `None` is the longer side times the rounding error of `T`.
///
/// For `m >= n` the gradient is `-pᵀ dp pᵀ + (1 - a p) dpᵀ p pᵀ` (G. Golub, V. Pereyra, 1973: see
/// [`lstsq`](super::lstsq)), and for others that of the transpose. If a singular value counts as zero, the
/// pseudoinverse is not continuous, and the gradient is NaN.
///
/// ```
/// use autograd_core::{Tensor, linalg};
///
/// let p = linalg::pinv(&Tensor::from([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), None)?;
/// assert_eq!(p.to_vec(), [0.5, 0.0, 0.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if `a` has fewer than two axes, [`Error::Value`] if an element is NaN or infinite, or
/// `rcond` is negative or NaN.
#[track_caller]
pub fn pinv<T: Float>(a: &Tensor<T>, rcond: Option<f64>) -> Result<Tensor<T>> {
    let [m, n] = sides("pinv", a)?;
    let rcond = rcond.unwrap_or(m.max(n) as f64 * T::epsilon().into_f64());
    if rcond.is_nan() || rcond < 0.0 {
        return Err(Error::value("pinv", "rcond", "at least 0", rcond));
    }
    let _composite = Composite::here("pinv");
    if m == 0 || n == 0 {
        return Ok(a.transpose());
    }
    if m >= n {
        return Ok(Pinv::apply(a, rcond)?.0);
    }
    Ok(Pinv::apply(&a.transpose(), rcond)?.0.transpose())
}

#[py_layer(shapes(a: [s.., n, n] -> ([s.., n], [s.., n, n])))]
impl<T: Float> Eigh<T> {
    type Saved = (Tensor<T>, Tensor<T>);

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<T>)> {
        ctx.set_materialize_grads(false);
        let n = square(["eigh", "a"], a)?;
        let [w, v] = factored("eigh", a, [&[n], &[n, n]], eigen)?;
        ctx.save_for_backward((&w, &v));
        Ok((w, v))
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dw: Option<&Tensor<T>>,
        dv: Option<&Tensor<T>>,
    ) -> Result<Option<Tensor<T>>> {
        let (w, v) = ctx.saved_tensor();
        let vt = v.transpose();
        let mut inner = dw.map(|dw| dw.diag(0));
        if let Some(dv) = dv {
            inner = plus(inner, vt.matmul(dv) * inverse_gaps(w, vt.shape()[vt.ndim() - 1])?);
        }
        let da = inner.map(|inner| v.matmul(&inner).matmul(&vt));
        Ok(da.map(|da| (&da + da.transpose()) * 0.5))
    }
}

#[py_layer(shapes(a: [s.., m, n] -> ([s.., m, _], [s.., _], [s.., _, n])))]
impl<T: Float> Svd<T> {
    type Saved = (Tensor<T>, Tensor<T>, Tensor<T>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        a: &Tensor<T>,
    ) -> Result<(Tensor<T>, Tensor<T>, Tensor<T>)> {
        ctx.set_materialize_grads(false);
        let [m, n] = sides("svd", a)?;
        let k = m.min(n);
        let [u, s, vt] = factored("svd", a, [&[m, k], &[k], &[k, n]], |a| Some(singular(a)))?;
        ctx.save_for_backward((&u, &s, &vt));
        Ok((u, s, vt))
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        du: Option<&Tensor<T>>,
        ds: Option<&Tensor<T>>,
        dvt: Option<&Tensor<T>>,
    ) -> Result<Option<Tensor<T>>> {
        let (u, s, vt) = ctx.saved_tensor();
        let (m, n) = (u.shape()[u.ndim() - 2], vt.shape()[vt.ndim() - 1]);
        let s = s + full_rank_mark(&s.detach(), m.max(n))?;
        let (row, column) = (s.unsqueeze(-2), s.unsqueeze(-1));
        // Quotients of singular values: their squares may overflow or underflow.
        let turned = |p: &Tensor<T>, by: &Tensor<T>| -> Result<Tensor<T>> {
            Ok((p - p.transpose()) * inverse_gaps(&s, m.max(n))? * (by / (&row + &column)))
        };
        let (mut inner, mut outer) = (ds.map(|ds| ds.diag(0)), None);
        if let Some(du) = du {
            let p = u.transpose().matmul(du);
            inner = plus(inner, turned(&p, &row)?);
            if m > n {
                outer = plus(outer, ((du - u.matmul(&p)) / &row).matmul(vt));
            }
        }
        if let Some(dvt) = dvt {
            let q = vt.matmul(&dvt.transpose());
            inner = plus(inner, turned(&q, &column)?);
            if n > m {
                outer = plus(outer, u.matmul(&((dvt - q.transpose().matmul(vt)) / &column)));
            }
        }
        let da = inner.map(|inner| u.matmul(&inner).matmul(vt));
        Ok(match outer {
            Some(outer) => plus(da, outer),
            None => da,
        })
    }
}

#[py_layer(shapes(a: [s.., m, n] -> ([s.., n, m], [s.., 1, 1])))]
impl<T: Float> Pinv<T> {
    type Saved = (Tensor<T>, Tensor<T>, Tensor<T>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        a: &Tensor<T>,
        rcond: f64,
    ) -> Result<(Tensor<T>, Tensor<T>)> {
        let [m, n] = sides("pinv", a)?;
        let [p, mark] = factored("pinv", a, [&[n, m], &[1, 1]], |a| Some(pseudo(a, rcond)))?;
        ctx.mark_non_differentiable(&mark);
        ctx.save_for_backward((a, &p, &mark));
        Ok((p, mark))
    }

    fn backward(ctx: &BackwardContext<Self>, dp: &Tensor<T>, _dmark: &Tensor<T>) -> Tensor<T> {
        let (a, p, mark) = ctx.saved_tensor();
        let p = p + mark;
        let (pt, dpt) = (p.transpose(), dp.transpose());
        let across = (&dpt - a.matmul(&p.matmul(&dpt))).matmul(&p.matmul(&pt));
        across - pt.matmul(dp).matmul(&pt)
    }
}

fn plus<T: Float>(sum: Option<Tensor<T>>, term: Tensor<T>) -> Option<Tensor<T>> {
    Some(match sum {
        Some(sum) => sum + term,
        None => term,
    })
}

/// `1 / (w[j] - w[i])`, 0 on the diagonal, and NaN for values that count as equal.
fn inverse_gaps<T: Float>(w: &Tensor<T>, size: usize) -> Result<Tensor<T>> {
    let gaps = w.unsqueeze(-2) - w.unsqueeze(-1);
    let n = w.shape()[w.ndim() - 1];
    let mut marks = Vec::new();
    for row in T::to_vec(w).chunks(n.max(1)) {
        let equal = tolerance(row, size);
        for i in 0..n {
            marks.extend((0..n).map(|j| match (row[j] - row[i]).abs() {
                _ if i == j => T::infinity(),
                gap if gap <= equal => T::nan(),
                _ => T::zero(),
            }));
        }
    }
    let marks = Tensor::from_vec(gaps.shape(), marks)?;
    Ok(1.0 / (gaps + marks))
}
