//! What the methods of a tensor do with its shape, and when two shapes differ for general lengths.

use super::parse::{Axis, Length};
use proc_macro2::Span;

#[derive(Clone)]
pub(super) enum Value {
    Tensor(Vec<Axis>),
    /// `x.shape()`
    Dims(Vec<Axis>),
    /// A length, such as `x.shape()[0]`.
    Length(Length),
    /// A number that is neither.
    Number,
    /// A tuple, a struct or an array.
    Tuple(Vec<Value>),
    /// `None`
    Absent,
    Unknown,
}

/// The shape that a method returns.
pub(super) enum Known {
    Tensor(Vec<Axis>),
    Dims(Vec<Axis>),
    Length(Length),
    /// A product of unequal lengths.
    Unequal(Axis, Axis),
    Nothing,
}

impl Known {
    /// `integers`: the first argument, if it is an integer or a list of integers.
    pub(super) fn of(name: &str, axes: &[Axis], args: &[Value], integers: Option<&[i64]>) -> Self {
        let known = match (name, args) {
            // The shape of the tensor, whatever the arguments.
            (
                "abs" | "acos" | "asin" | "atan" | "ceil" | "clone" | "contiguous" | "copy" | "cos"
                | "cosh" | "cumprod" | "cumsum" | "detach" | "digamma" | "elu" | "erf" | "erfinv"
                | "exp" | "exp_m1" | "flip" | "floor" | "gelu" | "leaky_relu" | "lgamma" | "ln"
                | "ln_1p" | "log10" | "log2" | "log_softmax" | "recip" | "relu" | "roll" | "round"
                | "rsqrt" | "sigmoid" | "signum" | "silu" | "sin" | "sinh" | "softmax" | "softplus"
                | "sqrt" | "square" | "tan" | "tanh" | "tril" | "triu",
                _,
            ) => Some(axes.to_vec()),
            ("shape", []) => return Self::Dims(axes.to_vec()),
            ("dim", [_]) => {
                let at = integers.and_then(|at| position(axes, *at.first()?));
                return match at.map(|at| &axes[at]) {
                    Some(Axis::One(length)) => Self::Length(length.clone()),
                    _ => Self::Nothing,
                };
            }
            ("squeeze", [_]) => integers.and_then(|at| {
                let at = position(axes, *at.first()?)?;
                matches!(axes[at], Axis::One(Length::Number(1, _)))
                    .then(|| [&axes[..at], &axes[at + 1..]].concat())
            }),
            ("sum" | "mean" | "max" | "min" | "prod", []) => Some(Vec::new()),
            ("pow" | "clamp", args) => {
                let number = |arg: &Value| matches!(arg, Value::Number | Value::Length(_));
                args.iter().all(number).then(|| axes.to_vec())
            }
            ("max_axes" | "mean_axes" | "min_axes" | "prod_axes" | "sum_axes", _) => {
                reduced(axes, integers, false)
            }
            (
                "max_axes_keep" | "mean_axes_keep" | "min_axes_keep" | "prod_axes_keep"
                | "sum_axes_keep",
                _,
            ) => reduced(axes, integers, true),
            ("t" | "transpose", []) => match axes {
                [before @ .., a @ Axis::One(_), b @ Axis::One(_)] => {
                    Some(before.iter().chain([b, a]).cloned().collect())
                }
                _ => None,
            },
            ("unsqueeze", [_]) => integers.and_then(|at| unsqueezed(axes, at)),
            ("select", [_, _]) => integers.and_then(|at| {
                let at = position(axes, *at.first()?)?;
                Some([&axes[..at], &axes[at + 1..]].concat())
            }),
            ("permute", [_]) => integers.and_then(|order| {
                let whole = order.len() == axes.len() && group(axes).is_none();
                let each = order.iter().map(|at| position(axes, *at).map(|at| axes[at].clone()));
                whole.then(|| each.collect())?
            }),
            ("sum_to" | "broadcast_to" | "reshape", [Value::Dims(axes)]) => Some(axes.clone()),
            ("outer", [Value::Tensor(other)]) => match (axes, &other[..]) {
                ([a @ Axis::One(_)], [b @ Axis::One(_)]) => Some(vec![a.clone(), b.clone()]),
                _ => None,
            },
            ("matmul", [Value::Tensor(other)]) => return product(axes, other),
            (
                "atan2" | "copysign" | "hypot" | "logaddexp" | "maximum" | "minimum" | "remainder"
                | "xlogy",
                [Value::Tensor(other)],
            ) => broadcast(axes, other).and_then(Result::ok),
            _ => None,
        };
        known.map_or(Self::Nothing, Self::Tensor)
    }
}

fn reduced(axes: &[Axis], integers: Option<&[i64]>, keep: bool) -> Option<Vec<Axis>> {
    // No axes are all of them.
    let integers = match integers? {
        [] if !keep => return Some(Vec::new()),
        [] => return None,
        integers => integers,
    };
    let at: Vec<usize> = integers.iter().map(|at| position(axes, *at)).collect::<Option<_>>()?;
    let axes = axes.iter().enumerate().filter_map(|(i, axis)| match at.contains(&i) {
        true => keep.then(one),
        false => Some(axis.clone()),
    });
    Some(axes.collect())
}

