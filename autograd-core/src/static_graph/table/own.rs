//! Operators that only programs have.

use smallvec::smallvec;

use super::super::attr::Type;
use super::super::form::{Form, ShapeOf};
use super::super::forms::{exactly, float, same_dtype};
use super::super::ir::{Effect, Gradient, Inferred, OpDef, Operator};
use super::super::values::{Computed, Ran, all, computed, number, one};
use crate::graph::{AnyTensor, no_grad};
use crate::ops::table::entries;
use crate::ops::{Float, batch_norm};

entries! {
    PROGRAMS:

    /// The sum of one or more of one shape: where gradients meet.
    ADD_N = OpDef {
        infer: |_, inputs| {
            let Some(first) = inputs.first() else {
                return Err("takes one input or more, found none".to_owned());
            };
            match inputs.iter().find(|form| !form.agrees(first)) {
                Some(other) => Err(format!("its inputs differ: {first} and {other}")),
                None => Ok(vec![(*first).clone()]),
            }
        },
        run: |_, values, _| {
            let mut values = values.into_iter();
            let first = values.next().ok_or("an input is missing")?;
            let sum = |a: AnyTensor, b: AnyTensor| -> Ran<AnyTensor> {
                Ok(one(number!(smallvec![a, b], (a, b) => a.try_add(b))?)?)
            };
            Ok(smallvec![values.try_fold(first, sum)?])
        },
        gradient: Gradient::OfOutput,
        ..OpDef::new("add_n")
    };

    /// A tensor that is the same in every run.
    CONSTANT = OpDef {
        attrs: &[("value", Type::Tensor)],
        infer: |op, _| {
            let dims = op.tensor(0).shape().iter().map(|&n| Some(n)).collect();
            Ok(vec![Form::new(op.tensor(0).dtype(), dims)])
        },
        run: |op, _, _| Ok(smallvec![op.tensor(0).alias()]),
        gradient: Gradient::None,
        ..OpDef::new("constant")
    };

    /// Normalisation of channels: of `x`, weight, bias and the running statistics. In training it computes
    /// new ones of these.
    BATCH_NORM = OpDef {
        attrs: &[("momentum", Type::Plain), ("eps", Type::Number), ("training", Type::Training)],
        infer: batch_norm_forms,
        run: |op, values, _| match values.first() {
            Some(AnyTensor::Float32(_)) => normalized::<f32>(op, &values),
            Some(AnyTensor::Float64(_)) => normalized::<f64>(op, &values),
            _ => Err("takes float32 or float64".into()),
        },
        effect: Effect::Collects,
        ..OpDef::new("batch_norm")
    };
}

pub(in super::super) fn channels(x: &Form) -> Computed<usize> {
    match float(x)?.dims[..] {
        [_, Some(channels), ..] => Ok(channels),
        _ => Err(format!("takes [n, channels, ..] with a known number of channels, found {x}")),
    }
}

fn batch_norm_forms(op: &Operator, inputs: &[&Form]) -> Inferred {
    let [x, each @ ..] = exactly::<5>(inputs)?;
    let dims = [Some(channels(x)?)];
    for (form, what) in each.into_iter().zip(["weight", "bias", "running mean", "running variance"])
    {
        same_dtype(x, form)?;
        if form.dims[..] != dims {
            return Err(format!("its {what} must have shape {}, found {form}", ShapeOf(&dims)));
        }
    }
    let mut results = vec![x.clone()];
    if op.flag(2) {
        results.extend([each[2].clone(), each[3].clone()]);
    }
    Ok(results)
}

fn normalized<T: Float>(op: &Operator, values: &[AnyTensor]) -> Ran {
    let (momentum, eps) = (op.number(0), op.number(1));
    let [x, weight, bias, mean, var] = all::<T>(values)?[..] else {
        return Err("an input is missing".into());
    };
    if !op.flag(2) {
        return computed(Ok(batch_norm::by_running(x, [weight, bias], [mean, var], eps)));
    }
    let each = x.len() / weight.len().max(1);
    if each < 2 {
        let shape = x.shape();
        let why = format!(
            "needs two or more numbers a channel for a variance, found {each} in shape {shape:?}"
        );
        return Err(why.into());
    }
    let (y, batch) = batch_norm::by_batch(x, [weight, bias], eps);
    let [mean, var] = no_grad().run(|| batch_norm::mixed([mean, var], &batch, momentum, each));
    Ok([y, mean, var].map(AnyTensor::from).into_iter().collect())
}
