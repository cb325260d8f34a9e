//! Ordinary differential equations, differentiated by the adjoint equation.

use std::sync::Arc;

use super::dormand_prince::{OdeOptions, integrate};
use super::{check_value, detached, pull, unrecorded};
use crate::error::{Error, Result};
use crate::graph::Tensor;
use crate::ops::Float;
use crate::py_layer::{BackwardContext, ForwardContext, py_layer};

/// Returns the solution of `dy/dt = f(t, y, params)` with `y = y0` at the first of `times`, at all of them, in
/// shape `[times, y0..]`. The times rise or fall.
///
/// The method is that of Dormand and Prince (1980), of order 5, with steps whose estimated error is within `atol +
/// rtol |y|`, as a root mean square over the elements. A step ends at each of the times, so many of them
/// cost more. The method is not made for stiff equations.
///
/// The gradients of `y0`, `times` and `params` come from the adjoint equation (L. Pontryagin and others, 1962),
/// which is integrated backwards with the same options together with `y`, from its saved value at each of the
/// times: memory does not grow with the number of steps. They are approximations, as good as the solution,
/// and not the derivatives of the steps that were taken. What `f` captures is not part of that equation, so
/// constants cost less there than in `params`.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::solvers::{OdeOptions, odeint};
///
/// // y = exp(-k t), so dy/dk = -t exp(-k t).
/// let (k, times) = (Tensor::from(0.5), Tensor::from([0.0, 1.0, 2.0]));
/// k.set_stop_gradient(false);
/// let decay = |_t: &Tensor<f64>, y: &Tensor<f64>, params: &[Tensor<f64>]| Ok(-&params[0] * y);
/// let y = odeint(decay, &Tensor::from(1.0), &times, &[k.clone()], OdeOptions::new())?;
/// assert!(y.allclose(&(&times * -0.5).exp(), 1e-7, 0.0));
/// y.select(0, 2).backward()?;
/// assert!((k.grad().unwrap().item() + 2.0 * (-1.0_f64).exp()).abs() < 1e-7);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if `times` is not a list of at least one time, or `f` returns another shape than that of
/// `y0`; [`Error::Value`] if the times neither rise nor fall, or an option is not a positive number;
/// [`Error::NotConverged`] if there are more steps than `max_steps`, or a step is too small for the element
/// type's numbers, also as `f` returns a NaN; [`Error::Unsupported`] if `f` captures a tensor that wants a
/// gradient; the errors of `f`. Backward returns the same errors of the adjoint equation.
#[doc(alias = "solve_ivp")]
#[track_caller]
pub fn odeint<T: Float>(
    f: impl Fn(&Tensor<T>, &Tensor<T>, &[Tensor<T>]) -> Result<Tensor<T>> + Send + Sync + 'static,
    y0: &Tensor<T>,
    times: &Tensor<T>,
    params: &[Tensor<T>],
    options: OdeOptions,
) -> Result<Tensor<T>> {
    if times.ndim() != 1 || times.is_empty() {
        return Err(Error::shape(OP, "times", "a list of at least one time", times.shape()));
    }
    let list = times.detach().to_vec();
    let is_sorted = |rising: bool| list.windows(2).all(|t| t[0] != t[1] && (t[0] < t[1]) == rising);
    if !list.iter().all(|t| t.is_finite()) || !(is_sorted(true) || is_sorted(false)) {
        let found = format!("{list:?}");
        return Err(Error::value(OP, "times", "finite numbers that rise or fall", found));
    }
    let start = f(&times.select(0, 0).detach(), &y0.detach(), &detached(params))?;
    check_value(OP, &start, y0)?;
    solution(Arc::new(f), y0, times, params, options)
}

const OP: &str = "odeint";

type Field<T> =
    Arc<dyn Fn(&Tensor<T>, &Tensor<T>, &[Tensor<T>]) -> Result<Tensor<T>> + Send + Sync>;

