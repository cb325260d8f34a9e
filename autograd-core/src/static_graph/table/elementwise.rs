//! Operators that compute each element of their result from one element of each input.

use smallvec::smallvec;

use super::super::attr::Type;
use super::super::form::Form;
use super::super::forms::{arithmetic, broadcast, exactly, float, number as number_of, same_dtype};
use super::super::ir::{Effect, Gradient, Graph, Inferred, OpDef, OpId, Operator, VarId};
use super::super::values::{
    Computed, Need, Needs, Pull, Values, any, computed, float, message, not_numbers, number,
    numbers, one, pull_floats, several, typed,
};
use crate::array::DType;
use crate::error::Result;
use crate::graph::{AnyTensor, Element, Tensor, for_any};
use crate::ops::{Binary, Caller, Comparison, Float, Input, Numeric, OfElements, Unary, rules};

fn here() -> Caller {
    std::panic::Location::caller()
}

/// The form of the only input, which is of a float type.
fn same_float(_: &Operator, inputs: &[&Form]) -> Inferred {
    let [x] = exactly(inputs)?;
    Ok(vec![float(x)?.clone()])
}

family! {
    /// Functions of each element: all of eager mode.
    FUNCTIONS of Unary::ALL => OpDef {
        family: "unary",
        infer: same_float,
        run: |op, x| float!(x, x => Ok(function_of(Unary::ALL[op.def.index], x))),
        gradient: Gradient::Rule {
            reads: |op, _, _| {
                let reads = Unary::ALL[op.def.index].handle::<f64>().reads_one()?;
                Some(reads.map(Need::value_if).into_iter().collect())
            },
            pull: |op, pull| pull_floats!(pull, function_gradient, op),
        },
        is_elementwise: true,
        ..OpDef::new("")
    }
}

family! {
    /// Functions of each two elements, with broadcasting.
    BINARY of Binary::ALL => OpDef {
        family: "binary",
        infer: |op, inputs| {
            let [a, b] = exactly(inputs)?;
            same_dtype(a, b)?;
            arithmetic(Binary::ALL[op.def.index], a)?;
            Ok(vec![Form::new(a.dtype, broadcast(&a.dims, &b.dims)?)])
        },
        run: |op, values| {
            let function = Binary::ALL[op.def.index];
            numbers!(values, (a, b) => binary_of(function, a, b))
        },
        gradient: Gradient::Rule {
            reads: |op, _, wants| {
                let [a, b] = [0, 1].map(|at| wants.contains(&at));
                Some(match Binary::ALL[op.def.index] {
                    Binary::Add | Binary::Sub => smallvec![Need::Shape, Need::Shape],
                    Binary::Mul => [b, a].map(Need::value_or_shape).into_iter().collect(),
                    Binary::Div => smallvec![Need::value_or_shape(b), Need::Value],
                    _ => smallvec![Need::Value, Need::Value],
                })
            },
            pull: |op, pull| pull_floats!(pull, binary_gradient, op),
        },
        is_elementwise: true,
        ..OpDef::new("")
    }
}

family! {
    /// The same with a number on the right, or on the left where it is swapped.
    SCALAR of Binary::ALL => OpDef {
        family: "scalar",
        attrs: &[("scalar", Type::Number), ("swapped", Type::Flag)],
        show: |op| {
            let side = if op.flag(1) { "left" } else { "right" };
            format!("{side}={:?}", op.number(0))
        },
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            let x = arithmetic(Binary::ALL[op.def.index], x)?;
            number_of(x.dtype, op.number(0))?;
            Ok(vec![x.clone()])
        },
        run: |op, x| {
            let function = Binary::ALL[op.def.index];
            number!(x, x => Ok(scalar_of(function, x, op.number(0), op.flag(1))))
        },
        gradient: Gradient::Rule {
            reads: |op, _, _| {
                let function = Binary::ALL[op.def.index];
                Some(smallvec![Need::value_or_shape(match (function, op.flag(1)) {
                    (Binary::Add | Binary::Sub | Binary::Mul, _) => false,
                    (Binary::Div, swapped) => swapped,
                    (Binary::Pow, false) => op.number(0) != 0.0,
                    _ => true,
                })])
            },
            pull: |op, pull| pull_floats!(pull, scalar_gradient, op),
        },
        is_elementwise: true,
        ..OpDef::new("")
    }
}

family! {
    /// Comparisons of each two elements, with broadcasting.
    COMPARISONS of Comparison::ALL => OpDef {
        family: "compare",
        infer: |_, inputs| {
            let [a, b] = exactly(inputs)?;
            same_dtype(a, b)?;
            Ok(vec![Form::new(DType::Bool, broadcast(&a.dims, &b.dims)?)])
        },
        run: |op, values| {
            let test = Comparison::ALL[op.def.index];
            let [a, b] = several(values)?;
            for_any!(a, a => compare(test, &a, &b))
        },
        gradient: Gradient::None,
        is_elementwise: true,
        ..OpDef::new("")
    }
}

