//! The rules of this crate: their options as a table, and their steps.

use super::rule::{Rule, Step};
use super::{FINITE, NOT_NEGATIVE, Range, check};
use crate::error::Result;
use crate::ops::Float;

/// An example of a rule: the parameter 1 after two steps with one gradient.
macro_rules! example {
    ($name:ident $rule:expr, $gradient:literal => $result:expr) => {
        concat!(
            "
```
use autograd_core::Tensor;
use autograd_core::nn::parameter;
use autograd_core::optim::{Optimizer, ",
            stringify!($name),
            "};

let p = parameter(Tensor::from(1.0));
p.set_grad(Some(&Tensor::from(",
            $gradient,
            ")))?;
let mut optimizer = Optimizer::new(&p, ",
            stringify!($rule),
            ");
optimizer.step()?;
optimizer.step()?;
assert!(p.allclose(&Tensor::from(",
            stringify!($result),
            "), 1e-7, 1e-7));
# Ok::<(), autograd_core::Error>(())
```"
        )
    };
}

/// Defines a rule by its constructor and options, each with initial value, range and example. All are numbers, in
/// the order of programs and files. Those behind `let` have no method here.
macro_rules! rule {
    (
        $(#[$doc:meta])* pub struct $name:ident;
        $(#[$new:meta])* pub fn new(learning_rate: f64) [$($new_example:tt)*];
        $(let $hidden:ident = $hidden_start:literal, $hidden_range:expr;)*
        $($(#[$option_doc:meta])* pub fn $option:ident($value:ident: $type:ty) = $start:literal, $range:expr,
            [$($example:tt)*];)*
        $(fn counts(&$self:ident) -> bool { $counts:expr })?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            learning_rate: f64,
            $($hidden: f64,)*
            $($option: f64,)*
        }

        impl $name {
            $(#[$new])*
            #[doc = example!($name $($new_example)*)]
            pub fn new(learning_rate: f64) -> Self {
                $(let $hidden = $hidden_start;)*
                Self { learning_rate, $($hidden,)* $($option: f64::from($start),)* }
            }

            /// Sets the step size: 0 or more.
            ///
            /// ```
            #[doc = concat!("use autograd_core::optim::", stringify!($name), ";")]
            ///
            #[doc = concat!(
                "assert_eq!(", stringify!($name), "::new(0.1).learning_rate(0.2), ", stringify!($name), "::new(0.2));"
            )]
            /// ```
            #[must_use]
            pub fn learning_rate(self, learning_rate: f64) -> Self {
                Self { learning_rate, ..self }
            }

            $(
                $(#[$option_doc])*
                #[doc = example!($name $($example)*)]
                #[must_use]
                pub fn $option(self, $value: $type) -> Self {
                    Self { $option: f64::from($value), ..self }
                }
            )*

            fn check_options(&self) -> Result<()> {
                let check = |option, range, found| super::check(stringify!($name), option, range, found);
                check("learning_rate", super::NOT_NEGATIVE, self.learning_rate)?;
                $(check(stringify!($hidden), $hidden_range, self.$hidden)?;)*
                $(check(stringify!($option), $range, self.$option)?;)*
                Ok(())
            }
        }

        #[cfg(feature = "static-graph")]
        impl $crate::optim::Listed for $name {
            const OPTIONS: &'static [$crate::ops::table::attr::Param] = &[
                ("learning_rate", $crate::ops::table::Type::Plain),
                $((stringify!($hidden), $crate::ops::table::Type::Plain),)*
                $((stringify!($option), $crate::ops::table::Type::Plain),)*
            ];

            fn options(&self) -> Vec<f64> {
                vec![self.learning_rate, $(self.$hidden,)* $(self.$option,)*]
            }

            fn with_options(options: &[f64]) -> Option<Self> {
                let &[learning_rate, $($hidden,)* $($option,)*] = options else { return None };
                Some(Self { learning_rate, $($hidden,)* $($option,)* })
            }
            $(fn counts(&$self) -> bool { $counts })?
        }
    };
}

macro_rules! built_in {
    ($name:ident) => {
        const NAME: &'static str = stringify!($name);

        fn rate(&self) -> f64 {
            self.learning_rate
        }

        fn set_rate(&mut self, learning_rate: f64) {
            self.learning_rate = learning_rate;
        }

        // Never inlined, so that the updates are compiled in this crate.
        #[inline(never)]
        fn erased(&self) -> $crate::optim::rule::Erased<'_> {
            $crate::optim::rule::Erased::new(self, true)
        }
    };
}

