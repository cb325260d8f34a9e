//! What a rule is, and the optimiser that it is for.

use smallvec::SmallVec;

use super::kernels::Kernels;
use crate::array::Value;
use crate::error::Result;
use crate::graph::Tensor;
use crate::nn::StateDict;
use crate::ops::Float;

/// How parameters are moved: [`Sgd`](super::Sgd), [`Adam`](super::Adam) or
/// [`AdamW`](super::AdamW).
///
/// A rule of your own needs no optimiser: under [`no_grad`](crate::no_grad), compute the new values
/// from `parameter.grad()` and put them in with [`Tensor::copy_from`].
#[allow(private_bounds, reason = "a rule runs while a parameter is locked, so it is not open")]
pub trait Rule: Update {
    /// The step size.
    fn rate(&self) -> f64;
    /// Sets the step size.
    fn set_rate(&mut self, learning_rate: f64);
}

/// What the optimiser needs to know of a rule.
#[cfg_attr(
    not(feature = "static-graph"),
    allow(dead_code, reason = "programs show a rule's options")
)]
pub(crate) trait Update: Clone + OfRules {
    /// Its name in errors.
    const NAME: &'static str;
    /// Whether it depends on the count of steps.
    const COUNTS: bool;
    /// Names of what is remembered of each element.
    fn state(&self) -> &'static [&'static str];
    /// Its options by name; a switch is 0 or 1.
    fn options(&self) -> Vec<(&'static str, f64)>;
    /// The rule with these options, in the same order.
    fn with_options(options: &[f64]) -> Option<Self>;
    /// An error if an option is out of range.
    fn check(&self) -> Result<()>;
    fn update<T: Kernels>(&self, of: Step<'_, T>);
}

/// One parameter, or a part of it, in one step, as slices of one length.
pub(crate) struct Step<'a, T: Float> {
    pub(crate) parameter: &'a mut [T],
    pub(crate) gradient: &'a [T],
    pub(crate) state: SmallVec<[&'a mut [T]; 2]>,
    /// 1 in the first step.
    pub(crate) count: u64,
    /// Whether the state is all zeros because it is new.
    pub(crate) fresh: bool,
}

/// Moves parameters against their gradients by a [`Rule`]; see the [module](super).
///
/// Parameters without a gradient are passed over, as are those that are frozen
/// (`stop_gradient`), whatever gradient they still have.
#[derive(Debug)]
pub struct Optimizer<R: Rule> {
    pub(super) rules: Vec<R>,
    pub(super) slots: Vec<Slot>,
}

/// A parameter and its place.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) group: usize,
    pub(super) parameter: Parameter,
}

#[derive(Debug)]
pub(super) enum Parameter {
    Float32(Moved<f32>),
    Float64(Moved<f64>),
}

/// A parameter and what is remembered of it.
pub(super) struct Moved<T: Float> {
    pub(super) tensor: Tensor<T>,
    pub(super) count: u64,
    pub(super) state: Vec<Value<T>>,
}

/// What an optimiser does by its rule.
pub(crate) trait OfRules: Sized {
    fn step(optimizer: &mut Optimizer<Self>) -> Result<()>
    where
        Self: Rule;
    fn save(optimizer: &Optimizer<Self>) -> StateDict
    where
        Self: Rule;
    fn load(optimizer: &mut Optimizer<Self>, from: &StateDict) -> Result<()>
    where
        Self: Rule;
}
