//! The passes of elementwise ops over their operands.

use smallvec::SmallVec;

use crate::array::buffer::Buffer;
use crate::array::shape::copied;
use crate::array::{Shape, Step, Value};
use crate::formula::{Formula, Operand, block_of, pass, run_block, run_over};
use crate::graph::Tensor;
use crate::ops::{Float, Input};

/// What differs from call to call: the shapes where inputs are broadcast or results summed.
/// Elsewhere all shapes are one, and there is no frame.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) shape: Shape,
    /// Of each result: as it is summed, with axes of 1, and as it is given.
    pub(super) targets: SmallVec<[(Shape, Shape); 1]>,
}

/// Runs a kernel on the values of some tensors: the values themselves where nobody else can see
/// them.
pub(super) fn consume<T: Float, R>(
    tensors: SmallVec<[Option<Tensor<T>>; 4]>,
    kernel: impl FnOnce(SmallVec<[Operand<'_, T>; 4]>) -> R,
) -> R {
    let mut owned: SmallVec<[Option<Value<T>>; 4]> = SmallVec::new();
    let mut shared: SmallVec<[Option<Tensor<T>>; 4]> = SmallVec::new();
    for tensor in tensors {
        let (value, tensor) = match tensor.map(Tensor::try_into_value) {
            Some(Ok(value)) => (Some(value), None),
            Some(Err(tensor)) => (None, Some(tensor)),
            None => (None, None),
        };
        owned.push(value);
        shared.push(tensor);
    }
    let read: SmallVec<[_; 4]> =
        shared.iter().map(|tensor| tensor.as_ref().map(Tensor::read)).collect();
    let operands = owned.into_iter().zip(&read).map(|(value, read)| match (value, read) {
        (Some(value), _) => Operand::Own(value),
        (None, Some(read)) => Operand::Ref(read),
        (None, None) => Operand::Absent,
    });
    kernel(operands.collect())
}

/// One pass; results that are not wanted are left out. Without a frame, all shapes are the one
/// beside it.
pub(super) fn compute<T: Float>(
    formula: &dyn Formula<T>,
    operands: SmallVec<[Operand<'_, T>; 4]>,
    masks: &[&Tensor<bool>],
    (all, frame): (&[usize], Option<&Frame>),
    wanted: &[bool],
) -> SmallVec<[Option<Tensor<T>>; 2]> {
    let masks: SmallVec<[_; 2]> = masks.iter().map(|mask| mask.read()).collect();
    let masks: SmallVec<[&Value<bool>; 2]> = masks.iter().map(|mask| &**mask).collect();
    let target = |k: usize| frame.map_or(all, |frame| &frame.targets[k].0);
    let targets: SmallVec<[Option<Shape>; 2]> =
        wanted.iter().enumerate().map(|(k, wanted)| wanted.then(|| copied(target(k)))).collect();
    let shape = copied(frame.map_or(all, |frame| &frame.shape));
    let values = pass(&shape, operands, &masks, &targets, formula).into_iter().enumerate();
    let result = |(k, value): (usize, Option<Value<T>>)| {
        let value = value?;
        Some(Tensor::new(match frame.map(|frame| &frame.targets[k].1) {
            Some(result) if value.shape() != result.as_slice() => value.reshaped(copied(result)),
            _ => value,
        }))
    };
    values.map(result).collect()
}

/// Row-major operands of one shape, no longer than a block: without a pass. Nothing depends on those that
/// are absent.
pub(super) fn at_once<'a, T: Float>(
    formula: &dyn Formula<T>,
    operands: impl Iterator<Item = Option<&'a Tensor<T>>>,
    masks: &[&Tensor<bool>],
    shape: &[usize],
    wanted: &[bool],
) -> Option<SmallVec<[Option<Tensor<T>>; 2]>> {
    let len = shape.iter().product();
    if len > block_of(wanted.len()) {
        return None;
    }
    let mut read: SmallVec<[_; 4]> = SmallVec::new();
    for operand in operands {
        read.push(operand.map(Tensor::read));
    }
    let mut reals: SmallVec<[&[T]; 4]> = SmallVec::new();
    for operand in &read {
        reals.push(match operand {
            Some(operand) => operand.in_memory()?,
            None => &[],
        });
    }
    let first = reals.iter().find(|x| !x.is_empty()).copied()?;
    for x in &mut reals {
        if x.is_empty() {
            *x = first;
        }
    }
    let mut conditions: SmallVec<[&[bool]; 2]> = SmallVec::new();
    for mask in masks {
        conditions.push(mask.fixed()?.in_memory()?);
    }
    let lengths = reals.iter().map(|x| x.len()).chain(conditions.iter().map(|m| m.len()));
    let lengths = [len, lengths.fold(first.len(), usize::min)];
    if let [true] = wanted {
        let mut y = Value::written(copied(shape), |_| {});
        run_block(formula, lengths, &reals, &conditions, y.as_padded_mut_slice()?);
        return Some(SmallVec::from_iter([Some(Tensor::new(y))]));
    }
    let stride = block_of(wanted.len());
    let mut out = Buffer::any(wanted.len() * stride);
    run_block(formula, lengths, &reals, &conditions, &mut out);
    let result = |(k, wanted): (usize, &bool)| {
        let data = &out[k * stride..][..len];
        wanted.then(|| Tensor::new(Value::from_slice(copied(shape), data)))
    };
    Some(wanted.iter().enumerate().map(result).collect())
}

/// A formula of one result in one pass over operands that are broadcast to `shape`.
pub(in crate::ops) fn passed<'a, T: Float>(
    formula: &dyn Formula<T>,
    shape: &[usize],
    operands: impl IntoIterator<Item = Operand<'a, T>>,
) -> Value<T> {
    let operands = operands.into_iter().collect();
    let results = pass(shape, operands, &[], &[Some(copied(shape))], formula);
    let result = results.into_iter().next().flatten();
    result.unwrap_or_else(|| unreachable!("the only result is wanted"))
}

/// A formula of one tensor: deferred as `step`, or in a temporary's own memory, or in one pass.
pub(in crate::ops) fn of_one<T: Float>(
    formula: &dyn Formula<T>,
    step: impl FnOnce() -> Option<Step<T>>,
    x: Input<'_, T>,
) -> Tensor<T> {
    let x = match x.try_defer(step) {
        Ok(done) => return done,
        Err(x) => x,
    };
    let len = x.tensor().len();
    x.try_in_place(|x| run_over(formula, len, None, x)).unwrap_or_else(|x| {
        let shape = x.tensor().shape_owned();
        Tensor::new(x.consume(|x| passed(formula, &shape, [x])))
    })
}
