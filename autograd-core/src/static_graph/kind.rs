//! What operators there are, as data: names, attributes, and the forms of what they compute. How
//! they run is said in `run`, what their gradients are in `backward`.

use std::fmt;
use std::sync::Arc;

use super::eager::Eager;
use super::forms::{
    Inferred, arithmetic, broadcast, concat, conv2d, cross_entropy, exactly, float, indices,
    matmul, number, open_batch, permuted, pictures, position, reduced, reshaped, same_dtype,
    sliced, stretched,
};
use super::formula::Formula;
use super::ir::{Dims, Form, OpId, ShapeOf};
use super::layer::TracedLayer;
use super::norm;
use super::optim::Rule;
use super::py_func::Foreign;
use crate::array::DType;
use crate::graph::{AnyTensor, for_any};
use crate::ops::reduce::Reduce;
use crate::ops::{Binary, Conv2dOptions, PoolOptions, Unary, pool2d_shape};

/// What an operator computes.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A function of each element.
    Unary(Unary),
    /// A function of each two elements, with broadcasting.
    Binary(Binary),
    /// The same with a number on the right, or on the left where `swapped`.
    Scalar {
        op: Binary,
        scalar: f64,
        swapped: bool,
    },
    Matmul,
    Reduce {
        op: Reduction,
        axes: Vec<isize>,
        keep: bool,
    },
    Softmax {
        axis: isize,
    },
    LogSoftmax {
        axis: isize,
    },
    Normalize {
        axes: Vec<isize>,
        eps: f64,
    },
    /// Mean cross entropy of logits and classes.
    CrossEntropy,
    /// Lengths of the axes, of which one may be free.
    Reshape(Dims),
    Permute(Vec<isize>),
    Concat {
        axis: isize,
    },
    Cast(DType),
    /// Lengths of the axes; a free one has the input's length.
    BroadcastTo(Dims),
    /// `end` is open where it is `None`.
    Slice {
        axis: isize,
        start: usize,
        end: Option<usize>,
        step: usize,
    },
    /// Where the greatest element along an axis stands.
    ArgMax {
        axis: isize,
    },
    /// By a mask, one of two.
    Where,
    /// A comparison, by its name.
    Compare(&'static str),
    IndexSelect {
        axis: isize,
    },
    Gather {
        axis: isize,
    },
    Conv2d(Conv2dOptions),
    Pool2d(Pool, PoolOptions),
    /// A tensor that is the same in every run.
    Constant(AnyTensor),
    Dropout {
        p: f64,
        training: bool,
    },
    /// Normalisation of channels; in training it writes its running statistics.
    BatchNorm {
        momentum: f64,
        eps: f64,
        training: bool,
    },
    /// The sum of one or more of one shape: where gradients meet.
    Sum,
    /// One number in every place of a variable's shape: what a gradient starts with.
    FillLike(f64),
    /// What a kept variable starts with.
    Init {
        init: Init,
        form: Form,
    },
    /// The new values of what an optimizer keeps.
    Update(Rule),
    /// A user's function over arrays, or its backward function.
    PyFunc(Arc<Foreign>),
    /// An elementwise op of a user.
    Formula {
        name: &'static str,
        op: Formula,
        outputs: Vec<Form>,
    },
    /// A `#[py_layer]` op that was traced.
    Layer(Arc<TracedLayer>),
    /// A `#[py_layer]` op, or a closure of eager ops.
    Eager(Arc<Eager>),
    /// The gradients of operator `of`: of its inputs `wants`, given those of its outputs `seeds`.
    Grad {
        of: OpId,
        name: Arc<str>,
        wants: Vec<usize>,
        seeds: Vec<usize>,
        forms: Vec<Form>,
    },
}

/// What becomes of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pool {
    Max,
    Average,
}

impl Pool {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Max => "max_pool2d",
            Self::Average => "avg_pool2d",
        }
    }
}

/// How many elements become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reduction {
    Sum,
    Mean,
    Prod,
    Max,
    Min,
}

impl From<Reduce> for Reduction {
    fn from(reduce: Reduce) -> Self {
        match reduce {
            Reduce::Sum => Self::Sum,
            Reduce::Mean => Self::Mean,
            Reduce::Prod => Self::Prod,
            Reduce::Max => Self::Max,
            Reduce::Min => Self::Min,
        }
    }
}

