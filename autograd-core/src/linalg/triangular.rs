//! Systems whose matrix is triangular, or known by its Cholesky factor.

use nalgebra::DMatrix;

use super::matrices::{INVERTIBLE, Names, matrices, square, stacked, with_columns};
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::graph::Tensor;
use crate::ops::Float;
use crate::py_layer::{BackwardContext, ForwardContext, py_layer};

/// Solves `a y = b` for `y`, where `a`, `[.., n, n]`, is upper or lower triangular: the other triangle is not
/// read, and its gradient is 0. `b` is a vector `[n]` or `[.., n, k]`; leading axes broadcast. To solve
/// `y a = b`, transpose `a`, `b` and the result.
///
/// The gradients are `db = a⁻ᵀ dy`, and of `a` that triangle of `-db yᵀ` (Giles, 2008, section 2.3.1).
///
/// ```
/// use autograd_core::{Tensor, linalg};
///
/// let a = Tensor::from([[2.0, 1.0], [0.0, 4.0]]);
/// let y = linalg::solve_triangular(&a, &Tensor::from([4.0, 8.0]), true)?;
/// assert_eq!(y.to_vec(), [1.0, 2.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if `a` is not square or `b` does not have `n` rows,
/// [`Error::Broadcast`] if the leading axes do not broadcast,
/// [`Error::Value`] if the diagonal has a 0.
#[doc(alias = "triangular_solve")]
#[doc(alias = "trsm")]
#[track_caller]
pub fn solve_triangular<T: Float>(a: &Tensor<T>, b: &Tensor<T>, upper: bool) -> Result<Tensor<T>> {
    let names = ["solve_triangular", "a"];
    square(names, a)?;
    with_columns(names, a, b, |a, b| SolveTriangular::apply(a, b, names, upper))
}

/// Solves `l lᵀ y = b` for `y`, with the lower triangular `l`, `[.., n, n]`, of [`cholesky`](super::cholesky).
/// `b` is a vector `[n]` or `[.., n, k]`; leading axes broadcast. Only the lower triangle of `l` is read, and
/// has a gradient: those of the two triangular systems of [`solve_triangular`].
///
/// ```
/// use autograd_core::{Tensor, linalg};
///
/// let a = Tensor::from([[4.0, 2.0], [2.0, 2.0]]);
/// let y = linalg::cholesky_solve(&linalg::cholesky(&a)?, &Tensor::from([8.0, 6.0]))?;
/// assert_eq!(y.to_vec(), [1.0, 2.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if `l` is not square or `b` does not have `n` rows,
/// [`Error::Broadcast`] if the leading axes do not broadcast,
/// [`Error::Value`] if the diagonal has a 0.
#[doc(alias = "cho_solve")]
#[track_caller]
pub fn cholesky_solve<T: Float>(l: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let names = ["cholesky_solve", "l"];
    square(names, l)?;
    with_columns(names, l, b, |l, b| {
        let half = SolveTriangular::apply(l, b, names, false)?;
        SolveTriangular::apply(&l.transpose(), &half, names, true)
    })
}

#[py_layer(shapes(a: [s.., n, n], b: [s.., n, k] -> [s.., n, k]))]
impl<T: Float> SolveTriangular<T> {
    type Saved = (Tensor<T>, Tensor<T>);
    type Attrs = bool;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        a: &Tensor<T>,
        b: &Tensor<T>,
        names: Names,
        upper: bool,
    ) -> Result<Tensor<T>> {
        let pairs = matrices(names[0], a).into_iter().zip(matrices(names[0], b));
        let all = pairs.map(|(a, b)| substituted(&a, b, upper));
        let y = stacked(names, INVERTIBLE, b.shape(), all)?;
        ctx.save_for_backward((a, &y));
        ctx.set_attrs(upper);
        Ok(y)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Result<(Tensor<T>, Tensor<T>)> {
        let (a, y) = ctx.saved_tensor();
        let upper = *ctx.attrs();
        let db = solve_triangular(&a.transpose(), dy, !upper)?;
        let da = -db.matmul(&y.transpose());
        Ok((if upper { da.triu(0) } else { da.tril(0) }, db))
    }
}

fn substituted(a: &DMatrix<f64>, b: DMatrix<f64>, upper: bool) -> Option<DMatrix<f64>> {
    if upper { a.solve_upper_triangular(&b) } else { a.solve_lower_triangular(&b) }
}
