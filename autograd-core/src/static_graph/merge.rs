//! One op of a trace, in both of its runs, as an operator.

use super::formula::Formula;
use super::ir::{Dims, Form};
use super::kind::{Kind, Pool};
use crate::ops::trace::{Call, Note};

pub(super) fn name_of(call: &Call) -> &'static str {
    match call {
        Call::Unary(op) => op.name(),
        Call::Binary(op) | Call::Scalar { op, .. } => op.name(),
        Call::Matmul => "matmul",
        Call::Reduce { op, .. } => op.name(),
        Call::Softmax(_) => "softmax",
        Call::LogSoftmax(_) => "log_softmax",
        Call::Normalize { .. } => "normalize",
        Call::CrossEntropy => "cross_entropy",
        Call::Reshape(_) => "reshape",
        Call::BroadcastTo(_) => "broadcast_to",
        Call::Permute(_) => "permute",
        Call::Slice { .. } => "slice",
        Call::Concat(_) => "concat",
        Call::Cast(_) => "cast",
        Call::Where => "where",
        Call::Compare(op) => op,
        Call::IndexSelect(_) => "index_select",
        Call::Gather(_) => "gather",
        Call::Conv2d(_) => "conv2d",
        Call::MaxPool2d(_) => "max_pool2d",
        Call::AvgPool2d(_) => "avg_pool2d",
        Call::Dropout { .. } => "dropout",
        Call::Formula { name, .. } => name,
        Call::Layer(layer) => layer.name,
    }
}

/// The operator that both runs are: what differs is a length that follows a free axis.
pub(super) fn merge(a: &Note, b: &Note) -> Result<Kind, String> {
    let fixed = |same: bool, kind: Kind| {
        if same {
            return Ok(kind);
        }
        Err("has other numbers on another example: they follow the inputs' numbers or the lengths \
             of free axes, which the program would fix; place it with `eager`"
            .to_owned())
    };
    let lengths = |x: &[usize], y: &[usize]| -> Option<Dims> {
        let dims = x.iter().zip(y).map(|(x, y)| (x == y).then_some(*x));
        (x.len() == y.len()).then(|| dims.collect())
    };
    match (&a.call, &b.call) {
        (Call::Unary(op), Call::Unary(other)) => fixed(op == other, Kind::Unary(*op)),
        (Call::Binary(op), Call::Binary(other)) => fixed(op == other, Kind::Binary(*op)),
        (
            &Call::Scalar { op, scalar, swapped },
            &Call::Scalar { scalar: other, swapped: also, .. },
        ) => {
            let same = scalar.to_bits() == other.to_bits() && swapped == also;
            fixed(same, Kind::Scalar { op, scalar, swapped })
        }
        (Call::Matmul, _) => Ok(Kind::Matmul),
        (Call::Reduce { op, axes, keep }, Call::Reduce { axes: other, keep: also, .. }) => {
            let kind = Kind::Reduce { op: (*op).into(), axes: axes.clone(), keep: *keep };
            fixed(axes == other && keep == also, kind)
        }
        (Call::Softmax(axis), Call::Softmax(other)) => {
            fixed(axis == other, Kind::Softmax { axis: *axis })
        }
        (Call::LogSoftmax(axis), Call::LogSoftmax(other)) => {
            fixed(axis == other, Kind::LogSoftmax { axis: *axis })
        }
        (Call::Normalize { axes, eps }, Call::Normalize { axes: other, eps: also }) => {
            let kind = Kind::Normalize { axes: axes.clone(), eps: *eps };
            fixed(axes == other && eps.to_bits() == also.to_bits(), kind)
        }
        (Call::CrossEntropy, _) => Ok(Kind::CrossEntropy),
        (Call::Reshape(x), Call::Reshape(y)) => match lengths(x, y) {
            Some(dims) if dims.iter().filter(|dim| dim.is_none()).count() < 2 => {
                Ok(Kind::Reshape(dims))
            }
            _ => Err("has a shape of which two lengths follow free axes; a program can leave one \
                      open"
                .to_owned()),
        },
        (Call::BroadcastTo(x), Call::BroadcastTo(y)) => {
            let dims = lengths(x, y).ok_or("has another rank on another example")?;
            let from = a.inputs[0].shape();
            let lead = dims.len() - from.len().min(dims.len());
            let known = |at: usize| dims[at].is_some() || at >= lead && from[at - lead] == x[at];
            fixed((0..dims.len()).all(known), Kind::BroadcastTo(dims))
        }
        (Call::Permute(order), Call::Permute(other)) => {
            fixed(order == other, Kind::Permute(order.clone()))
        }
        (
            &Call::Slice { axis, start, end, step },
            &Call::Slice { axis: axis2, start: start2, end: end2, step: step2 },
        ) => {
            let whole = |note: &Note, end: usize| {
                let shape = note.inputs[0].shape();
                let at = if axis < 0 { axis + shape.len() as isize } else { axis };
                shape.get(at as usize) == Some(&end)
            };
            let open = end != end2 && whole(a, end) && whole(b, end2);
            let same = axis == axis2 && start == start2 && step == step2 && (open || end == end2);
            fixed(same, Kind::Slice { axis, start, end: (!open).then_some(end), step })
        }
        (Call::Concat(axis), Call::Concat(other)) => {
            fixed(axis == other, Kind::Concat { axis: *axis })
        }
        (Call::Cast(dtype), Call::Cast(other)) => fixed(dtype == other, Kind::Cast(*dtype)),
        (Call::Where, _) => Ok(Kind::Where),
        (Call::Compare(op), _) => Ok(Kind::Compare(op)),
        (Call::IndexSelect(axis), Call::IndexSelect(other)) => {
            fixed(axis == other, Kind::IndexSelect { axis: *axis })
        }
        (Call::Gather(axis), Call::Gather(other)) => {
            fixed(axis == other, Kind::Gather { axis: *axis })
        }
        (Call::Conv2d(options), Call::Conv2d(other)) => {
            fixed(options == other, Kind::Conv2d(*options))
        }
        (Call::MaxPool2d(options), Call::MaxPool2d(other)) => {
            fixed(options == other, Kind::Pool2d(Pool::Max, *options))
        }
        (Call::AvgPool2d(options), Call::AvgPool2d(other)) => {
            fixed(options == other, Kind::Pool2d(Pool::Average, *options))
        }
        (&Call::Dropout { p, training }, &Call::Dropout { p: other, training: also }) => {
            fixed(p == other && training == also, Kind::Dropout { p, training })
        }
        (Call::Formula { name, op }, _) => {
            let forms = a.outputs.iter().zip(&b.outputs).map(|(x, y)| {
                let dims = lengths(x.shape(), y.shape()).ok_or("has another rank")?;
                Ok(Form::new(x.dtype(), dims))
            });
            let outputs = forms.collect::<Result<_, String>>()?;
            Ok(Kind::Formula { name, op: Formula::new(op.clone()), outputs })
        }
        _ => fixed(false, Kind::Where),
    }
}
