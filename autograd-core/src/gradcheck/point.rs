//! The check of one function at one point, in directions.

use crate::array::DType;
use crate::engine::{BackwardOptions, grad_any};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Tensor};
use crate::ops::Float;
use crate::random::Generator;

/// Random directions for all inputs together, and for each alone.
pub(super) const DIRECTIONS: usize = 3;
/// Inputs with no more elements than this are tried element by element.
pub(super) const MAX_EACH: usize = 64;

/// What differences can tell with numbers of one precision.
#[derive(Clone, Copy)]
pub(super) struct Precision {
    pub(super) epsilon: f64,
    /// The step, where numbers are about 1: the cube root of the precision.
    pub(super) step: f64,
    /// What the two slopes may differ by, as a part of the sum of the gradient's parts in them.
    pub(super) tolerance: f64,
    /// What forward mode and backward may differ by, in the same way: both are exact.
    pub(super) exact: f64,
}

pub(super) const DOUBLE: Precision =
    Precision { epsilon: f64::EPSILON, step: 6e-6, tolerance: 1e-5, exact: 1e-9 };
pub(super) const SINGLE: Precision =
    Precision { epsilon: f32::EPSILON as f64, step: 5e-3, tolerance: 3e-4, exact: 2e-5 };

/// What is checked, and what its inputs are called.
pub(crate) struct Subject {
    /// As errors begin.
    pub(crate) op: &'static str,
    pub(crate) names: Vec<String>,
}

impl Subject {
    /// Inputs by their numbers.
    pub(super) fn numbered(op: &'static str, inputs: usize) -> Self {
        Self { op, names: (0..inputs).map(|i| format!("input {i}")).collect() }
    }
}

/// The point a function is checked at, with the gradient that backward gives there.
pub(super) struct Point<'a, F> {
    subject: &'a Subject,
    f: F,
    inputs: Vec<AnyTensor>,
    pub(super) precision: Precision,
    /// What the outputs are contracted with, one after the other.
    pub(super) cotangent: Vec<f64>,
    pub(super) grads: Vec<Vec<f64>>,
    /// The steps, one for each input.
    pub(super) steps: Vec<f64>,
}

/// A direction that moves one input, or all together.
pub(super) struct Direction {
    pub(super) name: String,
    pub(super) parts: Vec<Vec<f64>>,
}

/// What was found at a place: the numbers of the inputs, as they were rounded, and of the outputs.
pub(super) struct Found {
    pub(super) inputs: Vec<Vec<f64>>,
    pub(super) outputs: Vec<f64>,
}

/// A slope by backward and by differences.
struct Slopes {
    backward: f64,
    differences: f64,
    agree: bool,
}

/// Holds the gradients of `f` at `inputs` against finite differences.
pub(super) fn check<F>(subject: &Subject, f: F, inputs: &[AnyTensor]) -> Result<()>
where
    F: Fn(&[AnyTensor]) -> Result<Vec<AnyTensor>>,
{
    let point = Point::new(subject, f, inputs)?;
    let mut generator = Generator::new(2);
    // Each input alone first, so that a wrong one is named.
    for (i, grad) in point.grads.iter().enumerate() {
        if grad.len() <= MAX_EACH {
            (0..grad.len()).try_for_each(|element| point.require(&point.element(i, element)))?;
        }
        for n in 0..=DIRECTIONS {
            let mut parts = point.still();
            generator.fill_uniform(&mut parts[i], -1.0, 1.0);
            let input = &point.subject.names[i];
            let mut name = format!("{input}, random direction {n}");
            if n == DIRECTIONS {
                parts[i].iter_mut().zip(grad).for_each(|(d, g)| *d = d.copysign(*g));
                name = format!("{input}, along the gradient");
            }
            point.require_or_locate(i, &Direction { name, parts })?;
        }
    }
    for n in 0..DIRECTIONS {
        let mut parts = point.still();
        parts.iter_mut().for_each(|part| generator.fill_uniform(part, -1.0, 1.0));
        let name = format!("all inputs, random direction {n}");
        point.require(&Direction { name, parts })?;
    }
    Ok(())
}