fn unsqueezed(axes: &[Axis], at: &[i64]) -> Option<Vec<Axis>> {
    let &[at] = at else { return None };
    let start = group(axes).unwrap_or(axes.len());
    let at = match usize::try_from(at) {
        Ok(at) if at <= start => at,
        Err(_) if at == -1 => axes.len(),
        _ => return None,
    };
    Some([&axes[..at], &[one()], &axes[at..]].concat())
}

fn product(a: &[Axis], b: &[Axis]) -> Known {
    let (row, n, b_before, k, column) = match (a, b) {
        ([row @ .., n @ Axis::One(_)], [k @ Axis::One(_)]) => (row, n, &[][..], k, None),
        ([row @ .., n @ Axis::One(_)], [before @ .., k @ Axis::One(_), column @ Axis::One(_)]) => {
            (row, n, before, k, Some(column))
        }
        _ => return Known::Nothing,
    };
    if unequal(n, k) {
        return Known::Unequal(n.clone(), k.clone());
    }
    if n.to_string() != k.to_string() {
        return Known::Nothing;
    }
    // `b..` may be no axis, and then this is a vector.
    let batch = match row {
        [batch @ .., Axis::One(_)] => batch,
        [] if b_before.is_empty() => &[],
        [Axis::Many(_)] if b_before.is_empty() => &[],
        _ => return Known::Nothing,
    };
    match b_before.is_empty() || keys(batch) == keys(b_before) {
        true => Known::Tensor(row.iter().chain(column).cloned().collect()),
        false => Known::Nothing,
    }
}

fn one() -> Axis {
    Axis::One(Length::Number(1, Span::call_site()))
}

fn is_sure(axis: &Axis) -> bool {
    matches!(axis, Axis::One(Length::Name(_) | Length::Number(..)))
}

/// The axes as they are written, to compare them.
pub(super) fn keys(axes: &[Axis]) -> Vec<String> {
    axes.iter().map(Axis::to_string).collect()
}

fn group(axes: &[Axis]) -> Option<usize> {
    axes.iter().position(|axis| !matches!(axis, Axis::One(_)))
}

/// The position of an axis, if its distance to that end is known.
pub(super) fn position(axes: &[Axis], axis: i64) -> Option<usize> {
    let at = match usize::try_from(axis) {
        Ok(at) => at,
        Err(_) => axes.len().checked_sub(usize::try_from(-axis).ok()?)?,
    };
    let is_clear = match group(axes) {
        None => true,
        Some(group) if axis >= 0 => at < group,
        Some(group) => at > group,
    };
    (is_clear && at < axes.len()).then_some(at)
}

/// Whether two shapes differ for general lengths.
pub(super) fn differ(a: &[Axis], b: &[Axis]) -> bool {
    let is_open = |axis: &Axis| matches!(axis, Axis::One(Length::Any(_)) | Axis::Broadcast(..));
    if a.iter().chain(b).any(is_open) || keys(a) == keys(b) {
        return false;
    }
    // Computed lengths may be equal by algebra: `h * (c / h)`.
    let is_computed = |axis: &Axis| matches!(axis, Axis::One(Length::Computed(..)));
    let fixed = group(a).is_none() && group(b).is_none();
    match fixed && a.len() == b.len() {
        true => a.iter().zip(b).any(|(a, b)| unequal(a, b)),
        false => fixed || !a.iter().chain(b).any(is_computed),
    }
}

/// What broadcasting makes of two shapes: an error if they do not fit, `None` if that is not known.
#[allow(clippy::type_complexity, reason = "known or not, and fitting or not")]
pub(super) fn broadcast(a: &[Axis], b: &[Axis]) -> Option<Result<Vec<Axis>, ()>> {
    let (mut out, mut a, mut b) = (Vec::new(), a, b);
    loop {
        let (x, y) = match (a.split_last(), b.split_last()) {
            (None, None) => break,
            (Some((x, rest)), None) => {
                out.push(x.clone());
                a = rest;
                continue;
            }
            (None, Some((y, rest))) => {
                out.push(y.clone());
                b = rest;
                continue;
            }
            (Some((x, before)), Some((y, other))) => {
                (a, b) = (before, other);
                (x, y)
            }
        };
        let is_one = |axis: &Axis| matches!(axis, Axis::One(Length::Number(1, _)));
        let same = x.to_string() == y.to_string() && !matches!(x, Axis::One(Length::Any(_)));
        if same || is_one(y) && matches!(x, Axis::One(_)) {
            out.push(x.clone());
        } else if is_one(x) && matches!(y, Axis::One(_)) {
            out.push(y.clone());
        } else if unequal(x, y) {
            return Some(Err(()));
        } else {
            return None;
        }
    }
    out.reverse();
    Some(Ok(out))
}

/// Whether two lengths are certainly unequal for general lengths.
fn unequal(a: &Axis, b: &Axis) -> bool {
    is_sure(a) && is_sure(b) && a.to_string() != b.to_string()
}
