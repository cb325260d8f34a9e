//! Steps of an embedded Runge-Kutta method of orders 5 and 4 (J. Dormand, P. Prince, "A family of embedded
//! Runge-Kutta formulae", 1980).

use crate::error::{Error, Result};
use crate::graph::Tensor;
use crate::ops::Float;
use crate::options::options;

/// The stages' times, and the weights of the slopes before them. The last stage is the solution of order 5.
const STAGES: [(f64, &[f64]); 6] = [
    (1.0 / 5.0, &[1.0 / 5.0]),
    (3.0 / 10.0, &[3.0 / 40.0, 9.0 / 40.0]),
    (4.0 / 5.0, &[44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0]),
    (8.0 / 9.0, &[19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0]),
    (1.0, &[9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0]),
    (1.0, &[35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0]),
];

/// The difference between the solutions of orders 5 and 4.
const ERROR: [f64; 7] = [
    71.0 / 57600.0,
    0.0,
    -71.0 / 16695.0,
    71.0 / 1920.0,
    -17253.0 / 339_200.0,
    22.0 / 525.0,
    -1.0 / 40.0,
];

/// Options of [`odeint`](super::odeint): the error of a step, and the number of steps.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::solvers::{OdeOptions, odeint};
///
/// let options = OdeOptions::new().rtol(1e-4).atol(1e-6).max_steps(100);
/// let times = Tensor::from([0.0, 1.0]);
/// let y = odeint(|_, y, _| Ok(y.clone()), &Tensor::from(1.0), &times, &[], options)?;
/// assert!((y.at(&[1]) - 1_f64.exp()).abs() < 1e-3);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OdeOptions {
    rtol: Option<f64>,
    atol: Option<f64>,
    max_steps: usize,
}

impl Default for OdeOptions {
    fn default() -> Self {
        Self { rtol: None, atol: None, max_steps: 10_000 }
    }
}

impl OdeOptions {
    /// Both tolerances are the square root of the element type's rounding error: 1.5e-8 for f64. Between two
    /// times there are at most 10,000 steps.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::solvers::{OdeOptions, odeint};
    ///
    /// let (start, times) = (Tensor::from(1.0), Tensor::from([0.0, 1.0]));
    /// let y = odeint(|_, y, _| Ok(y.clone()), &start, &times, &[], OdeOptions::new())?;
    /// assert!((y.at(&[1]) - 1_f64.exp()).abs() < 1e-7);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    options! {
        /// The error of a step relative to each element.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::solvers::{OdeOptions, odeint};
        ///
        /// let (start, times) = (Tensor::from(1.0), Tensor::from([0.0, 1.0]));
        /// let grown = |options| odeint(|_, y, _| Ok(y.clone()), &start, &times, &[], options);
        /// let error = |y: Tensor<f64>| (y.at(&[1]) - 1_f64.exp()).abs();
        /// let [loose, tight] = [1e-3, 1e-12].map(|rtol| OdeOptions::new().rtol(rtol).atol(1e-12));
        /// assert!(error(grown(loose)?) > 100.0 * error(grown(tight)?));
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn rtol(rtol: f64).into();

        /// The error of a step that is added to the relative one.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::solvers::{OdeOptions, odeint};
        ///
        /// let (start, times) = (Tensor::from(1.0), Tensor::from([0.0, 1.0]));
        /// let grown = |options| odeint(|_, y, _| Ok(y.clone()), &start, &times, &[], options);
        /// let error = |y: Tensor<f64>| (y.at(&[1]) - 1_f64.exp()).abs();
        /// let [loose, tight] = [1e-3, 1e-12].map(|atol| OdeOptions::new().atol(atol).rtol(1e-12));
        /// assert!(error(grown(loose)?) > 100.0 * error(grown(tight)?));
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn atol(atol: f64).into();

