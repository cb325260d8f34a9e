//! Fixed points, roots and ordinary differential equations of closures, with gradients that do not
//! differentiate the solver.
//!
//! A solver runs unrecorded, so it keeps nothing but its result. The gradient is the solution of a second,
//! linear problem, which products of vectors with the derivatives of the closure ([`vjp`](crate::vjp()))
//! describe:
//! no matrix is formed. That problem is solved by the same functions, so derivatives of every order exist.
//!
//! Gradients reach the tensors that are given as `params`. A closure may capture other tensors, but none that
//! wants a gradient: that is an error, as its gradient would be lost. The closure is kept until the graph
//! is dropped and is called again by backward, so it must compute the same each time. It may return errors;
//! its panics go on to the caller, and all modes are restored.
//!
//! Programs have no operators for them: a closure that calls one is placed with `Program::eager`.
//!
//! ```
//! use autograd_core::Tensor;
//! use autograd_core::solvers::{FixedPointOptions, fixed_point};
//!
//! // The square root of `a`, as the fixed point of Heron's rule.
//! let a = Tensor::from([4.0, 9.0]);
//! a.set_stop_gradient(false);
//! let rule = |x: &Tensor<f64>, params: &[Tensor<f64>]| Ok((x + &params[0] / x) * 0.5);
//! let start = Tensor::from([1.0, 1.0]);
//! let root = fixed_point(rule, &start, &[a.clone()], FixedPointOptions::new())?;
//! root.sum().backward()?;
//! assert!(root.allclose(&Tensor::from([2.0, 3.0]), 1e-12, 0.0));
//! assert!(a.grad().unwrap().allclose(&Tensor::from([1.0 / 4.0, 1.0 / 6.0]), 1e-12, 0.0));
//! # Ok::<(), autograd_core::Error>(())
//! ```

mod dormand_prince;
mod krylov;
mod ode;
mod root;

use crate::error::{Error, Result};
use crate::functional::vjp;
use crate::graph::{Tensor, no_grad};
use crate::ops::Float;

pub use dormand_prince::OdeOptions;
pub use ode::odeint;
pub use root::{FixedPointOptions, custom_root, fixed_point};

/// The tensors alone, without what wants a gradient.
fn detached<T: Float>(tensors: &[Tensor<T>]) -> Vec<Tensor<T>> {
    tensors.iter().map(Tensor::detach).collect()
}

fn unrecorded<R>(run: impl FnOnce() -> R) -> R {
    let _unrecorded = no_grad();
    run()
}

/// Checks a value of a closure that was called on detached tensors.
fn check_value<T: Float>(op: &'static str, value: &Tensor<T>, like: &Tensor<T>) -> Result<()> {
    if value.shape() != like.shape() {
        let expected = format!("of shape {:?}", like.shape());
        return Err(Error::shape(op, "what `f` returns", expected, value.shape()));
    }
    if value.stop_gradient() {
        return Ok(());
    }
    let why =
        "`f` captures a tensor that wants a gradient, which would be lost; give it in `params`";
    Err(Error::Unsupported { op, why: why.to_owned() })
}

/// [`vjp`] of a closure that may fail.
fn pull<T: Float>(
    f: impl FnOnce(&[Tensor<T>]) -> Result<Tensor<T>>,
    inputs: &[Tensor<T>],
    cotangent: &Tensor<T>,
) -> Result<(Tensor<T>, Vec<Tensor<T>>)> {
    let mut failed = None;
    let run = |inputs: &[Tensor<T>]| {
        f(inputs).unwrap_or_else(|error| {
            failed = Some(error);
            cotangent.detach()
        })
    };
    let pulled = vjp(run, inputs, cotangent);
    failed.map_or(pulled, Err)
}
