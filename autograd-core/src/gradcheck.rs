//! A checker of gradients: backward against finite differences.
//!
//! Along a direction `d`, the slope of `f` is `(f(x + h d) - f(x - h d)) / 2h`; by backward it is the
//! gradient times `d`. Directions are random, over all inputs together and over each alone, and along the
//! gradient itself, where nothing cancels; small inputs are also checked element by element.

mod compare;
pub(crate) mod exhaustive;
mod forward;
pub(crate) mod op;
mod point;
#[cfg(feature = "verify")]
mod verify;

pub use forward::jvpcheck;
pub(crate) use point::Subject;
#[cfg(feature = "verify")]
pub(crate) use verify::verify;

use crate::engine::{BackwardOptions, numbers};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Tensor, indices};
use compare::check;
use point::{Function, Precision, gradients, leaves, own_generator, random, require_float};

/// Checks the gradients of `f` at `inputs` against finite differences. `f` must return the same result for the
/// same inputs, of any shape: the gradient of the output times fixed random numbers is checked, for all inputs,
/// whatever their `stop_gradient`. The check is the same in every run. Other types: [`gradcheck_any`].
///
/// The check finds a rule that is wrong by 0.1 %, whatever the size of `f` and of the inputs: errors are compared
/// with the slopes themselves, of large and of small elements of the output separately, and with rounding. What
/// rounding hides cannot be decided and
/// passes: with `f64` a slope of less than about 1e-8 of the output for each unit of the input (or for each `|x|`,
/// if that is greater than 1), as that of `1.0 + 1e-10 * x`; check such a function without its constant.
///
/// At a kink or a jump of `f`, as `relu` has at 0, differences give another slope than any rule; the error then
/// says that `f` is not differentiable there. (`abs` at 0 passes: its rule returns the mean of both sides, as
/// differences do.)
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
/// [`GradientWrong`](crate::Error::GradientWrong) and, if an op of `f` has a `fn jvp`,
/// [`JvpWrong`](crate::Error::JvpWrong) name input and direction, with both numbers;
/// [`Unsupported`](crate::Error::Unsupported) if two runs of `f` differ; errors of the backward of `f`.
pub fn gradcheck(f: impl Fn(&[Tensor<f64>]) -> Tensor<f64>, inputs: &[Tensor<f64>]) -> Result<()> {
    gradcheck_any(|inputs| f(&typed(inputs)).into(), &erased(inputs))
}

/// Checks the second derivatives of `f` at `inputs` against finite differences of the first ones, which it
/// assumes to be right, with respect to the inputs and to the gradient of the output; that a backward which is
/// recorded gives the first ones too; and the derivatives of a `fn jvp`. Inputs may have any shapes.
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
/// As [`gradcheck`]; the input after the last is the output's gradient. [`Unsupported`](crate::Error::Unsupported)
/// also if a recorded backward gives other gradients.
pub fn gradgradcheck(
    f: impl Fn(&[Tensor<f64>]) -> Tensor<f64>,
    inputs: &[Tensor<f64>],
) -> Result<()> {
    gradgradcheck_any(|inputs| f(&typed(inputs)).into(), &erased(inputs))
}

/// [`gradcheck`] for inputs of any element types; integers and bools are constants. Differences of `f32` are
/// coarse: a rule wrong by 0.1 % is found if intermediate numbers are not much greater than the result, and slopes
/// of less than about 1e-2 of the output cannot be decided.
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
/// As [`gradcheck`]; also [`Unsupported`](crate::Error::Unsupported) for a result without a gradient.
pub fn gradcheck_any(f: impl Fn(&[AnyTensor]) -> AnyTensor, inputs: &[AnyTensor]) -> Result<()> {
    let subject = Subject::numbered("gradcheck", inputs.len());
    check_first(&subject, &|inputs| Ok(vec![f(inputs)]), inputs)
}

