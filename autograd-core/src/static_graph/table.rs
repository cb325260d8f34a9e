//! The table of operators: entries of eager ops ([`ops`](crate::ops)), and of ops of programs only.

use std::collections::HashMap;
use std::sync::OnceLock;

use smallvec::smallvec;

use super::ir::{Effect, Gradient, Inferred, OpDef, Operator};
use super::updates::UPDATES;
use crate::graph::{AnyTensor, no_grad};
pub(super) use crate::ops::entries::*;
use crate::ops::table::{
    Computed, Form, Ran, ShapeOf, Type, all, computed, entries, exactly, float, for_programs,
    number, one, same_dtype,
};
use crate::ops::{Float, batch_norm};

fn all_entries() -> impl Iterator<Item = &'static OpDef> {
    let families: [&'static [OpDef]; 5] = [&FUNCTIONS, &BINARY, &SCALAR, &COMPARISONS, &REDUCTIONS];
    let others = [
        ACTIVATIONS,
        ASSIGNMENTS,
        CASTS,
        CONCATENATIONS,
        CONVOLUTIONS,
        CUMULATIVE,
        DIAGONALS,
        FILLS,
        ITEMS,
        INDEX_REDUCTIONS,
        LAYOUTS,
        LINEARS,
        LOSSES,
        MASKS,
        NORMALIZATIONS,
        NORMS,
        PADS,
        PICKS,
        POINTWISE,
        POOLS,
        PRODUCTS,
        PROGRAMS,
        SHAPES,
        SLICES,
        SOFTMAXES,
        SEGMENTS,
        SORTS,
        SPLITS,
        UPDATES,
        VARIANCES,
    ];
    families.into_iter().flatten().chain(others.into_iter().flatten().copied())
}

/// The names of all entries, for tests that must have a case for each.
pub fn names_of_ops() -> impl Iterator<Item = &'static str> {
    all_entries().map(|def| def.name)
}

pub(super) fn find(family: &str, name: &str) -> Option<&'static OpDef> {
    static BY_NAME: OnceLock<HashMap<(&str, &str), &OpDef>> = OnceLock::new();
    let known =
        BY_NAME.get_or_init(|| all_entries().map(|def| ((def.family, def.name), def)).collect());
    known.get(&(family, name)).copied()
}