impl Reduction {
    pub(super) const ALL: [Self; 5] = [Self::Sum, Self::Mean, Self::Prod, Self::Max, Self::Min];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Prod => "prod",
            Self::Max => "max",
            Self::Min => "min",
        }
    }
}

/// How a parameter starts; see [`FcOptions`](super::FcOptions).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Init {
    /// Every element the same.
    Constant(f64),
    /// Uniform between two bounds.
    Uniform(f64, f64),
    /// Normal with a mean and a standard deviation.
    Normal(f64, f64),
    /// Uniform within `sqrt(6 / (fan_in + fan_out))` of 0 (Glorot and Bengio 2010); the fans are
    /// the lengths of the first and the last axis.
    Xavier,
}

impl Kind {
    /// The operator's name, as texts and errors show it.
    pub(super) fn stem(&self) -> String {
        match self {
            Self::Unary(op) => op.name().to_owned(),
            Self::Binary(op) | Self::Scalar { op, .. } => op.name().to_owned(),
            Self::Matmul => "matmul".to_owned(),
            Self::Reduce { op, .. } => op.name().to_owned(),
            Self::Softmax { .. } => "softmax".to_owned(),
            Self::LogSoftmax { .. } => "log_softmax".to_owned(),
            Self::Normalize { .. } => "normalize".to_owned(),
            Self::CrossEntropy => "cross_entropy".to_owned(),
            Self::Reshape(_) => "reshape".to_owned(),
            Self::Permute(_) => "permute".to_owned(),
            Self::Concat { .. } => "concat".to_owned(),
            Self::Cast(_) => "cast".to_owned(),
            Self::BroadcastTo(_) => "broadcast_to".to_owned(),
            Self::Slice { .. } => "slice".to_owned(),
            Self::ArgMax { .. } => "argmax".to_owned(),
            Self::Where => "where".to_owned(),
            Self::Compare(op) => (*op).to_owned(),
            Self::IndexSelect { .. } => "index_select".to_owned(),
            Self::Gather { .. } => "gather".to_owned(),
            Self::Conv2d(_) => "conv2d".to_owned(),
            Self::Pool2d(pool, _) => pool.name().to_owned(),
            Self::Constant(_) => "constant".to_owned(),
            Self::Formula { name, .. } => (*name).to_owned(),
            Self::Layer(layer) => layer.name.to_string(),
            Self::Dropout { .. } => "dropout".to_owned(),
            Self::BatchNorm { .. } => "batch_norm".to_owned(),
            Self::Sum => "add_n".to_owned(),
            Self::FillLike(_) => "fill_like".to_owned(),
            Self::Init { .. } => "init".to_owned(),
            Self::Update(update) => update.name().to_owned(),
            Self::PyFunc(function) => function.name().to_owned(),
            Self::Eager(eager) => eager.name().to_owned(),
            Self::Grad { name, .. } => format!("{name}_grad"),
        }
    }

    /// Its attributes, as the program's text shows them; empty where there are none.
    pub(super) fn attributes(&self) -> String {
        match self {
            Self::Scalar { scalar, swapped: false, .. } => format!("right={scalar:?}"),
            Self::Scalar { scalar, swapped: true, .. } => format!("left={scalar:?}"),
            Self::Reduce { axes, keep, .. } => match (axes.is_empty(), keep) {
                (true, false) => String::new(),
                (_, false) => format!("axes={axes:?}"),
                (_, true) => format!("axes={axes:?}, keep"),
            },
            Self::Softmax { axis }
            | Self::LogSoftmax { axis }
            | Self::Concat { axis }
            | Self::ArgMax { axis }
            | Self::IndexSelect { axis }
            | Self::Gather { axis } => format!("axis={axis}"),
            Self::Normalize { axes, eps } => format!("axes={axes:?}, eps={eps:?}"),
            Self::Slice { axis, start, end, step } => {
                let end = end.map_or(String::new(), |end| end.to_string());
                format!("axis={axis}, {start}..{end}, step={step}")
            }
            Self::Conv2d(options) => {
                let [stride, padding, dilation, [groups, _]] = options.parts();
                format!(
                    "stride={stride:?}, padding={padding:?}, dilation={dilation:?}, groups={groups}"
                )
            }
            Self::Pool2d(_, options) => {
                let [kernel, stride, padding] = options.parts();
                format!("kernel={kernel:?}, stride={stride:?}, padding={padding:?}")
            }
            Self::Constant(tensor) if tensor.shape().is_empty() => {
                for_any!(tensor, t => format!("value={:?}", t.item()))
            }
            Self::Reshape(dims) | Self::BroadcastTo(dims) => format!("shape={}", ShapeOf(dims)),
            Self::Permute(order) => format!("order={order:?}"),
            Self::Cast(dtype) => format!("to={dtype}"),
            Self::FillLike(value) => format!("value={value:?}"),
            Self::Dropout { p, training } => format!("p={p}, training={training}"),
            Self::BatchNorm { momentum, eps, training } => {
                format!("momentum={momentum}, eps={eps:?}, training={training}")
            }
            Self::Init { init, .. } => format!("{init:?}"),
            Self::Update(update) => update.attributes(),
            _ => String::new(),
        }
    }

