//! The check of one function at one point, along directions.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use crate::array::DType;
use crate::array::shape::sorted;
use crate::engine::{BackwardOptions, grad_any, numbers, want_gradient};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Tensor, for_float, indices};
use crate::ops::Float;
use crate::random::Generator;

const DIRECTIONS: usize = 3;
const MAX_EACH: usize = 64;

#[derive(Clone, Copy)]
pub(super) struct Precision {
    pub(super) epsilon: f64,
    /// The step for numbers of about 1: the cube root of the precision.
    pub(super) step: f64,
    /// The least step.
    pub(super) smallest: f64,
    /// A fraction of the step, for functions that oscillate.
    pub(super) narrow: f64,
    /// The allowed difference of the two slopes, relative to the sum of the magnitudes of their parts.
    pub(super) tolerance: f64,
    /// The allowed difference of forward mode and backward, which are both exact; relative to the same sum.
    pub(super) exact: f64,
    /// How many times the difference of the slopes on both sides is allowed.
    pub(super) bends: f64,
}

impl Precision {
    pub(super) fn of<'a>(mut tensors: impl Iterator<Item = &'a AnyTensor>) -> Self {
        if tensors.any(|t| t.dtype() == DType::Float32) { SINGLE } else { DOUBLE }
    }
}

const DOUBLE: Precision = Precision {
    epsilon: f64::EPSILON,
    step: 6e-6,
    smallest: f64::MIN_POSITIVE,
    narrow: 1e-3,
    tolerance: 1e-5,
    exact: 1e-9,
    bends: 0.0,
};
const SINGLE: Precision = Precision {
    epsilon: f32::EPSILON as f64,
    step: 5e-3,
    smallest: f32::MIN_POSITIVE as f64,
    narrow: 0.06,
    tolerance: 3e-4,
    exact: 2e-5,
    bends: 0.0,
};

pub(crate) struct Subject {
    pub(crate) op: &'static str,
    pub(crate) names: Vec<String>,
}

impl Subject {
    pub(super) fn numbered(op: &'static str, inputs: usize) -> Self {
        Self { op, names: (0..inputs).map(|i| format!("input {i}")).collect() }
    }
}

/// The function that is checked. No type parameter, so that the check is compiled once.
pub(super) type Function<'a> = dyn Fn(&[AnyTensor]) -> Result<Vec<AnyTensor>> + 'a;

pub(super) struct Point<'a> {
    pub(super) subject: &'a Subject,
    pub(super) f: &'a Function<'a>,
    pub(super) inputs: Vec<AnyTensor>,
    pub(super) precision: Precision,
    pub(super) grads: Vec<Vec<f64>>,
    pub(super) groups: Vec<Group>,
    /// The steps to try, for each element of each input: relative to the element, so that a function of small
    /// numbers is smooth within a step; narrow ones; and relative to the largest element or 1, where rounding
    /// matters less.
    pub(super) steps: Vec<Vec<Vec<f64>>>,
    pub(super) middle: Vec<f64>,
    /// The size of the largest finite output.
    pub(super) largest: f64,
}

/// The elements of the outputs whose slopes have about one size. Each group is checked separately, so that an
/// error in small slopes does not pass beside large ones.
pub(super) struct Group {
    /// The numbers that the outputs are contracted with, one output after the other; 0 for elements of other groups.
    pub(super) cotangent: Vec<f64>,
    pub(super) grads: Vec<Vec<f64>>,
}

/// A direction that moves one input, or all together.
pub(super) struct Direction {
    pub(super) name: String,
    pub(super) parts: Vec<Vec<f64>>,
    /// The function at whole steps of each kind, which all groups read.
    sides: [OnceCell<Sides>; 3],
}

impl Direction {
    pub(super) fn new(name: String, parts: Vec<Vec<f64>>) -> Self {
        Self { name, parts, sides: Default::default() }
    }
}

/// The function on both sides of the point.
pub(super) struct Sides {
    /// Half of the distance of each element, after rounding, in units of the precision's step.
    pub(super) along: Vec<Vec<f64>>,
    pub(super) before: Vec<f64>,
    pub(super) after: Vec<f64>,
}

