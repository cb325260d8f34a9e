//! Operators along axes.

use super::super::attr::Type;
use super::super::form::Form;
use super::super::forms::{arithmetic, exactly, float, position, reduced};
use super::super::ir::{Gradient, Inferred, OpDef, Operator};
use super::super::values::{float, number};
use crate::array::DType;
use crate::error::Result;
use crate::graph::Tensor;
use crate::ops::Reduce;
use crate::ops::{Binary, Numeric};

family! {
    /// Sums, means and the like along axes, or along all if there are none.
    REDUCTIONS of Reduce::ALL => OpDef {
        family: "reduce",
        attrs: &[("axes", Type::Ints), ("keep", Type::Flag)],
        show: |op| match (op.ints(0), op.flag(1)) {
            ([], false) => String::new(),
            (axes, false) => format!("axes={axes:?}"),
            (axes, true) => format!("axes={axes:?}, keep"),
        },
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            let x = match Reduce::ALL[op.def.index] {
                Reduce::Mean => float(x)?,
                _ => arithmetic(Binary::Add, x)?,
            };
            Ok(vec![Form::new(x.dtype, reduced(&x.dims, op.ints(0), op.flag(1))?)])
        },
        run: |op, x| match Reduce::ALL[op.def.index] {
            Reduce::Mean => float!(x, x => x.try_mean(op.ints(0), op.flag(1))),
            other => number!(x, x => reduce(other, &x, op.ints(0), op.flag(1))),
        },
        ..OpDef::new("")
    }
}

pub(in super::super) fn reduction(of: Reduce) -> &'static OpDef {
    &REDUCTIONS[of as usize]
}

fn reduce<T: Numeric>(of: Reduce, x: &Tensor<T>, axes: &[isize], keep: bool) -> Result<Tensor<T>> {
    match of {
        Reduce::Sum => x.try_sum(axes, keep),
        Reduce::Mean => unreachable!("means are computed of floats only"),
        Reduce::Prod => x.try_prod(axes, keep),
        Reduce::Max => x.try_max(axes, keep),
        Reduce::Min => x.try_min(axes, keep),
    }
}

/// The form of the only input, of floats, which has the axis.
fn along_axis(op: &Operator, inputs: &[&Form]) -> Inferred {
    let [x] = exactly(inputs)?;
    position(op.int(0), x.dims.len())?;
    Ok(vec![float(x)?.clone()])
}

entries! {
    ALONG_AXES:

    SOFTMAX = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: along_axis,
        run: |op, x| float!(x, x => x.try_softmax(op.int(0))),
        ..OpDef::new("softmax")
    };

    LOG_SOFTMAX = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: along_axis,
        run: |op, x| float!(x, x => x.try_log_softmax(op.int(0))),
        ..OpDef::new("log_softmax")
    };

    NORMALIZE = OpDef {
        attrs: &[("axes", Type::Ints), ("eps", Type::Number)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            reduced(&x.dims, op.ints(0), true)?;
            Ok(vec![float(x)?.clone()])
        },
        run: |op, x| float!(x, x => x.try_normalize(op.ints(0), op.number(1))),
        ..OpDef::new("normalize")
    };

    /// Where the greatest element along an axis stands.
    ARGMAX = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            let x = arithmetic(Binary::Add, x)?;
            position(op.int(0), x.dims.len())?;
            Ok(vec![Form::new(DType::Int64, reduced(&x.dims, &[op.int(0)], false)?)])
        },
        run: |op, x| number!(x, x => x.try_argmax(op.int(0))),
        gradient: Gradient::None,
        ..OpDef::new("argmax")
    };
}