impl<'a, F: Fn(&[AnyTensor]) -> Result<Vec<AnyTensor>>> Point<'a, F> {
    pub(super) fn new(subject: &'a Subject, f: F, inputs: &[AnyTensor]) -> Result<Self> {
        let op = subject.op;
        let (outputs, cotangents, grads) = differentiate(op, &f, inputs)?;
        let again = differentiate(op, &f, inputs)?;
        let bits = |all: &[AnyTensor]| -> Vec<u64> {
            all.iter().flat_map(numbers).map(f64::to_bits).collect()
        };
        let of_grads = |grads: &[Vec<f64>]| -> Vec<u64> {
            grads.iter().flatten().map(|g| g.to_bits()).collect()
        };
        let part = match bits(&outputs) == bits(&again.0) {
            false => Some("results"),
            true if of_grads(&grads) != of_grads(&again.2) => Some("gradients"),
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
        let precision = match inputs.iter().chain(&outputs).any(single) {
            true => SINGLE,
            false => DOUBLE,
        };
        let largest = |x: &AnyTensor| numbers(x).iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        let steps = inputs.iter().map(|x| precision.step * largest(x)).collect();
        let cotangent = cotangents.iter().flat_map(numbers).collect();
        Ok(Self { subject, f, inputs: inputs.to_vec(), precision, cotangent, grads, steps })
    }

    /// No direction at all.
    pub(super) fn still(&self) -> Vec<Vec<f64>> {
        self.grads.iter().map(|grad| vec![0.0; grad.len()]).collect()
    }

    pub(super) fn element(&self, input: usize, element: usize) -> Direction {
        let mut parts = self.still();
        parts[input][element] = 1.0;
        let position = position(self.inputs[input].shape(), element);
        let input = &self.subject.names[input];
        Direction { name: format!("{input}, element {position:?}"), parts }
    }

    /// What there is at `x + factor d`.
    pub(super) fn at(&self, direction: &Direction, factor: f64) -> Result<Found> {
        let moved = self.inputs.iter().zip(&direction.parts).zip(&self.steps);
        let moved = moved.map(|((x, d), step)| {
            let data =
                numbers(x).iter().zip(d).map(|(x, d)| x + factor * step * d).collect::<Vec<_>>();
            tensor_like(x, &data)
        });
        let moved = leaves(&moved.collect::<Vec<_>>());
        let outputs = (self.f)(&moved)?.iter().flat_map(numbers).collect();
        Ok(Found { inputs: moved.iter().map(numbers).collect(), outputs })
    }

    fn slopes(&self, direction: &Direction) -> Result<Slopes> {
        let Precision { epsilon, step, tolerance, .. } = self.precision;
        let (after, before) = (self.at(direction, 1.0)?, self.at(direction, -1.0)?);
        // Slopes count in steps of each input, so that all inputs move as far as they can bear,
        // and by how far they moved when rounded.
        let ends = after.inputs.iter().flatten().zip(before.inputs.iter().flatten());
        let parts = || {
            let parts = self.grads.iter().flatten().zip(ends.clone());
            parts.map(|(g, (after, before))| g * ((after - before) / (2.0 * step)))
        };
        let backward: f64 = parts().filter(|part| *part != 0.0).sum();
        let outputs = after.outputs.iter().zip(&before.outputs).zip(&self.cotangent);
        let (mut difference, mut size) = (0.0, 0.0);
        for ((after, before), v) in outputs {
            // What did not move carries no noise.
            if after != before {
                difference += (after - before) * v;
                size += (after.abs() + before.abs()) / 2.0 * v.abs();
            }
        }
        let differences = difference / (2.0 * step);
        let noise = 8.0 * epsilon * size / step;
        let scale: f64 = parts().map(f64::abs).sum();
        let agree = (backward - differences).abs() <= tolerance * scale + noise + 1e-3 * tolerance;
        Ok(Slopes { backward, differences, agree })
    }

    fn require(&self, direction: &Direction) -> Result<()> {
        let slopes = self.slopes(direction)?;
        if slopes.agree {
            return Ok(());
        }
        Err(Error::GradientWrong {
            op: self.subject.op,
            direction: direction.name.clone(),
            backward: slopes.backward,
            differences: slopes.differences,
            not_differentiable: self.is_kink(direction)?,
        })
    }

    /// [`Self::require`] that names the first wrong element where there is one.
    fn require_or_locate(&self, input: usize, direction: &Direction) -> Result<()> {
        let wrong = self.require(direction);
        if wrong.is_err() {
            for element in 0..self.grads[input].len().min(16 * MAX_EACH) {
                self.require(&self.element(input, element))?;
            }
        }
        wrong
    }

    /// Whether the slopes on both sides stay apart when the step is made smaller.
    fn is_kink(&self, direction: &Direction) -> Result<bool> {
        let middle = self.at(direction, 0.0)?.outputs;
        let gap = |factor: f64| -> Result<f64> {
            let (after, before) = (self.at(direction, factor)?, self.at(direction, -factor)?);
            let outputs = after.outputs.iter().zip(&before.outputs).zip(&middle);
            let bends = outputs.zip(&self.cotangent).map(|(((a, b), m), v)| (a - 2.0 * m + b) * v);
            Ok(bends.sum::<f64>().abs() / (factor * self.precision.step))
        };
        let (wide, narrow) = (gap(1.0)?, gap(0.1)?);
        let size: f64 = middle.iter().zip(&self.cotangent).map(|(m, v)| (m * v).abs()).sum();
        let noise = 40.0 * self.precision.epsilon * size / self.precision.step;
        Ok(wide > 1e-3 + noise && narrow > 0.5 * wide)
    }
}

/// The outputs of a function, what each is contracted with, and the gradients of the inputs; of a
/// constant none.
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
    let floats: Vec<AnyTensor> = leaves.iter().filter(|x| x.dtype().is_float()).cloned().collect();
    let mut grads = Vec::new().into_iter();
    if !floats.is_empty() && !outputs.is_empty() {
        let seeds: Vec<_> = cotangents.iter().cloned().map(Some).collect();
        grads = grad_any(&outputs, &floats, &seeds, BackwardOptions::new())?.into_iter();
    }
    let grad = |leaf: &AnyTensor| match leaf
        .dtype()
        .is_float()
        .then(|| grads.next().flatten())
        .flatten()
    {
        Some(grad) => numbers(&grad),
        None => vec![0.0; numbers(leaf).len()],
    };
    let grads = leaves.iter().map(grad).collect();
    Ok((outputs, cotangents, grads))
}

