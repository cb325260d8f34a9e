//! A checker of gradients: backward against finite differences.
//!
//! Along a direction `d` the slope of `f` is `(f(x + h d) - f(x - h d)) / 2h`, and by backward it is
//! the gradient times `d`. Directions are random, over all inputs together and over each alone, and
//! along the gradient itself, where nothing cancels; small inputs are tried element by element too.

mod forward;

pub use forward::jvpcheck;

use crate::array::DType;
use crate::engine::{BackwardOptions, grad_any};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Tensor};
use crate::ops::Float;
use crate::random::Generator;

/// Random directions for all inputs together, and for each alone.
const DIRECTIONS: usize = 3;
/// Inputs with no more elements than this are tried element by element.
const FEW: usize = 64;

/// What differences can tell with numbers of one precision.
#[derive(Clone, Copy)]
struct Precision {
    epsilon: f64,
    /// The step, where numbers are about 1: the cube root of the precision.
    step: f64,
    /// What the two slopes may differ by, as a part of the sum of the gradient's parts in them.
    tolerance: f64,
}

const DOUBLE: Precision = Precision { epsilon: f64::EPSILON, step: 6e-6, tolerance: 1e-5 };
const SINGLE: Precision = Precision { epsilon: f32::EPSILON as f64, step: 5e-3, tolerance: 3e-4 };

/// Checks the gradients of `f` at `inputs` against finite differences.
///
/// `f` must give the same result for the same inputs; it may return any shape (what is checked is
/// the gradient of the output times fixed random numbers). The gradients of all inputs are checked,
/// whatever their `stop_gradient`; an input that `f` does not use has gradient 0. Inputs are not
/// changed and their layout is kept. The check draws no numbers from the process-wide generator, so
/// it is the same in every run.
///
/// A rule that is wrong by 0.1 % is found. Where `f` has a kink or a jump, as `relu` has at 0,
/// differences give another slope than any rule; the error then says that `f` is not differentiable
/// there. (`abs` at 0 passes: its rule gives the mean of both sides, as differences do.)
///
/// For other element types see [`gradcheck_any`].
///
/// ```
/// use autograd_core::{Tensor, gradcheck};
///
/// let (x, w) = (Tensor::randn([2, 3]), Tensor::randn([3, 4]));
/// gradcheck(|t| t[0].matmul(&t[1]).tanh(), &[x, w])?;
///
/// let error = gradcheck(|t| t[0].relu(), &[Tensor::from([1.0, 0.0])]).unwrap_err();
/// assert!(error.to_string().contains("input 0, element [1]"));
/// assert!(error.to_string().contains("not differentiable here"));
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::GradientWrong`] and, where an op of `f` has a `fn jvp`, [`Error::JvpWrong`] name the
/// input and the direction and give both numbers;
/// [`Error::Unsupported`] where two runs of `f` differ; also what the backward of `f` may return.
pub fn gradcheck(f: impl Fn(&[Tensor<f64>]) -> Tensor<f64>, inputs: &[Tensor<f64>]) -> Result<()> {
    gradcheck_any(|inputs| f(&typed(inputs)).into(), &erased(inputs))?;
    forward::check_where_written("gradcheck", &f, inputs)
}

/// Checks the second derivatives of `f` at `inputs` against finite differences of the first ones,
/// with respect to the inputs and to the gradient that the output is given.
///
/// Check the first ones with [`gradcheck`]: this takes them as they are.
///
/// ```
/// use autograd_core::{Tensor, gradgradcheck};
///
/// gradgradcheck(|t| t[0].sin() * &t[1], &[Tensor::randn([3]), Tensor::randn([2, 3])])?;
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// As [`gradcheck`]; the input after the last is the output's gradient.
pub fn gradgradcheck(
    f: impl Fn(&[Tensor<f64>]) -> Tensor<f64>,
    inputs: &[Tensor<f64>],
) -> Result<()> {
    gradgradcheck_any(|inputs| f(&typed(inputs)).into(), &erased(inputs))
}

