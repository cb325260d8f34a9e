//! Learning rates that depend on the step.
//!
//! A schedule maps the number of a step, counted from 0, to a step size (learning rate). It has no
//! state, so a run that is resumed needs only the number of its next step.
//!
//! ```
//! use autograd_core::optim::schedule::{Constant, Exponential, Schedule};
//!
//! let schedule = Constant(0.1).then(100, Exponential { start: 0.1, factor: 0.99 });
//! assert_eq!((schedule.at(99), schedule.at(100), schedule.at(101)), (0.1, 0.1, 0.099));
//! // A closure is a schedule too.
//! let root = |step: u64| 0.1 / ((step + 1) as f64).sqrt();
//! assert_eq!(root.warm_up(9).at(8), 0.09);
//! ```

/// A step size for each step; see the [module](self).
pub trait Schedule {
    /// Returns the step size of a step; the first one is step 0.
    ///
    /// ```
    /// use autograd_core::optim::schedule::Schedule;
    ///
    /// let root = |step: u64| 1.0 / ((step + 1) as f64).sqrt();
    /// assert_eq!((root.at(0), root.at(3)), (1.0, 0.5));
    /// ```
    fn at(&self, step: u64) -> f64;

    /// Uses this schedule for `steps` steps, then another one from its start.
    ///
    /// ```
    /// use autograd_core::optim::schedule::{Constant, Linear, Schedule};
    ///
    /// let schedule = Constant(8.0).then(2, Linear::new(4.0, 0.0, 4));
    /// assert_eq!([0, 1, 2, 3].map(|step| schedule.at(step)), [8.0, 8.0, 4.0, 3.0]);
    /// ```
    #[doc(alias = "SequentialLR")]
    fn then<S: Schedule>(self, steps: u64, next: S) -> Then<Self, S>
    where
        Self: Sized,
    {
        Then { first: self, steps, next }
    }

    /// Begins after `steps` steps of linear warm-up (Goyal et al. 2017), of which step `i` has
    /// `(i + 1) / (steps + 1)` of the size at step 0: with 3 of them 1/4, 2/4 and 3/4.
    ///
    /// ```
    /// use autograd_core::optim::schedule::{Constant, Schedule};
    ///
    /// let schedule = Constant(4.0).warm_up(3);
    /// assert_eq!([0, 1, 2, 3, 4].map(|step| schedule.at(step)), [1.0, 2.0, 3.0, 4.0, 4.0]);
    /// ```
    #[doc(alias = "LinearLR")]
    fn warm_up(self, steps: u64) -> WarmUp<Self>
    where
        Self: Sized,
    {
        WarmUp { steps, schedule: self }
    }

    /// Multiplies this schedule by another one.
    ///
    /// ```
    /// use autograd_core::optim::schedule::{Constant, Exponential, Schedule};
    ///
    /// assert_eq!(Constant(0.1).times(Exponential::new(1.0, 0.5)).at(2), 0.1 * 0.25);
    /// ```
    #[doc(alias = "ChainedScheduler")]
    fn times<S: Schedule>(self, other: S) -> Times<Self, S>
    where
        Self: Sized,
    {
        Times(self, other)
    }
}

impl<F: Fn(u64) -> f64> Schedule for F {
    fn at(&self, step: u64) -> f64 {
        self(step)
    }
}

impl Schedule for Box<dyn Schedule> {
    fn at(&self, step: u64) -> f64 {
        (**self).at(step)
    }
}

/// The fraction of `steps` that has passed at a step: from 0 to 1.
fn part(step: u64, steps: u64) -> f64 {
    if step >= steps { 1.0 } else { step as f64 / steps as f64 }
}

/// Defines schedules by documentation, fields and formula, with an example: a schedule, steps, and its step sizes
/// there.
macro_rules! schedules {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* } |$self:ident, $step:ident| $rate:expr,
            $example:expr, $steps:expr => $rates:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl $name {
            /// Creates the schedule with these values.
            ///
            /// ```
            #[doc = concat!("use autograd_core::optim::schedule::{", stringify!($name), ", Schedule};")]
            ///
            #[doc = concat!("let schedule = ", stringify!($example), ";")]
            #[doc = concat!("let rates = ", stringify!($steps), ".map(|step| schedule.at(step));")]
            #[doc = concat!("assert_eq!(rates, ", stringify!($rates), ");")]
            /// ```
            pub fn new($($field: $type),*) -> Self {
                Self { $($field),* }
            }
        }

        impl Schedule for $name {
            fn at(&$self, $step: u64) -> f64 {
                $rate
            }
        }
    )*};
}

/// One step size for all steps.
///
/// ```
/// use autograd_core::optim::schedule::{Constant, Schedule};
///
/// assert_eq!([0, 1000].map(|step| Constant(0.1).at(step)), [0.1, 0.1]);
/// ```
#[doc(alias = "ConstantLR")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant(pub f64);