impl<'a> Point<'a> {
    pub(super) fn new(
        subject: &'a Subject,
        f: &'a Function<'a>,
        inputs: &[AnyTensor],
    ) -> Result<Self> {
        let op = subject.op;
        let (outputs, cotangents, grads) = differentiate(op, f, inputs)?;
        let again = differentiate(op, f, inputs)?;
        let all = |tensors: &[AnyTensor]| tensors.iter().flat_map(numbers).collect::<Vec<f64>>();
        let (middle, cotangent) = (all(&outputs), all(&cotangents));
        let bits = |all: &[f64]| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let part = match bits(&middle) == bits(&all(&again.0)) {
            false => Some("results"),
            true if bits(&grads.concat()) != bits(&again.2.concat()) => Some("gradients"),
            true => None,
        };
        if let Some(part) = part {
            let why = format!(
                "the function gives other {part} when it is run again with the same inputs; it \
                 must draw no random numbers and change nothing"
            );
            return Err(Error::Unsupported { op, why });
        }
        let precision = Precision::of(inputs.iter().chain(&outputs));
        let inputs = inputs.to_vec();
        let steps = steps(precision, &inputs);
        let groups = Vec::new();
        let sizes = middle.iter().map(|y| y.abs()).filter(|size| size.is_finite());
        let largest = sizes.fold(0.0, f64::max);
        let mut point =
            Self { subject, f, inputs, precision, grads, groups, steps, middle, largest };
        point.groups = point.grouped(cotangent)?;
        Ok(point)
    }

    /// Divides the outputs' elements into groups by the decade of their change in a random direction.
    fn grouped(&self, cotangent: Vec<f64>) -> Result<Vec<Group>> {
        let mut parts = self.zero_direction();
        let mut generator = own_generator(6);
        parts.iter_mut().for_each(|part| generator.fill_uniform(part, -1.0, 1.0));
        let sides = self.sides(&Direction::new(String::new(), parts), &self.steps[0], 1.0)?;
        let changes = sides.after.iter().zip(&sides.before).map(|(after, before)| after - before);
        let decades: Vec<i64> = changes.map(|by| by.abs().log10().floor() as i64).collect();
        let all: BTreeSet<i64> = decades.iter().copied().collect();
        if all.len() < 2 {
            return Ok(vec![Group { cotangent, grads: self.grads.clone() }]);
        }
        let group = |of| {
            let own = cotangent.iter().zip(&decades);
            let cotangent: Vec<f64> =
                own.map(|(v, decade)| if *decade == of { *v } else { 0.0 }).collect();
            let grads = self.grads_at(&self.inputs, &cotangent)?;
            Ok(Group { cotangent, grads })
        };
        all.into_iter().map(group).collect()
    }

    pub(super) fn zero_direction(&self) -> Vec<Vec<f64>> {
        self.grads.iter().map(|grad| vec![0.0; grad.len()]).collect()
    }

    pub(super) fn element(&self, input: usize, element: usize) -> Direction {
        let mut parts = self.zero_direction();
        parts[input][element] = 1.0;
        let position = indices(self.inputs[input].shape(), element);
        let input = &self.subject.names[input];
        Direction::new(format!("{input}, element {position:?}"), parts)
    }

    /// Calls `require` for directions of each input alone, so that an error names it, and of all together; each
    /// with every group of outputs.
    pub(super) fn in_directions(
        &self,
        require: impl Fn(&Direction, &Group) -> Result<()>,
    ) -> Result<()> {
        let require = |direction: &Direction| {
            self.groups.iter().try_for_each(|group| require(direction, group))
        };
        let mut generator = own_generator(2);
        for (i, grad) in self.grads.iter().enumerate() {
            let elements =
                |most| (0..grad.len().min(most)).try_for_each(|at| require(&self.element(i, at)));
            if grad.len() <= MAX_EACH {
                elements(MAX_EACH)?;
            }
            for n in 0..=DIRECTIONS {
                let mut parts = self.zero_direction();
                generator.fill_uniform(&mut parts[i], -1.0, 1.0);
                let input = &self.subject.names[i];
                let mut name = format!("{input}, random direction {n}");
                if n == DIRECTIONS {
                    parts[i].iter_mut().zip(grad).for_each(|(d, g)| *d = d.copysign(*g));
                    name = format!("{input}, along the gradient");
                }
                // If a single element is wrong, the error names it.
                if let Err(wrong) = require(&Direction::new(name, parts)) {
                    elements(16 * MAX_EACH)?;
                    return Err(wrong);
                }
            }
        }
        for n in 0..DIRECTIONS {
            let mut parts = self.zero_direction();
            parts.iter_mut().for_each(|part| generator.fill_uniform(part, -1.0, 1.0));
            require(&Direction::new(format!("all inputs, random direction {n}"), parts))?;
        }
        Ok(())
    }

