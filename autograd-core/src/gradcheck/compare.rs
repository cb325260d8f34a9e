//! The comparison of a slope by a rule with finite differences.
//!
//! All bounds are relative to the function's own numbers. Rounding of the outputs is the only floor: it
//! hides slopes below about `8 * epsilon * |y| / step`. Other errors of differences (rounding inside the
//! function, curvature, oscillation) change from step to step, and the error of a wrong rule does not. So does
//! rounding inside of the rule change with the numbers that it gets.

use super::point::{Direction, Function, Group, Point, Precision, Sides, Subject};
use crate::engine::numbers;
use crate::error::{Error, Result};
use crate::graph::AnyTensor;

/// Fractions of the step at which an error must be the same. Their ratios are irregular: rounding inside of the
/// function is to units of some size, and a change of ten units is a whole number of them at each tenth of the step.
const FACTORS: [f64; 10] =
    [0.9539, 0.9027, 0.8713, 0.8167, 0.7741, 0.7193, 0.6621, 0.6047, 0.5379, 0.4813];
/// A step at which an output that did not change must not change either. Else rounding inside of the function,
/// as in `exp(1e-12 x) - 1`, hides the change.
const FAR: f64 = 1e4;
/// A change of an input, relative to its size, over which a jump is distinguished from units of rounding.
const DISTANCE: f64 = 0.2;
/// The number of fractions at which a jump or a kink must be the same.
const MANY: u32 = 40;
/// The number of small changes that reveal the rounding of a rule.
const PROBES: u32 = 20;

/// The slopes in a direction, in units of the steps.
pub(super) struct Slopes {
    /// The movement of each input.
    pub(super) along: Vec<Vec<f64>>,
    /// The slope by the rule that is checked.
    pub(super) claimed: f64,
    pub(super) differences: f64,
    /// The sum of the magnitudes of the parts of the claimed slope.
    pub(super) scale: f64,
    /// The possible effect of the outputs' rounding on the differences.
    noise: f64,
    /// The difference of the slopes on both sides.
    bend: f64,
    /// Whether that does not shrink with the step, or the function jumps.
    pub(super) not_differentiable: bool,
}

impl Slopes {
    fn error(&self) -> f64 {
        (self.claimed - self.differences).abs()
    }

    fn relative_error(&self) -> f64 {
        self.error() / self.claimed.abs().max(self.differences.abs())
    }

    fn size(&self) -> f64 {
        self.scale.max(self.differences.abs())
    }

    /// A slope for a direction whose largest part is 1. For a single element, this is the gradient.
    pub(super) fn per_unit(&self, slope: f64) -> f64 {
        slope / self.along.iter().flatten().fold(0.0, |most: f64, part| most.max(part.abs()))
    }
}

pub(super) enum Verdict {
    /// Equal, where rounding could not hide an error.
    Agrees(Slopes),
    Differs(Slopes),
    /// A slope is not finite.
    Undefined(Slopes),
    /// Differences cannot decide.
    Unknown,
}

/// Returns the slope by the rule at some inputs, for their movement and for a cotangent of the outputs; and the
/// sum of its parts' magnitudes.
pub(super) type Claim<'a> = dyn Fn(&[AnyTensor], &[Vec<f64>], &[f64]) -> Result<(f64, f64)> + 'a;

/// Checks the gradients of `f` in all directions.
pub(super) fn check(subject: &Subject, f: &Function<'_>, inputs: &[AnyTensor]) -> Result<()> {
    let point = Point::new(subject, f, inputs)?;
    point.in_directions(|direction, group| match point.backward_verdict(direction, group)? {
        Verdict::Differs(slopes) | Verdict::Undefined(slopes) => {
            Err(point.wrong(direction, &slopes))
        }
        Verdict::Agrees(_) | Verdict::Unknown => Ok(()),
    })
}