/// [`gradgradcheck`] for inputs of any element types; see [`gradcheck_any`].
///
/// ```
/// use autograd_core::{AnyTensor, Tensor, gradgradcheck_any};
///
/// let cube = |t: &[AnyTensor]| match t {
///     [AnyTensor::Float32(x)] => (x.square() * x).into(),
///     _ => unreachable!("as it was given"),
/// };
/// gradgradcheck_any(cube, &[Tensor::from([0.5_f32, -1.0]).into()])?;
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// As [`gradcheck_any`]; the input after the last is the output's gradient.
pub fn gradgradcheck_any(
    f: impl Fn(&[AnyTensor]) -> AnyTensor,
    inputs: &[AnyTensor],
) -> Result<()> {
    let subject = Subject::numbered("gradgradcheck", inputs.len() + 1);
    check_second(&subject, &|inputs| Ok(vec![f(inputs)]), inputs)
}

fn check_first(subject: &Subject, f: &Function<'_>, inputs: &[AnyTensor]) -> Result<()> {
    check(subject, f, inputs)?;
    forward::check_where_written(subject, f, inputs)
}

/// Checks second derivatives by differences of the first. The subject also names the outputs' gradients.
fn check_second(subject: &Subject, f: &Function<'_>, inputs: &[AnyTensor]) -> Result<()> {
    let outputs = f(&leaves(inputs))?;
    outputs.iter().try_for_each(|output| require_float(subject.op, output))?;
    let mut generator = own_generator(3);
    let seeds: Vec<_> = outputs.iter().map(|output| random(output, &mut generator)).collect();
    let first = |inputs: &[AnyTensor], seeds: &[AnyTensor], record| {
        gradients(&f(inputs)?, inputs, seeds, BackwardOptions::new().create_graph(record))
    };
    let of = |record| first(&leaves(inputs), &seeds, record);
    require_equal(subject, inputs, &outputs, [of(true)?, of(false)?])?;
    let all: Vec<AnyTensor> = inputs.iter().cloned().chain(seeds).collect();
    let recorded = |all: &[AnyTensor]| {
        let (inputs, seeds) = all.split_at(inputs.len());
        first(inputs, seeds, true)
    };
    check(subject, &recorded, &all)?;
    forward::check_second_where_written(subject, f, inputs)
}

/// Requires that a backward that is recorded, whose differences are checked, gives the gradients of one that is not.
fn require_equal(
    subject: &Subject,
    inputs: &[AnyTensor],
    outputs: &[AnyTensor],
    [recorded, plain]: [Vec<AnyTensor>; 2],
) -> Result<()> {
    let largest = |all: &[f64]| all.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let precision = Precision::of(inputs.iter().chain(outputs));
    let outputs: Vec<f64> = outputs.iter().flat_map(numbers).collect();
    let floats = inputs.iter().zip(&subject.names).filter(|(input, _)| input.dtype().is_float());
    for ((input, name), (recorded, plain)) in floats.zip(recorded.iter().zip(&plain)) {
        let (recorded, plain) = (numbers(recorded), numbers(plain));
        // Parts that cancel leave their rounding.
        let size = Some(largest(&numbers(input))).filter(|size| *size > 0.0).unwrap_or(1.0);
        let rounding = 1e3 * precision.epsilon * largest(&outputs) / size;
        let most = rounding.max(precision.tolerance * largest(&plain));
        let mut pairs = recorded.iter().zip(&plain);
        if let Some(at) = pairs.position(|(recorded, plain)| (recorded - plain).abs() > most) {
            let why = format!(
                "{name}, element {:?}: the gradient is {} by a backward that is recorded, as for second \
                 derivatives, and {} by one that is not",
                indices(input.shape(), at),
                recorded[at],
                plain[at],
            );
            return Err(Error::Unsupported { op: subject.op, why });
        }
    }
    Ok(())
}

fn erased(inputs: &[Tensor<f64>]) -> Vec<AnyTensor> {
    inputs.iter().map(|x| x.clone().into()).collect()
}

fn typed(inputs: &[AnyTensor]) -> Vec<Tensor<f64>> {
    inputs.iter().filter_map(AnyTensor::downcast_ref).cloned().collect()
}
