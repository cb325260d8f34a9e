//! How operators compute: by the eager engine's ops and rules, so that figures and derivatives are
//! the same and nothing is written twice.

use smallvec::{SmallVec, smallvec};

use super::forms::position;
use super::ir::Form;
use super::kind::{Init, Kind, Pool, Reduction};
use super::norm;
use crate::array::DType;
use crate::error::Result;
use crate::graph::{AnyTensor, Element, Tensor, for_any};
use crate::ops::{Binary, Conv2dOptions, Float, Input, Numeric, OfElements, rules};

/// What an operator is given, or computes: seldom more than four.
pub(super) type Values = SmallVec<[AnyTensor; 4]>;

/// The failing of an operator, in words.
pub(super) type Computed<T> = Result<T, String>;

/// Runs a float op on whichever of the two types a tensor has.
macro_rules! float {
    ($tensor:expr, $t:ident => $body:expr) => {
        match $tensor {
            AnyTensor::Float32($t) => AnyTensor::from($body),
            AnyTensor::Float64($t) => AnyTensor::from($body),
            other => return Err(not_numbers(&other)),
        }
    };
}

/// Runs an op on whichever number type a tensor has.
macro_rules! number {
    ($tensor:expr, $t:ident => $body:expr) => {
        match $tensor {
            AnyTensor::Float32($t) => AnyTensor::from($body),
            AnyTensor::Float64($t) => AnyTensor::from($body),
            AnyTensor::Int32($t) => AnyTensor::from($body),
            AnyTensor::Int64($t) => AnyTensor::from($body),
            AnyTensor::UInt8($t) => AnyTensor::from($body),
            other => return Err(not_numbers(&other)),
        }
    };
}

/// Runs an op on two tensors of one number type.
macro_rules! numbers {
    ($left:expr, $right:expr, ($a:ident, $b:ident) => $body:expr) => {
        match ($left, $right) {
            (AnyTensor::Float32($a), AnyTensor::Float32($b)) => AnyTensor::from($body),
            (AnyTensor::Float64($a), AnyTensor::Float64($b)) => AnyTensor::from($body),
            (AnyTensor::Int32($a), AnyTensor::Int32($b)) => AnyTensor::from($body),
            (AnyTensor::Int64($a), AnyTensor::Int64($b)) => AnyTensor::from($body),
            (AnyTensor::UInt8($a), AnyTensor::UInt8($b)) => AnyTensor::from($body),
            (other, _) => return Err(not_numbers(&other)),
        }
    };
}

#[cold]
fn not_numbers(found: &AnyTensor) -> String {
    format!("does not compute with {}", found.dtype())
}

fn message(error: crate::Error) -> String {
    error.to_string()
}

fn here() -> crate::ops::Caller {
    std::panic::Location::caller()
}

fn unary<T: Float>(op: crate::ops::Unary, x: Tensor<T>) -> Tensor<T> {
    T::unary(op, Input::Own(x), here())
}

fn binary<T: Numeric>(op: Binary, a: Tensor<T>, b: Tensor<T>) -> Computed<Tensor<T>> {
    T::binary(op, Input::Own(a), Input::Own(b), here()).map_err(message)
}

fn scalar<T: Numeric>(op: Binary, x: Tensor<T>, scalar: f64, swapped: bool) -> Tensor<T> {
    T::binary_scalar(op, Input::Own(x), T::nearest(scalar), swapped, here())
}

fn reduce<T: Numeric>(
    op: Reduction,
    x: &Tensor<T>,
    axes: &[isize],
    keep: bool,
) -> Computed<Tensor<T>> {
    match op {
        Reduction::Sum => x.try_sum(axes, keep),
        Reduction::Mean => unreachable!("means are computed of floats only"),
        Reduction::Prod => x.try_prod(axes, keep),
        Reduction::Max => x.try_max(axes, keep),
        Reduction::Min => x.try_min(axes, keep),
    }
    .map_err(message)
}

