//! Adam, and Adam with decoupled weight decay.

use super::built_in::{built_in, rule};
use super::rule::{Rule, Step};
use super::{NOT_NEGATIVE, Range};
use crate::error::Result;
use crate::ops::Float;

const BETA: Range = ("in [0, 1)", |x| (0.0..1.0).contains(&x));

rule! {
    /// Adam (Kingma and Ba 2015), as PyTorch and Paddle compute it.
    ///
    /// With the gradient `g`, the parameter `p`, running means `m` and `v` that are 0 at first, and
    /// the count of steps `t`, which is 1 in the first, a step is
    ///
    /// ```text
    /// g = g + weight_decay p
    /// m = beta1 m + (1 - beta1) g
    /// v = beta2 v + (1 - beta2) g²
    /// p = p - learning_rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
    /// ```
    ///
    /// Steps in which a parameter has no gradient are not counted for it.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_core::optim::{Adam, Optimizer};
    ///
    /// let p = parameter(Tensor::from(vec![1.0, 2.0]));
    /// let mut adam = Optimizer::new(&p, Adam::new(0.1).eps(0.0));
    /// (&p * Tensor::from(vec![1.0, -100.0])).sum().backward()?;
    /// adam.step()?;
    /// // The first step is the learning rate, whatever the gradient's size.
    /// assert!((p.at(&[0]) - 0.9_f64).abs() < 1e-12 && (p.at(&[1]) - 2.1_f64).abs() < 1e-12);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub struct Adam;

    /// With betas 0.9 and 0.999, `eps` 1e-8 and weight decay 0.
    pub fn new(learning_rate: f64);

    let beta1 = 0.9, BETA;
    let beta2 = 0.999, BETA;

    /// What keeps the divisor from 0.
    pub fn eps(eps: f64) = 1e-8, NOT_NEGATIVE;

    /// The weight decay of the formula: 0 or more.
    pub fn weight_decay(weight_decay: f64) = 0.0, NOT_NEGATIVE;
}

rule! {
    /// Adam with decoupled weight decay (Loshchilov and Hutter 2019), as PyTorch and Paddle compute
    /// it: [`Adam`] without weight decay in the gradient, and before that
    ///
    /// ```text
    /// p = p - learning_rate weight_decay p
    /// ```
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_core::optim::{AdamW, Optimizer};
    ///
    /// let p = parameter(Tensor::from(2.0));
    /// let mut adam = Optimizer::new(&p, AdamW::new(0.1).weight_decay(0.5));
    /// (&p * 0.0).backward()?;
    /// adam.step()?;
    /// assert_eq!(p.item(), 2.0 * (1.0 - 0.1 * 0.5));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub struct AdamW;

    /// With betas 0.9 and 0.999, `eps` 1e-8 and weight decay 0.01.
    pub fn new(learning_rate: f64);

    let beta1 = 0.9, BETA;
    let beta2 = 0.999, BETA;

    /// What keeps the divisor from 0.
    pub fn eps(eps: f64) = 1e-8, NOT_NEGATIVE;

    /// The weight decay of the formula: 0 or more.
    pub fn weight_decay(weight_decay: f64) = 0.01, NOT_NEGATIVE;
}

/// What both have: how much of the parameter is in the gradient, and how much of it is left.
macro_rules! adam {
    ($name:ident |$rule:ident| $parts:expr) => {
        impl $name {
            /// How much of the running mean of the gradient, and of its square, is kept in a step:
            /// each in [0, 1).
            #[must_use]
            pub fn betas(self, beta1: f64, beta2: f64) -> Self {
                Self { beta1, beta2, ..self }
            }
        }

        impl Rule for $name {
            built_in! { $name }

            fn state(&self) -> &'static [&'static str] {
                &["exp_avg", "exp_avg_sq"]
            }

            fn check(&self) -> Result<()> {
                self.check_options()
            }

            fn update<T: Float>(&self, step: Step<'_, T>) {
                let $rule = self;
                update(step, [self.learning_rate, self.eps], [self.beta1, self.beta2], $parts);
            }
        }
    };
}

adam! { Adam |rule| [rule.weight_decay, 1.0] }
adam! { AdamW |rule| [0.0, 1.0 - rule.learning_rate * rule.weight_decay] }

fn update<T: Float>(
    step: Step<'_, T>,
    [rate, eps]: [f64; 2],
    betas: [f64; 2],
    [decay, shrink]: [f64; 2],
) {
    let corrections = betas.map(|beta| 1.0 - beta.powf(step.count() as f64));
    let [beta1, beta2] = betas.map(T::from_f64);
    // 1 less each beta, rounded once.
    let [intake1, intake2] = betas.map(|beta| T::from_f64(1.0 - beta));
    let rate = T::from_f64(rate / corrections[0]);
    let scale = T::from_f64(1.0 / corrections[1].sqrt());
    let [eps, decay, shrink] = [eps, decay, shrink].map(T::from_f64);
    step.each(|[p, m, v], g| {
        let g = g + decay * p;
        let m = beta1 * m + intake1 * g;
        let v = beta2 * v + intake2 * g * g;
        [shrink * p - rate * m / (v.sqrt() * scale + eps), m, v]
    });
}
