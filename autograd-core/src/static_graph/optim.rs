//! Optimizers: operators that give what the executor keeps new values.

use std::panic::Location;

use super::backward::append_backward_at;
use super::ir::{Form, Op, Phase, Place};
use super::kind::{Init, Kind};
use super::program::{Program, Variable};
use crate::error::Result;
use crate::graph::{AnyTensor, Tensor};
use crate::ops::Float;

/// How an optimizer changes a parameter; inputs are the parameter, its gradient and what the
/// optimizer keeps, outputs are new values of all but the gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Update {
    Sgd { rate: f64 },
    Adam { rate: f64, beta1: f64, beta2: f64, epsilon: f64 },
}

impl Update {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sgd { .. } => "sgd",
            Self::Adam { .. } => "adam",
        }
    }

    pub(super) fn attributes(self) -> String {
        match self {
            Self::Sgd { rate } => format!("rate={rate}"),
            Self::Adam { rate, beta1, beta2, epsilon } => {
                format!("rate={rate}, beta1={beta1}, beta2={beta2}, epsilon={epsilon}")
            }
        }
    }

    pub(super) fn infer(self, inputs: &[&Form]) -> Result<Vec<Form>, String> {
        let [parameter, grad, state @ ..] = inputs else {
            return Err(format!("takes a parameter and a gradient, found {}", inputs.len()));
        };
        if !parameter.agrees(grad) {
            return Err(format!("the gradient is {grad}, the parameter {parameter}"));
        }
        let kept = std::iter::once(parameter).chain(state);
        Ok(kept.map(|form| (*form).clone()).collect())
    }

    pub(super) fn run(self, inputs: Vec<AnyTensor>) -> Result<Vec<AnyTensor>, String> {
        match inputs.first() {
            Some(AnyTensor::Float32(_)) => self.step::<f32>(inputs),
            _ => self.step::<f64>(inputs),
        }
    }

    fn step<T: Float>(self, inputs: Vec<AnyTensor>) -> Result<Vec<AnyTensor>, String> {
        let typed: Option<Vec<Tensor<T>>> =
            inputs.into_iter().map(AnyTensor::downcast::<T>).collect();
        let mut typed = typed.ok_or("its inputs are of different element types")?.into_iter();
        let mut next = || typed.next().ok_or("an input is missing");
        let (p, g) = (next()?, next()?);
        match self {
            Self::Sgd { rate } => Ok(vec![(g * -rate + p).into()]),
            Self::Adam { rate, beta1, beta2, epsilon } => {
                let (m, v, step) = (next()?, next()?, next()?);
                let step = step + 1.0;
                let t = step.item().into_f64();
                let square = g.square();
                let m = m * beta1 + g * (1.0 - beta1);
                let v = v * beta2 + square * (1.0 - beta2);
                // Kingma and Ba 2015, the form at the end of section 2.
                let correction = (1.0 - beta2.powf(t)).sqrt();
                let rate = rate * correction / (1.0 - beta1.powf(t));
                let change = &m / (v.sqrt() + epsilon * correction);
                Ok(vec![(p - change * rate).into(), m.into(), v.into(), step.into()])
            }
        }
    }
}

/// Stochastic gradient descent: each step takes `rate` times the gradient away.
#[derive(Clone, Copy, Debug)]
pub struct Sgd {
    rate: f64,
}

/// Adam (Kingma and Ba 2015).
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    rate: f64,
    beta1: f64,
    beta2: f64,
    epsilon: f64,
}

impl Sgd {
    /// With a learning rate.
    pub fn new(rate: f64) -> Self {
        Self { rate }
    }

    /// Appends the backward of a loss of one element and an update of each parameter that it was
    /// computed from. Returns the parameters and their gradients.
    ///
    /// # Errors
    ///
    /// As [`append_backward`](super::append_backward); also if a parameter is updated already.
    #[track_caller]
    pub fn minimize(&self, loss: &Variable) -> Result<Vec<(Variable, Variable)>> {
        minimize(Update::Sgd { rate: self.rate }, loss, Location::caller())
    }
}

impl Adam {
    /// With a learning rate, `beta1 = 0.9`, `beta2 = 0.999` and `epsilon = 1e-8`.
    pub fn new(rate: f64) -> Self {
        Self { rate, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }

    /// How much of the running means of gradients and of their squares stays in a step.
    pub fn betas(mut self, beta1: f64, beta2: f64) -> Self {
        (self.beta1, self.beta2) = (beta1, beta2);
        self
    }

    /// What keeps the division from zero.
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.epsilon = epsilon;
        self
    }

    /// As [`Sgd::minimize`].
    ///
    /// # Errors
    ///
    /// As [`Sgd::minimize`].
    #[track_caller]
    pub fn minimize(&self, loss: &Variable) -> Result<Vec<(Variable, Variable)>> {
        let Self { rate, beta1, beta2, epsilon } = *self;
        minimize(Update::Adam { rate, beta1, beta2, epsilon }, loss, Location::caller())
    }
}

fn minimize(
    update: Update,
    loss: &Variable,
    location: &'static Location<'static>,
) -> Result<Vec<(Variable, Variable)>> {
    let place = Place::Line(location);
    let pairs = append_backward_at(loss, &place)?;
    for (parameter, grad) in &pairs {
        let program = &loss.program;
        let mut kept = vec![parameter.id];
        if let Update::Adam { .. } = update {
            let form = parameter.form();
            let scalar = Form::new(form.dtype, [].into_iter().collect());
            for (what, form) in [("moment1", form.clone()), ("moment2", form), ("step", scalar)] {
                kept.push(state(program, &parameter.name(), what, form, &place)?.id);
            }
        }
        let mut inputs = vec![parameter.id, grad.id];
        inputs.extend(&kept[1..]);
        program.graph().push_op(Op {
            kind: Kind::Update(update),
            inputs,
            outputs: Vec::new(),
            writes: kept,
            phase: Phase::Update,
            place: place.clone(),
        })?;
    }
    Ok(pairs)
}

/// What an optimizer keeps for a parameter; starts with zeros.
fn state(
    program: &Program,
    parameter: &str,
    what: &str,
    form: Form,
    place: &Place,
) -> Result<Variable> {
    let name = program.graph().fresh_name(&format!("{parameter}@{what}"), true);
    program.kept("minimize", &name, form, false, Init::Constant(0.0), place)
}