impl Kind {
    /// Computes the outputs; recorded where recording is on. Gradients are not computed here, for
    /// they need what the operator left behind.
    pub(super) fn run(&self, inputs: Values) -> Computed<Values> {
        match self {
            Self::PyFunc(function) => return function.run(inputs),
            Self::Eager(eager) => return eager.run(inputs),
            Self::Constant(tensor) => return Ok(smallvec![tensor.alias()]),
            Self::Layer(layer) => return layer.run(inputs),
            Self::Formula { op, .. } => return op.run(&inputs),
            Self::Init { init, form } => return Ok(smallvec![init.run(form)]),
            &Self::BatchNorm { momentum, eps, training } => {
                return norm::run(&inputs, [momentum, eps], training);
            }
            Self::Sum => return sum(inputs).map(|sum| smallvec![sum]),
            Self::Concat { axis } => return concat(&inputs, *axis).map(|joined| smallvec![joined]),
            // Its mask too, which a gradient may read.
            Self::Dropout { p, .. } if self.draws() => return dropout(&inputs, *p),
            _ => {}
        }
        let mut inputs = inputs.into_iter();
        let mut next = || inputs.next().ok_or_else(|| "an input is missing".to_owned());
        let x = next()?;
        let y = match self {
            Self::Unary(op) => float!(x, x => unary(*op, x)),
            Self::Binary(op) => numbers!(x, next()?, (a, b) => binary(*op, a, b)?),
            Self::Scalar { op, scalar: s, swapped } => {
                number!(x, x => scalar(*op, x, *s, *swapped))
            }
            Self::Matmul => numbers!(x, next()?, (a, b) => a.try_matmul(&b).map_err(message)?),
            Self::Reduce { op: Reduction::Mean, axes, keep } => {
                float!(x, x => x.try_mean(axes, *keep).map_err(message)?)
            }
            Self::Reduce { op, axes, keep } => number!(x, x => reduce(*op, &x, axes, *keep)?),
            Self::Softmax { axis } => float!(x, x => x.try_softmax(*axis).map_err(message)?),
            Self::LogSoftmax { axis } => float!(x, x => x.try_log_softmax(*axis).map_err(message)?),
            Self::Normalize { axes, eps } => {
                float!(x, x => x.try_normalize(axes, *eps).map_err(message)?)
            }
            Self::CrossEntropy => {
                let AnyTensor::Int64(classes) = next()? else {
                    return Err("its classes must be int64".to_owned());
                };
                float!(x, x => x.try_cross_entropy(&classes).map_err(message)?)
            }
            Self::Reshape(dims) => {
                for_any!(x, x => AnyTensor::from(x.try_reshape(lengths(dims, x.len())?).map_err(message)?))
            }
            Self::Permute(order) => {
                for_any!(x, x => AnyTensor::from(x.try_permute(order).map_err(message)?))
            }
            Self::Cast(dtype) => cast(&x, *dtype),
            Self::BroadcastTo(dims) => {
                number!(x, x => x.try_broadcast_to(whole(dims, x.shape())).map_err(message)?)
            }
            Self::Slice { axis, start, end, step } => {
                let at = position(*axis, x.shape().len())?;
                let end = end.unwrap_or(x.shape()[at]);
                for_any!(x, x => AnyTensor::from(x.try_slice_axis(*axis, *start, end, *step).map_err(message)?))
            }
            Self::Where => {
                let AnyTensor::Bool(mask) = x else {
                    return Err("its mask must be bool".to_owned());
                };
                match (next()?, next()?) {
                    (AnyTensor::Float32(a), AnyTensor::Float32(b)) => {
                        mask.try_where_else(&a, &b).map_err(message)?.into()
                    }
                    (AnyTensor::Float64(a), AnyTensor::Float64(b)) => {
                        mask.try_where_else(&a, &b).map_err(message)?.into()
                    }
                    (other, _) => return Err(not_numbers(&other)),
                }
            }
            Self::ArgMax { axis } => number!(x, x => x.try_argmax(*axis).map_err(message)?),
            Self::Compare(name) => {
                let other = next()?;
                for_any!(x, x => compare(name, &x, &other)?)
            }
            Self::IndexSelect { axis } => {
                let index = index(next()?)?;
                number!(x, x => x.try_index_select(*axis, &index).map_err(message)?)
            }
            Self::Gather { axis } => {
                let index = index(next()?)?;
                number!(x, x => x.try_gather(*axis, &index).map_err(message)?)
            }
            Self::Conv2d(options) => {
                let (weight, bias) = (next()?, inputs.next());
                let bias = bias.as_ref();
                float!(x, x => conv2d(&x, &weight, bias, *options)?)
            }
            Self::Pool2d(Pool::Max, options) => {
                float!(x, x => x.try_max_pool2d(*options).map_err(message)?)
            }
            Self::Pool2d(Pool::Average, options) => {
                float!(x, x => x.try_avg_pool2d(*options).map_err(message)?)
            }
            Self::Dropout { p, training } => {
                float!(x, x => x.try_dropout(*p, *training).map_err(message)?)
            }
            Self::FillLike(value) => fill_like(&x, *value),
            _ => return Err("does not run by itself".to_owned()),
        };
        Ok(smallvec![y])
    }

