//! The check of one call at the point where a program makes it. What it tells stops that program, so
//! it tells only what is wrong beyond doubt: by more than the function bends, at two steps.

use super::point::{DOUBLE, Direction, Point, Subject};
use crate::error::{Error, Result};
use crate::graph::AnyTensor;
use crate::random::Generator;

/// Elements of an input that are tried one by one.
const ELEMENTS: usize = 16;
/// The second step, as a part of the first.
const NARROW: f64 = 0.25;

/// Holds the gradients of `f` at `inputs` against finite differences; `Ok` also where `f` cannot be
/// run again with other numbers, or does not give the same again.
///
/// # Errors
///
/// [`Error::GradientWrong`] for the worst of the elements that were tried.
pub(crate) fn verify<F>(subject: &Subject, f: F, inputs: &[AnyTensor]) -> Result<()>
where
    F: Fn(&[AnyTensor]) -> Result<Vec<AnyTensor>>,
{
    // What fails here fails in the call itself, which tells it.
    let Ok(point) = Point::new(subject, f, inputs) else { return Ok(()) };
    let mut generator = Generator::new(5);
    for (i, grad) in point.grads.iter().enumerate() {
        let spread = (0..grad.len()).step_by(grad.len().div_ceil(ELEMENTS).max(1));
        let elements = spread.filter_map(|element| point.wrong(i, point.element(i, element)));
        let worst = elements.max_by(|a, b| a.by.total_cmp(&b.by));
        let worst = worst.or_else(|| {
            // Many small gradients show together.
            let name = &subject.names[i];
            let mut parts = point.still();
            generator.fill_uniform(&mut parts[i], 0.5, 1.0);
            parts[i].iter_mut().zip(grad).for_each(|(d, g)| *d = d.copysign(*g));
            point.wrong(i, Direction { name: format!("{name}, along the gradient"), parts })
        });
        if let Some(Wrong { direction, backward, differences, .. }) = worst {
            let (op, not_differentiable) = (subject.op, false);
            return Err(Error::GradientWrong {
                op,
                direction,
                backward,
                differences,
                not_differentiable,
            });
        }
    }
    Ok(())
}

/// A direction in which the gradient is wrong.
struct Wrong {
    direction: String,
    backward: f64,
    differences: f64,
    /// How far apart the two are, as a part of the larger one.
    by: f64,
}

/// Slopes in a direction, by one step.
struct Slopes {
    backward: f64,
    differences: f64,
    /// By how much the slopes on both sides differ.
    bend: f64,
    /// What the two may differ by.
    most: f64,
}

impl<F: Fn(&[AnyTensor]) -> Result<Vec<AnyTensor>>> Point<'_, F> {
    fn wrong(&self, input: usize, direction: Direction) -> Option<Wrong> {
        let apart = |slopes: &Slopes| {
            let apart = (slopes.backward - slopes.differences).abs();
            (apart > slopes.most + 2.0 * slopes.bend).then_some(apart)
        };
        let wide = self.by_one_step(&direction, 1.0)?;
        let at_first = apart(&wide)?;
        // A true difference stays as it is when the step gets smaller.
        let narrow = self.by_one_step(&direction, NARROW)?;
        apart(&narrow).filter(|apart| *apart > 0.5 * at_first)?;
        // Slopes count in steps of the input; what is reported is the gradient.
        let scale = self.steps[input] / self.precision.step;
        let (backward, differences) = (wide.backward / scale, wide.differences / scale);
        let by = at_first / wide.backward.abs().max(wide.differences.abs());
        Some(Wrong { direction: direction.name, backward, differences, by })
    }

    /// `None` where the function cannot be run there, or gives what is not finite.
    fn by_one_step(&self, direction: &Direction, factor: f64) -> Option<Slopes> {
        let step = factor * self.precision.step;
        let after = self.at(direction, factor).ok()?;
        let before = self.at(direction, -factor).ok()?;
        let middle = self.at(direction, 0.0).ok()?;
        if [&after, &before, &middle].iter().any(|at| at.outputs.len() != self.cotangent.len()) {
            return None;
        }
        let ends = after.inputs.iter().flatten().zip(before.inputs.iter().flatten());
        let parts = self.grads.iter().flatten().zip(ends);
        let (mut backward, mut scale) = (0.0, 0.0);
        for (grad, (after, before)) in parts {
            let part = grad * ((after - before) / (2.0 * step));
            backward += part;
            scale += part.abs();
        }
        let outputs = after.outputs.iter().zip(&before.outputs).zip(&middle.outputs);
        let (mut difference, mut bend, mut size) = (0.0, 0.0, 0.0);
        for (((after, before), middle), v) in outputs.zip(&self.cotangent) {
            // What did not move carries no noise.
            if after != before || after != middle {
                difference += (after - before) * v;
                bend += (after - 2.0 * middle + before) * v;
                size += (after.abs() + before.abs()) / 2.0 * v.abs();
            }
        }
        let differences = difference / (2.0 * step);
        let noise = 16.0 * self.precision.epsilon * size / step;
        let tolerance = if self.precision.epsilon > DOUBLE.epsilon { 2e-2 } else { 1e-3 };
        let most = tolerance * scale.max(differences.abs()) + noise;
        let all = [backward, differences, bend, most];
        all.iter().all(|x| x.is_finite()).then_some(Slopes {
            backward,
            differences,
            bend: bend.abs() / step,
            most,
        })
    }
}
