//! Operators that give what is kept its first value, and new ones.

use smallvec::smallvec;

use super::super::attr::Type;
use super::super::form::Form;
use super::super::ir::{Effect, Gradient, OpDef, UserOp};
use super::super::rule::Rule;
use crate::array::DType;
use crate::graph::{AnyTensor, Tensor};
use crate::ops::Float;
use crate::ops::table::entries;

/// How a parameter starts; see [`FcOptions`](crate::static_graph::FcOptions).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Init {
    /// Every element the same.
    Constant(f64),
    /// Uniform between two bounds.
    Uniform(f64, f64),
    /// Normal with a mean and a standard deviation.
    Normal(f64, f64),
    /// Uniform within `sqrt(6 / (fan_in + fan_out))` of 0 (Glorot and Bengio 2010); the fans are
    /// the lengths of the first and the last axis.
    Xavier,
}

/// The first value of a kept variable.
#[derive(Debug)]
pub(in super::super) struct Start {
    pub(in super::super) init: Init,
    pub(in super::super) form: Form,
}

impl UserOp for Start {
    fn name(&self) -> &str {
        INIT.name
    }
}

entries! {
    STATE:

    INIT = OpDef {
        show: |op| format!("{:?}", op.user::<Start>().init),
        infer: |op, _| Ok(vec![op.user::<Start>().form.clone()]),
        run: |op, _, _| {
            let Start { init, form } = op.user();
            Ok(smallvec![init.run(form)])
        },
        gradient: Gradient::None,
        effect: Effect::Sets,
        ..OpDef::new("init")
    };
}

/// A step of an optimizer. Inputs are the parameter, its gradient and what the rule remembers; all but the
/// gradient are written.
pub(in super::super) static UPDATES: [OpDef; 4] =
    [of_rule("sgd"), of_rule("adam"), of_rule("adamw"), of_rule("rmsprop")];

const fn of_rule(name: &'static str) -> OpDef {
    OpDef {
        attrs: &[("options", Type::Numbers)],
        show: |op| Rule::of(op).map_or(String::new(), Rule::shown),
        infer: |op, inputs| match Rule::of(op) {
            Some(rule) => rule.infer(inputs),
            None => Err("has other options".to_owned()),
        },
        gradient: Gradient::None,
        effect: Effect::Updates,
        ..OpDef::new(name)
    }
}

pub(in super::super) fn update(rule: Rule) -> &'static OpDef {
    match rule {
        Rule::Sgd(_) => &UPDATES[0],
        Rule::Adam(_) => &UPDATES[1],
        Rule::AdamW(_) => &UPDATES[2],
        Rule::RmsProp(_) => &UPDATES[3],
    }
}

impl Init {
    fn run(self, form: &Form) -> AnyTensor {
        match form.dtype {
            DType::Float32 => self.typed::<f32>(form).into(),
            DType::Float64 => self.typed::<f64>(form).into(),
            // A count of steps.
            _ => {
                Tensor::<i64>::zeros(form.dims.iter().flatten().copied().collect::<Vec<_>>()).into()
            }
        }
    }

    fn typed<T: Float>(self, form: &Form) -> Tensor<T> {
        let shape: Vec<usize> = form.dims.iter().flatten().copied().collect();
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
