//! RMSprop.

use super::NOT_NEGATIVE;
use super::built_in::{built_in, rule};
use super::rule::{Rule, Step};
use crate::error::Result;
use crate::ops::Float;

rule! {
    /// RMSprop (Tieleman and Hinton 2012, lecture 6.5 of "Neural Networks for Machine Learning"), as PyTorch
    /// computes it; the centered form is that of Graves (2013).
    ///
    /// With the gradient `g`, the parameter `p`, and `v`, `m` and `b`, which are 0 at first, a step is
    ///
    /// ```text
    /// g = g + weight_decay p
    /// v = alpha v + (1 - alpha) g²
    /// m = alpha m + (1 - alpha) g             (only if it is centered, otherwise 0)
    /// b = momentum b + g / (sqrt(v - m²) + eps)
    /// p = p - learning_rate b
    /// ```
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_core::optim::{Optimizer, RmsProp};
    ///
    /// let p = parameter(Tensor::from([1.0, 2.0]));
    /// let mut optimizer = Optimizer::new(&p, RmsProp::new(0.1).alpha(0.75).eps(0.0));
    /// (&p * Tensor::from([1.0, -100.0])).sum().backward()?;
    /// optimizer.step()?;
    /// assert!((p.at(&[0]) - 0.8_f64).abs() < 1e-12 && (p.at(&[1]) - 2.2_f64).abs() < 1e-12);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[doc(alias = "RMSprop")]
    pub struct RmsProp;

    /// With `alpha` 0.99, `eps` 1e-8, and without weight decay and momentum.
    pub fn new(learning_rate: f64);

    /// The decay rate of the running averages: in [0, 1].
    pub fn alpha(alpha: f64) = 0.99, ("in [0, 1]", |x| (0.0..=1.0).contains(&x));

    /// The number that is added to the divisor, so that it is not 0: 0 or more.
    pub fn eps(eps: f64) = 1e-8, NOT_NEGATIVE;

    /// How much of the parameter is added to the gradient: 0 or more.
    pub fn weight_decay(weight_decay: f64) = 0.0, NOT_NEGATIVE;

    /// How much of the last step goes into the next: 0 or more.
    pub fn momentum(momentum: f64) = 0.0, NOT_NEGATIVE;

    /// Whether the gradient is divided by an estimate of its standard deviation, not by its root mean square.
    pub fn centered(centered: bool) = false, NOT_NEGATIVE;
}

impl Rule for RmsProp {
    built_in! { RmsProp }

    const COUNTS: bool = false;

    fn state(&self) -> &'static [&'static str] {
        match (self.centered != 0.0, self.momentum != 0.0) {
            (false, false) => &["square_avg"],
            (false, true) => &["square_avg", "momentum_buffer"],
            (true, false) => &["square_avg", "grad_avg"],
            (true, true) => &["square_avg", "grad_avg", "momentum_buffer"],
        }
    }

    fn check(&self) -> Result<()> {
        self.check_options()
    }

    fn update<T: Float>(&self, step: Step<'_, T>) {
        let [rate, alpha, intake, eps, decay, momentum] = [
            self.learning_rate,
            self.alpha,
            1.0 - self.alpha,
            self.eps,
            self.weight_decay,
            self.momentum,
        ]
        .map(T::from_f64);
        let decayed = |p, g| g + decay * p;
        let square = |v, g| alpha * v + intake * g * g;
        let mean = |m, g| alpha * m + intake * g;
        // Rounding may leave a variance below 0. NaN stays.
        let spread = |v: T, m| {
            let variance = v - m * m;
            if variance < T::zero() { T::zero() } else { variance.sqrt() }
        };
        match (self.centered != 0.0, self.momentum != 0.0) {
            (false, false) => step.each(|[p, v], g| {
                let g = decayed(p, g);
                let v = square(v, g);
                [p - rate * g / (v.sqrt() + eps), v]
            }),
            (false, true) => step.each(|[p, v, b], g| {
                let g = decayed(p, g);
                let v = square(v, g);
                let b = momentum * b + g / (v.sqrt() + eps);
                [p - rate * b, v, b]
            }),
            (true, false) => step.each(|[p, v, m], g| {
                let g = decayed(p, g);
                let (v, m) = (square(v, g), mean(m, g));
                [p - rate * g / (spread(v, m) + eps), v, m]
            }),
            (true, true) => step.each(|[p, v, m, b], g| {
                let g = decayed(p, g);
                let (v, m) = (square(v, g), mean(m, g));
                let b = momentum * b + g / (spread(v, m) + eps);
                [p - rate * b, v, m, b]
            }),
        }
    }
}
