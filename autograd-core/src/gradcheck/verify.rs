//! The check of one call at its own inputs, in a running program. An error stops that program, so only
//! certain errors are reported: those that exceed the curvature of the function, at two steps.

use super::point::{DOUBLE, Direction, Point, Slopes, Subject};
use crate::error::{Error, Result};
use crate::graph::AnyTensor;
use crate::random::Generator;

const MAX_ELEMENTS: usize = 16;
/// The second step, as a fraction of the first.
const NARROW: f64 = 0.25;

/// Compares gradients with finite differences; the error is of the worst element. `Ok` if `f` cannot run again.
pub(crate) fn verify<F>(subject: &Subject, f: F, inputs: &[AnyTensor]) -> Result<()>
where
    F: Fn(&[AnyTensor]) -> Result<Vec<AnyTensor>>,
{
    // An error here is an error of the call itself, which reports it.
    let Ok(point) = Point::new(subject, f, inputs) else { return Ok(()) };
    let mut generator = Generator::new(5);
    for (i, grad) in point.grads.iter().enumerate() {
        let sample = (0..grad.len()).step_by(grad.len().div_ceil(MAX_ELEMENTS).max(1));
        let elements = sample.filter_map(|element| point.error_along(i, point.element(i, element)));
        let worst = elements.max_by(|a, b| a.0.total_cmp(&b.0));
        let worst = worst.or_else(|| {
            // Errors of many small gradients show only together.
            let name = &subject.names[i];
            let mut parts = point.zero_direction();
            generator.fill_uniform(&mut parts[i], 0.5, 1.0);
            parts[i].iter_mut().zip(grad).for_each(|(d, g)| *d = d.copysign(*g));
            point.error_along(i, Direction { name: format!("{name}, along the gradient"), parts })
        });
        if let Some((_, error)) = worst {
            return Err(error);
        }
    }
    Ok(())
}

impl<F: Fn(&[AnyTensor]) -> Result<Vec<AnyTensor>>> Point<'_, F> {
    /// The error for a direction in which the gradient is wrong, and the relative difference of the slopes.
    fn error_along(&self, input: usize, direction: Direction) -> Option<(f64, Error)> {
        let wide = self.slopes(&direction, 1.0).ok()?;
        let at_first = self.certain_difference(&wide)?;
        // A true difference does not get smaller with the step.
        let narrow = self.slopes(&direction, NARROW).ok()?;
        self.certain_difference(&narrow).filter(|difference| *difference > 0.5 * at_first)?;
        // Slopes are in steps of the input; the error reports the gradient.
        let scale = self.steps[input] / self.precision.step;
        let (backward, differences) = (wide.backward / scale, wide.differences / scale);
        let by = at_first / wide.backward.abs().max(wide.differences.abs());
        let (op, direction, not_differentiable) = (self.subject.op, direction.name, false);
        let error =
            Error::GradientWrong { op, direction, backward, differences, not_differentiable };
        Some((by, error))
    }

    fn certain_difference(&self, slopes: &Slopes) -> Option<f64> {
        let &Slopes { backward, differences, bend, scale, noise } = slopes;
        let tolerance = if self.precision.epsilon > DOUBLE.epsilon { 2e-2 } else { 1e-3 };
        let most = tolerance * scale.max(differences.abs()) + 2.0 * noise + 2.0 * bend;
        let difference = (backward - differences).abs();
        // A slope that is not finite proves nothing.
        (difference.is_finite() && difference > most).then_some(difference)
    }
}
