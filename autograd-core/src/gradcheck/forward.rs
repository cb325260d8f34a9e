//! Forward mode against finite differences, and against backward by the dot-product identity.

use std::cell::RefCell;
use std::ptr;

use super::compare::{self, Slopes, Verdict, contracted};
use super::point::{
    Direction, Function, Point, Subject, leaves, own_generator, random, tensor_like,
};
use super::{erased, typed};
use crate::engine::{has_jvp, numbers, tangent};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, ForwardMode, GradMode, Tensor, for_any};

/// Checks forward mode through `f` at `inputs`: the slope by [`jvp`](crate::jvp()) against finite differences
/// and, with a much smaller tolerance, against backward (cotangent times slope equals gradient times tangent).
/// First runs [`gradcheck()`](crate::gradcheck()), which checks this too if an op of `f` has a `fn jvp`.
///
/// ```
/// use autograd_core::prelude::*;
/// use autograd_core::jvpcheck;
///
/// #[py_layer]
/// impl Square {
///     type Saved = Tensor<f64>;
///
///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         ctx.save_for_backward(x);
///         x * x
///     }
///
///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
///         dy * ctx.saved_tensor() * 2.0
///     }
///
///     fn jvp(_ctx: &JvpContext<Self>, x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
///         dx * x * 2.002
///     }
/// }
///
/// let error = jvpcheck(|t| Square::apply(&t[0]), &[Tensor::from([1.0, 2.0])]).unwrap_err();
/// assert!(error.to_string().contains("input 0, element [0]"));
/// jvpcheck(|t| t[0].sin() * &t[1], &[Tensor::randn([3]), Tensor::randn([2, 3])])?;
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::JvpWrong`] names the input and the direction and gives both numbers; also the errors of
/// [`gradcheck()`](crate::gradcheck()) and [`jvp`](crate::jvp()).
pub fn jvpcheck(f: impl Fn(&[Tensor<f64>]) -> Tensor<f64>, inputs: &[Tensor<f64>]) -> Result<()> {
    let (subject, inputs) = (Subject::numbered("jvpcheck", inputs.len()), erased(inputs));
    let f = |inputs: &[AnyTensor]| Ok(vec![f(&typed(inputs)).into()]);
    compare::check(&subject, &f, &inputs)?;
    check(&subject, &f, &inputs)
}

/// Checks forward mode if an op of `f` has a user's `jvp`.
pub(super) fn check_where_written(
    subject: &Subject,
    f: &Function<'_>,
    inputs: &[AnyTensor],
) -> Result<()> {
    if !is_written(f, inputs)? {
        return Ok(());
    }
    unless_unsupported(check(subject, f, inputs))
}

/// Checks the derivatives of the slopes by forward mode, with respect to the inputs and their tangents, if an op of
/// `f` has a user's `jvp`.
pub(super) fn check_second_where_written(
    subject: &Subject,
    f: &Function<'_>,
    inputs: &[AnyTensor],
) -> Result<()> {
    if !is_written(f, inputs)? {
        return Ok(());
    }
    let (mut generator, mut all) = (own_generator(4), inputs.to_vec());
    let mut names: Vec<_> = subject.names[..inputs.len()].to_vec();
    for (input, name) in inputs.iter().zip(&subject.names).filter(|(x, _)| x.dtype().is_float()) {
        all.push(random(input, &mut generator));
        names.push(format!("the tangent of {name}"));
    }
    let names = names.into_iter().map(|name| format!("jvp, {name}")).collect();
    let slopes = |all: &[AnyTensor]| {
        let (inputs, tangents) = all.split_at(inputs.len());
        let mut tangents = tangents.iter().cloned();
        let of_float = |x: &AnyTensor| if x.dtype().is_float() { tangents.next() } else { None };
        let tangents: Vec<_> = inputs.iter().map(of_float).collect();
        let _forward = ForwardMode::start();
        let outputs = GradMode::of(true, || f(inputs))?;
        let slope = |y: &AnyTensor| {
            let slope = tangent(y, inputs, &tangents, true)?;
            Ok(slope.unwrap_or_else(|| tensor_like(y, &vec![0.0; numbers(y).len()])))
        };
        outputs.iter().map(slope).collect()
    };
    unless_unsupported(compare::check(&Subject { op: subject.op, names }, &slopes, &all))
}

fn is_written(f: &Function<'_>, inputs: &[AnyTensor]) -> Result<bool> {
    Ok(f(&leaves(inputs))?.iter().any(|y| for_any!(y, y => has_jvp(&y.edge()))))
}

/// If another op has no forward mode, there is none to check.
fn unless_unsupported(checked: Result<()>) -> Result<()> {
    match checked {
        Err(Error::Unsupported { .. }) => Ok(()),
        checked => checked,
    }
}

fn check(subject: &Subject, f: &Function<'_>, inputs: &[AnyTensor]) -> Result<()> {
    let point = Point::new(subject, f, inputs)?;
    let wrong = |direction: &Direction, slopes: &Slopes, expected: f64, by| Error::JvpWrong {
        op: subject.op,
        direction: direction.name.clone(),
        jvp: slopes.per_unit(slopes.claimed),
        expected: slopes.per_unit(expected),
        by,
        not_differentiable: slopes.not_differentiable,
    };
    // Of the last movement, which all groups have in common.
    let known = RefCell::new((Vec::new(), Vec::new()));
    point.in_directions(|direction, group| {
        let verdict = point.verdict(direction, group, &|inputs, along, cotangent| {
            let is_point = ptr::eq(inputs, &point.inputs[..]);
            let mut known = known.borrow_mut();
            if !is_point || known.0 != along {
                let key = if is_point { along.to_vec() } else { Vec::new() };
                *known = (key, tangents(&point, inputs, along)?);
            }
            let tangents = &known.1;
            let parts = tangents.iter().zip(cotangent).map(|(part, v)| part * v);
            let (jvp, size) =
                parts.fold((0.0, 0.0), |(sum, size), part| (sum + part, size + part.abs()));
            Ok((jvp, contracted(&group.grads, along).1 + size))
        })?;
        match verdict {
            Verdict::Differs(slopes) | Verdict::Undefined(slopes) => {
                Err(wrong(direction, &slopes, slopes.differences, "finite differences"))
            }
            Verdict::Agrees(slopes) => {
                let (backward, _) = contracted(&group.grads, &slopes.along);
                let most = point.precision.exact * slopes.scale;
                let differ = (slopes.claimed - backward).abs() > most
                    && matches!(point.backward_verdict(direction, group)?, Verdict::Agrees(_));
                match differ {
                    true => Err(wrong(direction, &slopes, backward, "backward")),
                    false => Ok(()),
                }
            }
            Verdict::Unknown => Ok(()),
        }
    })
}

/// The slope of each element of the outputs by forward mode.
fn tangents(point: &Point<'_>, inputs: &[AnyTensor], along: &[Vec<f64>]) -> Result<Vec<f64>> {
    let tangents = inputs.iter().zip(along).map(|(input, along)| {
        // An input that does not move has no tangent.
        along.iter().any(|d| *d != 0.0).then(|| tensor_like(input, along))
    });
    let (leaves, tangents) = (leaves(inputs), tangents.collect::<Vec<_>>());
    let mut all = Vec::new();
    let _forward = ForwardMode::start();
    for y in GradMode::of(true, || (point.f)(&leaves))? {
        match tangent(&y, &leaves, &tangents, false)? {
            Some(dy) => all.extend(numbers(&dy)),
            None => all.resize(all.len() + y.len(), 0.0),
        }
    }
    match all.len() == point.middle.len() {
        true => Ok(all),
        false => Err(point.other_shapes()),
    }
}