/// The indices of an element.
pub(super) fn position(shape: &[usize], element: usize) -> Vec<usize> {
    let (mut rest, mut position) = (element, vec![0; shape.len()]);
    for (at, n) in position.iter_mut().zip(shape).rev() {
        *at = rest % n;
        rest /= n;
    }
    position
}

pub(super) fn require_float(op: &'static str, output: &AnyTensor) -> Result<()> {
    if output.dtype().is_float() {
        return Ok(());
    }
    let why = format!("the function gives a tensor of {}, without a gradient", output.dtype());
    Err(Error::Unsupported { op, why })
}

/// Tensors of their own, outside any graph, that want a gradient if they can have one. The layout
/// stays.
pub(super) fn leaves(inputs: &[AnyTensor]) -> Vec<AnyTensor> {
    let leaf = |input: &AnyTensor| {
        let leaf = input.alias();
        match &leaf {
            AnyTensor::Float32(leaf) => leaf.set_stop_gradient(false),
            AnyTensor::Float64(leaf) => leaf.set_stop_gradient(false),
            _ => {}
        }
        leaf
    };
    inputs.iter().map(leaf).collect()
}

/// The numbers of a tensor of floats; of others, which are constants, none.
pub(super) fn numbers(tensor: &AnyTensor) -> Vec<f64> {
    match tensor {
        AnyTensor::Float32(t) => t.to_vec().into_iter().map(f64::from).collect(),
        AnyTensor::Float64(t) => t.to_vec(),
        _ => Vec::new(),
    }
}

/// Numbers, rounded to the element type of `like`, in its shape and with its axes in the same order
/// in memory.
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
        let strides = value.strides();
        let mut order: Vec<isize> = (0..strides.len() as isize).collect();
        order.sort_by_key(|&axis| std::cmp::Reverse(strides[axis as usize]));
        let mut back = vec![0; order.len()];
        (0..).zip(&order).for_each(|(at, &axis)| back[axis as usize] = at);
        tensor.permute(&order).contiguous().permute(&back).into()
    }
    match like {
        AnyTensor::Float32(t) => make(t, data),
        AnyTensor::Float64(t) => make(t, data),
        constant => constant.clone(),
    }
}

pub(super) fn random(like: &AnyTensor, generator: &mut Generator) -> AnyTensor {
    let mut data = vec![0.0; numbers(like).len()];
    generator.fill_uniform(&mut data, -1.0, 1.0);
    tensor_like(like, &data)
}
