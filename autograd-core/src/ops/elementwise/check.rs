//! Compares a hand-written backward with the derivative of its forward.

use std::sync::{Arc, OnceLock};

use super::op::{ElementwiseOp, Handle, Info, Traceable};
use crate::array::shape::broadcast;
use crate::array::{Shape, Storable};
use crate::error::{Error, Result};
use crate::formula::{Formula, Mask, Number, Program, Real};
use crate::graph::Tensor;
use crate::ops::Float;
use crate::random::Generator;

/// Number of random points that [`check_backward`] compares.
const POINTS: usize = 200;
/// Number of elements of a call that [`verify`] compares.
const CALL_POINTS: usize = 64;
/// Largest difference allowed, as a part of the larger value.
const TOLERANCE: f64 = 1e-8;
/// The same as a part of the largest derivative at any point, for derivatives that are nearly zero by rounding.
const ROUNDING: f64 = 1e-11;

type Lane = Number<f64, false>;

/// Compares an op's backward with the derivative of its forward; `Ok` if backward is not hand-written.
///
/// # Errors
///
/// [`Error::BackwardDiffers`] with the input and the point where they differ.
pub fn check_backward(op: &dyn ElementwiseOp<f64>) -> Result<()> {
    let Some(derived) = op.derived() else { return Ok(()) };
    let info = op.info();
    compare(op, &derived, &random_points(info), &[])
}

fn random_points(info: &Info) -> Vec<Point> {
    let mut random = Random(Generator::new(POINTS as u64));
    let mut point = || {
        let reals = info.reals.iter().map(|_| random.number()).collect();
        let masks = info.masks.iter().map(|_| random.0.next_u64() & 1 == 1).collect();
        let grads = (0..info.outputs).map(|_| random.number()).collect();
        Point { reals, masks, grads }
    };
    (0..POINTS).map(|_| point()).collect()
}

/// The result of [`check_backward`] for an op without parameters. A build with debug assertions
/// computes it at the op's first call, and reports an error at that call and every later one.
#[derive(Debug)]
pub struct Checked(OnceLock<Result<()>>);

impl Checked {
    /// Creates an entry without a result.
    #[allow(clippy::new_without_default, reason = "it is created in a static")]
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the result of the check; the first call runs the check.
    ///
    /// # Errors
    ///
    /// As [`check_backward`].
    pub fn require(&self, op: &dyn ElementwiseOp<f64>) -> Result<()> {
        self.0.get_or_init(|| check_backward(op)).clone()
    }
}

/// Compares an op's backward with the derivative of its forward at some elements of a call. Returns
/// `Ok` if backward is not hand-written, and if the shapes do not fit, which the call itself reports.
///
/// # Errors
///
/// [`Error::BackwardDiffers`] with the input and the point where they differ.
pub fn verify<T: Float>(
    op: &dyn ElementwiseOp<f64>,
    reals: &[&Tensor<T>],
    masks: &[&Tensor<bool>],
) -> Result<()> {
    let Some(derived) = op.derived() else { return Ok(()) };
    let info = op.info();
    let mut shape = Shape::new();
    for found in reals.iter().map(|x| x.shape()).chain(masks.iter().map(|mask| mask.shape())) {
        let Ok(both) = broadcast(info.name, &shape, found) else { return Ok(()) };
        shape = both;
    }
    let reals: Vec<_> = reals.iter().map(|x| x.read().broadcast_to(&shape)).collect();
    let masks: Vec<_> = masks.iter().map(|mask| mask.read().broadcast_to(&shape)).collect();
    let mut random = Random(Generator::new(POINTS as u64));
    let len: usize = shape.iter().product();
    let point = |at| {
        let reals = reals.iter().map(|x| x.nth(at).into_f64()).collect();
        let masks = masks.iter().map(|mask| mask.nth(at)).collect();
        let grads = (0..info.outputs).map(|_| random.number()).collect();
        Point { reals, masks, grads }
    };
    let points: Vec<_> = (0..len).step_by(len.div_ceil(CALL_POINTS).max(1)).map(point).collect();
    compare(op, &derived, &points, &random_points(info))
}

/// The forward of an op of one number, as an op with the derivative of forward, whatever its backward is.
pub(crate) fn differentiated<T: Storable>(op: &dyn ElementwiseOp<f64>) -> Handle<T>
where
    Program: Formula<T>,
{
    Handle::Shared(Arc::new(Traceable::new(op.info().name, op.forward().program(), [1, 0, 1])))
}

