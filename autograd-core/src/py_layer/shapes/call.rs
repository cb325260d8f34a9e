//! The checks of a call. A line of names and numbers is compared where the op is compiled; others, and those that do
//! not fit, are bound by the table.

use super::super::inputs::{InputTensors, each};
use super::lengths::UNKNOWN;
use super::{Axis, Length, Shapes};
use crate::error::{self, Error};
use crate::graph::{Element, Tensor};

pub use super::lengths::{Bound, TensorShapes};

/// The lengths in a call whose line has single tensors, and no computed lengths. With the table a constant, the loops
/// of [`fits`](Self::fits) are unrolled.
#[doc(hidden)]
#[derive(Debug)]
pub struct CallLengths<'a, const NAMES: usize, const GROUPS: usize> {
    names: [usize; NAMES],
    groups: [Option<&'a [usize]>; GROUPS],
}

impl<'a, const NAMES: usize, const GROUPS: usize> CallLengths<'a, NAMES, GROUPS> {
    #[inline(always)]
    #[must_use]
    pub fn new(integers: &[Option<usize>]) -> Self {
        let mut names = [UNKNOWN; NAMES];
        for (slot, n) in integers.iter().enumerate() {
            names[slot] = n.unwrap_or(UNKNOWN);
        }
        Self { names, groups: [None; GROUPS] }
    }

    #[inline(always)]
    pub fn fits_input(&mut self, line: &'static Shapes, input: usize, dims: &'a [usize]) -> bool {
        self.fits(line.inputs[input].1.axes, dims)
    }

    #[inline(always)]
    pub fn fits_output(&mut self, line: &'static Shapes, output: usize, dims: &'a [usize]) -> bool {
        self.fits(line.outputs[output].axes, dims)
    }

    /// Whether a tensor has these axes. A name or group without a value gets the one that it has here.
    #[inline(always)]
    pub fn fits(&mut self, axes: Option<&'static [Axis]>, dims: &'a [usize]) -> bool {
        let Some(axes) = axes else { return true };
        let mut at = 0;
        while at < axes.len() && matches!(axes[at], Axis::One(_)) {
            at += 1;
        }
        let (before, rest) = axes.split_at(at);
        let Some((group, after)) = rest.split_first() else {
            return dims.len() == axes.len() && self.all(axes, dims);
        };
        let Some(more) = dims.len().checked_sub(axes.len() - 1) else { return false };
        let (first, dims) = dims.split_at(at);
        let (found, last) = dims.split_at(more);
        let Axis::Many(_, slot) = group else { return false };
        let fits = match self.groups[*slot] {
            Some(known) => known == found,
            None => {
                self.groups[*slot] = Some(found);
                true
            }
        };
        fits && self.all(before, first) && self.all(after, last)
    }

    #[inline(always)]
    fn all(&mut self, axes: &'static [Axis], dims: &[usize]) -> bool {
        let mut fits = true;
        for (axis, &found) in axes.iter().zip(dims) {
            fits &= match axis {
                Axis::One(Length::Any) => true,
                Axis::One(Length::Number(number)) => *number == found,
                Axis::One(Length::Name(_, slot)) => {
                    let known = &mut self.names[*slot];
                    if *known == UNKNOWN {
                        *known = found;
                    }
                    *known == found
                }
                _ => false,
            };
        }
        fits
    }
}

/// A parameter as a length; `None` if it is negative, or the number that stands for an unknown length.
#[doc(hidden)]
#[inline]
pub fn length(integer: impl TryInto<usize>) -> Option<usize> {
    integer.try_into().ok().filter(|n| *n != UNKNOWN)
}

#[doc(hidden)]
#[inline]
#[must_use]
pub fn are_lengths(integers: &[Option<usize>]) -> bool {
    integers.iter().all(Option::is_some)
}

/// The lengths in a call. An integer that is `None` is no length.
///
/// # Errors
///
/// If the inputs do not fit the line.
#[doc(hidden)]
pub fn check_inputs(
    line: &Shapes,
    inputs: &[InputTensors<'_>],
    integers: &[Option<usize>],
) -> error::Result<Bound> {
    let of = |(parameter, why)| Error::Shapes { op: line.op, parameter, why };
    if let Some(position) = integers.iter().position(Option::is_none) {
        let name = line.names[position];
        let why = format!("`{name}` is a length, and must be from 0 to {}", UNKNOWN - 1);
        return Err(of((name.to_owned(), why)));
    }
    let given = |input: usize| Some(inputs.get(input)? as &dyn TensorShapes);
    let bound = line.bind(&given, integers.iter().copied().flatten().enumerate()).map_err(of)?;
    line.each_output(&bound, |_, _| Ok(())).map_err(of)?;
    Ok(bound)
}

/// # Errors
///
/// If the outputs do not fit the line. Those that are no tensors have no shapes.
#[doc(hidden)]
pub fn check_outputs(
    line: &Shapes,
    bound: &Bound,
    outputs: &[&dyn TensorShapes],
) -> error::Result<()> {
    let of = |(parameter, why)| Error::Shapes { op: line.op, parameter, why };
    line.check_outputs(bound, outputs).map_err(of)
}

/// Why a call does not fit its line; without outputs, why its inputs do not.
#[doc(hidden)]
#[cold]
#[must_use]
pub fn misfit(
    line: &Shapes,
    inputs: &[InputTensors<'_>],
    integers: &[Option<usize>],
    outputs: &[&dyn TensorShapes],
) -> Error {
    let checked = check_inputs(line, inputs, integers);
    match checked.and_then(|bound| check_outputs(line, &bound, outputs)) {
        Err(error) => error,
        Ok(()) => unreachable!("{line}: the lengths that differ in the call fit the table"),
    }
}

impl TensorShapes for InputTensors<'_> {
    fn count(&self) -> usize {
        each(*self).count()
    }

    fn shape(&self, item: usize) -> &[usize] {
        each(*self).nth(item).map_or(&[], |tensor| tensor.shape())
    }
}

/// What is no tensor.
impl TensorShapes for () {
    fn count(&self) -> usize {
        0
    }

    fn shape(&self, _: usize) -> &[usize] {
        &[]
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> TensorShapes for Tensor<T> {
    fn count(&self) -> usize {
        1
    }

    fn shape(&self, _: usize) -> &[usize] {
        self.shape()
    }
}

macro_rules! lists {
    ($([$($generics:tt)*] $list:ty, $each:ident => $shape:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> TensorShapes for $list {
            fn count(&self) -> usize {
                self.len()
            }

            fn shape(&self, item: usize) -> &[usize] {
                let $each = &self[item];
                $shape
            }
        }
    )*};
}

lists! {
    [T: Element] Vec<Tensor<T>>, tensor => tensor.shape();
    [T: Element, const N: usize] [Tensor<T>; N], tensor => tensor.shape();
    [] Vec<Vec<usize>>, shape => shape;
}
