//! Roots and fixed points, differentiated by the implicit function theorem.

use std::sync::Arc;

use super::krylov::{gmres, tolerance};
use super::{check_value, detached, pull, unrecorded};
use crate::error::{Error, Result};
use crate::graph::Tensor;
use crate::ops::Float;
use crate::options::options;
use crate::py_layer::{BackwardContext, ForwardContext, py_layer};

/// Options of [`fixed_point`]: when it has converged, and when it gives up.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::solvers::{FixedPointOptions, fixed_point};
///
/// let options = FixedPointOptions::new().tolerance(1e-3).max_steps(20);
/// let x = fixed_point(|x, _| Ok(x * 0.5 + 1.0), &Tensor::from(0.0), &[], options)?;
/// assert!((x.item() - 2.0_f64).abs() < 1e-2);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FixedPointOptions {
    tolerance: Option<f64>,
    max_steps: usize,
}

impl Default for FixedPointOptions {
    fn default() -> Self {
        Self { tolerance: None, max_steps: 1000 }
    }
}

impl FixedPointOptions {
    /// The tolerance is the element type's rounding error to the power of 3/4, and there are at most 1000 steps.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::solvers::{FixedPointOptions, fixed_point};
    ///
    /// let (start, options) = (Tensor::from(0.0), FixedPointOptions::new());
    /// let x = fixed_point(|x, _| Ok(x * 0.5 + 1.0), &start, &[], options)?;
    /// assert!((x.item() - 2.0_f64).abs() < 1e-11);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    options! {
        /// `x` has converged if each element changes by at most this times one plus its magnitude.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::solvers::{FixedPointOptions, fixed_point};
        ///
        /// // 1, 1.5, ..: the second step is as long as the tolerance.
        /// let (start, options) = (Tensor::from(0.0), FixedPointOptions::new().tolerance(0.5));
        /// let x = fixed_point(|x, _| Ok(x * 0.5 + 1.0), &start, &[], options)?;
        /// assert_eq!(x.item(), 1.5);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn tolerance(tolerance: f64).into();

        /// After how many steps without convergence an error is returned.
        ///
        /// ```
        /// use autograd_core::solvers::{FixedPointOptions, fixed_point};
        /// use autograd_core::{Error, Tensor};
        ///
        /// let (start, options) = (Tensor::from(0.0), FixedPointOptions::new().max_steps(3));
        /// let result = fixed_point(|x, _| Ok(x * 0.5 + 1.0), &start, &[], options);
        /// assert!(matches!(result, Err(Error::NotConverged { .. })));
        /// ```
        pub fn max_steps(steps: usize);
    }
}

/// Returns the `x` with `f(x, params) = x` to which the iteration `x = f(x, params)` converges from `x0`.
///
/// With the derivatives `j` of `f` by `x`, the gradient of `params` is `uᵀ ∂f/∂params`, where
/// `(1 - jᵀ) u = dx`: see [`custom_root`] for how it is found. It is that of the implicit function theorem
/// (Bai, Kolter and Koltun 2019 for networks), and does not depend on `x0`, which has none.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::solvers::{FixedPointOptions, fixed_point};
///
/// // x = cos(a x), so dx/da = -x sin(a x) / (1 + a sin(a x)).
/// let a = Tensor::from(1.0_f64);
/// a.set_stop_gradient(false);
/// let options = FixedPointOptions::new().max_steps(200);
/// let x = fixed_point(|x, p| Ok((&p[0] * x).cos()), &Tensor::from(1.0), &[a.clone()], options)?;
/// x.backward()?;
/// assert!((x.item() - 0.739_085_133_215).abs() < 1e-11);
/// let slope = -x.item() * x.item().sin() / (1.0 + x.item().sin());
/// assert!((a.grad().unwrap().item() - slope).abs() < 1e-11);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::NotConverged`] after `max_steps` steps, or as soon as `x` has a NaN or an infinity;
/// [`Error::Shape`] if `f` returns another shape than that of `x0`;
/// [`Error::Unsupported`] if `f` captures a tensor that wants a gradient; the errors of `f`.
#[track_caller]
pub fn fixed_point<T: Float>(
    f: impl Fn(&Tensor<T>, &[Tensor<T>]) -> Result<Tensor<T>> + Send + Sync + 'static,
    x0: &Tensor<T>,
    params: &[Tensor<T>],
    options: FixedPointOptions,
) -> Result<Tensor<T>> {
    const OP: &str = "fixed_point";
    let limit = options.tolerance.unwrap_or_else(tolerance::<T>);
    let f = Arc::new(f);
    let map = Arc::clone(&f);
    let given = detached(params);
    let solve = || {
        let mut x = x0.detach();
        for step in 1..=options.max_steps {
            let next = map(&x, &given)?;
            check_value(OP, &next, &x)?;
            if next.allclose(&x, limit, limit) {
                return Ok(next);
            }
            if !is_finite(&next) {
                let why = format!("`f` returns a NaN or an infinity in step {step}");
                return Err(Error::NotConverged { op: OP, why });
            }
            x = next;
        }
        let why = format!(
            "`x` still changes by more than a tolerance of {limit:e} after {} steps",
            options.max_steps
        );
        Err(Error::NotConverged { op: OP, why })
    };
    root(OP, Arc::new(move |x, params| Ok(f(x, params)? - x)), solve, params)
}

