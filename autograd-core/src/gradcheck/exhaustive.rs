//! A formula of one number: its backward in `f32` against the derivative of its forward, at all inputs.
#![allow(missing_docs, reason = "hidden from users")]

use std::fmt;
use std::panic::Location;

use crate::error::{Error, Result};
use crate::functional::vjp;
use crate::graph::Tensor;
use crate::ops::Float;
use crate::ops::elementwise::{ElementwiseOp, Handle, differentiated};

/// Inputs that are compared at once.
const BLOCK: usize = 1 << 16;
/// Largest error allowed, unless the derivative itself, computed in `f32`, is as far off.
const TOLERANCE: f64 = 1e-4;
/// How far the sides of an input are, as a part of it.
const SIDE: f64 = 1e-9;

/// What [`exhaustive`] found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exhaustive {
    /// The largest error of the gradient, as a part of the largest of `|f'|`, `|f| / max(1, |x|)` (what a
    /// rounding of `f` is as a slope) and the least normal number.
    pub error: f64,
    /// The input with that error.
    pub at: f32,
    pub compared: u64,
    /// Inputs where the derivative does not exist.
    pub excluded: u64,
}

impl fmt::Display for Exhaustive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { error, at, compared, excluded } = self;
        write!(
            f,
            "largest error {error:.1e} at {at:e}; {compared} inputs compared, {excluded} excluded"
        )
    }
}

/// Compares backward in `f32` with the derivative of forward, by dual numbers in `f64`, at every `step`th of the
/// 2^32 inputs in the order of their bits. Excluded are inputs where
///
/// - the input, the value or the derivative is not finite in `f32`, or the derivative is so large that the error allowed
///   makes it infinite;
/// - they differ, and the derivatives at both sides do too: a kink or a jump.
///
/// They may differ by rounding: where forward cancels, as `1 + erf(x)` does, the same derivative computed in `f32`
/// is as far off.
///
/// # Errors
///
/// [`Error::BackwardDiffers`] with the first input where they differ.
pub fn exhaustive(
    op: &'static dyn ElementwiseOp<f32>,
    exact: &dyn ElementwiseOp<f64>,
    step: usize,
) -> Result<Exhaustive> {
    let (found, expected) = (Handle::Static(op), differentiated::<f64>(exact));
    let rounded = differentiated::<f32>(exact);
    let mut all = Exhaustive::default();
    let mut bits = (0..=u32::MAX).step_by(step);
    loop {
        let inputs: Vec<f32> = bits.by_ref().take(BLOCK).map(f32::from_bits).collect();
        if inputs.is_empty() {
            return Ok(all);
        }
        let (values, gradients) = slopes(&found, inputs.clone())?;
        let points: Vec<f64> = inputs.iter().copied().map(f64::from).collect();
        let (exact_values, derivatives) = slopes(&expected, points)?;
        for (i, &x) in inputs.iter().enumerate() {
            let (value, derivative) = (exact_values[i], derivatives[i]);
            let is_finite = x.is_finite() && values[i].is_finite() && (value as f32).is_finite();
            let largest = derivative * (1.0 + TOLERANCE);
            if !is_finite || !(largest as f32).is_finite() {
                all.excluded += 1;
                continue;
            }
            let scale = derivative.abs().max(value.abs() / f64::from(x.abs().max(1.0)));
            let scale = scale.max(f64::from(f32::MIN_POSITIVE));
            let error_of = |gradient: f32| (f64::from(gradient) - derivative).abs() / scale;
            let error = error_of(gradients[i]);
            let is_rounding = || -> Result<bool> {
                let by_rounding = error_of(slopes(&rounded, vec![x])?.1[0]);
                Ok(error.is_finite() && error <= 4.0 * by_rounding)
            };
            if error <= TOLERANCE || is_rounding()? {
                all.compared += 1;
                if error > all.error {
                    (all.error, all.at) = (error, x);
                }
            } else if is_kink(&expected, f64::from(x), scale)? {
                all.excluded += 1;
            } else {
                return Err(Error::BackwardDiffers {
                    op: exact.info().name,
                    input: "x",
                    point: format!("x = {x:e} (f32)"),
                    backward: gradients[i].into(),
                    derivative,
                });
            }
        }
    }
}

/// Whether the derivatives at both sides of an input differ.
fn is_kink(op: &Handle<f64>, x: f64, scale: f64) -> Result<bool> {
    let side = (x.abs() * SIDE).max(f64::from(f32::MIN_POSITIVE) * SIDE);
    let (_, slopes) = slopes(op, vec![x - side, x + side])?;
    let gap = (slopes[0] - slopes[1]).abs();
    Ok(!gap.is_finite() || gap > TOLERANCE * scale)
}

/// The values of an op of one number, and its gradients.
fn slopes<T: Float>(op: &Handle<T>, inputs: Vec<T>) -> Result<(Vec<T>, Vec<T>)> {
    let (x, caller) = (Tensor::from(inputs), Location::caller());
    let ones = Tensor::ones_like(&x);
    let mut failed = Ok(());
    let run = |t: &[Tensor<T>]| match T::elementwise(op.clone(), &[&t[0]], &[], caller) {
        Ok(mut outputs) => outputs.swap_remove(0),
        Err(error) => {
            failed = Err(error);
            t[0].clone()
        }
    };
    let (y, gradients) = vjp(run, &[x], &ones)?;
    failed.map(|()| (y.to_vec(), gradients[0].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Unary;

    /// Compares the functions of one tensor, all or those of a list.
    #[allow(clippy::print_stdout, reason = "the figures of the documentation")]
    fn compare(only: Option<&str>, step: usize) {
        let wanted = |function: &&Unary| {
            only.is_none_or(|only| only.split(',').any(|name| name == function.name()))
        };
        for function in Unary::ALL.iter().filter(wanted) {
            match exhaustive(function.op(), function.op(), step) {
                Ok(found) => {
                    assert!(found.compared > 0);
                    println!("{}: {found}", function.name());
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn some_inputs_of_each_function() {
        compare(None, 1_000_003);
    }

    #[test]
    fn another_function_is_found() {
        let error = exhaustive(Unary::Atan.op(), Unary::Tanh.op(), 1_000_003).unwrap_err();
        assert!(matches!(error, Error::BackwardDiffers { op: "tanh", .. }), "{error}");
    }

    /// `AUTOGRAD_FUNCTIONS=exp,ln` leaves out the others, `AUTOGRAD_STEP=61` compares every 61st input.
    #[test]
    #[ignore = "all numbers of type f32 take minutes for each function"]
    fn all_inputs_of_each_function() {
        let only = std::env::var("AUTOGRAD_FUNCTIONS").ok();
        let step = std::env::var("AUTOGRAD_STEP").map_or(1, |step| step.parse().expect("a number"));
        compare(only.as_deref(), step);
    }
}
