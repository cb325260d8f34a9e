//! Operators that move elements.

use smallvec::smallvec;

use super::super::attr::Type;
use super::super::form::{Dims, Form, ShapeOf};
use super::super::forms::{
    arithmetic, broadcast_to, concat, exactly, indices, permuted, position, reshaped, sliced,
};
use super::super::ir::{Gradient, Lengths, OpDef};
use super::super::values::{Computed, Values, all, any, computed, number, one, several};
use crate::graph::{AnyTensor, Element, Tensor, for_any};
use crate::ops::Binary;

entries! {
    SHAPES:

    /// Lengths of the axes, of which one may be free.
    RESHAPE = OpDef {
        attrs: &[("shape", Type::Dims)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![Form::new(x.dtype, reshaped(&x.dims, op.dims(0))?)])
        },
        run: |op, x| any!(x, x => x.try_reshape(lengths(op.dims(0), x.len())?)),
        lengths: Lengths::OneOpen,
        ..OpDef::new("reshape")
    };

    PERMUTE = OpDef {
        attrs: &[("order", Type::Ints)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![Form::new(x.dtype, permuted(&x.dims, op.ints(0))?)])
        },
        run: |op, x| any!(x, x => x.try_permute(op.ints(0))),
        ..OpDef::new("permute")
    };

    /// A free axis of the shape has the input's length.
    BROADCAST_TO = OpDef {
        attrs: &[("shape", Type::Dims)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![Form::new(x.dtype, broadcast_to(&x.dims, op.dims(0))?)])
        },
        run: |op, x| number!(x, x => x.try_broadcast_to(whole(op.dims(0), x.shape()))),
        lengths: Lengths::OfInput,
        ..OpDef::new("broadcast_to")
    };

    CONCAT = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: |op, inputs| concat(inputs, op.int(0)),
        run: |op, values| {
            fn typed<T: Element>(_: &Tensor<T>, values: &Values, axis: isize) -> Computed<Values> {
                computed(Tensor::try_concat(&all::<T>(values)?, axis))
            }
            let first = values.first().cloned().ok_or("an input is missing")?;
            for_any!(&first, x => typed(x, &values, op.int(0)))
        },
        ..OpDef::new("concat")
    };

    /// `end` is open where it is free.
    SLICE = OpDef {
        attrs: &[("axis", Type::Int), ("start", Type::Int), ("end", Type::Dims), ("step", Type::Int)],
        show: |op| {
            let end = op.dims(2)[0].map_or(String::new(), |end| end.to_string());
            format!("axis={}, {}..{end}, step={}", op.int(0), op.int(1), op.int(3))
        },
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            let [start, step] = [1, 3].map(|at| op.int(at).unsigned_abs());
            Ok(vec![sliced(x, op.int(0), [start, step], op.dims(2)[0])?])
        },
        run: |op, x| {
            let [start, step] = [1, 3].map(|at| op.int(at).unsigned_abs());
            let x = one(x)?;
            let at = position(op.int(0), x.shape().len())?;
            let end = op.dims(2)[0].unwrap_or(x.shape()[at]);
            any!(smallvec![x], x => x.try_slice_axis(op.int(0), start, end, step))
        },
        lengths: Lengths::OfAxis,
        ..OpDef::new("slice")
    };

    INDEX_SELECT = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: |op, inputs| {
            let [x, index] = exactly(inputs)?;
            let [count] = indices(index)?.dims[..] else {
                return Err(format!("its index must be a vector, found {index}"));
            };
            let mut out = arithmetic(Binary::Add, x)?.clone();
            out.dims[position(op.int(0), x.dims.len())?] = count;
            Ok(vec![out])
        },
        run: |op, values| {
            let [x, index] = several(values)?;
            let index = index_of(index)?;
            number!(smallvec![x], x => x.try_index_select(op.int(0), &index))
        },
        ..OpDef::new("index_select")
    };

    GATHER = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: |op, inputs| {
            let [x, index] = exactly(inputs)?;
            position(op.int(0), x.dims.len())?;
            if indices(index)?.dims.len() != x.dims.len() {
                return Err(format!("its index must have {} axes, found {index}", x.dims.len()));
            }
            Ok(vec![Form::new(arithmetic(Binary::Add, x)?.dtype, index.dims.clone())])
        },
        run: |op, values| {
            let [x, index] = several(values)?;
            let index = index_of(index)?;
            number!(smallvec![x], x => x.try_gather(op.int(0), &index))
        },
        ..OpDef::new("gather")
    };

    /// A tensor that is the same in every run.
    CONSTANT = OpDef {
        attrs: &[("value", Type::Tensor)],
        infer: |op, _| {
            let dims = op.tensor(0).shape().iter().map(|&n| Some(n)).collect();
            Ok(vec![Form::new(op.tensor(0).dtype(), dims)])
        },
        run: |op, _| Ok(smallvec![op.tensor(0).alias()]),
        gradient: Gradient::None,
        ..OpDef::new("constant")
    };
}

fn index_of(tensor: AnyTensor) -> Computed<Tensor<i64>> {
    tensor.downcast().ok_or_else(|| "its index must be int64".to_owned())
}

/// Lengths of axes, the free one of which takes what is left of `count` elements.
fn lengths(dims: &Dims, count: usize) -> Computed<Vec<usize>> {
    let known: usize = dims.iter().flatten().product();
    if dims.contains(&None) && (known == 0 || !count.is_multiple_of(known)) {
        return Err(format!("{count} elements do not fit {}", ShapeOf(dims)));
    }
    Ok(dims.iter().map(|dim| dim.unwrap_or_else(|| count / known.max(1))).collect())
}

/// Lengths to broadcast to: a free axis keeps the length it has.
fn whole(dims: &Dims, from: &[usize]) -> Vec<usize> {
    let lead = dims.len().saturating_sub(from.len());
    let length = |(at, dim): (usize, &Option<usize>)| {
        dim.unwrap_or_else(|| {
            at.checked_sub(lead).and_then(|at| from.get(at)).copied().unwrap_or(1)
        })
    };
    dims.iter().enumerate().map(length).collect()
}
