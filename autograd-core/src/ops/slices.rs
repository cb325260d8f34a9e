//! Slices along an axis.

use std::fmt;
use std::panic::Location;

use super::call::{call, linear};
use super::table::{
    Attr, OpDef, ShapeOf, Type, any, entries, exactly, for_programs, message, position, position_on,
};
use super::{Caller, expect, pairs};
use crate::array::rows::for_each_row;
use crate::array::shape::{axis as check_axis, row_major};
use crate::array::{Shape, Value};
use crate::error::{Error, Result};
use crate::graph::{Composite, Element, Tensor};

entries! {
    SLICES:

    SLICE = OpDef {
        attrs: &[
            ("axis", Type::Int),
            ("start", Type::Position),
            ("end", Type::Position),
            ("step", Type::Int),
        ],
        show: for_programs(|op| {
            let [start, end] = [1, 2].map(|at| shown_position(op.int(at)));
            let end = if op.int(2) == -1 { "" } else { &end };
            format!("axis={}, {start}..{end}, step={}", op.int(0), op.int(3))
        }),
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let (axis, ends, step) = (op.int(0), [op.int(1), op.int(2)], op.int(3) as usize);
            let mut out = x.clone();
            let dim = &mut out.dims[position(axis, x.dims.len())?];
            // Of a free axis, only the distance of two positions that count from the same end is known.
            let are_alike = ends[0].signum() == ends[1].signum() || ends[0] >= 0 && ends[1] >= 0;
            let longest = ends.map(isize::unsigned_abs).into_iter().max();
            if let Some(n) = dim.or(longest.filter(|_| are_alike)) {
                let of = ShapeOf(&x.dims);
                let of = format_args!("{of}");
                let [start, end] = slice_ends(axis, n, ends, step, of).map_err(message)?;
                *dim = Some((end - start).div_ceil(step));
            }
            Ok(vec![out])
        }),
        run: |op, x, at| {
            let (ends, step) = ([op.int(1), op.int(2)], op.int(3) as usize);
            any!(x, x => slice(&x, op.int(0), ends, step, at))
        },
        ..OpDef::new("slice")
    };
}

/// Returns the start and the end of a slice on an axis of length `n`.
fn slice_ends(
    axis: isize,
    n: usize,
    ends: [isize; 2],
    step: usize,
    of: fmt::Arguments<'_>,
) -> Result<[usize; 2]> {
    let [start, end] = ends.map(|at| position_on(n, at));
    if start <= end && end <= n && step > 0 {
        return Ok([start, end]);
    }
    let expected = format!("such that start <= end <= {n} and step >= 1 on axis {axis} of {of}");
    let [start, end] = ends.map(shown_position);
    let found = format!("{start}, {end} and {step}");
    Err(Error::value("slice_axis", "start, end and step", expected, found))
}

/// Displays a position as `2`, or as `n`, `n-1` if it counts from the end.
fn shown_position(at: isize) -> String {
    match at {
        0.. => at.to_string(),
        -1 => "n".to_owned(),
        _ => format!("n{}", at + 1),
    }
}

/// # Slices
impl<T: Element> Tensor<T> {
    pairs! {
        /// Returns `len` elements of an axis from `start` on; the other axes are whole. No element is copied.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        /// assert_eq!(x.narrow(1, 1, 2).to_vec(), [2.0, 3.0, 5.0, 6.0]);
        /// ```
        pub fn narrow(&self, axis: isize, start: usize, len: usize) -> Tensor<T>,
            Panics if "there is no such axis or it has fewer than `start + len` elements" {
            let n = self.length("narrow", axis);
            if start.saturating_add(len) > n {
                let expected = format!("at most {n}, the length of axis {axis}");
                let found = format!("{start} + {len}");
                expect(Err(Error::value("narrow", "start + len", expected, found)))
            }
            let _composite = Composite::here("narrow");
            self.slice_axis(axis, start, start + len, 1)
        }

        /// Returns the elements `start, start + step, ..` below `end` of an axis. No element is copied.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from(vec![0.0, 1.0, 2.0, 3.0, 4.0]);
        /// assert_eq!(x.slice_axis(0, 1, 5, 2).to_vec(), [1.0, 3.0]);
        /// ```
        pub fn slice_axis, try_slice_axis(
            &self,
            axis: isize,
            start: usize,
            end: usize,
            step: usize,
        ) -> Tensor<T>,
            Axis | Value if "there is no such axis, `start > end`, `end` is beyond the axis or `step` is 0",
            "Tensor::from([1.0, 2.0]).try_slice_axis(0, 1, 3, 1)" => Value {
            // No axis is as long as `isize::MAX`.
            let [start, end, step] =
                [start, end, step].map(|at| Attr::Int(isize::try_from(at).unwrap_or(isize::MAX)));
            call(&SLICE, [Attr::Int(axis), start, end, step], [self.untyped()])
        }

        /// Returns element `index` of an axis, which is removed.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        /// assert_eq!(x.select(0, 1).to_vec(), [4.0, 5.0, 6.0]);
        /// ```
        pub fn select(&self, axis: isize, index: usize) -> Tensor<T>,
            Panics if "there is no such axis or it is not longer than `index`" {
            let len = self.length("select", axis);
            if index >= len {
                let (op, index) = ("select", i64::try_from(index).unwrap_or(i64::MAX));
                expect(Err(Error::Index { op, parameter: "index".into(), index, len }))
            }
            let _composite = Composite::here("select");
            self.slice_axis(axis, index, index + 1, 1).squeeze(axis)
        }
    }

