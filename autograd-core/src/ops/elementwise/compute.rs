//! The passes of elementwise ops over their operands.

use smallvec::SmallVec;

use crate::array::shape::copied;
use crate::array::{Shape, Value};
use crate::formula::{Formula, Operand, pass, run_block};
use crate::graph::Tensor;
use crate::ops::{Float, Input};

/// The shapes of a call that broadcasts or sums. Other calls have one shape for all, and no frame.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) shape: Shape,
    /// For each result: its shape when summed, with axes of 1, and its final shape.
    pub(super) targets: SmallVec<[(Shape, Shape); 1]>,
}

/// What the node of a call with a frame keeps.
pub(super) struct CallShapes {
    pub(super) frame: Frame,
    /// Those of the operands.
    pub(super) shapes: Vec<Shape>,
}

/// Runs a kernel on the values of some tensors. Values that no other tensor shares are moved in.
pub(super) fn consume<T: Float, R>(
    tensors: SmallVec<[Option<Tensor<T>>; 4]>,
    kernel: impl FnOnce(&mut [Operand<'_, T>]) -> R,
) -> R {
    let operand = |tensor: Option<Tensor<T>>| match tensor.map(Tensor::take) {
        Some(Ok(value)) => Operand::Own(value),
        // Another handle holds the buffer too, so that it is not written.
        Some(Err(tensor)) => Operand::Own(tensor.read().into_owned()),
        None => Operand::Absent,
    };
    kernel(&mut tensors.into_iter().map(operand).collect::<SmallVec<[_; 4]>>())
}

/// Runs one pass, which computes the wanted results only. Without a frame, all shapes are `all`.
pub(super) fn compute<T: Float>(
    formula: &dyn Formula<T>,
    operands: &mut [Operand<'_, T>],
    masks: &[&Tensor<bool>],
    (all, frame): (&[usize], Option<&Frame>),
    wanted: &[bool],
) -> SmallVec<[Option<Tensor<T>>; 2]> {
    let masks: SmallVec<[_; 2]> = masks.iter().map(|mask| mask.read()).collect();
    let target = |k: usize| frame.map_or(all, |frame| &frame.targets[k].0);
    let targets: SmallVec<[Option<Shape>; 2]> =
        wanted.iter().enumerate().map(|(k, wanted)| wanted.then(|| copied(target(k)))).collect();
    let shape = copied(frame.map_or(all, |frame| &frame.shape));
    let values = pass(&shape, operands, &masks, &targets, formula).into_iter().enumerate();
    let result = |(k, value): (usize, Option<Value<T>>)| {
        let value = value?;
        Some(Tensor::from_value(match frame.map(|frame| &frame.targets[k].1) {
            Some(result) if value.shape() != result.as_slice() => value.reshaped(copied(result)),
            _ => value,
        }))
    };
    values.map(result).collect()
}

pub(in crate::ops) fn run_pass<T: Float>(
    formula: &dyn Formula<T>,
    shape: &[usize],
    operands: &mut [Operand<'_, T>],
) -> Value<T> {
    let mut results = pass(shape, operands, &[], &[Some(copied(shape))], formula);
    results[0].take().unwrap_or_else(|| unreachable!("the only result is wanted"))
}

/// Runs a formula of `first`, `number` and `last`, in this order, of which the first two may be absent. Inline
/// data is computed in the output's own memory, other data in one pass.
#[inline]
pub(in crate::ops) fn run_formula<'a, T: Float>(
    formula: &dyn Formula<T>,
    first: Option<Input<'a, T>>,
    number: Option<T>,
    last: Input<'a, T>,
) -> Tensor<T> {
    let last = match inline(formula, first.as_ref().map(Input::tensor), number, last) {
        Ok(done) => return done,
        Err(last) => last,
    };
    let shape = last.tensor().shape_owned();
    let scalar = |number| Operand::Own(Value::scalar(number));
    Tensor::from_value(last.consume(|x| match (first, number.map(scalar)) {
        (None, None) => run_pass(formula, &shape, &mut [x]),
        (None, Some(number)) => run_pass(formula, &shape, &mut [number, x]),
        (Some(first), None) => first.consume(|a| run_pass(formula, &shape, &mut [a, x])),
        (Some(first), Some(number)) => {
            first.consume(|a| run_pass(formula, &shape, &mut [a, number, x]))
        }
    }))
}

/// Runs the formula if the data is inline; otherwise returns the last operand, `x`.
#[inline(always)]
fn inline<'a, T: Float>(
    formula: &dyn Formula<T>,
    first: Option<&Tensor<T>>,
    number: Option<T>,
    x: Input<'a, T>,
) -> Result<Tensor<T>, Input<'a, T>> {
    let mut now = None;
    let first = first.map(|first| first.small_data(&mut now));
    if !x.tensor().is_small() || matches!(first, Some(None)) {
        return Err(x);
    }
    let first = first.flatten();
    let number = number.map(|number| {
        let mut all = T::INLINE;
        all.as_mut().fill(number);
        all
    });
    let run = |from: &T::Inline, len: &dyn Fn() -> usize, to: &mut T::Inline| {
        let x = from.as_ref();
        // The elements behind `len` are computed too, and not read.
        let all = x.len();
        let (mut reals, mut last) = ([x; 3], 0);
        for real in [first, number.as_ref()].into_iter().flatten() {
            reals[last] = real.as_ref();
            last += 1;
        }
        let reals = &reals[..=last];
        if !formula.run_loop(all, reals, &[], to.as_mut()) {
            run_block(formula, [len(), all], reals, &[], to.as_mut());
        }
    };
    if x.is_temporary() {
        // Into a second array: a copy of the input, stored by elements, would delay the loads of vectors.
        let len = x.tensor().len();
        return Ok(x.overwrite_or_copy(|x| {
            let mut out = T::INLINE;
            run(x, &|| len, &mut out);
            *x = out;
        }));
    }
    // Read in place, because a copy, stored by elements, would delay the loads of vectors.
    let mut now = None;
    let (from, x) = (x.small_data(&mut now), x.tensor());
    Ok(x.small_like(|to| run(from, &|| x.len(), to)))
}