impl Schedule for Constant {
    fn at(&self, _: u64) -> f64 {
        self.0
    }
}

schedules! {
    /// `start * factor^floor(step / every)`: PyTorch's `StepLR`.
    #[doc(alias = "StepLR")]
    Steps {
        /// The initial step size.
        start: f64,
        /// The number of steps with one step size; 0 counts as 1.
        every: u64,
        /// The factor of the step size after these steps.
        factor: f64,
    } |self, step| self.start * self.factor.powf((step / self.every.max(1)) as f64),
        Steps::new(0.8, 10, 0.5), [9, 10, 20] => [0.8, 0.4, 0.2];

    /// `start + (end - start) step / steps`. `end` is reached after `steps` steps and then kept.
    #[doc(alias = "LinearLR")]
    #[doc(alias = "PolynomialLR")]
    Linear {
        /// The initial step size.
        start: f64,
        /// The final step size.
        end: f64,
        /// The number of steps from `start` to `end`.
        steps: u64,
    } |self, step| self.start + (self.end - self.start) * part(step, self.steps),
        Linear::new(1.0, 0.0, 4), [1, 4, 9] => [0.75, 0.0, 0.0];

    /// `end + (start - end) (1 + cos(π step / steps)) / 2` (Loshchilov and Hutter 2017). `end` is reached
    /// after `steps` steps and then kept. PyTorch's `CosineAnnealingLR` rises again after that.
    #[doc(alias = "CosineAnnealingLR")]
    Cosine {
        /// The initial step size.
        start: f64,
        /// The final step size.
        end: f64,
        /// The number of steps from `start` to `end`.
        steps: u64,
    } |self, step| {
        let wave = (std::f64::consts::PI * part(step, self.steps)).cos();
        self.end + (self.start - self.end) * (1.0 + wave) / 2.0
    }, Cosine::new(1.0, 0.0, 4), [0, 2, 4, 9] => [1.0, 0.5, 0.0, 0.0];

    /// `start * factor^step`: PyTorch's `ExponentialLR`.
    #[doc(alias = "ExponentialLR")]
    Exponential {
        /// The initial step size.
        start: f64,
        /// The factor of the step size after each step.
        factor: f64,
    } |self, step| self.start * self.factor.powf(step as f64),
        Exponential::new(0.8, 0.5), [0, 1, 3] => [0.8, 0.4, 0.1];
}

/// What [`Schedule::then`] returns.
///
/// ```
/// use autograd_core::optim::schedule::{Constant, Linear, Schedule, Then};
///
/// fn with_decay(rate: f64) -> Then<Constant, Linear> {
///     Constant(rate).then(100, Linear::new(rate, 0.0, 50))
/// }
///
/// assert_eq!([99, 125, 150].map(|step| with_decay(0.5).at(step)), [0.5, 0.25, 0.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Then<A, B> {
    first: A,
    steps: u64,
    next: B,
}

impl<A: Schedule, B: Schedule> Schedule for Then<A, B> {
    fn at(&self, step: u64) -> f64 {
        match step.checked_sub(self.steps) {
            None => self.first.at(step),
            Some(step) => self.next.at(step),
        }
    }
}

/// What [`Schedule::warm_up`] returns.
///
/// ```
/// use autograd_core::optim::schedule::{Exponential, Schedule, WarmUp};
///
/// fn warmed_up(rate: f64) -> WarmUp<Exponential> {
///     Exponential::new(rate, 0.5).warm_up(1)
/// }
///
/// assert_eq!([0, 1, 2].map(|step| warmed_up(8.0).at(step)), [4.0, 8.0, 4.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUp<S> {
    steps: u64,
    schedule: S,
}

impl<S: Schedule> Schedule for WarmUp<S> {
    fn at(&self, step: u64) -> f64 {
        match step.checked_sub(self.steps) {
            None => self.schedule.at(0) * (step + 1) as f64 / (self.steps as f64 + 1.0),
            Some(step) => self.schedule.at(step),
        }
    }
}

/// What [`Schedule::times`] returns.
///
/// ```
/// use autograd_core::optim::schedule::{Constant, Linear, Schedule, Times};
///
/// fn falling(rate: f64) -> Times<Constant, Linear> {
///     Constant(rate).times(Linear::new(1.0, 0.0, 4))
/// }
///
/// assert_eq!([0, 1, 4].map(|step| falling(8.0).at(step)), [8.0, 6.0, 0.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times<A, B>(A, B);

impl<A: Schedule, B: Schedule> Schedule for Times<A, B> {
    fn at(&self, step: u64) -> f64 {
        self.0.at(step) * self.1.at(step)
    }
}
