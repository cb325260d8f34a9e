//! Forward mode against finite differences, and against backward by the dot-product identity.

use super::point::{DOUBLE, Point, Precision, SINGLE, Subject, leaves};
use super::{check_first, erased, typed};
use crate::array::DType;
use crate::engine::has_jvp;
use crate::error::{Error, Result};
use crate::functional::jvp;
use crate::graph::{AnyTensor, Tensor, for_any};

/// Checks forward mode through `f` at `inputs`: the slope by [`jvp`](crate::jvp()) against finite
/// differences and, with a much smaller tolerance, against backward (the product of a cotangent with the
/// slope equals that of the gradient with the tangent). First runs [`gradcheck()`](crate::gradcheck()),
/// which checks this too if an op of `f` has a `fn jvp`.
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
    let subject = Subject::numbered("jvpcheck", inputs.len());
    check_first(&subject, |inputs| vec![f(&typed(inputs)).into()], &erased(inputs))?;
    check(&subject, DOUBLE, &f, inputs)
}

/// Checks forward mode if an op of `f` has a user's `jvp`; in `f64`, as inputs may have both precisions.
pub(super) fn check_where_written(
    subject: &Subject,
    f: impl Fn(&[AnyTensor]) -> Vec<AnyTensor>,
    inputs: &[AnyTensor],
) -> Result<()> {
    let outputs = f(&leaves(inputs));
    if !outputs.iter().any(|y| for_any!(y, y => has_jvp(&y.edge()))) {
        return Ok(());
    }
    let single = |t: &AnyTensor| t.dtype() == DType::Float32;
    let precision = if inputs.iter().chain(&outputs).any(single) { SINGLE } else { DOUBLE };
    let floats: Vec<usize> = (0..inputs.len()).filter(|&i| inputs[i].dtype().is_float()).collect();
    let names = floats.iter().map(|&i| subject.names[i].clone()).collect();
    let doubles: Vec<_> = floats.iter().map(|&i| doubled(&inputs[i])).collect();
    let joined = |t: &[Tensor<f64>]| {
        let mut all = inputs.to_vec();
        for (&i, t) in floats.iter().zip(t) {
            all[i] = if single(&all[i]) { t.cast::<f32>().into() } else { t.clone().into() };
        }
        let outputs: Vec<_> = f(&all).iter().map(|y| doubled(y).flatten()).collect();
        Tensor::concat(&outputs.iter().collect::<Vec<_>>(), 0)
    };
    match check(&Subject { op: subject.op, names }, precision, &joined, &doubles) {
        // Another op has no forward mode, so there is none to check.
        Err(Error::Unsupported { .. }) => Ok(()),
        checked => checked,
    }
}

fn doubled(tensor: &AnyTensor) -> Tensor<f64> {
    match tensor {
        AnyTensor::Float32(t) => t.cast(),
        AnyTensor::Float64(t) => t.clone(),
        other => unreachable!("{} is no float type", other.dtype()),
    }
}

fn check(
    subject: &Subject,
    precision: Precision,
    f: &impl Fn(&[Tensor<f64>]) -> Tensor<f64>,
    inputs: &[Tensor<f64>],
) -> Result<()> {
    let any = |inputs: &[AnyTensor]| Ok(vec![f(&typed(inputs)).into()]);
    let point = Point::new(subject, any, &erased(inputs), Some(precision))?;
    point.in_directions(|direction| {
        // An input that does not move has no tangent.
        let moves = |i: &usize| direction.parts[*i].iter().any(|d| *d != 0.0);
        let moving: Vec<usize> = (0..inputs.len()).filter(moves).collect();
        let at: Vec<_> = moving.iter().map(|&i| inputs[i].alias()).collect();
        let (mut along, mut backward) = (Vec::new(), 0.0);
        for &i in &moving {
            let factor = point.steps[i] / precision.step;
            let parts: Vec<f64> = direction.parts[i].iter().map(|d| d * factor).collect();
            // As exact as the tangent: the slopes below use rounded steps.
            backward += parts.iter().zip(&point.grads[i]).map(|(d, g)| d * g).sum::<f64>();
            along.push(Tensor::from_vec(inputs[i].shape(), parts)?);
        }
        let of_moving = |moved: &[Tensor<f64>]| {
            let mut all = inputs.to_vec();
            moving.iter().zip(moved).for_each(|(&i, moved)| all[i] = moved.clone());
            f(&all)
        };
        let (_, dy) = jvp(of_moving, &at, &along)?;
        let parts: Vec<f64> =
            dy.to_vec().iter().zip(&point.cotangent).map(|(d, v)| d * v).collect();
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
