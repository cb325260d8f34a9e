//! The check of one call at its own inputs, in a running program. An error stops that program, so only
//! certain errors are reported: those that exceed the curvature of the function.

use super::compare::Verdict;
use super::point::{Direction, Function, Point, Precision, Subject, own_generator};
use crate::error::{Error, Result};
use crate::graph::AnyTensor;

const MAX_ELEMENTS: usize = 16;

/// Compares gradients with finite differences; the error is of the worst element. `Ok` if `f` cannot run again.
pub(crate) fn verify(subject: &Subject, f: &Function<'_>, inputs: &[AnyTensor]) -> Result<()> {
    // An error here is an error of the call itself, which reports it.
    let Ok(mut point) = Point::new(subject, f, inputs) else { return Ok(()) };
    point.precision = certain(point.precision);
    let mut generator = own_generator(5);
    for (i, grad) in point.grads.iter().enumerate() {
        let sample = (0..grad.len()).step_by(grad.len().div_ceil(MAX_ELEMENTS).max(1));
        let elements = sample.filter_map(|element| point.error_along(&point.element(i, element)));
        let worst = elements.max_by(|a, b| a.0.total_cmp(&b.0));
        let worst = worst.or_else(|| {
            // Errors of many small gradients show only together.
            let name = &subject.names[i];
            let mut parts = point.zero_direction();
            generator.fill_uniform(&mut parts[i], 0.5, 1.0);
            parts[i].iter_mut().zip(grad).for_each(|(d, g)| *d = d.copysign(*g));
            point.error_along(&Direction::new(format!("{name}, along the gradient"), parts))
        });
        if let Some((_, error)) = worst {
            return Err(error);
        }
    }
    Ok(())
}

/// What is allowed here: an error must be large, and exceed the function's curvature.
fn certain(precision: Precision) -> Precision {
    let tolerance = if precision.epsilon > f64::EPSILON { 2e-2 } else { 1e-3 };
    Precision { tolerance, bends: 2.0, ..precision }
}

impl Point<'_> {
    /// The error for a direction in which the gradient is wrong, and the relative difference of the slopes.
    fn error_along(&self, direction: &Direction) -> Option<(f64, Error)> {
        self.groups.iter().find_map(|group| {
            // A slope that is not finite proves nothing.
            let verdict = self.backward_verdict(direction, group);
            let Ok(Verdict::Differs(slopes)) = verdict else { return None };
            let (backward, differences) = (slopes.claimed, slopes.differences);
            let by = (backward - differences).abs() / backward.abs().max(differences.abs());
            Some((by, self.wrong(direction, &slopes)))
        })
    }
}