/// Compares at `points`; the other points also show how large the derivatives are.
fn compare(
    op: &dyn ElementwiseOp<f64>,
    derived: &Program,
    points: &[Point],
    others: &[Point],
) -> Result<()> {
    let info = op.info();
    let wanted = vec![true; info.differentiable.len()];
    let (forward, backward) = (op.forward().program(), op.backward(&wanted));
    let names = info.reals.iter().zip(info.differentiable.iter());
    let names: Vec<_> = names.filter(|(_, differentiable)| **differentiable).collect();
    let at = |point: &Point| point.gradients(info, &forward, &backward, derived);
    let found: Vec<_> = points.iter().map(at).collect();
    let mut largest = vec![0.0_f64; names.len()];
    for gradients in found.iter().cloned().chain(others.iter().map(at)).flatten() {
        for (largest, [_, expected]) in largest.iter_mut().zip(gradients) {
            if expected.is_finite() {
                *largest = largest.max(expected.abs());
            }
        }
    }
    for (point, gradients) in points.iter().zip(found) {
        let gradients = gradients.into_iter().flatten().zip(&names).zip(&largest);
        for (([found, expected], (name, _)), largest) in gradients {
            let most = TOLERANCE * expected.abs().max(found.abs()) + ROUNDING * largest;
            // Derivatives of forward that are not finite are skipped.
            let agree = found.is_finite() && (found - expected).abs() <= most;
            if expected.is_finite() && !agree {
                return Err(Error::BackwardDiffers {
                    op: info.name,
                    input: name,
                    point: point.written(info),
                    backward: found,
                    derivative: expected,
                });
            }
        }
    }
    Ok(())
}

struct Random(Generator);

impl Random {
    /// Returns a number of either sign; most sizes are between 0.01 and 4.
    fn number(&mut self) -> f64 {
        let unit = (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let size = match self.0.next_u64() % 4 {
            0 => 0.01 + unit * 0.2,
            1 => 3.0 + unit * 5.0,
            _ => 0.1 + unit * 3.0,
        };
        if self.0.next_u64() & 1 == 1 { -size } else { size }
    }
}

struct Point {
    reals: Vec<f64>,
    masks: Vec<bool>,
    grads: Vec<f64>,
}

impl Point {
    /// The gradients of all inputs by backward and by the derivative of forward; `None` if an output is not finite.
    fn gradients(
        &self,
        info: &Info,
        forward: &Program,
        backward: &Program,
        derived: &Program,
    ) -> Option<Vec<[f64; 2]>> {
        let number = |x: &f64| Real::<Lane>::from(*x);
        let reals: Vec<_> = self.reals.iter().map(number).collect();
        let masks: Vec<_> = self.masks.iter().map(|m| Mask::<Lane>::from(*m)).collect();
        let grads: Vec<_> = self.grads.iter().map(number).collect();
        let outputs = forward.eval(&reals, &masks);
        let all: Vec<_> = reals.iter().chain(&grads).copied().collect();
        let expected = derived.eval(&all, &masks);
        // In the order of backward's inputs.
        let kept = info.keeps_reals.iter().map(|&i| reals[i]);
        let kept = kept.chain(info.keeps_outputs.iter().map(|&k| outputs[k]));
        let kept: Vec<_> = kept.chain(info.gradients.iter().map(|&k| grads[k])).collect();
        let kept_masks: Vec<_> = info.keeps_masks.iter().map(|&i| masks[i]).collect();
        let found = backward.eval(&kept, &kept_masks);
        let inside = outputs.iter().all(|y| y.to_f64().is_finite());
        let pairs = found.iter().zip(&expected).map(|(a, b)| [a.to_f64(), b.to_f64()]);
        inside.then(|| pairs.collect())
    }

    /// `x = 0.5, keep = true, dy = 1`
    fn written(&self, info: &Info) -> String {
        let reals = info.reals.iter().zip(&self.reals).map(|(name, x)| format!("{name} = {x}"));
        let masks = info.masks.iter().zip(&self.masks).map(|(name, m)| format!("{name} = {m}"));
        let grads = self.grads.iter().enumerate().map(|(k, dy)| match self.grads.len() {
            1 => format!("dy = {dy}"),
            _ => format!("dy{k} = {dy}"),
        });
        reals.chain(masks).chain(grads).collect::<Vec<_>>().join(", ")
    }
}