    /// What the gradients of inputs `wants` read of inputs of these forms, and then of the outputs, where a
    /// rule computes them without a record of the forward run.
    pub(super) fn reads(&self, inputs: &[&Form], wants: &[usize]) -> Option<Needs> {
        use Need::{No, Shape, Value};
        let when = |reads: bool| if reads { Value } else { Shape };
        let wanted = |input: usize| wants.contains(&input);
        Some(match self {
            Self::Unary(op) => op.handle::<f64>().reads_one()?.map(Need::of).into(),
            Self::Formula { op, .. } => op.reads(inputs)?,
            // Shapes are read, so that broadcasting can be undone.
            Self::Binary(Binary::Add | Binary::Sub) => vec![Shape, Shape],
            Self::Binary(Binary::Mul) | Self::Matmul => vec![when(wanted(1)), when(wanted(0))],
            Self::Binary(Binary::Div) => vec![when(wanted(1)), Value],
            Self::Binary(_) => vec![Value, Value],
            Self::Scalar { op, scalar, swapped } => match (op, swapped) {
                (Binary::Add | Binary::Sub | Binary::Mul, _) | (Binary::Div, false) => vec![Shape],
                (Binary::Pow, false) if *scalar == 0.0 => vec![Shape],
                _ => vec![Value],
            },
            Self::Where => vec![Value, Shape, Shape],
            Self::Cast(_) => vec![No],
            Self::Dropout { .. } if self.draws() => vec![No, No, Value],
            Self::Dropout { .. } => vec![No],
            _ => return None,
        })
    }

    /// The gradients of such an operator's inputs.
    pub(super) fn pull(&self, pull: Pull<'_>) -> Computed<Values> {
        if let (Self::Cast(_), [form], Some(Some(dy))) = (self, pull.forms, pull.dys.first()) {
            return Ok(smallvec![cast(dy, form.dtype)]);
        }
        match pull.dys.iter().flatten().next() {
            Some(AnyTensor::Float32(_)) => self.pull_typed::<f32>(pull),
            Some(AnyTensor::Float64(_)) => self.pull_typed::<f64>(pull),
            Some(other) => Err(not_numbers(other)),
            None => Err("the gradient of its output is missing".to_owned()),
        }
    }

    fn pull_typed<T: Float>(&self, pull: Pull<'_>) -> Computed<Values> {
        let Pull { inputs, outputs, dys, wants, .. } = pull;
        let input = |at: usize| typed::<T>(inputs.get(at).and_then(Option::as_ref));
        let output = || outputs.first().and_then(Option::as_ref);
        if let Self::Formula { op, .. } = self {
            return op.pull::<T>(inputs, outputs, dys, wants);
        }
        let dy = dys[0].take().and_then(AnyTensor::downcast);
        let dy: Tensor<T> = dy.ok_or("the gradient of its output is missing")?;
        let both = [wants.contains(&0), wants.contains(&1)];
        let grads = match self {
            Self::Unary(op) => {
                let saved = match op.handle::<f64>().reads_one() {
                    Some([true, _]) => Some(input(0)?),
                    Some([_, true]) => Some(typed(output())?),
                    _ => None,
                };
                [Some(rules::function(&op.handle(), dy, saved)), None]
            }
            Self::Binary(op) => {
                rules::binary(*op, input(0)?, input(1)?, dy, both).map_err(message)?
            }
            Self::Scalar { op, scalar, swapped } => {
                let s = T::nearest(*scalar);
                let [dx] =
                    rules::binary_scalar(*op, input(0)?, s, *swapped, dy).map_err(message)?;
                [dx, None]
            }
            Self::Matmul => rules::matmul(input(0)?, input(1)?, dy, both).map_err(message)?,
            Self::Dropout { .. } if self.draws() => {
                let mask = typed::<T>(outputs.get(1).and_then(Option::as_ref))?;
                [Some(rules::dropped(&dy, mask)), None]
            }
            Self::Dropout { .. } => [Some(dy), None],
            Self::Where => {
                let mask = typed::<bool>(inputs.first().and_then(Option::as_ref))?;
                let shapes = [input(1)?.shape(), input(2)?.shape()];
                let chosen = rules::choice(mask, &dy, shapes, [1, 2].map(|at| wants.contains(&at)));
                return wanted([None].into_iter().chain(chosen), wants);
            }
            _ => return Err("has no rule of this kind".to_owned()),
        };
        wanted(grads, wants)
    }
}