    /// The function at whole steps of this kind.
    pub(super) fn whole_sides<'d>(
        &self,
        direction: &'d Direction,
        kind: usize,
    ) -> Result<&'d Sides> {
        let known = &direction.sides[kind];
        match known.get() {
            Some(sides) => Ok(sides),
            None => {
                let sides = self.sides(direction, &self.steps[kind], 1.0)?;
                Ok(known.get_or_init(|| sides))
            }
        }
    }

    /// Moves the inputs by `factor` times these steps in the direction, and back.
    pub(super) fn sides(
        &self,
        direction: &Direction,
        steps: &[Vec<f64>],
        factor: f64,
    ) -> Result<Sides> {
        let (from, before) = self.at(direction, steps, -factor)?;
        let (to, after) = self.at(direction, steps, factor)?;
        let unit = 2.0 * factor * self.precision.step;
        let half = |(to, from): (Vec<f64>, Vec<f64>)| {
            to.iter().zip(from).map(|(to, from)| (to - from) / unit).collect()
        };
        Ok(Sides { along: to.into_iter().zip(from).map(half).collect(), before, after })
    }

    /// The inputs at `x + factor * step * d`.
    pub(super) fn moved(
        &self,
        direction: &Direction,
        steps: &[Vec<f64>],
        factor: f64,
    ) -> Vec<AnyTensor> {
        let all = self.inputs.iter().zip(&direction.parts).zip(steps);
        let moved = all.map(|((x, d), steps)| {
            let all = numbers(x).into_iter().zip(d.iter().zip(steps));
            tensor_like(x, &all.map(|(x, (d, step))| x + factor * step * d).collect::<Vec<_>>())
        });
        moved.collect()
    }

    /// The numbers of the moved inputs, after rounding, and of the outputs there.
    fn at(
        &self,
        direction: &Direction,
        steps: &[Vec<f64>],
        factor: f64,
    ) -> Result<(Vec<Vec<f64>>, Vec<f64>)> {
        let moved = leaves(&self.moved(direction, steps, factor));
        let outputs: Vec<f64> = (self.f)(&moved)?.iter().flat_map(numbers).collect();
        if outputs.len() != self.middle.len() {
            return Err(self.other_shapes());
        }
        Ok((moved.iter().map(numbers).collect(), outputs))
    }

    /// The gradients at these inputs, for this cotangent.
    pub(super) fn grads_at(
        &self,
        inputs: &[AnyTensor],
        cotangent: &[f64],
    ) -> Result<Vec<Vec<f64>>> {
        let leaves = leaves(inputs);
        let outputs = (self.f)(&leaves)?;
        let mut all = cotangent.iter().copied();
        let mut cotangents = Vec::new();
        for y in &outputs {
            let own: Vec<f64> = all.by_ref().take(numbers(y).len()).collect();
            if own.len() < numbers(y).len() {
                return Err(self.other_shapes());
            }
            cotangents.push(tensor_like(y, &own));
        }
        gradient_numbers(&outputs, &leaves, &cotangents)
    }

    pub(super) fn other_shapes(&self) -> Error {
        let why = "the function gives outputs of other shapes for other numbers".into();
        Error::Unsupported { op: self.subject.op, why }
    }
}

fn steps(precision: Precision, inputs: &[AnyTensor]) -> Vec<Vec<Vec<f64>>> {
    let (mut relative, mut narrow, mut wide) = (Vec::new(), Vec::new(), Vec::new());
    let Precision { step, smallest, .. } = precision;
    for input in inputs {
        let sizes: Vec<f64> = numbers(input).into_iter().map(f64::abs).collect();
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        let zero = if largest > 0.0 { largest } else { 1.0 };
        let own = |size: &f64| step * if *size > 0.0 { *size } else { zero };
        relative.push(sizes.iter().map(|size| own(size).max(smallest)).collect());
        narrow
            .push(sizes.iter().map(|size| (own(size) * precision.narrow).max(smallest)).collect());
        wide.push(vec![step * largest.max(1.0); sizes.len()]);
    }
    if relative == wide { vec![relative, narrow] } else { vec![relative, narrow, wide] }
}

