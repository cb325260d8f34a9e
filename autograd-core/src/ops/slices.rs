//! Parts of tensors, and joined tensors: slices, splits, concatenation.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use super::call::{call, linear};
use super::table::{
    Attr, Form, Inferred, Lengths, OpDef, Ran, ShapeOf, Type, Values, all, any, computed, entries,
    exactly, for_programs, message, position, same_along, same_dtype,
};
use super::trace;
use super::{Caller, expect, pairs};
use crate::array::pick::{self, AxisShape};
use crate::array::rows::for_each_row;
use crate::array::shape::{axis as check_axis, element_count, row_major};
use crate::array::{Shape, Value};
use crate::error::{Error, Result};
use crate::graph::{
    Composite, Edges, Element, Lost, Node, NodeRef, Op, Pull, Push, Rule, Slots, State, Tensor,
    finish, for_any, typed,
};

entries! {
    SLICES:

    CONCAT = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: for_programs(|op, inputs| concatenated(inputs, op.int(0))),
        run: |op, values, at| {
            fn typed<T: Element>(_: &Tensor<T>, of: (&Values, isize), at: Caller) -> Ran {
                computed(concat(&all::<T>(of.0)?, of.1, at))
            }
            let first = values.first().cloned().ok_or_else(no_tensors)?;
            for_any!(&first, x => typed(x, (&values, op.int(0)), at))
        },
        ..OpDef::new("concat")
    };

    /// A free `end` is the end of the axis.
    SLICE = OpDef {
        attrs: &[("axis", Type::Int), ("start", Type::Int), ("end", Type::Dims), ("step", Type::Int)],
        show: for_programs(|op| {
            let end = op.dims(2)[0].map_or(String::new(), |end| end.to_string());
            format!("axis={}, {}..{end}, step={}", op.int(0), op.int(1), op.int(3))
        }),
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let (axis, [start, step], end) =
                (op.int(0), [1, 3].map(|at| op.int(at) as usize), op.dims(2)[0]);
            let mut out = x.clone();
            let dim = &mut out.dims[position(axis, x.dims.len())?];
            if let Some(n) = dim.or(end) {
                let of = format_args!("{}", ShapeOf(&x.dims));
                let end = slice_end(axis, n, (start, end, step), of).map_err(message)?;
                *dim = Some((end - start).div_ceil(step));
            }
            Ok(vec![out])
        }),
        run: |op, x, at| {
            let [start, step] = [1, 3].map(|at| op.int(at) as usize);
            any!(x, x => slice(&x, op.int(0), (start, op.dims(2)[0], step), at))
        },
        lengths: Lengths::OfAxis,
        ..OpDef::new("slice")
    };

    FLIP = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: for_programs(same_along),
        run: |op, x, at| any!(x, x => flip(&x, op.int(0), at)),
        ..OpDef::new("flip")
    };
}

fn concatenated(inputs: &[&Form], axis: isize) -> Inferred {
    let Some((first, rest)) = inputs.split_first() else {
        return Err("takes one input or more, found none".to_owned());
    };
    let at = position(axis, first.dims.len())?;
    let mut out = (*first).clone();
    for form in rest {
        same_dtype(first, form)?;
        let differ = |how: String| {
            let (first, other) = (ShapeOf(&first.dims), ShapeOf(&form.dims));
            Err(format!("shapes {first} and {other} differ {how}"))
        };
        if form.dims.len() != out.dims.len() {
            return differ("in rank".to_owned());
        }
        for (i, (dim, other)) in out.dims.iter_mut().zip(&form.dims).enumerate() {
            *dim = match (*dim, *other) {
                (Some(a), Some(b)) if i == at => Some(a.checked_add(b).ok_or_else(|| {
                    format!("{a} and {b} on axis {axis} are too large for this machine")
                })?),
                (_, _) if i == at => None,
                (Some(a), Some(b)) if a != b => return differ(format!("beside axis {axis}")),
                (a, b) => a.or(b),
            };
        }
    }
    Ok(vec![out])
}

