//! Cholesky factors.

use nalgebra::DMatrix;
use nalgebra::linalg::Cholesky;

use super::matrices::{matrices, square, stacked};
use super::solve;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::graph::{Composite, Tensor};
use crate::ops::Float;
#[cfg(feature = "verify")]
use crate::py_layer::Unverified;
use crate::py_layer::{BackwardContext, ForwardContext, py_layer};

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
    square(["cholesky", "a"], a)?;
    let _composite = Composite::here("cholesky");
    // The gradient is symmetric, and only one triangle is read, so differences of single elements do not verify it.
    #[cfg(feature = "verify")]
    let _unverified = Unverified::start();
    LowerFactor::apply(a)
}

#[py_layer(shapes(a: [s.., n, n] -> [s.., n, n]))]
impl<T: Float> LowerFactor<T> {
    type Saved = Tensor<T>;

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<T>) -> Result<Tensor<T>> {
        let all = matrices("cholesky", a).into_iter().map(lower_factor);
        let l =
            stacked(["cholesky", "a"], ["positive definite", "one that is not"], a.shape(), all)?;
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

fn lower_factor(a: DMatrix<f64>) -> Option<DMatrix<f64>> {
    Some(Cholesky::new(a)?.l())
}
