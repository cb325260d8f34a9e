//! What operators there are, as data: names, attributes, and the forms of what they compute. How
//! they run is said in `run`, what their gradients are in `backward`.

use std::fmt;
use std::sync::Arc;

use super::eager::Eager;
use super::ir::{Dims, Form, OpId, ShapeOf};
use super::optim::Update;
use super::py_func::Foreign;
use crate::array::DType;
use crate::ops::{Binary, Unary};

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
    /// Mean cross entropy of logits and classes.
    CrossEntropy,
    /// Lengths of the axes, of which one may be free.
    Reshape(Dims),
    Permute(Vec<isize>),
    Concat {
        axis: isize,
    },
    Cast(DType),
    Dropout {
        p: f64,
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
    Update(Update),
    /// A user's function over arrays, or its backward function.
    PyFunc(Arc<Foreign>),
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

/// How many elements become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reduction {
    Sum,
    Mean,
    Prod,
    Max,
    Min,
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

type Inferred = Result<Vec<Form>, String>;

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
            Self::CrossEntropy => "cross_entropy".to_owned(),
            Self::Reshape(_) => "reshape".to_owned(),
            Self::Permute(_) => "permute".to_owned(),
            Self::Concat { .. } => "concat".to_owned(),
            Self::Cast(_) => "cast".to_owned(),
            Self::Dropout { .. } => "dropout".to_owned(),
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
            Self::Softmax { axis } | Self::LogSoftmax { axis } | Self::Concat { axis } => {
                format!("axis={axis}")
            }
            Self::Reshape(dims) => format!("shape={}", ShapeOf(dims)),
            Self::Permute(order) => format!("order={order:?}"),
            Self::Cast(dtype) => format!("to={dtype}"),
            Self::FillLike(value) => format!("value={value:?}"),
            Self::Dropout { p, training } => format!("p={p}, training={training}"),
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

    /// Whether it is a function of each element that one pass over memory can have among others.
    pub(super) fn chains(&self) -> bool {
        match self {
            Self::Unary(op) => op.chains(),
            Self::Binary(_) | Self::Scalar { .. } => true,
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
            Self::Scalar { op, .. } => {
                let [x] = exactly(inputs)?;
                Ok(vec![arithmetic(*op, x)?.clone()])
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
            Self::Reduce { axes, keep, .. } => {
                let [x] = exactly(inputs)?;
                let x = arithmetic(Binary::Add, x)?;
                Ok(vec![Form::new(x.dtype, reduced(&x.dims, axes, *keep)?)])
            }
            Self::Softmax { axis } | Self::LogSoftmax { axis } => {
                let [x] = exactly(inputs)?;
                position(*axis, x.dims.len())?;
                Ok(vec![float(x)?.clone()])
            }
            Self::CrossEntropy => cross_entropy(inputs),
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

fn exactly<'a, const N: usize>(inputs: &[&'a Form]) -> Result<[&'a Form; N], String> {
    inputs.try_into().map_err(|_| format!("takes {N} inputs, found {}", inputs.len()))
}

fn float(x: &Form) -> Result<&Form, String> {
    if x.dtype.is_float() {
        return Ok(x);
    }
    Err(format!("takes float32 or float64, found {}", x.dtype))
}

fn arithmetic(op: Binary, x: &Form) -> Result<&Form, String> {
    match (op, x.dtype) {
        (Binary::Pow, _) => float(x),
        (_, DType::Bool) => Err("takes numbers, found bool".to_owned()),
        _ => Ok(x),
    }
}

fn same_dtype(a: &Form, b: &Form) -> Result<(), String> {
    if a.dtype == b.dtype {
        return Ok(());
    }
    Err(format!("its element types differ: {} and {}; cast one", a.dtype, b.dtype))
}

fn broadcast(a: &[Option<usize>], b: &[Option<usize>]) -> Result<Dims, String> {
    let rank = a.len().max(b.len());
    let at = |dims: &[Option<usize>], i: usize| {
        (i + dims.len()).checked_sub(rank).map_or(Some(1), |k| dims[k])
    };
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (Some(x), Some(y)) if x == y => Ok(Some(x)),
            (Some(1), other) | (other, Some(1)) => Ok(other),
            // A free axis that meets a longer one must have its length, or 1.
            (None, other) | (other, None) => Ok(other),
            (Some(_), Some(_)) => Err(format!(
                "shapes {} and {} cannot be broadcast together",
                ShapeOf(a),
                ShapeOf(b)
            )),
        })
        .collect()
}

