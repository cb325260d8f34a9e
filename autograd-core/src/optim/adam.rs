//! Adam, and Adam with decoupled weight decay.

#[cfg(feature = "static-graph")]
use super::rule::Listed;
use super::rule::{Erased, Rule, Step};
use super::{check, check_not_negative};
use crate::error::Result;
use crate::ops::Float;

/// The options that both have.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Options {
    rate: f64,
    betas: [f64; 2],
    eps: f64,
    weight_decay: f64,
}

impl Options {
    fn check(&self, op: &'static str) -> Result<()> {
        check_not_negative(op, "learning_rate", self.rate)?;
        for (beta, name) in self.betas.into_iter().zip(["beta1", "beta2"]) {
            check(op, name, "in [0, 1)", beta, (0.0..1.0).contains(&beta))?;
        }
        check_not_negative(op, "eps", self.eps)?;
        check_not_negative(op, "weight_decay", self.weight_decay)
    }

    /// A step with so much of the parameter in the gradient, and so much of it left.
    fn update<T: Float>(&self, step: Step<'_, T>, weight_decay: f64, shrink: f64) {
        let corrections = self.betas.map(|beta| 1.0 - beta.powf(step.count() as f64));
        let [beta1, beta2] = self.betas.map(T::from_f64);
        // 1 less each beta, rounded once.
        let [intake1, intake2] = self.betas.map(|beta| T::from_f64(1.0 - beta));
        let rate = T::from_f64(self.rate / corrections[0]);
        let scale = T::from_f64(1.0 / corrections[1].sqrt());
        let [eps, decay, shrink] = [self.eps, weight_decay, shrink].map(T::from_f64);
        step.each(|[p, m, v], g| {
            let g = g + decay * p;
            let m = beta1 * m + intake1 * g;
            let v = beta2 * v + intake2 * g * g;
            [shrink * p - rate * m / (v.sqrt() * scale + eps), m, v]
        });
    }
}

macro_rules! adam {
    ($(#[$doc:meta])* $name:ident, $decay:literal, $text:literal, |$options:ident| $parts:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name(Options);

        impl $name {
            #[doc = concat!("With betas 0.9 and 0.999, `eps` 1e-8 and weight decay ", $text, ".")]
            pub fn new(learning_rate: f64) -> Self {
                let (betas, eps, weight_decay) = ([0.9, 0.999], 1e-8, $decay);
                Self(Options { rate: learning_rate, betas, eps, weight_decay })
            }

            /// The step size.
            #[must_use]
            pub fn learning_rate(self, learning_rate: f64) -> Self {
                Self(Options { rate: learning_rate, ..self.0 })
            }

            /// How much of the running mean of the gradient, and of its square, is kept in a step:
            /// each in [0, 1).
            #[must_use]
            pub fn betas(self, beta1: f64, beta2: f64) -> Self {
                Self(Options { betas: [beta1, beta2], ..self.0 })
            }

            /// What keeps the divisor from 0.
            #[must_use]
            pub fn eps(self, eps: f64) -> Self {
                Self(Options { eps, ..self.0 })
            }

            /// The weight decay of the formula: 0 or more.
            #[must_use]
            pub fn weight_decay(self, weight_decay: f64) -> Self {
                Self(Options { weight_decay, ..self.0 })
            }
        }

        impl Rule for $name {
            const NAME: &'static str = stringify!($name);

            fn rate(&self) -> f64 {
                self.0.rate
            }

            fn set_rate(&mut self, learning_rate: f64) {
                self.0.rate = learning_rate;
            }

            fn state(&self) -> &'static [&'static str] {
                &["exp_avg", "exp_avg_sq"]
            }

            fn check(&self) -> Result<()> {
                self.0.check(Self::NAME)
            }

            fn update<T: Float>(&self, step: Step<'_, T>) {
                let $options = &self.0;
                let (weight_decay, shrink) = $parts;
                $options.update(step, weight_decay, shrink);
            }

            #[inline(never)]
            fn erased(&self) -> Erased<'_> {
                Erased { rule: self, in_place: true }
            }
        }

        #[cfg(feature = "static-graph")]
        impl Listed for $name {
            fn options(&self) -> Vec<(&'static str, f64)> {
                let Options { rate, betas: [beta1, beta2], eps, weight_decay } = self.0;
                vec![
                    ("learning_rate", rate),
                    ("beta1", beta1),
                    ("beta2", beta2),
                    ("eps", eps),
                    ("weight_decay", weight_decay),
                ]
            }

            fn with_options(options: &[f64]) -> Option<Self> {
                let &[rate, beta1, beta2, eps, weight_decay] = options else { return None };
                Some(Self(Options { rate, betas: [beta1, beta2], eps, weight_decay }))
            }
        }
    };
}

adam! {
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
    Adam, 0.0, "0", |options| (options.weight_decay, 1.0)
}

adam! {
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
    AdamW, 0.01, "0.01", |options| (0.0, 1.0 - options.rate * options.weight_decay)
}