/// What the rule of a gradient is given.
pub(super) struct Pull<'a> {
    /// Those of the operator's inputs and outputs that it reads; where it reads a shape, a tensor of that
    /// shape.
    pub(super) inputs: &'a [Option<AnyTensor>],
    pub(super) outputs: &'a [Option<AnyTensor>],
    /// The gradients of the outputs, of which some may be absent.
    pub(super) dys: &'a mut [Option<AnyTensor>],
    /// Which inputs' gradients are asked for, and their forms.
    pub(super) wants: &'a [usize],
    pub(super) forms: &'a [Form],
}

/// Those gradients that are asked for, in their order.
pub(super) fn wanted<T: Float>(
    grads: impl IntoIterator<Item = Option<Tensor<T>>>,
    wants: &[usize],
) -> Computed<Values> {
    let found = grads.into_iter().enumerate().filter(|(input, _)| wants.contains(input));
    let found = found.map(|(_, grad)| grad.map(AnyTensor::from));
    found.map(|grad| grad.ok_or_else(|| "its rule gave no gradient".to_owned())).collect()
}

/// What is read of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    No,
    /// Its shape and element type.
    Shape,
    Value,
}

pub(super) type Needs = Vec<Need>;

impl Need {
    pub(super) fn of(read: bool) -> Self {
        if read { Self::Value } else { Self::No }
    }
}

pub(super) fn typed<T: Element>(tensor: Option<&AnyTensor>) -> Computed<&Tensor<T>> {
    let tensor = tensor.and_then(AnyTensor::downcast_ref::<T>);
    tensor.ok_or_else(|| "a value that its gradient needs is missing".to_owned())
}

fn sum(inputs: Values) -> Computed<AnyTensor> {
    let mut inputs = inputs.into_iter();
    let first = inputs.next().ok_or("an input is missing")?;
    inputs.try_fold(first, |a, b| Ok(numbers!(a, b, (a, b) => binary(Binary::Add, a, b)?)))
}

/// The result, and by what each element was multiplied.
fn dropout(inputs: &[AnyTensor], p: f64) -> Computed<Values> {
    fn typed<T: Float>(x: &Tensor<T>, p: f64) -> Values {
        let mask = rules::dropout_mask::<T>(x.shape(), p);
        smallvec![rules::dropped(x, &mask).into(), mask.into()]
    }
    match inputs.first() {
        Some(AnyTensor::Float32(x)) => Ok(typed(x, p)),
        Some(AnyTensor::Float64(x)) => Ok(typed(x, p)),
        Some(other) => Err(not_numbers(other)),
        None => Err("an input is missing".to_owned()),
    }
}

fn concat(inputs: &[AnyTensor], axis: isize) -> Computed<AnyTensor> {
    fn typed<T: Element>(inputs: &[AnyTensor], axis: isize) -> Computed<AnyTensor> {
        let tensors: Option<Vec<&Tensor<T>>> =
            inputs.iter().map(AnyTensor::downcast_ref::<T>).collect();
        let tensors = tensors.ok_or("its inputs are of different element types")?;
        Tensor::try_concat(&tensors, axis).map(AnyTensor::from).map_err(message)
    }
    match inputs.first() {
        None => Err("an input is missing".to_owned()),
        Some(AnyTensor::Float32(_)) => typed::<f32>(inputs, axis),
        Some(AnyTensor::Float64(_)) => typed::<f64>(inputs, axis),
        Some(AnyTensor::Int32(_)) => typed::<i32>(inputs, axis),
        Some(AnyTensor::Int64(_)) => typed::<i64>(inputs, axis),
        Some(AnyTensor::UInt8(_)) => typed::<u8>(inputs, axis),
        Some(AnyTensor::Bool(_)) => typed::<bool>(inputs, axis),
    }
}

