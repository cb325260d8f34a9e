//! Stochastic gradient descent.

use super::built_in::{built_in, rule};
use super::rule::{Rule, Step};
use super::{FINITE, NOT_NEGATIVE, check};
use crate::error::Result;
use crate::ops::Float;

rule! {
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
    pub struct Sgd;

    /// Without momentum and weight decay.
    pub fn new(learning_rate: f64);

    /// How much of the last step goes into the next: 0 or more.
    pub fn momentum(momentum: f64) = 0.0, NOT_NEGATIVE;

    /// How much of the gradient is kept out of the buffer after the first step.
    pub fn dampening(dampening: f64) = 0.0, FINITE;

    /// How much of the parameter is added to the gradient: 0 or more.
    pub fn weight_decay(weight_decay: f64) = 0.0, NOT_NEGATIVE;

    /// Nesterov's momentum (Sutskever et al. 2013), which needs a momentum and no dampening.
    pub fn nesterov(nesterov: bool) = false, FINITE;
}

impl Rule for Sgd {
    built_in! { Sgd }

    const COUNTS: bool = false;

    fn state(&self) -> &'static [&'static str] {
        if self.momentum == 0.0 { &[] } else { &["momentum_buffer"] }
    }

    fn check(&self) -> Result<()> {
        self.check_options()?;
        if self.nesterov == 0.0 {
            return Ok(());
        }
        check(Self::NAME, "momentum", ("above 0 for Nesterov's", |x| x > 0.0), self.momentum)?;
        check(Self::NAME, "dampening", ("0 with Nesterov's momentum", |x| x == 0.0), self.dampening)
    }

    fn update<T: Float>(&self, step: Step<'_, T>) {
        let [rate, decay, momentum] =
            [self.learning_rate, self.weight_decay, self.momentum].map(T::from_f64);
        if self.momentum == 0.0 {
            return step.each(|[p], g| [p - rate * (g + decay * p)]);
        }
        let intake = T::from_f64(if step.has_new_state() { 1.0 } else { 1.0 - self.dampening });
        // The step is `look g + follow b`, with the new buffer.
        let (look, follow) =
            if self.nesterov == 1.0 { (T::one(), momentum) } else { (T::zero(), T::one()) };
        step.each(|[p, b], g| {
            let g = g + decay * p;
            let b = momentum * b + intake * g;
            [p - rate * (look * g + follow * b), b]
        });
    }
}
