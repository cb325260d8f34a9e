//! The check of one function at one point, along directions.

use crate::array::DType;
use crate::array::shape::sorted;
use crate::engine::{BackwardOptions, for_float, grad_any, numbers, want_gradient};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Tensor, indices};
use crate::ops::Float;
use crate::random::Generator;

const DIRECTIONS: usize = 3;
const MAX_EACH: usize = 64;

#[derive(Clone, Copy)]
pub(super) struct Precision {
    pub(super) epsilon: f64,
    /// The step for numbers of about 1: the cube root of the precision.
    pub(super) step: f64,
    /// The allowed difference of the two slopes, relative to the sum of the magnitudes of their parts.
    pub(super) tolerance: f64,
    /// The allowed difference of forward mode and backward, which are both exact; relative to the same sum.
    pub(super) exact: f64,
}

pub(super) const DOUBLE: Precision =
    Precision { epsilon: f64::EPSILON, step: 6e-6, tolerance: 1e-5, exact: 1e-9 };
const SINGLE: Precision =
    Precision { epsilon: f32::EPSILON as f64, step: 5e-3, tolerance: 3e-4, exact: 2e-5 };

pub(crate) struct Subject {
    pub(crate) op: &'static str,
    pub(crate) names: Vec<String>,
}

impl Subject {
    pub(super) fn numbered(op: &'static str, inputs: usize) -> Self {
        Self { op, names: (0..inputs).map(|i| format!("input {i}")).collect() }
    }
}

pub(super) struct Point<'a, F> {
    pub(super) subject: &'a Subject,
    f: F,
    inputs: Vec<AnyTensor>,
    pub(super) precision: Precision,
    /// The numbers that the outputs are contracted with, one output after the other.
    pub(super) cotangent: Vec<f64>,
    pub(super) grads: Vec<Vec<f64>>,
    pub(super) steps: Vec<f64>,
    middle: Vec<f64>,
}

/// A direction that moves one input, or all together.
pub(super) struct Direction {
    pub(super) name: String,
    pub(super) parts: Vec<Vec<f64>>,
}

/// The slopes in a direction, by backward and by differences of one step. Their unit is the step of each
/// input, so that all inputs move as far as they can bear, corrected for the rounding of moved inputs.
pub(super) struct Slopes {
    pub(super) backward: f64,
    pub(super) differences: f64,
    /// The difference of the slopes on both sides.
    pub(super) bend: f64,
    /// The sum of the magnitudes of the gradient's parts.
    pub(super) scale: f64,
    /// The possible effect of rounding on the differences.
    pub(super) noise: f64,
}

pub(super) fn check<F>(subject: &Subject, f: F, inputs: &[AnyTensor]) -> Result<()>
where
    F: Fn(&[AnyTensor]) -> Result<Vec<AnyTensor>>,
{
    let point = Point::new(subject, f, inputs)?;
    point.in_directions(|direction| point.require(direction))
}

impl<'a, F: Fn(&[AnyTensor]) -> Result<Vec<AnyTensor>>> Point<'a, F> {
    pub(super) fn new(subject: &'a Subject, f: F, inputs: &[AnyTensor]) -> Result<Self> {
        let op = subject.op;
        let (outputs, cotangents, grads) = differentiate(op, &f, inputs)?;
        let again = differentiate(op, &f, inputs)?;
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
        let single = |t: &AnyTensor| t.dtype() == DType::Float32;
        let precision = if inputs.iter().chain(&outputs).any(single) { SINGLE } else { DOUBLE };
        let largest = |x: &AnyTensor| numbers(x).iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        let steps = inputs.iter().map(|x| precision.step * largest(x)).collect();
        Ok(Self { subject, f, inputs: inputs.to_vec(), precision, cotangent, grads, steps, middle })
    }

    pub(super) fn zero_direction(&self) -> Vec<Vec<f64>> {
        self.grads.iter().map(|grad| vec![0.0; grad.len()]).collect()
    }

    pub(super) fn element(&self, input: usize, element: usize) -> Direction {
        let mut parts = self.zero_direction();
        parts[input][element] = 1.0;
        let position = indices(self.inputs[input].shape(), element);
        let input = &self.subject.names[input];
        Direction { name: format!("{input}, element {position:?}"), parts }
    }