pub(in super::super) fn function(of: Unary) -> &'static OpDef {
    &FUNCTIONS[of as usize]
}

pub(in super::super) fn binary(of: Binary) -> &'static OpDef {
    &BINARY[of as usize]
}

pub(in super::super) fn scalar(of: Binary) -> &'static OpDef {
    &SCALAR[of as usize]
}

pub(in super::super) fn comparison(of: Comparison) -> &'static OpDef {
    &COMPARISONS[of as usize]
}

entries! {
    ELEMENTWISE:

    /// By a mask, one of two.
    WHERE = OpDef {
        infer: |_, inputs| {
            let [mask, a, b] = exactly(inputs)?;
            if mask.dtype != DType::Bool {
                return Err(format!("its mask must be bool, found {}", mask.dtype));
            }
            same_dtype(a, b)?;
            let dims = broadcast(&mask.dims, &broadcast(&float(a)?.dims, &b.dims)?)?;
            Ok(vec![Form::new(a.dtype, dims)])
        },
        run: |_, values| match several(values)? {
            [AnyTensor::Bool(mask), AnyTensor::Float32(a), AnyTensor::Float32(b)] => {
                computed(mask.try_where_else(&a, &b))
            }
            [AnyTensor::Bool(mask), AnyTensor::Float64(a), AnyTensor::Float64(b)] => {
                computed(mask.try_where_else(&a, &b))
            }
            [AnyTensor::Bool(_), other, _] => Err(not_numbers(&other)),
            _ => Err("its mask must be bool".to_owned()),
        },
        gradient: Gradient::Rule {
            reads: |_, _, _| Some(smallvec![Need::Value, Need::Shape, Need::Shape]),
            pull: |_, pull| pull_floats!(pull, where_gradient),
        },
        is_elementwise: true,
        ..OpDef::new("where")
    };

    CAST = OpDef {
        attrs: &[("to", Type::Elements)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![Form::new(op.dtype(0), x.dims.clone())])
        },
        run: |op, x| Ok(smallvec![cast(&one(x)?, op.dtype(0))]),
        gradient: Gradient::Rule {
            reads: |_, _, _| Some(Needs::new()),
            pull: |_, pull| match (pull.forms, &pull.dys[0]) {
                ([form], Some(dy)) => Ok(smallvec![cast(dy, form.dtype)]),
                _ => Err("the gradient of its output is missing".to_owned()),
            },
        },
        is_elementwise: true,
        ..OpDef::new("cast")
    };

    /// Computes its mask too where it draws one, which a gradient may read.
    DROPOUT = OpDef {
        attrs: &[("p", Type::Plain), ("training", Type::Training)],
        infer: same_float,
        run: |op, x| match op.draws() {
            true => match one(x)? {
                AnyTensor::Float32(x) => Ok(dropped(&x, op.number(0))),
                AnyTensor::Float64(x) => Ok(dropped(&x, op.number(0))),
                other => Err(not_numbers(&other)),
            },
            false => float!(x, x => x.try_dropout(op.number(0), op.flag(1))),
        },
        gradient: Gradient::Rule {
            reads: |op, _, _| {
                Some(if op.draws() { smallvec![Need::No, Need::No, Need::Value] } else { Needs::new() })
            },
            pull: |op, pull| pull_floats!(pull, dropout_gradient, op),
        },
        is_elementwise: true,
        effect: Effect::Draws,
        ..OpDef::new("dropout")
    };

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
        run: |_, values| {
            let mut values = values.into_iter();
            let first = values.next().ok_or("an input is missing")?;
            let sum = |a: AnyTensor, b: AnyTensor| -> Computed<AnyTensor> {
                one(numbers!(smallvec![a, b], (a, b) => binary_of(Binary::Add, a, b))?)
            };
            Ok(smallvec![values.try_fold(first, sum)?])
        },
        gradient: Gradient::Operators(sum_gradient),
        is_elementwise: true,
        ..OpDef::new("add_n")
    };

    /// One number in every place of a variable's shape: what a gradient starts with.
    FILL_LIKE = OpDef {
        attrs: &[("value", Type::Number)],
        infer: same_float,
        run: |op, x| any!(x, x => Ok(filled(&x, op.number(0)))),
        gradient: Gradient::None,
        is_elementwise: true,
        reads_shape: true,
        ..OpDef::new("fill_like")
    };
}

fn function_of<T: Float>(of: Unary, x: Tensor<T>) -> Tensor<T> {
    T::unary(of, Input::Own(x), here())
}