/// Returns the root `x` of `f(x, params) = 0` that `solve` finds, by whatever method, with the gradient that the
/// implicit function theorem gives.
///
/// `solve` receives `f` at the values of `params`, and runs unrecorded; it may be Newton's method, a bisection,
/// or a foreign library. Whether it found a root is not checked, but the gradient is only right at one. `f`
/// returns as many numbers as `x` has, in its shape.
///
/// With the derivatives `j` of `f` by `x`, the gradient of `params` is `uᵀ ∂f/∂params`, where `jᵀ u = -dx`.
/// This system is solved by GMRES (Saad and Schultz 1986), by at most `n` products with `jᵀ` for `n` unknowns,
/// and at most 500; each keeps a vector of the size of `x`. The relative residual is at most the element type's
/// rounding error to the power of 3/4: if it stays above, backward returns [`Error::NotConverged`], as for a
/// singular `j`.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::solvers::custom_root;
///
/// // x³ + x = a, by Newton's method. dx/da = 1 / (3 x² + 1).
/// let a = Tensor::from([2.0, 10.0]);
/// a.set_stop_gradient(false);
/// let x = custom_root(
///     |x, params| Ok(x * x * x + x - &params[0]),
///     |f| {
///         let mut x = Tensor::from([1.0, 1.0]);
///         for _ in 0..50 {
///             x = &x - f(&x)? / (3.0 * x.square() + 1.0);
///         }
///         Ok(x)
///     },
///     &[a.clone()],
/// )?;
/// x.sum().backward()?;
/// assert!(x.allclose(&Tensor::from([1.0, 2.0]), 1e-12, 0.0));
/// assert!(a.grad().unwrap().allclose(&Tensor::from([1.0 / 4.0, 1.0 / 13.0]), 1e-12, 0.0));
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::NotConverged`] if the root has a NaN or an infinity; [`Error::Shape`] if `f` returns another shape
/// than that of `x`; [`Error::Unsupported`] if `f` captures a tensor that wants a gradient; the errors of `f`
/// and of `solve`.
#[doc(alias = "implicit_diff")]
#[track_caller]
pub fn custom_root<T: Float>(
    f: impl Fn(&Tensor<T>, &[Tensor<T>]) -> Result<Tensor<T>> + Send + Sync + 'static,
    solve: impl FnOnce(&dyn Fn(&Tensor<T>) -> Result<Tensor<T>>) -> Result<Tensor<T>>,
    params: &[Tensor<T>],
) -> Result<Tensor<T>> {
    let f: Residual<T> = Arc::new(f);
    let given = detached(params);
    let solve = || solve(&|x| f(x, &given));
    root("custom_root", Arc::clone(&f), solve, params)
}

type Residual<T> = Arc<dyn Fn(&Tensor<T>, &[Tensor<T>]) -> Result<Tensor<T>> + Send + Sync>;

#[track_caller]
fn root<T: Float>(
    op: &'static str,
    f: Residual<T>,
    solve: impl FnOnce() -> Result<Tensor<T>>,
    params: &[Tensor<T>],
) -> Result<Tensor<T>> {
    let x = unrecorded(solve)?.detach();
    if !is_finite(&x) {
        let why = "the root that `solve` found has a NaN or an infinity".to_owned();
        return Err(Error::NotConverged { op, why });
    }
    check_value(op, &f(&x, &detached(params))?, &x)?;
    Root::apply(params, &x, op, f)
}

fn is_finite<T: Float>(x: &Tensor<T>) -> bool {
    x.abs().lt_scalar(T::infinity()).all()
}

// Forward receives what was solved before, so differences of it have no meaning.
#[py_layer(surrogate)]
impl<T: Float> Root<T> {
    type Saved = (Tensor<T>, Vec<Tensor<T>>);
    type Attrs = (&'static str, Residual<T>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        params: &[Tensor<T>],
        #[stop_gradient] x: &Tensor<T>,
        op: &'static str,
        f: Residual<T>,
    ) -> Result<Tensor<T>> {
        let x = x.detach();
        ctx.save_for_backward((&x, params));
        ctx.set_attrs((op, f));
        Ok(x)
    }

    fn backward(ctx: &BackwardContext<Self>, dx: &Tensor<T>) -> Result<Vec<Tensor<T>>> {
        let ((x, params), (op, f)) = (ctx.saved_tensor(), ctx.attrs());
        let g = Arc::clone(f);
        let system: Residual<T> = Arc::new(move |u, given| {
            let (x, params) = (&given[..1], &given[2..]);
            Ok(pull(|x| g(&x[0], params), x, u)?.1.remove(0) + &given[1])
        });
        let given = [&[x.clone(), dx.clone()], &params[..]].concat();
        let u = unrecorded(|| {
            let product =
                |u: &Tensor<T>| Ok(pull(|x| f(&x[0], params), &given[..1], u)?.1.remove(0));
            gmres(op, product, &-dx)
        })?;
        let u = Root::apply(&given, &u, op, system)?;
        Ok(pull(|params| f(x, params), params, &u)?.1)
    }
}
