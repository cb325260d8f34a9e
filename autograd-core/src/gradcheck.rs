//! A checker of gradients: backward against finite differences.
//!
//! Along a direction `d` the slope of `f` is `(f(x + h d) - f(x - h d)) / 2h`, and by backward it is
//! the gradient times `d`. Directions are random, over all inputs together and over each alone;
//! small inputs are tried element by element too.

use crate::engine::{GradOptions, grad_with};
use crate::error::{Error, Result};
use crate::graph::Tensor;
use crate::random::Generator;

/// The step, where numbers are about 1: the cube root of the precision of `f64`.
const STEP: f64 = 6e-6;
/// What the two slopes may differ by, as a part of the sum of the gradient's parts in them.
const TOLERANCE: f64 = 1e-5;
/// Random directions for all inputs together, and for each alone.
const DIRECTIONS: usize = 3;
/// Inputs with no more elements than this are tried element by element.
const FEW: usize = 64;

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
/// [`Error::GradientWrong`] names the input and the direction and gives both numbers; also what
/// the backward of `f` may return.
pub fn gradcheck(f: impl Fn(&[Tensor<f64>]) -> Tensor<f64>, inputs: &[Tensor<f64>]) -> Result<()> {
    check("gradcheck", |inputs| Ok(f(inputs)), inputs)
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
    let leaves = leaves(inputs);
    let seed = random(f(&leaves).shape(), &mut Generator::new(3));
    let all: Vec<Tensor<f64>> = leaves.into_iter().chain([seed]).collect();
    let first = |all: &[Tensor<f64>]| {
        let Some((seed, inputs)) = all.split_last() else {
            unreachable!("the seed is the last of them");
        };
        let options = GradOptions::new()
            .seeds(vec![Some(seed.clone())])
            .create_graph(true)
            .allow_unused(true);
        let refs: Vec<&Tensor<f64>> = inputs.iter().collect();
        let mut generator = Generator::new(4);
        let mut sum = Tensor::from(0.0);
        if !refs.is_empty() {
            for grad in grad_with(&[&f(inputs)], &refs, options)?.into_iter().flatten() {
                let weights = random(grad.shape(), &mut generator);
                sum += (grad * weights).sum();
            }
        }
        Ok(sum)
    };
    check("gradgradcheck", first, &all)
}

/// Tensors of their own, outside any graph, that want a gradient. The layout stays.
fn leaves(inputs: &[Tensor<f64>]) -> Vec<Tensor<f64>> {
    inputs
        .iter()
        .map(|input| {
            let leaf = input.alias();
            leaf.set_stop_gradient(false);
            leaf
        })
        .collect()
}

fn random(shape: &[usize], generator: &mut Generator) -> Tensor<f64> {
    let mut data = vec![0.0; shape.iter().product()];
    generator.fill_uniform(&mut data, -1.0, 1.0);
    Tensor::from_vec(shape, data).unwrap_or_else(|_| unreachable!("as many as the shape has"))
}

