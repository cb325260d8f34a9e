//! Stochastic gradient descent.

#[cfg(feature = "static-graph")]
use super::rule::Listed;
use super::rule::{Erased, Rule, Step};
use super::{check, check_not_negative};
use crate::error::Result;
use crate::ops::Float;

/// Stochastic gradient descent, with PyTorch's formula for momentum.
///
/// With the gradient `g`, the parameter `p` and the buffer `b`, which is 0 at first, a step is
///
/// ```text
/// g = g + weight_decay p
/// b = momentum b + (1 - dampening) g      (b = g in the first step)
/// p = p - learning_rate b                 (nesterov: g + momentum b in place of b)
/// ```
///
/// Without momentum there is no buffer, and `p = p - learning_rate g`.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::parameter;
/// use autograd_core::optim::{Optimizer, Sgd};
///
/// let p = parameter(Tensor::from(vec![1.0, 2.0]));
/// let mut sgd = Optimizer::new(&p, Sgd::new(0.5).momentum(0.5));
/// for _ in 0..2 {
///     p.clear_grad();
///     p.sum().backward()?;
///     sgd.step()?;
/// }
/// // 0.5 in the first step, 0.75 in the second.
/// assert_eq!(p.to_vec(), [-0.25, 0.75]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    rate: f64,
    momentum: f64,
    dampening: f64,
    weight_decay: f64,
    nesterov: bool,
}

impl Sgd {
    /// Without momentum and weight decay.
    pub fn new(learning_rate: f64) -> Self {
        let (momentum, dampening, weight_decay) = (0.0, 0.0, 0.0);
        Self { rate: learning_rate, momentum, dampening, weight_decay, nesterov: false }
    }

    /// The step size.
    #[must_use]
    pub fn learning_rate(self, learning_rate: f64) -> Self {
        Self { rate: learning_rate, ..self }
    }

    /// How much of the last step goes into the next: 0 or more.
    #[must_use]
    pub fn momentum(self, momentum: f64) -> Self {
        Self { momentum, ..self }
    }

    /// How much of the gradient is kept out of the buffer after the first step.
    #[must_use]
    pub fn dampening(self, dampening: f64) -> Self {
        Self { dampening, ..self }
    }

    /// How much of the parameter is added to the gradient: 0 or more.
    #[must_use]
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        Self { weight_decay, ..self }
    }

    /// Nesterov's momentum (Sutskever et al. 2013), which needs a momentum and no dampening.
    #[must_use]
    pub fn nesterov(self, nesterov: bool) -> Self {
        Self { nesterov, ..self }
    }
}

impl Rule for Sgd {
    const NAME: &'static str = "Sgd";
    const COUNTS: bool = false;

    fn rate(&self) -> f64 {
        self.rate
    }

    fn set_rate(&mut self, learning_rate: f64) {
        self.rate = learning_rate;
    }

    fn state(&self) -> &'static [&'static str] {
        if self.momentum == 0.0 { &[] } else { &["momentum_buffer"] }
    }

    fn check(&self) -> Result<()> {
        check_not_negative(Self::NAME, "learning_rate", self.rate)?;
        check_not_negative(Self::NAME, "momentum", self.momentum)?;
        check_not_negative(Self::NAME, "weight_decay", self.weight_decay)?;
        let finite = self.dampening.is_finite();
        check(Self::NAME, "dampening", "finite", self.dampening, finite)?;
        let ready = !self.nesterov || self.momentum > 0.0;
        check(Self::NAME, "momentum", "above 0 for Nesterov's", self.momentum, ready)?;
        let ready = !self.nesterov || self.dampening == 0.0;
        check(Self::NAME, "dampening", "0 with Nesterov's momentum", self.dampening, ready)
    }

    fn update<T: Float>(&self, step: Step<'_, T>) {
        let [rate, decay, momentum] =
            [self.rate, self.weight_decay, self.momentum].map(T::from_f64);
        if self.momentum == 0.0 {
            return step.each(|[p], g| [p - rate * (g + decay * p)]);
        }
        let intake = T::from_f64(if step.is_first() { 1.0 } else { 1.0 - self.dampening });
        // The step is `look g + follow b`, with the new buffer.
        let (look, follow) =
            if self.nesterov { (T::one(), momentum) } else { (T::zero(), T::one()) };
        step.each(|[p, b], g| {
            let g = g + decay * p;
            let b = momentum * b + intake * g;
            [p - rate * (look * g + follow * b), b]
        });
    }

    #[inline(never)]
    fn erased(&self) -> Erased<'_> {
        Erased { rule: self, in_place: true }
    }
}

#[cfg(feature = "static-graph")]
impl Listed for Sgd {
    fn options(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("learning_rate", self.rate),
            ("momentum", self.momentum),
            ("dampening", self.dampening),
            ("weight_decay", self.weight_decay),
            ("nesterov", f64::from(u8::from(self.nesterov))),
        ]
    }

    fn with_options(options: &[f64]) -> Option<Self> {
        let &[rate, momentum, dampening, weight_decay, nesterov] = options else { return None };
        Some(Self { rate, momentum, dampening, weight_decay, nesterov: nesterov != 0.0 })
    }
}