impl Point<'_> {
    pub(super) fn backward_verdict(&self, direction: &Direction, group: &Group) -> Result<Verdict> {
        self.verdict(direction, group, &|inputs, along, cotangent| {
            let is_known = cotangent == group.cotangent;
            let grads = if is_known { &group.grads } else { &self.grads_at(inputs, cotangent)? };
            Ok(contracted(grads, along))
        })
    }

    pub(super) fn wrong(&self, direction: &Direction, slopes: &Slopes) -> Error {
        Error::GradientWrong {
            op: self.subject.op,
            direction: direction.name.clone(),
            backward: slopes.per_unit(slopes.claimed),
            differences: slopes.per_unit(slopes.differences),
            not_differentiable: slopes.not_differentiable,
        }
    }

    /// Compares with differences of several steps. An error of the rule shows with all of them.
    pub(super) fn verdict(
        &self,
        direction: &Direction,
        group: &Group,
        claim: &Claim<'_>,
    ) -> Result<Verdict> {
        let (mut undefined, mut suspects, mut least) = (None, Vec::new(), f64::INFINITY);
        for (which, steps) in self.steps.iter().enumerate() {
            let slopes = self.slopes(self.whole_sides(direction, which)?, group, claim)?;
            if !slopes.error().is_finite() {
                undefined = Some(slopes);
                continue;
            }
            if !self.allows(&slopes) {
                suspects.push((steps, slopes));
                continue;
            }
            if slopes.noise <= self.precision.tolerance * slopes.scale {
                return Ok(Verdict::Agrees(slopes));
            }
            least = least.min(slopes.relative_error());
        }
        let better = |a: &(_, Slopes), b: &(_, Slopes)| {
            a.1.relative_error().total_cmp(&b.1.relative_error())
        };
        match (suspects.into_iter().min_by(better), undefined) {
            (Some((steps, slopes)), _) if least > 0.5 * slopes.relative_error() => {
                self.confirmed((direction, group, steps), slopes, claim)
            }
            (None, Some(slopes)) if least == f64::INFINITY => Ok(Verdict::Undefined(slopes)),
            _ => Ok(Verdict::Unknown),
        }
    }

    fn slopes(&self, sides: &Sides, group: &Group, claim: &Claim<'_>) -> Result<Slopes> {
        let unchanged = self.unchanged(sides);
        let only = |on: bool| -> Vec<f64> {
            let all = group.cotangent.iter().zip(&unchanged);
            all.map(|(v, unchanged)| if *unchanged == on { *v } else { 0.0 }).collect()
        };
        let (claimed, scale) = claim(&self.inputs, &sides.along, &group.cotangent)?;
        let mut slopes = Slopes {
            claimed,
            differences: self.differences(sides, group, 1.0),
            scale,
            // Numbers of the size of a large output may be inside of a small one.
            noise: self.noise(sides, &only(false))
                + self.rounding(group, 16.0 * self.largest * self.movement(sides)),
            bend: self.bend(sides, group, 1.0),
            not_differentiable: false,
            along: sides.along.clone(),
        };
        if slopes.error().is_finite() && !self.allows(&slopes) && unchanged.contains(&true) {
            // Outputs that did not change may have slopes too small for that.
            let only = only(true);
            let (hidden, _) = claim(&self.inputs, &sides.along, &only)?;
            // The numbers inside of the function may be larger than its result; their size is taken as 1.
            let size: f64 = only.iter().map(|v| v.abs()).sum();
            let noise = self.noise(sides, &only);
            if hidden.abs() <= noise + 16.0 * self.precision.epsilon * size {
                slopes.noise += hidden.abs();
            }
        }
        Ok(slopes)
    }

    /// Whether the error is that of the rule: the same with other steps, and not its rounding.
    fn confirmed(
        &self,
        (direction, group, steps): (&Direction, &Group, &[Vec<f64>]),
        mut slopes: Slopes,
        claim: &Claim<'_>,
    ) -> Result<Verdict> {
        let at = |factor: f64| -> Result<(f64, f64)> {
            let sides = self.sides(direction, steps, factor)?;
            Ok((self.differences(&sides, group, factor), self.bend(&sides, group, factor)))
        };
        let (mut is_same, mut jumps, mut has_kink) = (true, true, true);
        let (error, size) = (slopes.error(), slopes.size());
        let Slopes { differences, bend, .. } = slopes;
        is_same &= self.scatter((direction, group, steps))? <= 0.25 * error;
        is_same &= differences != 0.0 || at(FAR)?.0 == 0.0;
        let rounding = self.rounding(group, 1.0);
        jumps &= 2.0 * self.precision.step * differences.abs() > rounding;
        has_kink &= bend > 1e-3 * size + 5.0 * slopes.noise;
        // Many, as rounding may be the same for some steps by chance.
        for n in 1..=MANY {
            if jumps || has_kink {
                let factor = f64::from(n) / f64::from(MANY + 1);
                let (found, found_bend) = at(factor)?;
                jumps &= (found * factor - differences).abs() <= 0.01 * differences.abs();
                has_kink &= (found_bend - bend).abs() <= 0.25 * bend;
            }
        }
        if jumps {
            // A unit of rounding is no jump: over many of them the slope is the claimed one.
            let (over_many, _) = at(DISTANCE / self.precision.step)?;
            jumps = (slopes.claimed - over_many).abs() > 0.5 * over_many.abs();
        }
        slopes.not_differentiable = jumps || has_kink;
        let is_certain = slopes.not_differentiable
            || is_same && !self.is_rounding((direction, group, steps), &slopes, claim)?;
        Ok(if is_certain { Verdict::Differs(slopes) } else { Verdict::Unknown })
    }

    /// How much the differences change with the step: the sum over the outputs, of which none excuses another.
    fn scatter(&self, (direction, group, steps): (&Direction, &Group, &[Vec<f64>])) -> Result<f64> {
        let whole = self.sides(direction, steps, 1.0)?;
        let mut most = vec![0.0; self.middle.len()];
        for factor in FACTORS {
            let part = self.sides(direction, steps, factor)?;
            for (at, most) in most.iter_mut().enumerate() {
                let change = |sides: &Sides| sides.after[at] - sides.before[at];
                *most = f64::max(*most, (change(&part) / factor - change(&whole)).abs());
            }
        }
        let parts = most.iter().zip(&group.cotangent).filter(|(_, v)| **v != 0.0);
        let parts = parts.map(|(by, v)| by * v.abs());
        Ok(parts.sum::<f64>() / (2.0 * self.precision.step))
    }

    /// The largest movement of an element relative to its size, in steps; 1 or more.
    fn movement(&self, sides: &Sides) -> f64 {
        let each = self.inputs.iter().zip(&sides.along);
        let parts = each.flat_map(|(x, along)| numbers(x).into_iter().zip(along));
        parts.filter(|(x, _)| *x != 0.0).map(|(x, d)| (d / x).abs()).fold(1.0, f64::max)
    }

    /// The rounding of numbers of this size in each output.
    fn rounding(&self, group: &Group, size: f64) -> f64 {
        16.0 * self.precision.epsilon * size * group.cotangent.iter().map(|v| v.abs()).sum::<f64>()
    }

    fn allows(&self, slopes: &Slopes) -> bool {
        let Precision { tolerance, bends, .. } = self.precision;
        slopes.error() <= tolerance * slopes.size() + slopes.noise + bends * slopes.bend
    }

    /// Whether the error may be rounding inside of the rule.
    fn is_rounding(
        &self,
        (direction, group, steps): (&Direction, &Group, &[Vec<f64>]),
        slopes: &Slopes,
        claim: &Claim<'_>,
    ) -> Result<bool> {
        for n in 1..=PROBES {
            let small = f64::from(n) * if n % 2 == 0 { 1.0 } else { -1.0 };
            // A rule is linear in what it gets, and nearly constant near the point; rounding is neither.
            let (scale, inputs) = (1.0 + 1e-4 * small, self.moved(direction, steps, 7e-5 * small));
            let scaled = |part: &Vec<f64>| part.iter().map(|d| d * scale).collect();
            let along: Vec<Vec<f64>> = slopes.along.iter().map(scaled).collect();
            let cotangent: Vec<f64> = group.cotangent.iter().map(|v| v * scale).collect();
            let (claimed, _) = claim(&inputs, &along, &cotangent)?;
            let change = (claimed / (scale * scale) - slopes.claimed).abs();
            if slopes.error() <= 16.0 * change {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The outputs that are the same at the point and on both sides.
    fn unchanged(&self, sides: &Sides) -> Vec<bool> {
        let outputs = sides.after.iter().zip(&sides.before).zip(&self.middle);
        outputs.map(|((after, before), middle)| after == before && after == middle).collect()
    }

    fn differences(&self, sides: &Sides, group: &Group, factor: f64) -> f64 {
        let outputs = sides.after.iter().zip(&sides.before).zip(&group.cotangent);
        // An output of another group may be NaN.
        let outputs = outputs.filter(|(_, v)| **v != 0.0);
        let difference: f64 = outputs.map(|((after, before), v)| (after - before) * v).sum();
        difference / (2.0 * factor * self.precision.step)
    }

    fn bend(&self, sides: &Sides, group: &Group, factor: f64) -> f64 {
        let outputs = sides.after.iter().zip(&sides.before).zip(&self.middle).zip(&group.cotangent);
        let bend = |(((after, before), middle), v): (((&f64, &f64), &f64), &f64)| {
            (after - 2.0 * middle + before) * v
        };
        outputs.filter(|(_, v)| **v != 0.0).map(bend).sum::<f64>().abs()
            / (factor * self.precision.step)
    }

    fn noise(&self, sides: &Sides, cotangent: &[f64]) -> f64 {
        let outputs = sides.after.iter().zip(&sides.before).zip(cotangent);
        let size = |((after, before), v): ((&f64, &f64), &f64)| match *v {
            0.0 => 0.0,
            _ => (after.abs() + before.abs()) / 2.0 * v.abs(),
        };
        let size: f64 = outputs.map(size).sum();
        8.0 * self.precision.epsilon * size / self.precision.step
    }
}

/// A slope by gradients, and the sum of its parts' magnitudes.
pub(super) fn contracted(grads: &[Vec<f64>], along: &[Vec<f64>]) -> (f64, f64) {
    let parts = grads.iter().flatten().zip(along.iter().flatten()).map(|(grad, d)| grad * d);
    parts.fold((0.0, 0.0), |(sum, scale), part| (sum + part, scale + part.abs()))
}
