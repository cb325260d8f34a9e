//! Linear systems, inverses, determinants and factorizations of matrices and stacks of matrices.
//!
//! Each is a [`macro@crate::py_layer`] op with the gradient of the textbooks (M. Giles, "An extended
//! collection of matrix derivative results for forward and reverse mode algorithmic differentiation",
//! 2008). Gradients are composed of ops that have gradients, so derivatives of every order exist. The
//! factors are computed in f64 by [nalgebra](https://nalgebra.rs), for tensors of f32 too; singular values
//! by one-sided Jacobi rotations.
//!
//! Where a factorization has no derivative, its gradient is NaN in all elements of that matrix. Two
//! eigenvalues or singular values count as equal, and one counts as zero, if they differ by at most
//! `n ε max`, where `n` is the longer side of the matrix, `ε` the element type's rounding error, and `max`
//! the largest magnitude among the values.
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

mod cholesky;
mod factors;
mod matrices;
mod qr;
mod solve;
mod spectrum;
mod triangular;

pub use cholesky::cholesky;
pub use qr::{lstsq, qr};
pub use solve::{inv, slogdet, solve};
pub use spectrum::{eigh, pinv, svd};
pub use triangular::{cholesky_solve, solve_triangular};
