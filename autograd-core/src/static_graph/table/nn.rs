//! Matrices, pictures, normalisation of channels and losses.

use smallvec::smallvec;

use super::super::attr::Type;
use super::super::form::{Form, ShapeOf};
use super::super::forms::{
    arithmetic, conv2d, cross_entropy, exactly, float, matmul, open_batch, pictures, same_dtype,
};
use super::super::ir::{Effect, Gradient, Inferred, OpDef, Operator};
use super::super::values::{
    Computed, Need, Pull, Values, all, computed, float, message, numbers, pull_floats, several,
    typed,
};
use crate::graph::{AnyTensor, no_grad};
use crate::ops::{Binary, Conv2dOptions, Float, PoolOptions, batch_norm, pool2d_shape, rules};

entries! {
    NETS:

    MATMUL = OpDef {
        infer: |_, inputs| {
            let [a, b] = exactly(inputs)?;
            same_dtype(a, b)?;
            arithmetic(Binary::Mul, a)?;
            Ok(vec![Form::new(a.dtype, matmul(&a.dims, &b.dims)?)])
        },
        run: |_, values| numbers!(values, (a, b) => a.try_matmul(&b)),
        gradient: Gradient::Rule {
            reads: |_, _, wants| {
                let [a, b] = [0, 1].map(|at| wants.contains(&at));
                Some([b, a].map(Need::value_or_shape).into_iter().collect())
            },
            pull: |_, pull| pull_floats!(pull, matmul_gradient),
        },
        ..OpDef::new("matmul")
    };

    /// Mean cross entropy of logits and classes.
    CROSS_ENTROPY = OpDef {
        infer: |_, inputs| cross_entropy(inputs),
        run: |_, values| match several(values)? {
            [logits, AnyTensor::Int64(classes)] => {
                float!(smallvec![logits], x => x.try_cross_entropy(&classes))
            }
            _ => Err("its classes must be int64".to_owned()),
        },
        ..OpDef::new("cross_entropy")
    };

    CONV2D = OpDef {
        attrs: &[CONV2D_PARAM],
        show: |op| {
            let [stride, padding, dilation, [groups, _]] = fixed(op.pairs(0));
            format!("stride={stride:?}, padding={padding:?}, dilation={dilation:?}, groups={groups}")
        },
        infer: |op, inputs| conv2d(inputs, Conv2dOptions::of_parts(counted(op.pairs(0))?)),
        run: |op, values| {
            let options = Conv2dOptions::of_parts(fixed(op.pairs(0)));
            let [x, weight, bias @ ..] = &values[..] else {
                return Err("an input is missing".to_owned());
            };
            let bias = bias.first();
            float!(smallvec![x.clone()], x => {
                let bias = bias.map(|bias| typed(Some(bias))).transpose()?;
                x.try_conv2d(typed(Some(weight))?, bias, options)
            })
        },
        ..OpDef::new("conv2d")
    };

    MAX_POOL2D = OpDef {
        run: |op, x| float!(x, x => x.try_max_pool2d(PoolOptions::of_parts(fixed(op.pairs(0))))),
        ..pool("max_pool2d")
    };

    AVG_POOL2D = OpDef {
        run: |op, x| float!(x, x => x.try_avg_pool2d(PoolOptions::of_parts(fixed(op.pairs(0))))),
        ..pool("avg_pool2d")
    };

    /// Normalisation of channels: of `x`, weight, bias and the running statistics. In training it computes
    /// new ones of these.
    BATCH_NORM = OpDef {
        attrs: &[("momentum", Type::Plain), ("eps", Type::Number), ("training", Type::Training)],
        infer: batch_norm_forms,
        run: |op, values| match values.first() {
            Some(AnyTensor::Float32(_)) => normalized::<f32>(op, &values),
            Some(AnyTensor::Float64(_)) => normalized::<f64>(op, &values),
            _ => Err("takes float32 or float64".to_owned()),
        },
        effect: Effect::Collects,
        ..OpDef::new("batch_norm")
    };
}

fn matmul_gradient<T: Float>(mut pull: Pull<'_>) -> Computed<Values> {
    let dy = pull.dy::<T>()?;
    let grads = rules::matmul(pull.input(0)?, pull.input(1)?, dy, pull.wants([0, 1]));
    pull.wanted(grads.map_err(message)?)
}

const CONV2D_PARAM: (&str, Type) = ("stride padding dilation groups", Type::Pairs);

/// What becomes of each window of pictures.
const fn pool(name: &'static str) -> OpDef {
    OpDef {
        attrs: &[("kernel stride padding", Type::Pairs)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            let options = PoolOptions::of_parts(counted(op.pairs(0))?);
            let shape = pool2d_shape(op.def.name, options, &pictures(float(x)?)?);
            Ok(vec![open_batch(x, shape.map_err(message)?)])
        },
        ..OpDef::new(name)
    }
}

/// As many pairs as options have, which a file may lack.
fn counted<const N: usize>(pairs: &[[usize; 2]]) -> Computed<[[usize; 2]; N]> {
    pairs.try_into().map_err(|_| format!("takes {} numbers, found {}", 2 * N, 2 * pairs.len()))
}

/// The same after inference.
fn fixed<const N: usize>(pairs: &[[usize; 2]]) -> [[usize; 2]; N] {
    std::array::from_fn(|at| pairs.get(at).copied().unwrap_or_default())
}

/// How many channels there are.
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

fn normalized<T: Float>(op: &Operator, values: &[AnyTensor]) -> Computed<Values> {
    let (momentum, eps) = (op.number(0), op.number(1));
    let [x, weight, bias, mean, var] = all::<T>(values)?[..] else {
        return Err("an input is missing".to_owned());
    };
    if !op.flag(2) {
        return computed(Ok(batch_norm::by_running(x, [weight, bias], [mean, var], eps)));
    }
    let each = x.len() / weight.len().max(1);
    if each < 2 {
        return Err(format!(
            "needs two or more numbers a channel for a variance, found {each} in shape {:?}",
            x.shape()
        ));
    }
    let (y, batch) = batch_norm::by_batch(x, [weight, bias], eps);
    let [mean, var] = no_grad().run(|| batch_norm::mixed([mean, var], &batch, momentum, each));
    Ok([y, mean, var].map(AnyTensor::from).into_iter().collect())
}