        /// How many steps may be needed between two times.
        ///
        /// ```
        /// use autograd_core::solvers::{OdeOptions, odeint};
        /// use autograd_core::{Error, Tensor};
        ///
        /// let (start, times) = (Tensor::from(1.0), Tensor::from([0.0, 1.0]));
        /// let options = OdeOptions::new().max_steps(1);
        /// let result = odeint(|_, y, _| Ok(y.clone()), &start, &times, &[], options);
        /// assert!(matches!(result, Err(Error::NotConverged { .. })));
        /// ```
        pub fn max_steps(steps: usize);
    }

    /// The relative and the absolute tolerance.
    fn tolerances<T: Float>(self, op: &'static str) -> Result<[f64; 2]> {
        for (name, given) in [("rtol", self.rtol), ("atol", self.atol)] {
            if let Some(given) = given.filter(|given| !(*given > 0.0 && given.is_finite())) {
                return Err(Error::value(op, name, "positive and finite", given));
            }
        }
        let precision = T::epsilon().into_f64().sqrt();
        Ok([self.rtol, self.atol].map(|given| given.unwrap_or(precision)))
    }
}

/// Returns the solution of `dy/dt = f(t, y)` from `y0` at each of the times, which rise or fall.
pub(super) fn integrate<T: Float>(
    op: &'static str,
    f: impl Fn(f64, &Tensor<T>) -> Result<Tensor<T>>,
    y0: Tensor<T>,
    times: &[f64],
    options: OdeOptions,
) -> Result<Vec<Tensor<T>>> {
    let tolerances = options.tolerances::<T>(op)?;
    let (mut t, mut y, mut solution) = (times[0], y0.clone(), vec![y0]);
    let Some(&second) = times.get(1) else { return Ok(solution) };
    let mut slope = f(t, &y)?;
    let [of_y, of_slope] = [&y, &slope].map(|x| norm(x, [&y, &y], tolerances));
    let mut size = (0.01 * (of_y + 1.0) / of_slope).min((second - t).abs());
    let failed = |why| Err(Error::NotConverged { op, why });
    for &end in &times[1..] {
        let mut steps = 0;
        while t != end {
            if steps == options.max_steps {
                return failed(format!(
                    "`max_steps`, {steps}, is too small: they end at t = {t}, before {end}"
                ));
            }
            if size <= T::epsilon().into_f64() * t.abs() {
                return failed(format!(
                    "the step from t = {t} is too small, {size:e}, for an error within `rtol` and `atol`: \
                     the solution has a singularity, `f` returns a NaN, or the equation is stiff"
                ));
            }
            steps += 1;
            let is_last = (end - t).abs() <= size;
            let step = if is_last { end - t } else { size.copysign(end - t) };
            let (next, next_slope, error) = stepped(&f, t, &y, slope.clone(), step)?;
            let error = norm(&error, [&y, &next], tolerances);
            let factor = 0.9 * error.powf(-0.2);
            let proposed = step.abs() * if factor.is_nan() { 0.2 } else { factor.clamp(0.2, 10.0) };
            if error <= 1.0 {
                t = if is_last { end } else { t + step };
                (y, slope) = (next, next_slope);
            }
            size = if error <= 1.0 && is_last { size.max(proposed) } else { proposed };
        }
        solution.push(y.clone());
    }
    Ok(solution)
}

/// The root mean square in units of the tolerance.
fn norm<T: Float>(x: &Tensor<T>, [y, next]: [&Tensor<T>; 2], [rtol, atol]: [f64; 2]) -> f64 {
    let unit = y.abs().maximum(next.abs()) * rtol + atol;
    (x / unit).norm().item().into_f64() / (x.len().max(1) as f64).sqrt()
}

/// The solution of order 5 after a step, the slope there, and the solution's error.
fn stepped<T: Float>(
    f: impl Fn(f64, &Tensor<T>) -> Result<Tensor<T>>,
    t: f64,
    y: &Tensor<T>,
    slope: Tensor<T>,
    step: f64,
) -> Result<(Tensor<T>, Tensor<T>, Tensor<T>)> {
    let mut slopes = vec![slope];
    let along = |start: Tensor<T>, weights: &[f64], slopes: &[Tensor<T>]| {
        let parts = slopes.iter().zip(weights).filter(|(_, weight)| **weight != 0.0);
        parts.fold(start, |sum, (slope, weight)| sum + slope * (weight * step))
    };
    let mut next = y.clone();
    for (at, weights) in STAGES {
        next = along(y.clone(), weights, &slopes);
        slopes.push(f(t + at * step, &next)?);
    }
    let error = along(Tensor::zeros_like(y), &ERROR, &slopes);
    Ok((next, slopes.remove(6), error))
}