/// [`gradcheck`] for inputs of any element types: `f32` and `f64` are checked, each with steps and
/// tolerances that suit it, and integers and bools are constants.
///
/// Differences of `f32` are coarse: a rule wrong by 0.1 % is found where the numbers on the way are
/// not much greater than the result.
///
/// ```
/// use autograd_core::{AnyTensor, Tensor, gradcheck_any};
///
/// let x = Tensor::from([[0.5_f32, -1.0], [2.0, 0.25]]);
/// let index = Tensor::from([1_i64, 0, 1]);
/// let select = |t: &[AnyTensor]| match t {
///     [AnyTensor::Float32(x), AnyTensor::Int64(index)] => x.index_select(0, index).exp().into(),
///     _ => unreachable!("as they were given"),
/// };
/// gradcheck_any(select, &[x.into(), index.into()])?;
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// As [`gradcheck`]; [`Error::Unsupported`] too for a result without a gradient.
pub fn gradcheck_any(f: impl Fn(&[AnyTensor]) -> AnyTensor, inputs: &[AnyTensor]) -> Result<()> {
    check("gradcheck", |inputs| Ok(vec![f(inputs)]), inputs)
}

/// [`gradgradcheck`] for inputs of any element types; see [`gradcheck_any`].
///
/// # Errors
///
/// As [`gradcheck_any`]; the input after the last is the output's gradient.
pub fn gradgradcheck_any(
    f: impl Fn(&[AnyTensor]) -> AnyTensor,
    inputs: &[AnyTensor],
) -> Result<()> {
    let output = f(&leaves(inputs));
    require_float("gradgradcheck", &output)?;
    let seed = random(&output, &mut Generator::new(3));
    let all: Vec<AnyTensor> = inputs.iter().cloned().chain([seed]).collect();
    let first = |all: &[AnyTensor]| {
        let Some((seed, inputs)) = all.split_last() else {
            unreachable!("the seed is the last of them");
        };
        let floats: Vec<AnyTensor> = inputs.iter().filter(|x| is_float(x)).cloned().collect();
        if floats.is_empty() {
            return Ok(Vec::new());
        }
        let options = BackwardOptions::new().create_graph(true);
        let grads = grad_any(&[f(inputs)], &floats, &[Some(seed.clone())], options)?;
        let zeros = |x: &AnyTensor| tensor_like(x, &vec![0.0; numbers(x).len()]);
        let grads = grads.into_iter().zip(&floats);
        Ok(grads.map(|(grad, x)| grad.unwrap_or_else(|| zeros(x))).collect())
    };
    check("gradgradcheck", first, &all)
}

fn erased(inputs: &[Tensor<f64>]) -> Vec<AnyTensor> {
    inputs.iter().map(|x| x.clone().into()).collect()
}

fn typed(inputs: &[AnyTensor]) -> Vec<Tensor<f64>> {
    inputs.iter().filter_map(AnyTensor::downcast_ref).cloned().collect()
}

fn is_float(tensor: &AnyTensor) -> bool {
    matches!(tensor.dtype(), DType::Float32 | DType::Float64)
}

fn require_float(op: &'static str, output: &AnyTensor) -> Result<()> {
    if is_float(output) {
        return Ok(());
    }
    let why = format!("the function gives a tensor of {}, without a gradient", output.dtype());
    Err(Error::Unsupported { op, why })
}