rule! {
    /// Stochastic gradient descent, with PyTorch's formula for momentum.
    ///
    /// With the gradient `g`, the parameter `p` and the buffer `b`, initially 0, a step is
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

    /// Creates the rule without momentum and weight decay.
    pub fn new(learning_rate: f64)
        [Sgd::new(0.25), 2.0 => 1.0 - 0.25 * 2.0 - 0.25 * 2.0];

    /// Sets the part of the last step that goes into the next: 0 or more.
    pub fn momentum(momentum: f64) = 0.0, NOT_NEGATIVE,
        [Sgd::new(0.25).momentum(0.5), 2.0 => 1.0 - 0.25 * 2.0 - 0.25 * (0.5 * 2.0 + 2.0)];

    /// Sets the part of the gradient that is kept out of the buffer after the first step.
    pub fn dampening(dampening: f64) = 0.0, FINITE,
        [Sgd::new(0.25).momentum(0.5).dampening(1.0), 2.0 => 1.0 - 0.25 * 2.0 - 0.25 * (0.5 * 2.0)];

    /// Sets the part of the parameter that is added to the gradient: 0 or more.
    pub fn weight_decay(weight_decay: f64) = 0.0, NOT_NEGATIVE,
        [Sgd::new(0.25).weight_decay(1.0), 2.0 => 1.0 - 0.25 * (2.0 + 1.0) - 0.25 * (2.0 + 0.25)];

    /// Turns Nesterov's momentum on (Sutskever et al. 2013), which needs a momentum and no dampening.
    pub fn nesterov(nesterov: bool) = false, FINITE,
        [Sgd::new(0.25).momentum(0.5).nesterov(true), 2.0 => 1.0 - 0.25 * (2.0 + 1.0) - 0.25 * (2.0 + 1.5)];
    fn counts(&self) -> bool { self.momentum != 0.0 }
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

const BETA: Range = ("in [0, 1)", |x| (0.0..1.0).contains(&x));

rule! {
    /// Adam (Kingma and Ba 2015), as PyTorch and Paddle compute it.
    ///
    /// With the gradient `g`, the parameter `p`, the running means `m` and `v`, initially 0, and
    /// the count of steps `t`, which is 1 in the first step, a step is
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
    /// let mut adam = Optimizer::new(&p, Adam::new(0.1).betas(0.9, 0.99).eps(0.0));
    /// (&p * Tensor::from(vec![1.0, -100.0])).sum().backward()?;
    /// adam.step()?;
    /// // The first step is the learning rate, whatever the gradient's size.
    /// assert!((p.at(&[0]) - 0.9_f64).abs() < 1e-12 && (p.at(&[1]) - 2.1_f64).abs() < 1e-12);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub struct Adam;

    /// Creates the rule with betas 0.9 and 0.999, `eps` 1e-8 and weight decay 0.
    pub fn new(learning_rate: f64) [Adam::new(0.25), 2.0 => 1.0 - 0.25 - 0.25];

    let beta1 = 0.9, BETA;
    let beta2 = 0.999, BETA;

    /// Sets the number that keeps the divisor from 0.
    pub fn eps(eps: f64) = 1e-8, NOT_NEGATIVE,
        [Adam::new(0.25).eps(2.0), 2.0 => 1.0 - 0.25 * 2.0 / (2.0 + 2.0) * 2.0];

    /// Sets the weight decay of the formula: 0 or more.
    pub fn weight_decay(weight_decay: f64) = 0.0, NOT_NEGATIVE,
        [Adam::new(0.25).betas(0.0, 0.0).weight_decay(0.5), 0.0 => 1.0 - 0.25 - 0.25];
}

rule! {
    /// Adam with decoupled weight decay (Loshchilov and Hutter 2019), as PyTorch and Paddle compute
    /// it: [`Adam`] without weight decay in the gradient, preceded by
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

    /// Creates the rule with betas 0.9 and 0.999, `eps` 1e-8 and weight decay 0.01.
    pub fn new(learning_rate: f64) [AdamW::new(0.25), 0.0 => 0.9975 * 0.9975];

    let beta1 = 0.9, BETA;
    let beta2 = 0.999, BETA;

    /// Sets the number that keeps the divisor from 0.
    pub fn eps(eps: f64) = 1e-8, NOT_NEGATIVE,
        [AdamW::new(0.25).weight_decay(0.0).eps(2.0), 2.0 => 1.0 - 0.25 * 2.0 / (2.0 + 2.0) * 2.0];

    /// Sets the weight decay of the formula: 0 or more.
    pub fn weight_decay(weight_decay: f64) = 0.01, NOT_NEGATIVE,
        [AdamW::new(0.25).weight_decay(0.5), 0.0 => (1.0 - 0.25 * 0.5) * (1.0 - 0.25 * 0.5)];
}

/// Both variants: `$parts` are the part of the parameter added to the gradient, and the part kept in a step.
macro_rules! adam {
    ($name:ident |$rule:ident| $parts:expr) => {
        impl $name {
            /// Sets the decay rates of the running means of the gradient and of its square: each in [0, 1).
            ///
            /// ```
            /// use autograd_core::Tensor;
            /// use autograd_core::nn::parameter;
            #[doc = concat!("use autograd_core::optim::{Optimizer, ", stringify!($name), "};")]
            ///
            /// // Without means, each step is the learning rate, in the direction of its gradient.
            #[doc = concat!("let rule = ", stringify!($name), "::new(0.5).weight_decay(0.0).betas(0.0, 0.0);")]
            /// let p = parameter(Tensor::from(1.0));
            /// let mut optimizer = Optimizer::new(&p, rule);
            /// for gradient in [2.0, -1.0] {
            ///     p.set_grad(Some(&Tensor::from(gradient)))?;
            ///     optimizer.step()?;
            /// }
            /// assert!(p.allclose(&Tensor::from(1.0 - 0.5 + 0.5), 1e-7, 0.0));
            /// # Ok::<(), autograd_core::Error>(())
            /// ```
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

rule! {
    /// RMSprop (Tieleman and Hinton 2012, lecture 6.5 of "Neural Networks for Machine Learning"), as PyTorch
    /// computes it; the centered form is that of Graves (2013).
    ///
    /// With the gradient `g`, the parameter `p`, and `v`, `m` and `b`, initially 0, a step is
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

    /// Creates the rule with `alpha` 0.99 and `eps` 1e-8, without weight decay and momentum.
    pub fn new(learning_rate: f64)
        [RmsProp::new(0.25), 2.0 => 1.0 - 0.25 / 0.1 - 0.25 / 0.0199_f64.sqrt()];

    /// Sets the decay rate of the running averages: in [0, 1].
    pub fn alpha(alpha: f64) = 0.99, ("in [0, 1]", |x| (0.0..=1.0).contains(&x)),
        [RmsProp::new(0.25).alpha(0.0), 2.0 => 1.0 - 0.25 - 0.25];

    /// Sets the number that is added to the divisor, so that it is not 0: 0 or more.
    pub fn eps(eps: f64) = 1e-8, NOT_NEGATIVE,
        [RmsProp::new(0.25).alpha(0.0).eps(2.0), 2.0 => 1.0 - 0.25 * 2.0 / (2.0 + 2.0) * 2.0];

    /// Sets the part of the parameter that is added to the gradient: 0 or more.
    pub fn weight_decay(weight_decay: f64) = 0.0, NOT_NEGATIVE,
        [RmsProp::new(0.25).alpha(0.0).weight_decay(0.5), 0.0 => 1.0 - 0.25 - 0.25];

    /// Sets the part of the last step that goes into the next: 0 or more.
    pub fn momentum(momentum: f64) = 0.0, NOT_NEGATIVE,
        [RmsProp::new(0.25).alpha(0.0).momentum(0.5), 2.0 => 1.0 - 0.25 - 0.25 * (0.5 + 1.0)];

    /// Sets whether the gradient is divided by its estimated standard deviation, not its root mean square.
    pub fn centered(centered: bool) = false, NOT_NEGATIVE,
        [RmsProp::new(0.25).alpha(0.5).centered(true), 2.0 =>
            1.0 - 0.25 * 2.0 - 0.25 * 2.0 / 0.75_f64.sqrt()];
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
        // Rounding may leave a variance below 0. NaN stays NaN.
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