fn slice_end(
    axis: isize,
    n: usize,
    (start, end, step): (usize, Option<usize>, usize),
    of: fmt::Arguments<'_>,
) -> Result<usize> {
    let end = end.unwrap_or(n);
    if start <= end && end <= n && step > 0 {
        return Ok(end);
    }
    let expected = format!("start <= end <= {n} and step >= 1 on axis {axis} of {of}");
    let found = format!("{start}, {end} and {step}");
    Err(Error::value("slice_axis", "start, end and step", expected, found))
}

/// # Parts and joins
impl<T: Element> Tensor<T> {
    pairs! {
        /// Returns `len` elements of an axis from `start` on; the other axes are whole. No element is copied.
        pub fn narrow(&self, axis: isize, start: usize, len: usize) -> Tensor<T>,
            Panics if "there is no such axis or it has fewer than `start + len` elements" {
            let n = self.length("narrow", axis);
            if start.saturating_add(len) > n {
                let expected = format!("at most {n}, the length of axis {axis}");
                let found = format!("{start} + {len}");
                expect(Err(Error::value("narrow", "start + len", expected, found)))
            }
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
            Axis | Value if "there is no such axis, `start > end`, `end` is beyond the axis or `step` is 0" {
            let (start, step) = (Attr::Int(start as isize), Attr::Int(step as isize));
            call(&SLICE, [Attr::Int(axis), start, Attr::shape(&[end]), step], [self.untyped()])
        }

        /// Returns element `index` of an axis, which is removed.
        pub fn select(&self, axis: isize, index: usize) -> Tensor<T>,
            Panics if "there is no such axis or it is not longer than `index`" {
            let len = self.length("select", axis);
            if index >= len {
                let (op, index) = ("select", i64::try_from(index).unwrap_or(i64::MAX));
                expect(Err(Error::Index { op, parameter: "index".into(), index, len }))
            }
            self.slice_axis(axis, index, index + 1, 1).squeeze(axis)
        }
    }

    #[track_caller]
    pub(super) fn length(&self, op: &'static str, axis: isize) -> usize {
        self.shape()[expect(check_axis(op, axis, self.ndim()))]
    }

    pairs! {
        /// Reverses the order of an axis.
        pub fn flip(&self, axis: isize) -> Tensor<T>, Panics if "there is no such axis" {
            expect(flipped(self, axis))
        }

        /// Splits an axis into parts of equal length.
        pub fn split, try_split(&self, parts: usize, axis: isize) -> Vec<Tensor<T>>,
            Axis | Value | TooLarge if "there is no such axis, `parts` does not divide its length, or so many do \
                not fit in memory" {
            T::split(self, parts, axis, Location::caller())
        }

        /// Joins tensors along an axis; their other axes must agree.
        #[doc(alias = "cat")]
        #[doc(alias = "concatenate")]
        pub fn concat, try_concat(tensors: &[&Tensor<T>], axis: isize) -> Tensor<T>,
            Count | Axis | Shape if "there is no tensor, no such axis, or the other axes differ" {
            call(&CONCAT, [Attr::Int(axis)], tensors.iter().map(|x| x.untyped()))
        }

        /// Joins tensors of one shape along a new axis.
        pub fn stack(tensors: &[&Tensor<T>], axis: isize) -> Tensor<T>,
            Panics if "there is no tensor, no such position for an axis, or the shapes differ" {
            if let Some(first) = tensors.first() {
                expect(check_axis("stack", axis, first.ndim() + 1));
                if let Some(i) = tensors.iter().position(|t| t.shape() != first.shape()) {
                    let parameter = format!("tensors[{i}]");
                    let expected = format!("of shape {:?}, as the first is", first.shape());
                    expect(Err(Error::shape("stack", parameter, expected, tensors[i].shape())))
                }
            }
            let _composite = Composite::here();
            let raised: Vec<Tensor<T>> = tensors.iter().map(|t| t.unsqueeze(axis)).collect();
            let stacked = Tensor::try_concat(&raised.iter().collect::<Vec<_>>(), axis);
            expect(stacked.map_err(|error| error.called("stack")))
        }
    }
}

#[track_caller]
fn flipped<T: Element>(x: &Tensor<T>, axis: isize) -> Result<Tensor<T>> {
    call(&FLIP, [Attr::Int(axis)], [x.untyped()])
}

fn flip<T: Element>(x: &Tensor<T>, axis: isize, caller: Caller) -> Result<Tensor<T>> {
    let position = check_axis("flip", axis, x.ndim())?;
    let around = AxisShape::new(x.shape(), position);
    let value = x.row_major(x.shape_owned(), |data, out| pick::reverse(data, around, out));
    let along = |axis, dx: &Tensor<T>, _: &[usize]| flipped(dx, axis);
    Ok(linear(FLIP.name, caller, x, value, axis, |axis, dy| flipped(&dy, axis), along))
}

fn slice<T: Element>(
    x: &Tensor<T>,
    axis: isize,
    (start, end, step): (usize, Option<usize>, usize),
    caller: Caller,
) -> Result<Tensor<T>> {
    let position = check_axis("slice_axis", axis, x.ndim())?;
    let n = x.shape()[position];
    let end = slice_end(axis, n, (start, end, step), format_args!("{:?}", x.shape()))?;
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

fn part<T: Element>(
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

pub(super) fn split<T: Element>(
    x: &Tensor<T>,
    parts: usize,
    axis: isize,
    caller: Caller,
) -> Result<Vec<Tensor<T>>> {
    let position = check_axis("split", axis, x.ndim())?;
    let n = x.shape()[position];
    if parts == 0 || !n.is_multiple_of(parts) {
        let expected = format!("a divisor of {n}, the length of axis {axis}");
        return Err(Error::value("split", "parts", expected, parts));
    }
    let len = n / parts;
    let mut all = Vec::new();
    if all.try_reserve_exact(parts).is_err() {
        return Err(Error::TooLarge { op: "split", shape: vec![parts] });
    }
    if trace::is_noting() {
        let _composite = Composite::at(caller);
        for i in 0..parts {
            all.push(x.try_slice_axis(axis, i * len, (i + 1) * len, 1)?);
        }
        return Ok(all);
    }
    let lost = if x.is_recorded() { Lost::NONE } else { Lost::of("split", caller, x) };
    for i in 0..parts {
        let part = part(&x.read(), position, (i * len, (i + 1) * len, 1));
        all.push(Tensor::new(part).with_lost(lost));
    }
    // For elements without gradients, the rule is not even compiled.
    if const { !T::DTYPE.is_float() } || !x.is_recorded() {
        return Ok(all);
    }
    let shape = all.first().map(Tensor::shape_owned).unwrap_or_default();
    let call = SplitCall { axis, shape, taken: Mutex::new(vec![false; parts]) };
    let (op, state) =
        (const { &Split::<T>(PhantomData) }, State::new(Some(Arc::new(call)), &mut []));
    let node = NodeRef::record(op, Edges::One(x.edge()), state, caller);
    for (slot, part) in (0..).zip(&mut all) {
        part.attach(node.clone(), slot);
    }
    Ok(all)
}

/// The op of a split: the gradients of the parts, joined, are that of the whole.
struct Split<T>(PhantomData<fn() -> T>);

struct SplitCall {
    axis: isize,
    shape: Shape,
    /// Whether a backward took each part's gradient. Separate backwards may start from different parts.
    taken: Mutex<Vec<bool>>,
}

impl SplitCall {
    fn of(node: &Node) -> &Self {
        node.attrs().unwrap_or_else(|| unreachable!("it was recorded with the op"))
    }
}

impl<T: Element> Op for Split<T> {
    fn name(&self) -> &'static str {
        "split"
    }

    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let call = SplitCall::of(pull.node);
        let parts = {
            let mut all = call.taken.lock().unwrap_or_else(PoisonError::into_inner);
            let came = |part: usize| grads.get(part).is_some_and(Option::is_some);
            if (0..all.len()).any(|part| all[part] && came(part)) {
                return Err(Error::GraphFreed { op: "split", location: pull.node.location });
            }
            if !pull.retain {
                all.iter_mut().enumerate().for_each(|(part, taken)| *taken |= came(part));
            }
            all.len()
        };
        let zeros = || Tensor::new(Value::full(call.shape.clone(), T::ZERO));
        let mut grads = grads.into_iter();
        let grad = |_| grads.next().flatten().map_or_else(zeros, typed);
        let grads: Vec<Tensor<T>> = (0..parts).map(grad).collect();
        let grads: Vec<&Tensor<T>> = grads.iter().collect();
        let dx = Tensor::try_concat(&grads, call.axis)?;
        pull.sink.deliver(&pull.node.edges()[0], T::wrap(dx))
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let Some(Some(dx)) = push.tangents.first() else { return Ok(None) };
        let call = SplitCall::of(push.node);
        let parts = call.taken.lock().unwrap_or_else(PoisonError::into_inner).len();
        let parts = split::<T>(&typed(dx.clone()), parts, call.axis, Location::caller())?;
        Ok(Some(parts.into_iter().map(|part| Some(T::wrap(part))).collect()))
    }
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

fn no_tensors() -> Error {
    Error::Count { op: "concat", what: "or more tensors".into(), expected: 1, found: 0 }
}

fn concat_shape(shapes: &[&[usize]], axis: isize) -> Result<(Shape, usize)> {
    let first = *shapes.first().ok_or_else(no_tensors)?;
    let position = check_axis("concat", axis, first.len())?;
    let mut shape = Shape::from_slice(first);
    shape[position] = 0;
    for (i, own) in shapes.iter().enumerate() {
        let agrees = own.len() == shape.len()
            && (0..shape.len()).all(|k| k == position || own[k] == first[k]);
        if !agrees {
            let parameter = format!("tensors[{i}]");
            let expected =
                format!("of the first tensor's shape {first:?} except along axis {axis}");
            return Err(Error::shape("concat", parameter, expected, own));
        }
        shape[position] = shape[position].saturating_add(own[position]);
    }
    element_count("concat", &shape)?;
    Ok((shape, position))
}

fn concat<T: Element>(tensors: &[&Tensor<T>], axis: isize, caller: Caller) -> Result<Tensor<T>> {
    let (mut shapes, mut parts) = (Vec::new(), Vec::new());
    for tensor in tensors {
        shapes.push(tensor.shape());
        parts.push(tensor.read().into_owned().into_contiguous());
    }
    let (shape, position) = concat_shape(&shapes, axis)?;
    // 0 if there is nothing to copy: other axes may then have any length.
    let outer: usize = if shape.contains(&0) { 0 } else { shape[..position].iter().product() };
    let value = Value::written(shape, &mut |mut out| {
        for row in 0..outer {
            for part in &parts {
                let data = part.as_slice().unwrap_or(&[]);
                let n = data.len() / outer;
                let (to, rest) = out.split_at_mut(n);
                to.copy_from_slice(&data[row * n..(row + 1) * n]);
                out = rest;
            }
        }
    });
    Ok(finish(CONCAT.name, caller, tensors, value, || {
        let lengths: Vec<usize> = shapes.iter().map(|shape| shape[position]).collect();
        let again = lengths.clone();
        Rule::new([], move |_, dy: Tensor<T>, wants| {
            let (mut start, mut grads) = (0, Vec::new());
            for (&n, &wanted) in lengths.iter().zip(wants) {
                grads.push(wanted.then(|| dy.narrow(axis, start, n)));
                start += n;
            }
            Ok(grads)
        })
        .with_push(move |_, tangents: &[Option<Tensor<T>>], shape| {
            let mut parts = Vec::new();
            for (dx, &n) in tangents.iter().zip(&again) {
                let mut part = Shape::from_slice(shape);
                part[position] = n;
                parts.push(dx.clone().unwrap_or_else(|| Tensor::zeros(part)));
            }
            Tensor::try_concat(&parts.iter().collect::<Vec<_>>(), axis).map(Some)
        })
    }))
}
