//! RMSprop.

#[cfg(feature = "static-graph")]
use super::rule::Listed;
use super::rule::{Erased, Rule, Step};
use super::{check, check_not_negative};
use crate::error::Result;
use crate::ops::Float;

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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsProp {
    rate: f64,
    alpha: f64,
    eps: f64,
    weight_decay: f64,
    momentum: f64,
    centered: bool,
}

impl RmsProp {
    /// With `alpha` 0.99, `eps` 1e-8, and without weight decay and momentum.
    pub fn new(learning_rate: f64) -> Self {
        let (alpha, eps, weight_decay, momentum) = (0.99, 1e-8, 0.0, 0.0);
        Self { rate: learning_rate, alpha, eps, weight_decay, momentum, centered: false }
    }

    /// The step size.
    #[must_use]
    pub fn learning_rate(self, learning_rate: f64) -> Self {
        Self { rate: learning_rate, ..self }
    }

    /// The decay rate of the running averages: in [0, 1].
    #[must_use]
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// The number that is added to the divisor, so that it is not 0: 0 or more.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        Self { eps, ..self }
    }

    /// How much of the parameter is added to the gradient: 0 or more.
    #[must_use]
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        Self { weight_decay, ..self }
    }

    /// How much of the last step goes into the next: 0 or more.
    #[must_use]
    pub fn momentum(self, momentum: f64) -> Self {
        Self { momentum, ..self }
    }

    /// Whether the gradient is divided by an estimate of its standard deviation, not by its root mean square.
    #[must_use]
    pub fn centered(self, centered: bool) -> Self {
        Self { centered, ..self }
    }
}

impl Rule for RmsProp {
    const NAME: &'static str = "RmsProp";
    const COUNTS: bool = false;

    fn rate(&self) -> f64 {
        self.rate
    }

    fn set_rate(&mut self, learning_rate: f64) {
        self.rate = learning_rate;
    }

    fn state(&self) -> &'static [&'static str] {
        match (self.centered, self.momentum != 0.0) {
            (false, false) => &["square_avg"],
            (false, true) => &["square_avg", "momentum_buffer"],
            (true, false) => &["square_avg", "grad_avg"],
            (true, true) => &["square_avg", "grad_avg", "momentum_buffer"],
        }
    }

    fn check(&self) -> Result<()> {
        check_not_negative(Self::NAME, "learning_rate", self.rate)?;
        check(Self::NAME, "alpha", "in [0, 1]", self.alpha, (0.0..=1.0).contains(&self.alpha))?;
        check_not_negative(Self::NAME, "eps", self.eps)?;
        check_not_negative(Self::NAME, "weight_decay", self.weight_decay)?;
        check_not_negative(Self::NAME, "momentum", self.momentum)
    }

    fn update<T: Float>(&self, step: Step<'_, T>) {
        let [rate, alpha, intake, eps, decay, momentum] =
            [self.rate, self.alpha, 1.0 - self.alpha, self.eps, self.weight_decay, self.momentum]
                .map(T::from_f64);
        let decayed = |p, g| g + decay * p;
        let square = |v, g| alpha * v + intake * g * g;
        let mean = |m, g| alpha * m + intake * g;
        // Rounding may leave a variance below 0. NaN stays.
        let spread = |v: T, m| {
            let variance = v - m * m;
            if variance < T::zero() { T::zero() } else { variance.sqrt() }
        };
        match (self.centered, self.momentum != 0.0) {
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

    #[inline(never)]
    fn erased(&self) -> Erased<'_> {
        Erased { rule: self, in_place: true }
    }
}

#[cfg(feature = "static-graph")]
impl Listed for RmsProp {
    fn options(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("learning_rate", self.rate),
            ("alpha", self.alpha),
            ("eps", self.eps),
            ("weight_decay", self.weight_decay),
            ("momentum", self.momentum),
            ("centered", f64::from(u8::from(self.centered))),
        ]
    }

    fn with_options(options: &[f64]) -> Option<Self> {
        let &[rate, alpha, eps, weight_decay, momentum, centered] = options else { return None };
        Some(Self { rate, alpha, eps, weight_decay, momentum, centered: centered != 0.0 })
    }
}