    #[track_caller]
    pub(super) fn length(&self, op: &'static str, axis: isize) -> usize {
        self.shape()[expect(check_axis(op, axis, self.ndim()))]
    }
}

fn slice<T: Element>(
    x: &Tensor<T>,
    axis: isize,
    ends: [isize; 2],
    step: usize,
    caller: Caller,
) -> Result<Tensor<T>> {
    let position = check_axis("slice_axis", axis, x.ndim())?;
    let n = x.shape()[position];
    let [start, end] = slice_ends(axis, n, ends, step, format_args!("{:?}", x.shape()))?;
    // A longer step takes the first element only, as does this one.
    let step = step.min(n.max(1));
    let value = part(&x.read(), position, (start, end, step));
    let along = |(_, axis, start, step): Slice, dx: &Tensor<T>, shape: &[usize]| {
        let n = shape[check_axis("slice_axis", axis, shape.len())?];
        let end = if n == 0 { start } else { start + (n - 1) * step + 1 };
        dx.try_slice_axis(axis, start, end, step)
    };
    let kept = (x.shape_owned(), axis, start, step);
    Ok(linear("slice_axis", caller, x, value, kept, |kept, dy| slice_adjoint(&dy, kept), along))
}

/// A slice: the whole shape, the axis, the start and the step.
type Slice = (Shape, isize, usize, usize);

pub(super) fn part<T: Element>(
    x: &Value<T>,
    position: usize,
    (start, end, step): (usize, usize, usize),
) -> Value<T> {
    let mut shape = Shape::from_slice(x.shape());
    let mut strides = x.strides();
    let beyond = x.len() == 0 || start == shape[position];
    let offset = if beyond { 0 } else { start * strides[position] };
    shape[position] = (end - start).div_ceil(step);
    strides[position] *= step;
    if shape.contains(&0) {
        strides = row_major(&shape);
    }
    x.restrided(shape, strides, offset)
}

/// The adjoint of a slice: zeros of a shape with the elements of `x` at the positions of the slice.
#[track_caller]
fn slice_adjoint<T: Element>(
    x: &Tensor<T>,
    (shape, axis, start, step): Slice,
) -> Result<Tensor<T>> {
    let position = check_axis("slice_axis", axis, shape.len())?;
    let mut value = Value::full(shape.clone(), T::ZERO);
    let read = x.read();
    if !x.is_empty()
        && let Some(data) = value.as_mut_slice()
    {
        let own = row_major(&shape);
        let mut steps = own.clone();
        steps[position] *= step;
        let first = start * own[position];
        let (from, raw) = (read.strides(), read.raw());
        for_each_row(x.shape(), [&from, &steps], |[i, o], n, [s, t]| {
            let out = &mut data[first + o..];
            match (s, t) {
                (1, 1) => out[..n].copy_from_slice(&raw[i..i + n]),
                _ => (0..n).for_each(|k| out[k * t] = raw[i + k * s]),
            }
        });
    }
    let end = (start + x.shape()[position] * step).min(shape[position]);
    let kept = ((shape, axis, start, step), end);
    let back = |((_, axis, start, step), end): (Slice, usize), dy: Tensor<T>| {
        dy.try_slice_axis(axis, start, end, step)
    };
    let along = |(kept, _): (Slice, usize), dx: &Tensor<T>, _: &[usize]| slice_adjoint(dx, kept);
    Ok(linear("slice_axis", Location::caller(), x, value, kept, back, along))
}