    /// Calls `require` for directions of each input alone, so that an error names it, and of all together.
    pub(super) fn in_directions(&self, require: impl Fn(&Direction) -> Result<()>) -> Result<()> {
        let mut generator = Generator::new(2);
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
                if let Err(wrong) = require(&Direction { name, parts }) {
                    elements(16 * MAX_EACH)?;
                    return Err(wrong);
                }
            }
        }
        for n in 0..DIRECTIONS {
            let mut parts = self.zero_direction();
            parts.iter_mut().for_each(|part| generator.fill_uniform(part, -1.0, 1.0));
            require(&Direction { name: format!("all inputs, random direction {n}"), parts })?;
        }
        Ok(())
    }

    /// The numbers of the inputs at `x + factor d`, after rounding, and of the outputs there.
    fn at(&self, direction: &Direction, factor: f64) -> Result<(Vec<f64>, Vec<f64>)> {
        let moved = self.inputs.iter().zip(&direction.parts).zip(&self.steps);
        let moved = moved.map(|((x, d), step)| {
            let data =
                numbers(x).iter().zip(d).map(|(x, d)| x + factor * step * d).collect::<Vec<_>>();
            tensor_like(x, &data)
        });
        let moved = leaves(&moved.collect::<Vec<_>>());
        let outputs: Vec<f64> = (self.f)(&moved)?.iter().flat_map(numbers).collect();
        if outputs.len() != self.middle.len() {
            return Err(self.other_shapes());
        }
        Ok((moved.iter().flat_map(numbers).collect(), outputs))
    }

    pub(super) fn other_shapes(&self) -> Error {
        let why = "the function gives outputs of other shapes for other numbers".into();
        Error::Unsupported { op: self.subject.op, why }
    }

    pub(super) fn slopes(&self, direction: &Direction, factor: f64) -> Result<Slopes> {
        let step = factor * self.precision.step;
        let (from, before) = self.at(direction, -factor)?;
        let (to, after) = self.at(direction, factor)?;
        let (mut backward, mut scale) = (0.0, 0.0);
        for (grad, (to, from)) in self.grads.iter().flatten().zip(to.iter().zip(&from)) {
            let part = grad * ((to - from) / (2.0 * step));
            backward += part;
            scale += part.abs();
        }
        let (mut difference, mut bend, mut size) = (0.0, 0.0, 0.0);
        let outputs = after.iter().zip(&before).zip(&self.middle);
        for (((after, before), middle), v) in outputs.zip(&self.cotangent) {
            // An output that did not change has no noise.
            if after != before || after != middle {
                difference += (after - before) * v;
                bend += (after - 2.0 * middle + before) * v;
                size += (after.abs() + before.abs()) / 2.0 * v.abs();
            }
        }
        let differences = difference / (2.0 * step);
        let noise = 8.0 * self.precision.epsilon * size / step;
        Ok(Slopes { backward, differences, bend: bend.abs() / step, scale, noise })
    }

    fn require(&self, direction: &Direction) -> Result<()> {
        let slopes = self.slopes(direction, 1.0)?;
        let Slopes { backward, differences, .. } = slopes;
        if (backward - differences).abs() <= self.allowed(&slopes) {
            return Ok(());
        }
        Err(Error::GradientWrong {
            op: self.subject.op,
            direction: direction.name.clone(),
            backward,
            differences,
            not_differentiable: self.is_kink(direction, &slopes)?,
        })
    }

    pub(super) fn allowed(&self, slopes: &Slopes) -> f64 {
        self.precision.tolerance * (slopes.scale + 1e-3) + slopes.noise
    }

    /// Whether the slopes on both sides still differ with a smaller step.
    pub(super) fn is_kink(&self, direction: &Direction, wide: &Slopes) -> Result<bool> {
        let narrow = self.slopes(direction, 0.1)?;
        Ok(wide.bend > 1e-3 + 5.0 * wide.noise && narrow.bend > 0.5 * wide.bend)
    }
}

/// The outputs of a function, the cotangent of each, and the gradients of the inputs that have one.
fn differentiate(
    op: &'static str,
    f: impl Fn(&[AnyTensor]) -> Result<Vec<AnyTensor>>,
    inputs: &[AnyTensor],
) -> Result<(Vec<AnyTensor>, Vec<AnyTensor>, Vec<Vec<f64>>)> {
    let leaves = leaves(inputs);
    let outputs = f(&leaves)?;
    outputs.iter().try_for_each(|output| require_float(op, output))?;
    let mut generator = Generator::new(1);
    let cotangents: Vec<_> = outputs.iter().map(|y| random(y, &mut generator)).collect();
    let options = BackwardOptions::new();
    let mut grads = gradients(&outputs, &leaves, &cotangents, options)?.into_iter();
    let grad = |leaf: &AnyTensor| match leaf.dtype().is_float() {
        true => grads.next().map_or(Vec::new(), |grad| numbers(&grad)),
        false => Vec::new(),
    };
    let grads = leaves.iter().map(grad).collect();
    Ok((outputs, cotangents, grads))
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

pub(super) fn random(like: &AnyTensor, generator: &mut Generator) -> AnyTensor {
    let mut data = vec![0.0; numbers(like).len()];
    generator.fill_uniform(&mut data, -1.0, 1.0);
    tensor_like(like, &data)
}