fn function_gradient<T: Float>(mut pull: Pull<'_>, op: &Operator) -> Computed<Values> {
    let of = Unary::ALL[op.def.index].handle::<T>();
    let dy = pull.dy()?;
    let saved = match of.reads_one() {
        Some([true, _]) => Some(pull.input(0)?),
        Some([_, true]) => Some(pull.output(0)?),
        _ => None,
    };
    pull.wanted([Some(rules::function(&of, dy, saved))])
}

fn binary_of<T: Numeric>(of: Binary, a: Tensor<T>, b: Tensor<T>) -> Result<Tensor<T>> {
    T::binary(of, Input::Own(a), Input::Own(b), here())
}

fn binary_gradient<T: Float>(mut pull: Pull<'_>, op: &Operator) -> Computed<Values> {
    let (of, dy) = (Binary::ALL[op.def.index], pull.dy::<T>()?);
    let grads = rules::binary(of, pull.input(0)?, pull.input(1)?, dy, pull.wants([0, 1]));
    pull.wanted(grads.map_err(message)?)
}

fn scalar_of<T: Numeric>(of: Binary, x: Tensor<T>, scalar: f64, swapped: bool) -> Tensor<T> {
    T::binary_scalar(of, Input::Own(x), T::nearest(scalar), swapped, here())
}

fn scalar_gradient<T: Float>(mut pull: Pull<'_>, op: &Operator) -> Computed<Values> {
    let (of, scalar) = (Binary::ALL[op.def.index], T::nearest(op.number(0)));
    let dy = pull.dy()?;
    let grads = rules::binary_scalar(of, pull.input(0)?, scalar, op.flag(1), dy);
    pull.wanted(grads.map_err(message)?)
}

fn compare<T: Element>(test: Comparison, a: &Tensor<T>, b: &AnyTensor) -> Computed<Values> {
    computed(T::compare(test, a, typed(Some(b))?, here()))
}

fn where_gradient<T: Float>(mut pull: Pull<'_>) -> Computed<Values> {
    let dy = pull.dy::<T>()?;
    let shapes = [pull.input::<T>(1)?.shape(), pull.input::<T>(2)?.shape()];
    let chosen = rules::choice(pull.input(0)?, &dy, shapes, pull.wants([1, 2]));
    pull.wanted([None].into_iter().chain(chosen))
}

fn cast(x: &AnyTensor, dtype: DType) -> AnyTensor {
    for_any!(x, x => OfElements::cast_to(x, dtype, here()))
}

fn dropped<T: Float>(x: &Tensor<T>, p: f64) -> Values {
    let mask = rules::dropout_mask::<T>(x.shape(), p);
    smallvec![rules::dropped(x, &mask).into(), mask.into()]
}

fn dropout_gradient<T: Float>(mut pull: Pull<'_>, op: &Operator) -> Computed<Values> {
    let dy = pull.dy::<T>()?;
    pull.wanted([Some(if op.draws() { rules::dropped(&dy, pull.output(1)?) } else { dy })])
}

fn filled<T: Element>(x: &Tensor<T>, value: f64) -> Tensor<T> {
    Tensor::full(x.shape(), if value == 0.0 { T::ZERO } else { T::ONE })
}

/// Each part of a sum has the sum's gradient.
fn sum_gradient(
    _: &mut Graph,
    _: OpId,
    grads: &[Option<VarId>],
    wants: &[usize],
) -> Result<Vec<VarId>> {
    Ok(grads[0].into_iter().cycle().take(wants.len()).collect())
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::static_graph::{Executor, Program, gradients};

    /// The entry that CONTRIBUTING.md adds.
    static LOGIT: OpDef = OpDef {
        infer: same_float,
        run: |_, x| float!(x, x => Ok((&x / (1.0 - &x)).ln())),
        is_elementwise: true,
        ..OpDef::new("logit")
    };

    #[test]
    fn an_entry_is_all_that_an_operator_takes() {
        let program = Program::new();
        let x = program.data("x", [-1], DType::Float64).unwrap();
        x.set_stop_gradient(false);
        let y = program.one(&LOGIT, [], &[&x], Location::caller()).unwrap();
        assert!(program.to_string().contains("logit"), "{program}");
        let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
        let at = ndarray::arr1(&[0.25_f64, 0.5]);
        let run = Executor::new().run(&program, &[("x", &at)], &[&y, &dx]).unwrap();
        let [y, dx] = [0, 1].map(|i| run[i].downcast_ref::<f64>().unwrap().to_vec());
        assert_eq!(y, [(1.0_f64 / 3.0).ln(), 0.0]);
        let right = [1.0 / (0.25 * 0.75), 4.0];
        assert!(dx.iter().zip(right).all(|(dx, right)| (dx - right).abs() < 1e-12), "{dx:?}");
    }
}
