//! Forward mode against finite differences, and against backward by the dot-product identity.

use super::point::{self, Point, Subject, leaves, tensor_like};
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
    let f = |inputs: &[AnyTensor]| vec![f(&typed(inputs)).into()];
    point::check(&subject, |inputs| Ok(f(inputs)), &inputs)?;
    check(&subject, &f, &inputs)
}

/// Checks forward mode if an op of `f` has a user's `jvp`.
pub(super) fn check_where_written(
    subject: &Subject,
    f: impl Fn(&[AnyTensor]) -> Vec<AnyTensor>,
    inputs: &[AnyTensor],
) -> Result<()> {
    let outputs = f(&leaves(inputs));
    if !outputs.iter().any(|y| for_any!(y, y => has_jvp(&y.edge()))) {
        return Ok(());
    }
    match check(subject, &f, inputs) {
        // Another op has no forward mode, so there is none to check.
        Err(Error::Unsupported { .. }) => Ok(()),
        checked => checked,
    }
}

fn check(
    subject: &Subject,
    f: &impl Fn(&[AnyTensor]) -> Vec<AnyTensor>,
    inputs: &[AnyTensor],
) -> Result<()> {
    let point = Point::new(subject, |inputs| Ok(f(inputs)), inputs)?;
    let precision = point.precision;
    point.in_directions(|direction| {
        let (mut tangents, mut backward) = (Vec::new(), 0.0);
        for (i, parts) in direction.parts.iter().enumerate() {
            let factor = point.steps[i] / precision.step;
            let parts: Vec<f64> = parts.iter().map(|d| d * factor).collect();
            // As exact as the tangent: the slopes below use rounded steps.
            backward += parts.iter().zip(&point.grads[i]).map(|(d, g)| d * g).sum::<f64>();
            // An input that does not move has no tangent.
            let moves = parts.iter().any(|d| *d != 0.0);
            tangents.push(moves.then(|| tensor_like(&inputs[i], &parts)));
        }
        let (leaves, mut cotangent, mut parts) = (leaves(inputs), &point.cotangent[..], Vec::new());
        let forward = ForwardMode::start();
        for y in GradMode::of(true, || f(&leaves)) {
            let own = cotangent.split_at_checked(y.len());
            let (own, rest) = own.ok_or_else(|| point.other_shapes())?;
            cotangent = rest;
            if let Some(dy) = tangent(&y, &leaves, &tangents, false)? {
                parts.extend(numbers(&dy).iter().zip(own).map(|(d, v)| d * v));
            }
        }
        drop(forward);
        let jvp: f64 = parts.iter().sum();
        let mut slopes = point.slopes(direction, 1.0)?;
        slopes.scale += parts.iter().map(|part| part.abs()).sum::<f64>();
        let (expected, by, not_differentiable) =
            if (jvp - slopes.differences).abs() > point.allowed(&slopes) {
                (slopes.differences, "finite differences", point.is_kink(direction, &slopes)?)
            } else if (jvp - backward).abs() > precision.exact * (slopes.scale + 1e-3) {
                (backward, "backward", false)
            } else {
                return Ok(());
            };
        let direction = direction.name.clone();
        Err(Error::JvpWrong { op: subject.op, direction, jvp, expected, by, not_differentiable })
    })
}