/// Lengths of axes, the free one of which takes what is left of `count` elements.
fn lengths(dims: &[Option<usize>], count: usize) -> Computed<Vec<usize>> {
    let known: usize = dims.iter().flatten().product();
    if dims.contains(&None) && (known == 0 || !count.is_multiple_of(known)) {
        return Err(format!("{count} elements do not fit {}", super::ir::ShapeOf(dims)));
    }
    Ok(dims.iter().map(|dim| dim.unwrap_or_else(|| count / known.max(1))).collect())
}

/// Lengths to stretch to: a free axis keeps the length it has.
fn whole(dims: &[Option<usize>], from: &[usize]) -> Vec<usize> {
    let lead = dims.len().saturating_sub(from.len());
    let length = |(at, dim): (usize, &Option<usize>)| {
        dim.unwrap_or_else(|| {
            at.checked_sub(lead).and_then(|at| from.get(at)).copied().unwrap_or(1)
        })
    };
    dims.iter().enumerate().map(length).collect()
}

fn index(tensor: AnyTensor) -> Computed<Tensor<i64>> {
    tensor.downcast().ok_or_else(|| "its index must be int64".to_owned())
}

fn compare<T: Element>(name: &str, a: &Tensor<T>, b: &AnyTensor) -> Computed<AnyTensor> {
    let b = typed::<T>(Some(b))?;
    let compared = match name {
        "equal" => a.try_equal(b),
        "not_equal" => a.try_not_equal(b),
        "greater" => a.try_greater(b),
        "greater_equal" => a.try_greater_equal(b),
        "less" => a.try_less(b),
        _ => a.try_less_equal(b),
    };
    compared.map(AnyTensor::from).map_err(message)
}

fn conv2d<T: Float>(
    x: &Tensor<T>,
    weight: &AnyTensor,
    bias: Option<&AnyTensor>,
    options: Conv2dOptions,
) -> Computed<Tensor<T>> {
    let bias = bias.map(|bias| typed(Some(bias))).transpose()?;
    x.try_conv2d(typed(Some(weight))?, bias, options).map_err(message)
}

fn cast(x: &AnyTensor, dtype: DType) -> AnyTensor {
    for_any!(x, x => OfElements::cast_to(x, dtype, here()))
}

fn fill_like(x: &AnyTensor, value: f64) -> AnyTensor {
    fn filled<T: Element>(x: &Tensor<T>, value: f64) -> AnyTensor {
        let element = if value == 0.0 { T::ZERO } else { T::ONE };
        Tensor::full(x.shape(), element).into()
    }
    for_any!(x, x => filled(x, value))
}

impl Init {
    fn run(self, form: &Form) -> AnyTensor {
        match form.dtype {
            DType::Float32 => self.typed::<f32>(form).into(),
            DType::Float64 => self.typed::<f64>(form).into(),
            // A count of steps.
            _ => {
                Tensor::<i64>::zeros(form.dims.iter().flatten().copied().collect::<Vec<_>>()).into()
            }
        }
    }

    fn typed<T: Float>(self, form: &Form) -> Tensor<T> {
        let shape: Vec<usize> = form.dims.iter().flatten().copied().collect();
        match self {
            Self::Constant(value) => Tensor::full(shape, T::from_f64(value)),
            Self::Uniform(low, high) => Tensor::uniform(shape, low, high),
            Self::Normal(mean, std) => Tensor::normal(shape, mean, std),
            Self::Xavier => {
                let fans = shape.first().zip(shape.last()).map_or(2, |(a, b)| a + b);
                let bound = (6.0 / fans as f64).sqrt();
                Tensor::uniform(shape, -bound, bound)
            }
        }
    }
}