/// The point a function is checked at, with the gradient that backward gives there.
struct Point<F> {
    op: &'static str,
    f: F,
    inputs: Vec<Vec<f64>>,
    shapes: Vec<Vec<usize>>,
    /// What the output is contracted with.
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

/// A slope by backward and by differences.
struct Slopes {
    backward: f64,
    differences: f64,
    agree: bool,
}

fn check<F>(op: &'static str, f: F, inputs: &[Tensor<f64>]) -> Result<()>
where
    F: Fn(&[Tensor<f64>]) -> Result<Tensor<f64>>,
{
    let point = Point::new(op, f, inputs)?;
    let mut generator = Generator::new(2);
    // Each input alone first, so that a wrong one is named.
    for (i, input) in point.inputs.iter().enumerate() {
        if input.len() <= FEW {
            (0..input.len()).try_for_each(|element| point.require(&point.element(i, element)))?;
        }
        for n in 0..DIRECTIONS {
            let mut parts = point.still();
            generator.fill_uniform(&mut parts[i], -1.0, 1.0);
            let name = format!("input {i}, random direction {n}");
            let direction = Direction { name, parts };
            point.require_or_locate(i, &direction)?;
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

impl<F: Fn(&[Tensor<f64>]) -> Result<Tensor<f64>>> Point<F> {
    fn new(op: &'static str, f: F, inputs: &[Tensor<f64>]) -> Result<Self> {
        let leaves = leaves(inputs);
        let output = f(&leaves)?;
        let cotangent = random(output.shape(), &mut Generator::new(1));
        let options = GradOptions::new().seeds(vec![Some(cotangent.clone())]).allow_unused(true);
        let refs: Vec<&Tensor<f64>> = leaves.iter().collect();
        let grads = match refs.is_empty() {
            true => Vec::new(),
            false => grad_with(&[&output], &refs, options)?,
        };
        let grads = grads.iter().zip(&leaves).map(|(grad, leaf)| match grad {
            Some(grad) => grad.to_vec(),
            None => vec![0.0; leaf.len()],
        });
        let grads = grads.collect();
        let inputs: Vec<Vec<f64>> = leaves.iter().map(Tensor::to_vec).collect();
        let largest = |x: &Vec<f64>| x.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        let steps = inputs.iter().map(|x| STEP * largest(x)).collect();
        let shapes = leaves.iter().map(|leaf| leaf.shape().to_vec()).collect();
        Ok(Self { op, f, inputs, shapes, cotangent: cotangent.to_vec(), grads, steps })
    }

    /// No direction at all.
    fn still(&self) -> Vec<Vec<f64>> {
        self.inputs.iter().map(|input| vec![0.0; input.len()]).collect()
    }

    fn element(&self, input: usize, element: usize) -> Direction {
        let mut parts = self.still();
        parts[input][element] = 1.0;
        let mut rest = element;
        let mut position: Vec<usize> = Vec::new();
        for n in self.shapes[input].iter().rev() {
            position.insert(0, rest % n);
            rest /= n;
        }
        Direction { name: format!("input {input}, element {position:?}"), parts }
    }

    /// The contracted output at `x + factor d`, and the sum of its parts without their signs.
    fn at(&self, direction: &Direction, factor: f64) -> Result<(f64, f64)> {
        let moved = self.inputs.iter().zip(&direction.parts).zip(&self.steps).zip(&self.shapes);
        let moved = moved.map(|(((x, d), step), shape)| {
            let data = x.iter().zip(d).map(|(x, d)| x + factor * step * d).collect();
            Tensor::from_vec(&shape[..], data)
        });
        let output = (self.f)(&leaves(&moved.collect::<Result<Vec<_>>>()?))?.to_vec();
        let parts = || output.iter().zip(&self.cotangent).map(|(y, v)| y * v);
        Ok((parts().sum(), parts().map(f64::abs).sum()))
    }

    fn slopes(&self, direction: &Direction) -> Result<Slopes> {
        // Slopes count in steps of each input, so that all inputs move as far as they can bear.
        let parts = || {
            let parts = self.grads.iter().zip(&direction.parts).zip(&self.steps);
            parts.flat_map(|((g, d), step)| g.iter().zip(d).map(move |(g, d)| g * d * step / STEP))
        };
        let backward: f64 = parts().filter(|part| *part != 0.0).sum();
        let ((after, size), (before, _)) = (self.at(direction, 1.0)?, self.at(direction, -1.0)?);
        let differences = (after - before) / (2.0 * STEP);
        let noise = 16.0 * f64::EPSILON * size / STEP;
        let scale: f64 = parts().map(f64::abs).sum();
        let agree = (backward - differences).abs() <= TOLERANCE * scale + noise + 1e-8;
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
            for element in 0..self.inputs[input].len().min(16 * FEW) {
                self.require(&self.element(input, element))?;
            }
        }
        wrong
    }

    /// Whether the slopes on both sides stay apart when the step is made smaller.
    fn is_kink(&self, direction: &Direction) -> Result<bool> {
        let (middle, _) = self.at(direction, 0.0)?;
        let gap = |factor: f64| -> Result<f64> {
            let (after, _) = self.at(direction, factor)?;
            let (before, _) = self.at(direction, -factor)?;
            Ok((after - 2.0 * middle + before).abs() / (factor * STEP))
        };
        let (wide, narrow) = (gap(1.0)?, gap(0.1)?);
        Ok(wide > 1e-3 && narrow > 0.5 * wide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Keep, record};
    use std::panic::Location;

    fn random_input(shape: &[usize]) -> Tensor<f64> {
        random(shape, &mut Generator::new(7))
    }

    /// The sine with a rule that is off by a factor, and its own second derivative.
    fn sine_off_by(x: &Tensor<f64>, factor: f64) -> Tensor<f64> {
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
}