#[track_caller]
fn solution<T: Float>(
    f: Field<T>,
    y0: &Tensor<T>,
    times: &Tensor<T>,
    params: &[Tensor<T>],
    options: OdeOptions,
) -> Result<Tensor<T>> {
    let given = detached(params);
    let slope = |t: f64, y: &Tensor<T>| f(&Tensor::from(T::from_f64(t)), y, &given);
    let list: Vec<f64> = times.detach().to_vec().into_iter().map(T::into_f64).collect();
    let run = || integrate(OP, slope, y0.detach(), &list, options);
    let ys = Tensor::stack(&unrecorded(run)?, 0);
    Odeint::apply(y0, times, params, &ys, f, options)
}

// Forward receives what was solved before, so differences of it have no meaning.
#[py_layer(surrogate)]
impl<T: Float> Odeint<T> {
    type Saved = (Tensor<T>, Tensor<T>, Vec<Tensor<T>>);
    type Attrs = (Field<T>, OdeOptions);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        _y0: &Tensor<T>,
        times: &Tensor<T>,
        params: &[Tensor<T>],
        #[stop_gradient] ys: &Tensor<T>,
        f: Field<T>,
        options: OdeOptions,
    ) -> Result<Tensor<T>> {
        let ys = ys.detach();
        ctx.save_for_backward((&ys, times, params));
        ctx.set_attrs((f, options));
        Ok(ys)
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dys: &Tensor<T>,
    ) -> Result<(Tensor<T>, Option<Tensor<T>>, Vec<Tensor<T>>)> {
        let ((ys, times, params), (f, options)) = (ctx.saved_tensor(), ctx.attrs());
        let at = |i: usize| (times.select(0, i), ys.select(0, i));
        // The adjoint equation is linear, and the tolerances are for numbers of about 1.
        let size = dys.detach().norm();
        let size = if size.item() > T::ZERO { size } else { Tensor::from(T::ONE) };
        let dys = dys / &size;
        let along = |i: usize, adjoint: &Tensor<T>| -> Result<Tensor<T>> {
            let (t, y) = at(i);
            Ok((adjoint * f(&t, &y, params)?).sum())
        };
        let field = adjoint_field(Arc::clone(f), ys.shape()[1..].to_vec());
        let (shape, n) = (&ys.shape()[1..], at(0).1.len());
        let mut adjoint = Tensor::zeros(shape);
        let mut dparams = Tensor::zeros([params.iter().map(Tensor::len).sum()]);
        let mut dtimes = Vec::new();
        for i in (1..times.len()).rev() {
            let dy = dys.select(0, i);
            if ctx.needs_input_grad().times {
                dtimes.push(along(i, &dy)?);
            }
            let state = [at(i).1.flatten(), (adjoint + dy).flatten(), dparams];
            let span = Tensor::stack(&[at(i).0, at(i - 1).0], 0);
            let end =
                solution(Arc::clone(&field), &Tensor::concat(&state, 0), &span, params, *options)?;
            let end = end.select(0, 1);
            adjoint = end.narrow(0, n, n).reshape(shape);
            dparams = end.narrow(0, 2 * n, end.len() - 2 * n);
        }
        if ctx.needs_input_grad().times {
            dtimes.push(-along(0, &adjoint)?);
            dtimes.reverse();
        }
        let dtimes = (!dtimes.is_empty()).then(|| Tensor::stack(&dtimes, 0) * &size);
        let mut start = 0;
        let split = params.iter().map(|param| {
            start += param.len();
            dparams.narrow(0, start - param.len(), param.len()).reshape(param.shape()) * &size
        });
        Ok(((adjoint + dys.select(0, 0)) * &size, dtimes, split.collect()))
    }
}

/// The equation of the solution, its adjoint, and the gradients of `params`, all in one list.
fn adjoint_field<T: Float>(f: Field<T>, shape: Vec<usize>) -> Field<T> {
    let n = shape.iter().product();
    Arc::new(move |t, state, params| {
        let [y, adjoint] = [0, n].map(|start| state.narrow(0, start, n).reshape(&shape[..]));
        let inputs = [&[y], params].concat();
        let (slope, grads) = pull(|inputs| f(t, &inputs[0], &inputs[1..]), &inputs, &adjoint)?;
        let parts = std::iter::once(slope).chain(grads.into_iter().map(|grad| -grad));
        Ok(Tensor::concat(parts.map(|part| part.flatten()).collect::<Vec<_>>(), 0))
    })
}
