//! Initial values of kept variables, and their updates by the kernels of [`crate::optim`].

use crate::array::DType;
use crate::graph::{AnyTensor, Tensor};
use crate::ops::Float;
use crate::ops::table::{Dims, Form};
use crate::optim::{Adam, AdamW, Erased, Listed as _, RmsProp, Rule as _, Sgd, Step};

/// The initial value of a parameter; see [`FcOptions`](crate::static_graph::FcOptions).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Init {
    /// All elements are equal.
    Constant(f64),
    /// Uniform between two bounds.
    Uniform(f64, f64),
    /// Normal with a mean and a standard deviation.
    Normal(f64, f64),
    /// Uniform within `sqrt(6 / (fan_in + fan_out))` of 0 (Glorot and Bengio 2010); the fans are
    /// the lengths of the first and the last axis.
    Xavier,
}

impl Init {
    pub(super) fn run(self, form: &Form) -> AnyTensor {
        let shape: Vec<usize> = form.dims.iter().flatten().copied().collect();
        match form.dtype {
            DType::Float32 => self.typed::<f32>(shape).into(),
            DType::Float64 => self.typed::<f64>(shape).into(),
            _ => Tensor::<i64>::zeros(shape).into(),
        }
    }

    fn typed<T: Float>(self, shape: Vec<usize>) -> Tensor<T> {
        match self {
            Self::Constant(value) => Tensor::full(shape, T::from_f64(value)),
            Self::Uniform(low, high) => Tensor::uniform(shape, low, high),
            Self::Normal(mean, std) => Tensor::normal(shape, mean, std),
            Self::Xavier => {
                let fans = shape.first().zip(shape.last()).map_or(2, |(a, b)| a + b);
                let bound = (6.0 / fans as f64).sqrt();
                Tensor::uniform(shape, -bound, bound)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    Sgd(Sgd),
    Adam(Adam),
    AdamW(AdamW),
    RmsProp(RmsProp),
}

macro_rules! for_rule {
    ($update:expr, $rule:ident => $body:expr) => {
        match $update {
            Rule::Sgd($rule) => $body,
            Rule::Adam($rule) => $body,
            Rule::AdamW($rule) => $body,
            Rule::RmsProp($rule) => $body,
        }
    };
}

impl Rule {
    fn erased(&self) -> Erased<'_> {
        for_rule!(self, rule => rule.erased())
    }

    pub(super) fn name(self) -> String {
        self.erased().name.to_lowercase()
    }

    pub(super) fn named(name: &str, options: &[f64]) -> Option<Self> {
        let all = [
            Sgd::with_options(options).map(Self::Sgd),
            Adam::with_options(options).map(Self::Adam),
            AdamW::with_options(options).map(Self::AdamW),
            RmsProp::with_options(options).map(Self::RmsProp),
        ];
        all.into_iter().flatten().find(|rule| rule.name() == name)
    }

    pub(super) fn options(self) -> Vec<(&'static str, f64)> {
        for_rule!(self, rule => rule.options())
    }

    pub(super) fn set_rate(&mut self, learning_rate: f64) {
        for_rule!(self, rule => rule.set_rate(learning_rate));
    }

    pub(super) fn check(self) -> crate::error::Result<()> {
        for_rule!(self, rule => rule.check())
    }

    /// The step size, and the options that are not 0.
    pub(super) fn shown(self) -> String {
        let options = self.options().into_iter().enumerate();
        let shown = options.filter(|(at, (_, value))| *at == 0 || *value != 0.0);
        let shown: Vec<String> = shown.map(|(_, (name, v))| format!("{name}={v}")).collect();
        shown.join(", ")
    }

    pub(super) fn state(self, parameter: &Form) -> Vec<(&'static str, Form)> {
        let rule = self.erased();
        let mut state: Vec<_> = rule.state.iter().map(|&name| (name, parameter.clone())).collect();
        // The buffer of momentum depends on which step is the first.
        if rule.counts || matches!(self, Self::Sgd(_)) && !rule.state.is_empty() {
            state.push(("step", Form::new(DType::Int64, Dims::new())));
        }
        state
    }

    pub(super) fn infer(self, inputs: &[&Form]) -> Result<Vec<Form>, String> {
        let [parameter, grad, state @ ..] = inputs else {
            return Err(format!("takes a parameter and a gradient, found {}", inputs.len()));
        };
        if !parameter.dtype.is_float() {
            return Err(format!("moves parameters of float types, found {}", parameter.dtype));
        }
        if !parameter.agrees(grad) {
            return Err(format!("the gradient is {grad}, the parameter {parameter}"));
        }
        let expected = self.state(parameter);
        if state.len() != expected.len() {
            let names: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
            return Err(format!("remembers {}, found {} of them", names.join(", "), state.len()));
        }
        for ((name, expected), form) in expected.iter().zip(state) {
            if *form != expected {
                return Err(format!("its {name} is {form}, the parameter {parameter}"));
            }
        }
        let kept = std::iter::once(parameter).chain(state);
        Ok(kept.map(|form| (*form).clone()).collect())
    }

    /// Makes a step in place. The values are not shared, and their element types and shapes fit.
    pub(super) fn step(self, kept: Vec<&mut AnyTensor>, gradient: &AnyTensor) {
        let rule = self.erased();
        match kept.first() {
            Some(AnyTensor::Float32(_)) => update(kept, gradient, &rule.update_f32),
            Some(AnyTensor::Float64(_)) => update(kept, gradient, &rule.update_f64),
            _ => unreachable!("the parameter's type was checked"),
        }
    }
}

fn update<T: Float>(
    mut kept: Vec<&mut AnyTensor>,
    gradient: &AnyTensor,
    update: &dyn Fn(Step<'_, T>),
) {
    let mut count = 1;
    if let Some(AnyTensor::Int64(step)) = kept.last_mut() {
        count = step.item() + 1;
        *step = Tensor::from(count);
    }
    let mut kept = kept.into_iter();
    let parameter = kept.next().and_then(T::peek_mut);
    if let (Some(parameter), Some(gradient)) = (parameter, gradient.downcast_ref::<T>()) {
        let at = (count as u64, count == 1);
        Step::run(parameter.value_mut(), kept, gradient, at, update);
    }
}