    /// Whether the user's code may do more than compute, so that it runs in every run.
    pub(super) fn has_effect(&self) -> bool {
        matches!(self, Self::PyFunc(function) if !function.is_gradient())
    }

    pub(super) fn is_matmul(&self) -> bool {
        matches!(self, Self::Matmul)
    }

    /// Whether it gives kept variables new values when all else of a run is done.
    pub(super) fn updates(&self) -> bool {
        matches!(self, Self::Update(_))
    }

    /// Whether it reads no more of its input than the shape.
    pub(super) fn reads_shape(&self) -> bool {
        matches!(self, Self::FillLike(_))
    }

    pub(super) fn is_user_code(&self) -> bool {
        matches!(self, Self::PyFunc(_) | Self::Eager(_))
    }

    /// Whether all that it computes are new values of what is kept.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Self::Init { .. } | Self::Update(_))
    }

    /// Whether it computes new values of what is kept beside its outputs.
    pub(super) fn collects(&self) -> bool {
        matches!(self, Self::BatchNorm { training: true, .. })
    }

    /// Whether it draws random numbers of which its gradient needs to know.
    pub(super) fn draws(&self) -> bool {
        matches!(self, Self::Dropout { p, training: true } if *p > 0.0)
    }

    /// Whether it computes each element of its results from one element of each input, as it is
    /// stretched to them: then one pass over memory can have it among others.
    pub(super) fn is_elementwise(&self) -> bool {
        match self {
            Self::Formula { op, .. } => op.chains(),
            Self::Unary(_) | Self::Binary(_) | Self::Scalar { .. } => true,
            Self::Compare(_) | Self::Where | Self::Cast(_) | Self::Dropout { .. } => true,
            Self::Sum | Self::FillLike(_) => true,
            _ => false,
        }
    }

    /// The forms of what it computes from inputs of these forms, or why it cannot.
    pub(super) fn infer(&self, inputs: &[&Form]) -> Inferred {
        match self {
            Self::Unary(_) | Self::Dropout { .. } | Self::FillLike(_) => {
                let [x] = exactly(inputs)?;
                Ok(vec![float(x)?.clone()])
            }
            Self::Scalar { op, scalar, .. } => {
                let [x] = exactly(inputs)?;
                let x = arithmetic(*op, x)?;
                number(x.dtype, *scalar)?;
                Ok(vec![x.clone()])
            }
            Self::Binary(op) => {
                let [a, b] = exactly(inputs)?;
                same_dtype(a, b)?;
                arithmetic(*op, a)?;
                Ok(vec![Form::new(a.dtype, broadcast(&a.dims, &b.dims)?)])
            }
            Self::Matmul => {
                let [a, b] = exactly(inputs)?;
                same_dtype(a, b)?;
                arithmetic(Binary::Mul, a)?;
                Ok(vec![Form::new(a.dtype, matmul(&a.dims, &b.dims)?)])
            }
            Self::Reduce { op, axes, keep } => {
                let [x] = exactly(inputs)?;
                let x = match op {
                    Reduction::Mean => float(x)?,
                    _ => arithmetic(Binary::Add, x)?,
                };
                Ok(vec![Form::new(x.dtype, reduced(&x.dims, axes, *keep)?)])
            }
            Self::Softmax { axis } | Self::LogSoftmax { axis } => {
                let [x] = exactly(inputs)?;
                position(*axis, x.dims.len())?;
                Ok(vec![float(x)?.clone()])
            }
            Self::Normalize { axes, .. } => {
                let [x] = exactly(inputs)?;
                reduced(&x.dims, axes, true)?;
                Ok(vec![float(x)?.clone()])
            }
            Self::CrossEntropy => cross_entropy(inputs),
            Self::BatchNorm { training, .. } => norm::infer(inputs, *training),
            Self::Reshape(dims) => {
                let [x] = exactly(inputs)?;
                Ok(vec![Form::new(x.dtype, reshaped(&x.dims, dims)?)])
            }
            Self::Permute(order) => {
                let [x] = exactly(inputs)?;
                Ok(vec![Form::new(x.dtype, permuted(&x.dims, order)?)])
            }
            Self::Concat { axis } => concat(inputs, *axis),
            Self::Cast(dtype) => {
                let [x] = exactly(inputs)?;
                Ok(vec![Form::new(*dtype, x.dims.clone())])
            }
            Self::BroadcastTo(dims) => {
                let [x] = exactly(inputs)?;
                Ok(vec![Form::new(x.dtype, stretched(&x.dims, dims)?)])
            }
            Self::Slice { axis, start, end, step } => {
                let [x] = exactly(inputs)?;
                Ok(vec![sliced(x, *axis, [*start, *step], *end)?])
            }
            Self::Where => {
                let [mask, a, b] = exactly(inputs)?;
                if mask.dtype != DType::Bool {
                    return Err(format!("its mask must be bool, found {}", mask.dtype));
                }
                same_dtype(a, b)?;
                let dims = broadcast(&mask.dims, &broadcast(&float(a)?.dims, &b.dims)?)?;
                Ok(vec![Form::new(a.dtype, dims)])
            }
            Self::ArgMax { axis } => {
                let [x] = exactly(inputs)?;
                let x = arithmetic(Binary::Add, x)?;
                position(*axis, x.dims.len())?;
                Ok(vec![Form::new(DType::Int64, reduced(&x.dims, &[*axis], false)?)])
            }
            Self::Compare(_) => {
                let [a, b] = exactly(inputs)?;
                same_dtype(a, b)?;
                Ok(vec![Form::new(DType::Bool, broadcast(&a.dims, &b.dims)?)])
            }
            Self::IndexSelect { axis } => {
                let [x, index] = exactly(inputs)?;
                let [count] = indices(index)?.dims[..] else {
                    return Err(format!("its index must be a vector, found {index}"));
                };
                let mut out = arithmetic(Binary::Add, x)?.clone();
                out.dims[position(*axis, x.dims.len())?] = count;
                Ok(vec![out])
            }
            Self::Gather { axis } => {
                let [x, index] = exactly(inputs)?;
                position(*axis, x.dims.len())?;
                if indices(index)?.dims.len() != x.dims.len() {
                    return Err(format!(
                        "its index must have {} axes, found {index}",
                        x.dims.len()
                    ));
                }
                Ok(vec![Form::new(arithmetic(Binary::Add, x)?.dtype, index.dims.clone())])
            }
            Self::Conv2d(options) => conv2d(inputs, *options),
            Self::Pool2d(pool, options) => {
                let [x] = exactly(inputs)?;
                let shape = pool2d_shape(pool.name(), *options, &pictures(float(x)?)?);
                Ok(vec![open_batch(x, shape.map_err(|error| error.to_string())?)])
            }
            Self::Constant(tensor) => {
                let dims = tensor.shape().iter().map(|&n| Some(n)).collect();
                Ok(vec![Form::new(tensor.dtype(), dims)])
            }
            Self::Formula { outputs, .. } => Ok(outputs.clone()),
            Self::Layer(layer) => Ok(layer.outputs()),
            Self::Sum => {
                let Some(first) = inputs.first() else {
                    return Err("takes one input or more, found none".to_owned());
                };
                match inputs.iter().find(|form| !form.agrees(first)) {
                    Some(other) => Err(format!("its inputs differ: {first} and {other}")),
                    None => Ok(vec![(*first).clone()]),
                }
            }
            Self::Init { form, .. } => Ok(vec![form.clone()]),
            Self::Update(update) => update.infer(inputs),
            Self::PyFunc(function) => Ok(function.outputs().to_vec()),
            Self::Eager(eager) => Ok(eager.outputs().to_vec()),
            Self::Grad { forms, .. } => Ok(forms.clone()),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PyFunc(_) => write!(f, "py_func `{}`", self.stem()),
            Self::Grad { name, .. } => write!(f, "the gradient of {name}"),
            _ => f.write_str(&self.stem()),
        }
    }
}
