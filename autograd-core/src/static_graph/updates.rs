//! Initial values of kept variables, and their updates by the kernels of [`crate::optim`].

use crate::array::DType;
use crate::error::Result;
use crate::graph::{AnyTensor, Tensor};
use crate::ops::Float;
use crate::ops::table::{
    Attr, Dims, Effect, Form, Gradient, Inferred, OpDef, Operator, Values, entries,
};
use crate::optim::{Adam, AdamW, Erased, Listed, RmsProp, Sgd, Step};

/// The initial value of a parameter; see [`FcOptions`](crate::static_graph::FcOptions) and
/// [`Program::fc_with`](crate::static_graph::Program::fc_with).
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::static_graph::{Executor, Init, Program};
///
/// let program = Program::new();
/// program.create_parameter("w", [9], DType::Float64, Init::Uniform(1.0, 2.0))?;
/// program.create_parameter("b", [2], DType::Float64, Init::Constant(0.5))?;
/// let executor = Executor::new();
/// executor.run(&program.startup(), &[], &[])?;
/// let value = |name| executor.parameter(name).unwrap().downcast::<f64>().unwrap();
/// assert!(value("w").min().item() >= 1.0 && value("w").max().item() <= 2.0);
/// assert_eq!(value("b").to_vec(), [0.5, 0.5]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
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

entries! {
    UPDATES:

    SGD = update_by::<Sgd>("sgd");
    ADAM = update_by::<Adam>("adam");
    ADAMW = update_by::<AdamW>("adamw");
    RMSPROP = update_by::<RmsProp>("rmsprop");
}

const fn update_by<R: Listed>(name: &'static str) -> OpDef {
    OpDef {
        attrs: R::OPTIONS,
        show: Some(shown),
        infer: Some(|op, inputs| forms(&Update::of(op, &rule_of::<R>(op)), inputs)),
        run: |op, values, _| Ok(step(&rule_of::<R>(op).erased(), values)),
        gradient: Gradient::None,
        effect: Effect::Updates,
        ..OpDef::new(name)
    }
}

/// The step size, and the options that are not 0.
fn shown(op: &Operator) -> String {
    let options = op.def.attrs.iter().enumerate().map(|(at, (name, _))| (at, name, op.number(at)));
    let options = options.filter(|(at, _, value)| *at == 0 || *value != 0.0);
    let shown: Vec<String> = options.map(|(_, name, value)| format!("{name}={value}")).collect();
    shown.join(", ")
}

fn rule_of<R: Listed>(op: &Operator) -> R {
    let options: Vec<f64> = (0..op.attrs.len()).map(|at| op.number(at)).collect();
    R::with_options(&options).unwrap_or_else(|| unreachable!("as many as the entry has"))
}

/// The operator of updates by a rule, and the names of the state of each.
pub(super) struct Update {
    pub(super) op: Operator,
    state: &'static [&'static str],
    counts: bool,
}

impl Update {
    /// Checks the options of a rule.
    pub(super) fn new<R: Listed>(def: &'static OpDef, rule: &R) -> Result<Self> {
        rule.check()?;
        let options = rule.options().into_iter().map(Attr::Number).collect();
        Ok(Self::of(&Operator::new(def, options), rule))
    }

    fn of<R: Listed>(op: &Operator, rule: &R) -> Self {
        Self { op: op.clone(), state: rule.state(), counts: rule.counts() }
    }

    pub(super) fn state(&self, parameter: &Form) -> Vec<(&'static str, Form)> {
        let step = ("step", Form::new(DType::Int64, Dims::new()));
        let state = self.state.iter().map(|&name| (name, parameter.clone()));
        state.chain(self.counts.then_some(step)).collect()
    }
}

fn forms(update: &Update, inputs: &[&Form]) -> Inferred {
    let [parameter, grad, state @ ..] = inputs else {
        return Err(format!("takes a parameter and a gradient, found {}", inputs.len()));
    };
    if !parameter.dtype.is_float() {
        return Err(format!("moves parameters of float types, found {}", parameter.dtype));
    }
    if !parameter.agrees(grad) {
        return Err(format!("the gradient is {grad}, the parameter {parameter}"));
    }
    let expected = update.state(parameter);
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

/// Makes a step in place, if the values are not shared. Their element types and shapes fit.
fn step(rule: &Erased<'_>, mut values: Values) -> Values {
    match values.remove(1) {
        AnyTensor::Float32(gradient) => typed(&mut values, &gradient, &rule.update_f32),
        AnyTensor::Float64(gradient) => typed(&mut values, &gradient, &rule.update_f64),
        _ => unreachable!("the parameter's type was checked"),
    }
    values
}

fn typed<T: Float>(kept: &mut [AnyTensor], gradient: &Tensor<T>, update: &dyn Fn(Step<'_, T>)) {
    let mut count = 1;
    if let Some(AnyTensor::Int64(step)) = kept.last_mut() {
        count = step.item() + 1;
        *step = Tensor::from(count);
    }
    if let [parameter, state @ ..] = kept
        && let Some(parameter) = T::peek_mut(parameter)
    {
        let at = (count as u64, count == 1);
        Step::run(parameter.value_mut(), state, gradient, at, update);
    }
}