fn matmul(a: &[Option<usize>], b: &[Option<usize>]) -> Result<Dims, String> {
    if a.is_empty() || b.is_empty() {
        return Err("takes vectors, matrices or stacks of matrices, found a scalar".to_owned());
    }
    let (rows, k) = (a.len().checked_sub(2).map(|i| a[i]), a[a.len() - 1]);
    let (k2, columns) = match b.len().checked_sub(2) {
        Some(i) => (b[i], Some(b[i + 1])),
        None => (b[0], None),
    };
    if let (Some(k), Some(k2)) = (k, k2)
        && k != k2
    {
        return Err(format!("the inner lengths differ: {k} and {k2}"));
    }
    let lead = |dims: &[Option<usize>]| Dims::from_slice(&dims[..dims.len().saturating_sub(2)]);
    let mut out = broadcast(&lead(a), &lead(b))?;
    out.extend(rows);
    out.extend(columns);
    Ok(out)
}

/// A possibly negative axis as a position.
pub(super) fn position(axis: isize, rank: usize) -> Result<usize, String> {
    let position = if axis < 0 { axis + rank as isize } else { axis };
    usize::try_from(position).ok().filter(|&position| position < rank).ok_or_else(|| {
        format!(
            "axis {axis} does not exist (there {} {rank})",
            if rank == 1 { "is" } else { "are" }
        )
    })
}

fn reduced(dims: &[Option<usize>], axes: &[isize], keep: bool) -> Result<Dims, String> {
    let mut gone = vec![axes.is_empty(); dims.len()];
    for &axis in axes {
        let position = position(axis, dims.len())?;
        if std::mem::replace(&mut gone[position], true) {
            return Err(format!("axis {axis} stands twice"));
        }
    }
    let kept = dims.iter().zip(gone);
    Ok(kept
        .filter_map(|(&dim, gone)| if gone { keep.then_some(Some(1)) } else { Some(dim) })
        .collect())
}

fn cross_entropy(inputs: &[&Form]) -> Inferred {
    let [logits, targets] = exactly(inputs)?;
    float(logits)?;
    if targets.dtype != DType::Int64 {
        return Err(format!("its classes must be int64, found {}", targets.dtype));
    }
    let ([rows, _], [count]) = (&logits.dims[..], &targets.dims[..]) else {
        return Err("takes logits [n, classes] and n classes".to_owned());
    };
    match (rows, count) {
        (Some(rows), Some(count)) if rows != count => {
            Err(format!("{rows} rows of logits need as many classes, found {count}"))
        }
        _ => Ok(vec![Form::new(logits.dtype, Dims::new())]),
    }
}

fn reshaped(from: &[Option<usize>], to: &[Option<usize>]) -> Result<Dims, String> {
    if to.iter().filter(|dim| dim.is_none()).count() > 1 {
        return Err("at most one axis of the new shape can be -1".to_owned());
    }
    let known: usize = to.iter().flatten().product();
    let count: Option<usize> = from.iter().copied().product();
    let mut out = Dims::from_slice(to);
    let Some(count) = count else { return Ok(out) };
    let free = out.iter_mut().find(|dim| dim.is_none());
    let fits = match free {
        Some(dim) if known > 0 && count.is_multiple_of(known) => {
            *dim = Some(count / known);
            true
        }
        Some(_) => false,
        None => known == count,
    };
    if fits {
        return Ok(out);
    }
    Err(format!("{} has {count} elements, which do not fit {}", ShapeOf(from), ShapeOf(to)))
}

fn permuted(dims: &[Option<usize>], order: &[isize]) -> Result<Dims, String> {
    if order.len() != dims.len() {
        return Err(format!("{} axes need as many positions, found {}", dims.len(), order.len()));
    }
    let mut seen = vec![false; dims.len()];
    order
        .iter()
        .map(|&axis| {
            let at = position(axis, dims.len())?;
            match std::mem::replace(&mut seen[at], true) {
                true => Err(format!("axis {axis} stands twice")),
                false => Ok(dims[at]),
            }
        })
        .collect()
}

fn concat(inputs: &[&Form], axis: isize) -> Inferred {
    let Some((first, rest)) = inputs.split_first() else {
        return Err("takes one input or more, found none".to_owned());
    };
    let at = position(axis, first.dims.len())?;
    let mut out = (*first).clone();
    for form in rest {
        same_dtype(first, form)?;
        if form.dims.len() != out.dims.len() {
            return Err(format!(
                "shapes {} and {} differ in rank",
                ShapeOf(&first.dims),
                ShapeOf(&form.dims)
            ));
        }
        for (i, (dim, other)) in out.dims.iter_mut().zip(&form.dims).enumerate() {
            *dim = match (*dim, *other) {
                (a, b) if i == at => a.zip(b).map(|(a, b)| a + b),
                (Some(a), Some(b)) if a != b => {
                    return Err(format!(
                        "shapes {} and {} differ beside axis {axis}",
                        ShapeOf(&first.dims),
                        ShapeOf(&form.dims)
                    ));
                }
                (a, b) => a.or(b),
            };
        }
    }
    Ok(vec![out])
}