entries! {
    PROGRAMS:

    /// The sum of one or more variables of one shape, as for contributions to a gradient.
    ADD_N = OpDef {
        infer: for_programs(|_, inputs| {
            let Some(first) = inputs.first() else {
                return Err("takes one input or more, found none".to_owned());
            };
            match inputs.iter().find(|form| !form.agrees(first)) {
                Some(other) => Err(format!("its inputs differ: {first} and {other}")),
                None => Ok(vec![(*first).clone()]),
            }
        }),
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

    CONSTANT = OpDef {
        attrs: &[("value", Type::Tensor)],
        infer: for_programs(|op, _| {
            let dims = op.tensor(0).shape().iter().map(|&n| Some(n)).collect();
            Ok(vec![Form::new(op.tensor(0).dtype(), dims)])
        }),
        run: |op, _, _| Ok(smallvec![op.tensor(0).alias()]),
        gradient: Gradient::None,
        ..OpDef::new("constant")
    };

    /// A tensor of forward that a custom op's backward reads and that is neither an input nor an output.
    INTERMEDIATE = same_op("intermediate", "the op saves a tensor that is neither an input nor an output of it, so \
        a second derivative through it would be wrong; save an input or an output and compute the rest in backward");

    ONCE = same_op("once_differentiable", "the op's backward is `once_differentiable`: there is no second derivative \
        through it; remove that argument of #[py_layer] if backward is made of differentiable ops");

    /// Returns its first input, if its axes have the lengths of axes of the other inputs: two axes for each of these.
    SAME_LENGTHS = OpDef {
        attrs: &[("axes", Type::Ints)],
        infer: for_programs(|op, inputs| {
            let first = inputs.first().ok_or("takes two inputs or more, found none")?;
            let are_there = op.ints(0).chunks(2).zip(&inputs[1..]).all(|(axes, other)| {
                axes.iter().zip([first, other]).all(|(&axis, of)| (axis as usize) < of.dims.len())
            });
            let fit = op.ints(0).len() == 2 * (inputs.len() - 1) && are_there;
            fit.then(|| vec![(*first).clone()]).ok_or_else(|| "its axes do not fit its inputs".to_owned())
        }),
        run: |op, values, _| {
            let length = |input: usize, axis: isize| values[input].shape()[axis as usize];
            for (input, axes) in (1..).zip(op.ints(0).chunks(2)) {
                let (own, other) = (length(0, axes[0]), length(input, axes[1]));
                if own != other {
                    let why = format!(
                        "axis {} of input 0 is {own}, but axis {} of input {input} is {other}; the traced closure \
                         needs equal lengths there",
                        axes[0], axes[1]
                    );
                    return Err(why.into());
                }
            }
            Ok(smallvec![values[0].alias()])
        },
        gradient: Gradient::OfFirst,
        ..OpDef::new("same_lengths")
    };

    /// Inputs: `x`, weight, bias and the running statistics, of which it computes new ones in training.
    BATCH_NORM = OpDef {
        attrs: &[("momentum", Type::Plain), ("eps", Type::Number), ("training", Type::Training)],
        infer: for_programs(batch_norm_forms),
        run: |op, values, _| match values.first() {
            Some(AnyTensor::Float32(_)) => normalized::<f32>(op, &values),
            Some(AnyTensor::Float64(_)) => normalized::<f64>(op, &values),
            _ => Err("takes float32 or float64".into()),
        },
        effect: Effect::Collects,
        ..OpDef::new("batch_norm")
    };
}

/// Returns its input; a gradient through it is an error.
const fn same_op(name: &'static str, why: &'static str) -> OpDef {
    OpDef {
        infer: for_programs(|_, inputs| Ok(vec![exactly::<1>(inputs)?[0].clone()])),
        run: |_, values, _| Ok(smallvec![one(values)?.alias()]),
        gradient: Gradient::Refused(why),
        ..OpDef::new(name)
    }
}

pub(super) fn channels(x: &Form) -> Computed<usize> {
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
        return computed(Ok(batch_norm::with_running_stats(x, [weight, bias], [mean, var], eps)));
    }
    let each = x.len() / weight.len().max(1);
    if each < 2 {
        let shape = x.shape();
        let why = format!(
            "needs at least two values per channel for a variance, found {each} in shape {shape:?}"
        );
        return Err(why.into());
    }
    let (y, batch) = batch_norm::with_batch_stats(x, [weight, bias], eps);
    let [mean, var] = no_grad().run(|| batch_norm::new_stats([mean, var], &batch, momentum, each));
    Ok([y, mean, var].map(AnyTensor::from).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::{Executor, Program, gradients};
    use super::*;
    use crate::array::DType;
    use crate::array::elementwise::convert;
    use crate::functional::jvp;
    use crate::graph::{Rule, Saved, Tensor, finish};
    use crate::ops::call::call;
    use crate::ops::table::attr::{read, shown, written};
    use crate::ops::table::{Attr, same_float};
    use crate::ops::{Caller, expect};

    fn example(kind: Type) -> Attr {
        match kind {
            Type::Number | Type::Plain => Attr::Number(-1.5e-9),
            Type::Flag | Type::Training => Attr::Flag(true),
            Type::Int | Type::Position => Attr::Int(-2),
            Type::Ints | Type::Kept => Attr::Ints(vec![0, -1]),
            Type::Dims => Attr::Dims([None, Some(4)].into_iter().collect()),
            Type::Pairs => Attr::Pairs(vec![[1, 2], [3, 4]]),
            Type::Elements => Attr::Type(DType::UInt8),
            Type::Tensor => Attr::Tensor(Tensor::from([0.1_f32, -0.0]).into()),
        }
    }

    #[test]
    fn each_operator_is_entered_once_and_its_attributes_are_read_as_they_were_written() {
        let mut names = HashSet::new();
        for def in all_entries() {
            assert!(names.insert((def.family, def.name)), "{} {}", def.family, def.name);
            assert!(find(def.family, def.name).is_some_and(|found| std::ptr::eq(found, def)));
            for &(name, kind) in def.attrs {
                let attr = example(kind);
                let text = written(&attr);
                let again = read(kind, &mut text.split(';')).expect("it was written");
                assert_eq!(written(&again), text, "{name} of {}", def.name);
                assert_eq!(shown((name, kind), &again), shown((name, kind), &attr));
            }
        }
        assert!(names.len() > 80, "{}", names.len());
    }

    // The example of CONTRIBUTING.md: an entry, its kernel and rule, and a method that calls it.
    static LOGIT: OpDef = OpDef {
        infer: for_programs(same_float),
        run: |_, x, at| float!(x, x => Ok(logit_of(&x, at))),
        ..OpDef::new("logit")
    };

    fn logit_of<T: Float>(x: &Tensor<T>, at: Caller) -> Tensor<T> {
        let value = convert(&x.read(), |x| (x / (T::ONE - x)).ln());
        finish(LOGIT.name, at, &[x], value, || {
            Rule::new([Saved::input(0, x)], |saved, dy: Tensor<T>, _wants| {
                let x = saved.tensor::<T>()?;
                Ok([Some(dy / (&x * (1.0 - &x)))])
            })
        })
    }

    #[track_caller]
    fn logit(x: &Tensor<f64>) -> Tensor<f64> {
        expect(call(&LOGIT, [], [x.untyped()]))
    }

    #[test]
    fn an_entry_is_all_that_an_op_takes() {
        let (values, slopes) = ([(1.0_f64 / 3.0).ln(), 0.0], [1.0 / (0.25 * 0.75), 4.0]);
        let check = |y: &Tensor<f64>, dx: &Tensor<f64>| {
            assert_eq!(y.to_vec(), values);
            let (found, right) = (dx.to_vec(), slopes);
            assert!(found.iter().zip(right).all(|(dx, right)| (dx - right).abs() < 1e-12), "{dx}");
        };
        let at = Tensor::from([0.25, 0.5]);
        at.set_stop_gradient(false);
        let y = logit(&at);
        y.sum().backward().unwrap();
        check(&y, &at.grad().unwrap());
        let (y, dy) = jvp(|x| logit(&x[0]), &[at.detach()], &[Tensor::from([1.0, 1.0])]).unwrap();
        check(&y, &dy);

        let program = Program::new();
        let x = program.data("x", [-1], DType::Float64).unwrap();
        x.set_stop_gradient(false);
        let built = program.one(&LOGIT, [], &[&x]).unwrap();
        let traced = program.trace(|x: &Tensor<f64>| logit(x)).x(&x).call().unwrap();
        assert_eq!(program.to_string().matches("= logit(x)").count(), 2, "{program}");
        let feed = at.detach();
        for y in [built, traced] {
            let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
            let run = Executor::new().run(&program, &[("x", &feed)], &[&y, &dx]).unwrap();
            check(run[0].downcast_ref().unwrap(), run[1].downcast_ref().unwrap());
        }
    }
}
