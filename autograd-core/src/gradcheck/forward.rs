//! Forward mode against finite differences, and against backward by the dot-product identity.

use super::point::{DIRECTIONS, DOUBLE, MAX_EACH, Precision, SINGLE, Subject, leaves, position};
use super::{erased, gradcheck_any, typed};
use crate::array::DType;
use crate::engine::has_jvp;
use crate::error::{Error, Result};
use crate::functional::{jvp, vjp};
use crate::graph::{AnyTensor, Tensor, for_any};
use crate::random::Generator;

/// Checks forward mode through `f` at `inputs`: the slope by [`jvp`](crate::jvp()) against finite
/// differences, and, much closer, against backward (the product of a cotangent with the slope is
/// that of the gradient with the tangent).
///
/// `f` is as in [`gradcheck()`](crate::gradcheck()), which does this too where an op of `f` has a
/// `fn jvp`, and which is run first here.
///
/// ```
/// use autograd_core::prelude::*;
/// use autograd_core::jvpcheck;
///
/// #[py_layer]
/// impl Square {
///     type Saved = Tensor<f64>;
///
///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         ctx.save_for_backward(x);
///         x * x
///     }
///
///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
///         dy * ctx.saved_tensor() * 2.0
///     }
///
///     fn jvp(_ctx: &JvpContext<Self>, x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
///         dx * x * 2.002
///     }
/// }
///
/// let error = jvpcheck(|t| Square::apply(&t[0]), &[Tensor::from([1.0, 2.0])]).unwrap_err();
/// assert!(error.to_string().contains("input 0, element [0]"));
/// jvpcheck(|t| t[0].sin() * &t[1], &[Tensor::randn([3]), Tensor::randn([2, 3])])?;
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::JvpWrong`] names the input and the direction and gives both numbers; also what
/// [`gradcheck()`](crate::gradcheck()) and [`jvp`](crate::jvp()) may return.
pub fn jvpcheck(f: impl Fn(&[Tensor<f64>]) -> Tensor<f64>, inputs: &[Tensor<f64>]) -> Result<()> {
    gradcheck_any(|inputs| f(&typed(inputs)).into(), &erased(inputs))?;
    check(&Subject::numbered("jvpcheck", inputs.len()), DOUBLE, &f, inputs)
}

/// Checks forward mode where an op of `f` has a `jvp` of the user's. Numbers are given and taken as
/// `f64`, so that there may be inputs of both precisions.
pub(super) fn check_where_written(
    subject: &Subject,
    f: impl Fn(&[AnyTensor]) -> Vec<AnyTensor>,
    inputs: &[AnyTensor],
) -> Result<()> {
    let outputs = f(&leaves(inputs));
    if !outputs.iter().any(|y| for_any!(y, y => has_jvp(&y.edge()))) {
        return Ok(());
    }
    let single = |t: &AnyTensor| t.dtype() == DType::Float32;
    let precision = if inputs.iter().chain(&outputs).any(single) { SINGLE } else { DOUBLE };
    let floats: Vec<usize> = (0..inputs.len()).filter(|&i| inputs[i].dtype().is_float()).collect();
    let names = floats.iter().map(|&i| subject.names[i].clone()).collect();
    let doubles: Vec<_> = floats.iter().map(|&i| doubled(&inputs[i])).collect();
    let joined = |t: &[Tensor<f64>]| {
        let mut all = inputs.to_vec();
        for (&i, t) in floats.iter().zip(t) {
            all[i] = if single(&all[i]) { t.cast::<f32>().into() } else { t.clone().into() };
        }
        let outputs: Vec<_> = f(&all).iter().map(|y| doubled(y).flatten()).collect();
        Tensor::concat(&outputs.iter().collect::<Vec<_>>(), 0)
    };
    match check(&Subject { op: subject.op, names }, precision, &joined, &doubles) {
        // Some op beside has no forward mode, so there is none to check.
        Err(Error::Unsupported { .. }) => Ok(()),
        checked => checked,
    }
}

fn doubled(tensor: &AnyTensor) -> Tensor<f64> {
    match tensor {
        AnyTensor::Float32(t) => t.cast(),
        AnyTensor::Float64(t) => t.clone(),
        other => unreachable!("{} is no float type", other.dtype()),
    }
}

/// Each input alone, the others without a tangent, and all together.
fn check(
    subject: &Subject,
    precision: Precision,
    f: &impl Fn(&[Tensor<f64>]) -> Tensor<f64>,
    inputs: &[Tensor<f64>],
) -> Result<()> {
    let inputs: Vec<Tensor<f64>> = inputs.iter().map(Tensor::alias).collect();
    let check = Check { op: subject.op, precision, f, inputs: &inputs };
    let mut generator = Generator::new(4);
    for (i, input) in inputs.iter().enumerate() {
        let name = &subject.names[i];
        for n in 0..DIRECTIONS {
            let along = random(input.shape(), &mut generator);
            let wrong = check.require(&[i], &[along], || format!("{name}, random direction {n}"));
            if wrong.is_err() {
                for element in 0..input.len().min(16 * MAX_EACH) {
                    let along = filled(input.shape(), |data| data[element] = 1.0);
                    let position = position(input.shape(), element);
                    check.require(&[i], &[along], || format!("{name}, element {position:?}"))?;
                }
            }
            wrong?;
        }
    }
    let all: Vec<usize> = (0..inputs.len()).collect();
    for n in 0..DIRECTIONS {
        let along: Vec<_> = inputs.iter().map(|x| random(x.shape(), &mut generator)).collect();
        check.require(&all, &along, || format!("all inputs, random direction {n}"))?;
    }
    Ok(())
}

fn random(shape: &[usize], generator: &mut Generator) -> Tensor<f64> {
    filled(shape, |data| generator.fill_uniform(data, -1.0, 1.0))
}

fn filled(shape: &[usize], fill: impl FnOnce(&mut [f64])) -> Tensor<f64> {
    let mut data = vec![0.0; shape.iter().product()];
    fill(&mut data);
    Tensor::from_vec(shape, data).unwrap_or_else(|_| unreachable!("as many as the shape has"))
}

struct Check<'a, F> {
    op: &'static str,
    precision: Precision,
    f: &'a F,
    inputs: &'a [Tensor<f64>],
}

impl<F: Fn(&[Tensor<f64>]) -> Tensor<f64>> Check<'_, F> {
    /// `f` of the moving inputs, with the others as they are.
    fn call(&self, moving: &[usize], moved: &[Tensor<f64>]) -> Tensor<f64> {
        let mut all = self.inputs.to_vec();
        moving.iter().zip(moved).for_each(|(&i, moved)| all[i] = moved.clone());
        (self.f)(&all)
    }

    /// The slopes along a direction of some inputs agree.
    fn require(
        &self,
        moving: &[usize],
        along: &[Tensor<f64>],
        name: impl Fn() -> String,
    ) -> Result<()> {
        let Precision { epsilon, step, tolerance, exact } = self.precision;
        let at: Vec<_> = moving.iter().map(|&i| self.inputs[i].clone()).collect();
        let (y, dy) = jvp(|t| self.call(moving, t), &at, along)?;
        let cotangent = random(y.shape(), &mut Generator::new(1));
        let contract = |y: &Tensor<f64>| -> (f64, f64) {
            let parts: Vec<f64> = (y.alias() * &cotangent).to_vec();
            (parts.iter().sum(), parts.iter().map(|part| part.abs()).sum())
        };
        let (slope, scale) = contract(&dy);
        let largest = at.iter().flat_map(Tensor::to_vec).fold(1.0, |m: f64, x| m.max(x.abs()));
        let step = step * largest;
        let moved =
            |h: f64| -> Vec<Tensor<f64>> { at.iter().zip(along).map(|(x, d)| x + d * h).collect() };
        let value = |h: f64| contract(&self.call(moving, &moved(h)));
        let ((after, size), (before, _)) = (value(step), value(-step));
        let differences = (after - before) / (2.0 * step);
        let noise = 16.0 * epsilon * size / step;
        let wrong = |expected, by, not_differentiable| {
            let (op, direction, jvp) = (self.op, name(), slope);
            Err(Error::JvpWrong { op, direction, jvp, expected, by, not_differentiable })
        };
        let (_, grads) = vjp(|t| self.call(moving, t), &at, &cotangent)?;
        let parts: Vec<f64> =
            grads.iter().zip(along).flat_map(|(g, d)| (g.alias() * d).to_vec()).collect();
        let back: f64 = parts.iter().sum();
        let back_scale: f64 = parts.iter().map(|part| part.abs()).sum();
        let bound = tolerance * (scale + back_scale) + noise + 1e-3 * tolerance;
        if (slope - differences).abs() > bound {
            // Whether the slopes on both sides stay apart when the step is made smaller.
            let (middle, _) = value(0.0);
            let gap = |h: f64| (value(h).0 - 2.0 * middle + value(-h).0).abs() / h;
            let (wide, narrow) = (gap(step), gap(0.1 * step));
            let kink = wide > 1e-3 && narrow > 0.5 * wide;
            return wrong(differences, "finite differences", kink);
        }
        if (slope - back).abs() > exact * (scale + back_scale + 1e-3) {
            return wrong(back, "backward", false);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck;

    #[test]
    fn forward_mode_of_built_in_ops_is_right() {
        let inputs =
            [random(&[3, 4], &mut Generator::new(7)), random(&[4], &mut Generator::new(8))];
        let f = |t: &[Tensor<f64>]| {
            let y = (&t[0] * &t[1]).exp() / (t[1].square() + 1.0);
            y.matmul(&t[1]).tanh() + t[0].sum()
        };
        gradcheck(f, &inputs).unwrap();
        jvpcheck(f, &inputs).unwrap();
        jvpcheck(|_| Tensor::from(1.0), &inputs).unwrap();
        jvpcheck(|t| t[0].exp(), &[Tensor::zeros([0, 3])]).unwrap();
    }

    #[test]
    fn a_kink_is_reported() {
        let error = jvpcheck(|t| t[0].relu(), &[Tensor::from([0.0])]).unwrap_err();
        assert!(error.to_string().contains("not differentiable here"), "{error}");
    }
}