/// The outputs of a function, the cotangent of each, and the gradients of the inputs that have one.
fn differentiate(
    op: &'static str,
    f: &Function<'_>,
    inputs: &[AnyTensor],
) -> Result<(Vec<AnyTensor>, Vec<AnyTensor>, Vec<Vec<f64>>)> {
    let leaves = leaves(inputs);
    let outputs = f(&leaves)?;
    outputs.iter().try_for_each(|output| require_float(op, output))?;
    let mut generator = own_generator(1);
    let cotangents: Vec<_> = outputs.iter().map(|y| random(y, &mut generator)).collect();
    let grads = gradient_numbers(&outputs, &leaves, &cotangents)?;
    Ok((outputs, cotangents, grads))
}

/// The gradients of all inputs; none for those that are not floats.
fn gradient_numbers(
    outputs: &[AnyTensor],
    leaves: &[AnyTensor],
    cotangents: &[AnyTensor],
) -> Result<Vec<Vec<f64>>> {
    let options = BackwardOptions::new();
    let mut grads = gradients(outputs, leaves, cotangents, options)?.into_iter();
    let grad = |leaf: &AnyTensor| match leaf.dtype().is_float() {
        true => grads.next().map_or(Vec::new(), |grad| numbers(&grad)),
        false => Vec::new(),
    };
    Ok(leaves.iter().map(grad).collect())
}

/// The gradients of the inputs that are floats; zeros for absent ones.
pub(super) fn gradients(
    outputs: &[AnyTensor],
    inputs: &[AnyTensor],
    seeds: &[AnyTensor],
    options: BackwardOptions,
) -> Result<Vec<AnyTensor>> {
    let floats: Vec<_> = inputs.iter().filter(|x| x.dtype().is_float()).cloned().collect();
    let mut grads = vec![None; floats.len()];
    if !floats.is_empty() && !outputs.is_empty() {
        let seeds: Vec<_> = seeds.iter().cloned().map(Some).collect();
        grads = grad_any(outputs, &floats, &seeds, options)?;
    }
    let zeros = |x: &AnyTensor| tensor_like(x, &vec![0.0; numbers(x).len()]);
    let grads = grads.into_iter().zip(&floats);
    Ok(grads.map(|(grad, x)| grad.unwrap_or_else(|| zeros(x))).collect())
}

pub(super) fn require_float(op: &'static str, output: &AnyTensor) -> Result<()> {
    if output.dtype().is_float() {
        return Ok(());
    }
    let why = format!("the function gives a tensor of {}, without a gradient", output.dtype());
    Err(Error::Unsupported { op, why })
}

/// Separate tensors in the same layout, outside any graph, that want a gradient if they can have one.
pub(super) fn leaves(inputs: &[AnyTensor]) -> Vec<AnyTensor> {
    let leaf = |input: &AnyTensor| {
        let leaf = input.alias();
        want_gradient(&leaf);
        leaf
    };
    inputs.iter().map(leaf).collect()
}

/// A tensor of these numbers with the element type, the shape and the order of axes in memory of `like`.
pub(super) fn tensor_like(like: &AnyTensor, data: &[f64]) -> AnyTensor {
    fn make<T: Float>(like: &Tensor<T>, data: &[f64]) -> AnyTensor {
        let data = data.iter().map(|&x| T::from_f64(x)).collect();
        let tensor = match Tensor::from_vec(like.shape(), data) {
            Ok(tensor) => tensor,
            Err(_) => unreachable!("as many as the shape has"),
        };
        let value = like.read();
        if value.is_row_major() {
            return tensor.into();
        }
        // The axes from the greatest stride to the least, and the inverse of that order.
        let strides = value.strides();
        let order = sorted(strides.len(), &|a, b| strides[b].cmp(&strides[a]));
        let order: Vec<isize> = order.into_iter().map(|axis| axis as isize).collect();
        let mut back = vec![0; order.len()];
        (0..).zip(&order).for_each(|(at, &axis)| back[axis as usize] = at);
        tensor.permute(&order).contiguous().permute(&back).into()
    }
    for_float!(like, t => make(t, data), constant => constant.clone())
}

/// A generator whose numbers are those of no small seed. If the gradient of the output were the numbers of an input,
/// a rule that is wrong there alone would pass, as that of `x / |x|`.
pub(super) fn own_generator(purpose: u64) -> Generator {
    Generator::new(u64::MAX - purpose)
}

pub(super) fn random(like: &AnyTensor, generator: &mut Generator) -> AnyTensor {
    let mut data = vec![0.0; numbers(like).len()];
    generator.fill_uniform(&mut data, -1.0, 1.0);
    tensor_like(like, &data)
}