/// Tensors of their own, outside any graph, that want a gradient if they can have one. The layout
/// stays.
fn leaves(inputs: &[AnyTensor]) -> Vec<AnyTensor> {
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
fn numbers(tensor: &AnyTensor) -> Vec<f64> {
    match tensor {
        AnyTensor::Float32(t) => t.to_vec().into_iter().map(f64::from).collect(),
        AnyTensor::Float64(t) => t.to_vec(),
        _ => Vec::new(),
    }
}

/// Numbers, rounded to the element type of `like`, in its shape.
fn tensor_like(like: &AnyTensor, data: &[f64]) -> AnyTensor {
    fn make<T: Float>(like: &Tensor<T>, data: &[f64]) -> AnyTensor {
        let data = data.iter().map(|&x| T::from_f64(x)).collect();
        match Tensor::from_vec(like.shape(), data) {
            Ok(tensor) => tensor.into(),
            Err(_) => unreachable!("as many as the shape has"),
        }
    }
    match like {
        AnyTensor::Float32(t) => make(t, data),
        AnyTensor::Float64(t) => make(t, data),
        constant => constant.clone(),
    }
}

fn random(like: &AnyTensor, generator: &mut Generator) -> AnyTensor {
    let mut data = vec![0.0; numbers(like).len()];
    generator.fill_uniform(&mut data, -1.0, 1.0);
    tensor_like(like, &data)
}

/// The point a function is checked at, with the gradient that backward gives there.
struct Point<F> {
    op: &'static str,
    f: F,
    inputs: Vec<AnyTensor>,
    precision: Precision,
    /// What the outputs are contracted with, one after the other.
    cotangent: Vec<f64>,
    grads: Vec<Vec<f64>>,
    /// The steps, one for each input.
    steps: Vec<f64>,
}

/// A direction that moves one input, or all together.
struct Direction {
    name: String,
    parts: Vec<Vec<f64>>,
}

/// What was found at a place: the numbers of the inputs, as they were rounded, and of the outputs.
struct Found {
    inputs: Vec<Vec<f64>>,
    outputs: Vec<f64>,
}

/// A slope by backward and by differences.
struct Slopes {
    backward: f64,
    differences: f64,
    agree: bool,
}

fn check<F>(op: &'static str, f: F, inputs: &[AnyTensor]) -> Result<()>
where
    F: Fn(&[AnyTensor]) -> Result<Vec<AnyTensor>>,
{
    let point = Point::new(op, f, inputs)?;
    let mut generator = Generator::new(2);
    // Each input alone first, so that a wrong one is named.
    for (i, grad) in point.grads.iter().enumerate() {
        if grad.len() <= FEW {
            (0..grad.len()).try_for_each(|element| point.require(&point.element(i, element)))?;
        }
        for n in 0..=DIRECTIONS {
            let mut parts = point.still();
            generator.fill_uniform(&mut parts[i], -1.0, 1.0);
            let mut name = format!("input {i}, random direction {n}");
            if n == DIRECTIONS {
                parts[i].iter_mut().zip(grad).for_each(|(d, g)| *d = d.copysign(*g));
                name = format!("input {i}, along the gradient");
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

impl<F: Fn(&[AnyTensor]) -> Result<Vec<AnyTensor>>> Point<F> {
    fn new(op: &'static str, f: F, inputs: &[AnyTensor]) -> Result<Self> {
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
        Ok(Self { op, f, inputs: inputs.to_vec(), precision, cotangent, grads, steps })
    }

    /// No direction at all.
    fn still(&self) -> Vec<Vec<f64>> {
        self.grads.iter().map(|grad| vec![0.0; grad.len()]).collect()
    }

    fn element(&self, input: usize, element: usize) -> Direction {
        let mut parts = self.still();
        parts[input][element] = 1.0;
        let mut rest = element;
        let mut position: Vec<usize> = Vec::new();
        for n in self.inputs[input].shape().iter().rev() {
            position.insert(0, rest % n);
            rest /= n;
        }
        Direction { name: format!("input {input}, element {position:?}"), parts }
    }

    /// What there is at `x + factor d`.
    fn at(&self, direction: &Direction, factor: f64) -> Result<Found> {
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
        let Precision { epsilon, step, tolerance } = self.precision;
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
            op: self.op,
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
            for element in 0..self.grads[input].len().min(16 * FEW) {
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
    let floats: Vec<AnyTensor> = leaves.iter().filter(|x| is_float(x)).cloned().collect();
    let mut grads = Vec::new().into_iter();
    if !floats.is_empty() && !outputs.is_empty() {
        let seeds: Vec<_> = cotangents.iter().cloned().map(Some).collect();
        grads = grad_any(&outputs, &floats, &seeds, BackwardOptions::new())?.into_iter();
    }
    let grad = |leaf: &AnyTensor| match is_float(leaf).then(|| grads.next().flatten()).flatten() {
        Some(grad) => numbers(&grad),
        None => vec![0.0; numbers(leaf).len()],
    };
    let grads = leaves.iter().map(grad).collect();
    Ok((outputs, cotangents, grads))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Keep, record};
    use std::cell::Cell;
    use std::panic::Location;

    fn random_data<T: Float>(shape: &[usize]) -> Tensor<T> {
        let mut data = vec![0.0; shape.iter().product()];
        Generator::new(7).fill_uniform(&mut data, -1.0, 1.0);
        Tensor::from_vec(shape, data.into_iter().map(T::from_f64).collect()).unwrap()
    }

    fn random_input(shape: &[usize]) -> Tensor<f64> {
        random_data(shape)
    }

    /// The sine with a rule that is off by a factor, and its own second derivative.
    fn sine_off_by<T: Float>(x: &Tensor<T>, factor: f64) -> Tensor<T> {
        if x.stop_gradient() {
            return x.sin();
        }
        let value = x.detach().sin().read().into_owned();
        let state = (crate::graph::Plain(factor), Keep::input(0, x));
        record("sine", Location::caller(), [x], value, state, |(factor, x), dy, _| {
            Ok([Some(dy * x.cos() * factor)])
        })
    }

    #[test]
    fn right_rules_pass() {
        let inputs = [random_input(&[3, 4]), random_input(&[4])];
        gradcheck(|t| (&t[0] * &t[1]).exp() / (t[1].square() + 1.0), &inputs).unwrap();
        gradgradcheck(|t| (&t[0] * &t[1]).exp() / (t[1].square() + 1.0), &inputs).unwrap();
        gradcheck(|t| sine_off_by(&t[0], 1.0), &inputs[..1]).unwrap();
    }

    #[test]
    fn a_rule_wrong_by_a_thousandth_does_not() {
        for shape in [&[][..], &[1], &[3, 4], &[50, 40]] {
            for factor in [1.001, 0.999] {
                let error = gradcheck(
                    |t| sine_off_by(&t[1], factor),
                    &[Tensor::from(0.0), random_input(shape)],
                );
                let Err(Error::GradientWrong { direction, backward, differences, .. }) = error
                else {
                    panic!("{shape:?}, {factor}: {error:?}");
                };
                assert!(direction.starts_with("input 1"), "{direction}");
                assert!((backward / differences - factor).abs() < 1e-4, "{backward} {differences}");
            }
        }
    }

    #[test]
    fn one_wrong_element_is_found_and_named() {
        let f = |t: &[Tensor<f64>]| {
            let right = t[0].sin();
            let wrong = sine_off_by(&t[0], 1.001);
            let mask = Tensor::<f64>::eye(5).narrow(0, 3, 1).gt_scalar(0.5);
            mask.where_else(&wrong, &right)
        };
        let error = gradcheck(f, &[random_input(&[1, 5])]).unwrap_err();
        assert!(error.to_string().contains("input 0, element [0, 3]"), "{error}");
    }

    #[test]
    fn a_wrong_second_derivative_is_found() {
        // First order is right; the factor of the rule is a constant to the second.
        fn half_right(x: &Tensor<f64>) -> Tensor<f64> {
            let value = x.detach().sin().read().into_owned();
            record("sine", Location::caller(), [x], value, Keep::input(0, x), |x, dy, _| {
                Ok([Some(dy * x.detach().cos())])
            })
        }
        gradcheck(|t| half_right(&t[0]), &[random_input(&[4])]).unwrap();
        let error = gradgradcheck(|t| half_right(&t[0]), &[random_input(&[4])]).unwrap_err();
        assert!(error.to_string().starts_with("gradgradcheck: input 0"), "{error}");
    }

    #[test]
    fn a_kink_is_told_from_a_wrong_rule() {
        let kink =
            |f: fn(&[Tensor<f64>]) -> Tensor<f64>, at: f64| match gradcheck(f, &[Tensor::from(at)])
            {
                Err(Error::GradientWrong { not_differentiable, .. }) => Some(not_differentiable),
                other => {
                    other.unwrap();
                    None
                }
            };
        assert_eq!(kink(|t| t[0].relu(), 0.0), Some(true));
        assert_eq!(kink(|t| t[0].floor(), 1.0), Some(true));
        assert_eq!(kink(|t| t[0].relu(), 0.5), None);
        assert_eq!(kink(|t| t[0].abs(), 0.0), None);
        assert_eq!(kink(|t| sine_off_by(&t[0], 1.001), 0.5), Some(false));
    }

    #[test]
    fn what_is_not_used_has_no_gradient() {
        let inputs = [random_input(&[2]), random_input(&[3])];
        gradcheck(|t| t[0].exp(), &inputs).unwrap();
        gradgradcheck(|t| t[0].exp(), &inputs).unwrap();
        gradcheck(|_| Tensor::from(1.0), &inputs).unwrap();
        gradgradcheck(|_| Tensor::from(1.0), &inputs).unwrap();
        // A graph that is cut loses a gradient that differences find.
        assert!(gradcheck(|t| t[0].detach().exp(), &inputs).is_err());
        gradcheck(|t| t[0].exp(), &[Tensor::zeros([0, 3])]).unwrap();
        gradcheck(|_| Tensor::from(1.0), &[]).unwrap();
    }

    fn single(t: &AnyTensor) -> &Tensor<f32> {
        t.downcast_ref().expect("f32")
    }

    #[test]
    fn single_precision_is_checked_as_sharply() {
        for shape in [&[][..], &[1], &[3, 4], &[50, 40]] {
            let input = || vec![Tensor::from(0.5_f64).into(), random_data::<f32>(shape).into()];
            let sine = |factor| move |t: &[AnyTensor]| sine_off_by(single(&t[1]), factor).into();
            gradcheck_any(sine(1.0), &input()).unwrap();
            gradgradcheck_any(sine(1.0), &input()).unwrap();
            for factor in [1.001, 0.999] {
                let error = gradcheck_any(sine(factor), &input()).unwrap_err();
                assert!(error.to_string().starts_with("gradcheck: input 1"), "{error}");
                let Error::GradientWrong { not_differentiable, .. } = error else {
                    panic!("{error}")
                };
                assert!(!not_differentiable);
            }
        }
        let relu = |t: &[AnyTensor]| single(&t[0]).relu().into();
        gradcheck_any(relu, &[Tensor::from([0.5_f32, -0.5]).into()]).unwrap();
        let error = gradcheck_any(relu, &[Tensor::from([0.5_f32, 0.0]).into()]).unwrap_err();
        let kink = "input 0, element [1]";
        assert!(error.to_string().contains(kink), "{error}");
        assert!(matches!(error, Error::GradientWrong { not_differentiable: true, .. }), "{error}");
    }

    #[test]
    fn right_rules_of_single_precision_pass() {
        let x: AnyTensor = random_data::<f32>(&[4, 3]).transpose().into();
        let w: AnyTensor = random_data::<f32>(&[4, 5]).into();
        let checks: [(&str, fn(&Tensor<f32>, &Tensor<f32>) -> Tensor<f32>); 8] = [
            ("matmul", |x, w| x.matmul(w).tanh()),
            ("softmax", |x, w| x.softmax(1).matmul(w)),
            ("log_softmax", |x, _| x.log_softmax(0)),
            ("exp", |x, w| x.sum_axes_keep(&[1]).exp() * w.narrow(0, 0, 3)),
            ("sqrt", |x, _| (x.square() + 1.0).sqrt()),
            ("mean", |x, _| x.gelu().mean()),
            ("quotient", |x, w| x.sigmoid() / (w.square().sum() + 1.0)),
            ("max", |x, _| x.max_axes(&[0])),
        ];
        for (name, f) in checks {
            let f = |t: &[AnyTensor]| f(single(&t[0]), single(&t[1])).into();
            let inputs = [x.clone(), w.clone()];
            if let Err(error) =
                gradcheck_any(f, &inputs).and_then(|()| gradgradcheck_any(f, &inputs))
            {
                panic!("{name}: {error}");
            }
        }
    }

    #[test]
    fn integers_are_constants_and_have_no_gradient() {
        let index = Tensor::from([2_i64, 0, 2]);
        let select = |t: &[AnyTensor]| match t {
            [AnyTensor::Float64(x), AnyTensor::Int64(index)] => {
                x.index_select(0, index).exp().into()
            }
            _ => panic!("{t:?}"),
        };
        let inputs = [random_input(&[3, 2]).into(), index.clone().into()];
        gradcheck_any(select, &inputs).unwrap();
        gradgradcheck_any(select, &inputs).unwrap();
        let error = gradcheck_any(|t| t[1].clone(), &inputs).unwrap_err();
        let end = "the function gives a tensor of int64, without a gradient";
        assert!(error.to_string().ends_with(end), "{error}");
        gradcheck_any(|_| Tensor::from(1.0).into(), &[index.into()]).unwrap();
    }

    #[test]
    fn a_function_that_changes_is_refused() {
        let calls = Cell::new(0.0);
        let next = |by: f64| {
            calls.set(calls.get() + by);
            calls.get()
        };
        let error = gradcheck(|t| &t[0] * next(1.0), &[random_input(&[2])]).unwrap_err();
        assert!(error.to_string().contains("gives other results"), "{error}");
        let rule = |t: &[Tensor<f64>]| sine_off_by(&t[0], next(1.0));
        let error = gradcheck(rule, &[random_input(&[2])]).unwrap_err();
        assert!(error.to_string().contains("gives other gradients"), "{error}");
    }

    #[test]
    fn a_backward_that_forgets_the_gradient_it_gets_is_found() {
        fn forgets(x: &Tensor<f64>) -> Tensor<f64> {
            let value = x.detach().sin().read().into_owned();
            record("sine", Location::caller(), [x], value, Keep::input(0, x), |x, _, _| {
                Ok([Some(x.cos())])
            })
        }
        assert!(gradcheck(|t| forgets(&t[0]), &[random_input(&[3])]).is_err());
    }
}
