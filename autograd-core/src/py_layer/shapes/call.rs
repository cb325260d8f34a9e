//! The checks of a call. Generated code compares lengths; if they do not fit, these functions find out why.

use super::super::inputs::{InputTensors, each};
use super::Shapes;
use super::bind::{Dims, Lengths, Misfit};
use super::capture::{Captured, capture, is_capturing};
use crate::array::Shape;
use crate::error::{self, Error};
use crate::graph::{Element, Tensor};

/// Whether two shapes can be broadcast together.
#[doc(hidden)]
#[must_use]
pub fn can_broadcast(a: &[usize], b: &[usize]) -> bool {
    a.iter().rev().zip(b.iter().rev()).all(|(&a, &b)| a == b || a == 1 || b == 1)
}

/// Any length, in a shape that generated code compares.
#[doc(hidden)]
pub const ANY: usize = usize::MAX;

/// Whether a shape has these lengths: some, those of a group, and more.
#[doc(hidden)]
#[inline]
#[must_use]
pub fn fits(found: &[usize], before: &[usize], group: &[usize], after: &[usize]) -> bool {
    let expected = before.iter().chain(group).chain(after);
    found.len() == before.len() + group.len() + after.len()
        && found.iter().zip(expected).all(|(a, b)| a == b || *b == ANY)
}

/// As [`fits`], with what broadcasting makes of two groups.
#[doc(hidden)]
#[must_use]
pub fn fits_broadcast(
    found: &[usize],
    before: &[usize],
    a: &[usize],
    b: &[usize],
    after: &[usize],
) -> bool {
    let rank = a.len().max(b.len());
    let at = |dims: &[usize], i: usize| {
        (i + dims.len()).checked_sub(rank).map_or(1, |position| dims[position])
    };
    let group = (0..rank).map(|i| match (at(a, i), at(b, i)) {
        (1, other) => other,
        (other, _) => other,
    });
    can_broadcast(a, b) && fits(found, before, &group.collect::<Shape>(), after)
}

/// A parameter as a length; `None` if it is negative.
#[doc(hidden)]
#[inline]
pub fn length(integer: impl TryInto<usize>) -> Option<usize> {
    integer.try_into().ok()
}

/// The shapes of the tensors of an output.
#[doc(hidden)]
pub trait OutputShapes {
    fn shapes(&self) -> Vec<Dims>;
}

#[diagnostic::do_not_recommend]
impl<T: Element> OutputShapes for Tensor<T> {
    fn shapes(&self) -> Vec<Dims> {
        vec![known(self.shape())]
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> OutputShapes for Vec<Tensor<T>> {
    fn shapes(&self) -> Vec<Dims> {
        self.iter().map(|tensor| known(tensor.shape())).collect()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, const N: usize> OutputShapes for [Tensor<T>; N] {
    fn shapes(&self) -> Vec<Dims> {
        self.iter().map(|tensor| known(tensor.shape())).collect()
    }
}

fn known(shape: &[usize]) -> Dims {
    shape.iter().copied().map(Some).collect()
}

/// The lengths in a call. An integer that is `None` is no length.
fn bind(
    line: &Shapes,
    inputs: &[InputTensors<'_>],
    integers: &[Option<usize>],
) -> Result<Lengths, Misfit> {
    if let Some(position) = integers.iter().position(Option::is_none) {
        let name = line.integers[position];
        return Err((name.into(), format!("`{name}` is a length, and must be 0 or more")));
    }
    let shapes = |input: &InputTensors<'_>| each(*input).map(|of| known(of.shape())).collect();
    let inputs: Vec<_> = inputs.iter().map(|input| Some(shapes(input))).collect();
    line.bind(&inputs, line.integers.iter().copied().zip(integers.iter().copied().flatten()))
}

fn misfit_error(shapes: &Shapes, (parameter, why): Misfit) -> Error {
    Error::Shapes { op: shapes.op, parameter, why }
}

/// Returns an error if the inputs do not fit the line, and the call if it is captured. `integers`: `None` for one that
/// is no length.
#[doc(hidden)]
#[cold]
pub fn check_inputs(
    shapes: &'static Shapes,
    inputs: &[InputTensors<'_>],
    integers: &[Option<usize>],
) -> error::Result<Option<Captured>> {
    if is_capturing()
        && let Some(captured) = capture(shapes, inputs, integers)
    {
        return Ok(Some(captured));
    }
    let outputs = bind(shapes, inputs, integers).and_then(|lengths| shapes.outputs_of(&lengths));
    outputs.map(|_| None).map_err(|misfit| misfit_error(shapes, misfit))
}

/// Returns an error if the outputs do not fit the line. Those that are no tensors have no shapes.
#[doc(hidden)]
#[cold]
pub fn check_outputs(
    shapes: &Shapes,
    inputs: &[InputTensors<'_>],
    integers: &[Option<usize>],
    outputs: &[Vec<Dims>],
) -> error::Result<()> {
    let lengths = bind(shapes, inputs, integers);
    let checked = lengths.and_then(|lengths| shapes.misfit_of_outputs(&lengths, outputs));
    checked.map_err(|misfit| misfit_error(shapes, misfit))
}
