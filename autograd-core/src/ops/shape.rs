//! Ops that move elements and compute none: reshape, transpose, slices, joins.

use std::cell::OnceCell;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use super::names::Triangle;
use super::table::attr::Type;
use super::table::form::{Dims, Form, ShapeOf};
use super::table::forms::{arithmetic, exactly, position, same_dtype};
use super::table::values::{Computed, Ran, Values, all, any, computed, number};
use super::table::{Inferred, Lengths, OpDef, call, entries};
use super::trace::{self, Attr};
use super::{Binary, Caller, Numeric, expect};
use crate::array::pick::{self, Around};
use crate::array::rows::for_each_row;
use crate::array::shape::{axis as check_axis, broadcast, element_count, row_major};
use crate::array::{IntoShape, Shape, Value};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{
    Edge, Edges, Element, Elementwise, Entries, Lost, Node, NodeRef, Op, Pull, Push, PushRule,
    SavedAttr, Saves, Slots, State, Tensor, for_any, is_grad_enabled, record, record_edges, typed,
    unrecorded, with_push,
};

/// The result of an op on one tensor of any element type, recorded where it must be.
fn finish<T: Element, S: Saves + 'static>(
    name: &'static str,
    caller: Caller,
    x: &Tensor<T>,
    value: Value<T>,
    state: S,
    pull: fn(S::Read, Tensor<T>, [bool; 1]) -> Result<[Option<Tensor<T>>; 1]>,
) -> Tensor<T> {
    if x.is_recorded() {
        record(name, caller, [x], value, state, pull)
    } else {
        unrecorded(name, caller, [x], value)
    }
}

entries! {
    MOVES:

    /// Lengths of the axes, of which one may be free.
    RESHAPE = OpDef {
        attrs: &[("shape", Type::Dims)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![Form::new(x.dtype, reshaped(&x.dims, op.dims(0))?)])
        },
        run: |op, x, at| any!(x, x => reshape(&x, lengths(op.dims(0), x.len())?, at)),
        lengths: Lengths::OneOpen,
        ..OpDef::new("reshape")
    };

    PERMUTE = OpDef {
        attrs: &[("order", Type::Ints)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![Form::new(x.dtype, permuted(&x.dims, op.ints(0))?)])
        },
        run: |op, x, at| any!(x, x => permute(&x, op.ints(0), at)),
        ..OpDef::new("permute")
    };

    /// A free axis of the shape has the input's length.
    BROADCAST_TO = OpDef {
        attrs: &[("shape", Type::Dims)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![Form::new(x.dtype, broadcast_dims(&x.dims, op.dims(0))?)])
        },
        run: |op, x, at| number!(x, x => broadcast_to(&x, whole(op.dims(0), x.shape()), at)),
        lengths: Lengths::OfInput,
        ..OpDef::new("broadcast_to")
    };

    CONCAT = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: |op, inputs| concatenated(inputs, op.int(0)),
        run: |op, values, at| {
            fn typed<T: Element>(_: &Tensor<T>, of: (&Values, isize), at: Caller) -> Ran {
                computed(concat(&all::<T>(of.0)?, of.1, at))
            }
            let first = values.first().cloned().ok_or_else(nothing)?;
            for_any!(&first, x => typed(x, (&values, op.int(0)), at))
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
            let [start, step] = [1, 3].map(|at| op.int(at) as usize);
            Ok(vec![sliced(x, op.int(0), [start, step], op.dims(2)[0])?])
        },
        run: |op, x, at| {
            let [start, step] = [1, 3].map(|at| op.int(at) as usize);
            any!(x, x => slice(&x, op.int(0), (start, op.dims(2)[0], step), at))
        },
        lengths: Lengths::OfAxis,
        ..OpDef::new("slice")
    };

    FLIP = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            position(op.int(0), x.dims.len())?;
            Ok(vec![x.clone()])
        },
        run: |op, x, at| any!(x, x => flip(&x, op.int(0), at)),
        ..OpDef::new("flip")
    };

    TRIL = OpDef {
        run: |op, x, at| number!(x, x => triangle(&x, Triangle::Lower(op.int(0)), at)),
        ..triangle_op("tril")
    };

    TRIU = OpDef {
        run: |op, x, at| number!(x, x => triangle(&x, Triangle::Upper(op.int(0)), at)),
        ..triangle_op("triu")
    };
}

const fn triangle_op(name: &'static str) -> OpDef {
    OpDef {
        attrs: &[("diagonal", Type::Int)],
        infer: |_, inputs| {
            let [x] = exactly(inputs)?;
            match x.dims.len() {
                0 | 1 => Err(format!("takes two axes or more, found {x}")),
                _ => Ok(vec![arithmetic(Binary::Add, x)?.clone()]),
            }
        },
        ..OpDef::new(name)
    }
}

/// Lengths of axes, the free one of which takes what is left of `count` elements.
fn lengths(dims: &Dims, count: usize) -> Computed<Shape> {
    if !dims.contains(&None) {
        return Ok(dims.iter().flatten().copied().collect());
    }
    let known = known_count(dims)?;
    if known == 0 || !count.is_multiple_of(known) {
        return Err(format!("{count} elements do not fit {}", ShapeOf(dims)));
    }
    Ok(dims.iter().map(|dim| dim.unwrap_or(count / known)).collect())
}

/// Lengths to broadcast to: a free axis keeps the length it has.
fn whole(dims: &Dims, from: &[usize]) -> Shape {
    let lead = dims.len().saturating_sub(from.len());
    let length = |(at, dim): (usize, &Option<usize>)| {
        dim.unwrap_or_else(|| {
            at.checked_sub(lead).and_then(|at| from.get(at)).copied().unwrap_or(1)
        })
    };
    dims.iter().enumerate().map(length).collect()
}

fn reshaped(from: &[Option<usize>], to: &[Option<usize>]) -> Result<Dims, String> {
    if to.iter().filter(|dim| dim.is_none()).count() > 1 {
        return Err("at most one axis of the new shape can be -1".to_owned());
    }
    let known = known_count(to)?;
    let mut out = Dims::from_slice(to);
    if from.contains(&None) {
        return Ok(out);
    }
    let count = known_count(from)?;
    let free = out.iter_mut().find(|dim| dim.is_none());
    let fits = match free {
        Some(dim) if known > 0 && count.is_multiple_of(known) => {
            *dim = Some(count / known);
            true
        }
        Some(_) => false,
        None => known == count,
    };
    if fits {
        return Ok(out);
    }
    Err(format!("{} has {count} elements, which do not fit {}", ShapeOf(from), ShapeOf(to)))
}

/// The product of the lengths that are known.
fn known_count(dims: &[Option<usize>]) -> Result<usize, String> {
    let count = dims.iter().flatten().try_fold(1_usize, |count, &n| count.checked_mul(n));
    count.ok_or_else(|| format!("{} is too large for this machine", ShapeOf(dims)))
}

fn permuted(dims: &[Option<usize>], order: &[isize]) -> Result<Dims, String> {
    if order.len() != dims.len() {
        return Err(format!("{} axes need as many positions, found {}", dims.len(), order.len()));
    }
    let mut seen = vec![false; dims.len()];
    order
        .iter()
        .map(|&axis| {
            let at = position(axis, dims.len())?;
            match std::mem::replace(&mut seen[at], true) {
                true => Err(format!("axis {axis} stands twice")),
                false => Ok(dims[at]),
            }
        })
        .collect()
}

fn concatenated(inputs: &[&Form], axis: isize) -> Inferred {
    let Some((first, rest)) = inputs.split_first() else {
        return Err("takes one input or more, found none".to_owned());
    };
    let at = position(axis, first.dims.len())?;
    let mut out = (*first).clone();
    for form in rest {
        same_dtype(first, form)?;
        if form.dims.len() != out.dims.len() {
            return Err(format!(
                "shapes {} and {} differ in rank",
                ShapeOf(&first.dims),
                ShapeOf(&form.dims)
            ));
        }
        for (i, (dim, other)) in out.dims.iter_mut().zip(&form.dims).enumerate() {
            *dim = match (*dim, *other) {
                (Some(a), Some(b)) if i == at => Some(a.checked_add(b).ok_or_else(|| {
                    format!("{a} and {b} on axis {axis} are too large for this machine")
                })?),
                (_, _) if i == at => None,
                (Some(a), Some(b)) if a != b => {
                    return Err(format!(
                        "shapes {} and {} differ beside axis {axis}",
                        ShapeOf(&first.dims),
                        ShapeOf(&form.dims)
                    ));
                }
                (a, b) => a.or(b),
            };
        }
    }
    Ok(vec![out])
}

/// Axes broadcast to `to`; one that is free there keeps its length.
fn broadcast_dims(from: &[Option<usize>], to: &[Option<usize>]) -> Result<Dims, String> {
    let wrong = || format!("{} cannot be broadcast to {}", ShapeOf(from), ShapeOf(to));
    let lead = to.len().checked_sub(from.len()).ok_or_else(wrong)?;
    let length =
        |(at, &to): (usize, &Option<usize>)| match (at.checked_sub(lead).map(|at| from[at]), to) {
            (Some(kept), None) => Ok(kept),
            (None, None) => Err(format!("{}: a new axis cannot be free", wrong())),
            (Some(Some(n)), Some(to)) if n != 1 && n != to => Err(wrong()),
            (_, to) => Ok(to),
        };
    to.iter().enumerate().map(length).collect()
}

fn sliced(
    x: &Form,
    axis: isize,
    [start, step]: [usize; 2],
    end: Option<usize>,
) -> Result<Form, String> {
    let at = position(axis, x.dims.len())?;
    let wrong =
        |end: usize| Err(format!("{start}..{end} by {step} is no part of axis {axis} of {x}"));
    let length = |end: usize| (end - start).div_ceil(step);
    let mut out = x.clone();
    out.dims[at] = match (x.dims[at], end) {
        (_, end) if step == 0 => return wrong(end.unwrap_or(0)),
        (Some(n), end) => match end.unwrap_or(n) {
            end if start <= end && end <= n => Some(length(end)),
            end => return wrong(end),
        },
        (None, Some(end)) if start > end => return wrong(end),
        (None, end) => end.map(length),
    };
    Ok(out)
}

impl<T: Element> Tensor<T> {
    /// The same elements in row-major order under another shape. Shares the buffer where it is
    /// row-major.
    ///
    /// # Panics
    ///
    /// If the number of elements differs; see [`Tensor::try_reshape`].
    #[doc(alias = "view")]
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoShape) -> Tensor<T> {
        expect(self.try_reshape(shape))
    }

    /// [`Tensor::reshape`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the number of elements differs.
    #[track_caller]
    pub fn try_reshape(&self, shape: impl IntoShape) -> Result<Tensor<T>> {
        call(&RESHAPE, [Attr::shape(&shape.into_shape())], [self.untyped()])
    }

    /// One axis with all elements in row-major order.
    #[track_caller]
    pub fn flatten(&self) -> Tensor<T> {
        self.reshape([self.len()])
    }

    /// The last two axes exchanged. Copies nothing.
    ///
    /// # Panics
    ///
    /// If there are fewer than two axes.
    #[doc(alias = "t")]
    #[track_caller]
    pub fn transpose(&self) -> Tensor<T> {
        let rank = self.ndim() as isize;
        if rank < 2 {
            expect(Err(Error::Shape {
                op: "transpose",
                parameter: RECEIVER.into(),
                expected: "of two axes or more".into(),
                found: self.shape().to_vec(),
            }))
        }
        let mut order: Vec<isize> = (0..rank).collect();
        order.swap(rank as usize - 2, rank as usize - 1);
        self.permute(&order)
    }

    /// The axes in another order: axis `i` of the result is axis `order[i]` of this tensor. Copies
    /// nothing.
    ///
    /// # Panics
    ///
    /// If `order` does not name every axis once.
    #[track_caller]
    pub fn permute(&self, order: &[isize]) -> Tensor<T> {
        expect(self.try_permute(order))
    }

    /// [`Tensor::permute`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Count`] or [`Error::Axis`] if `order` does not name every axis once.
    #[track_caller]
    pub fn try_permute(&self, order: &[isize]) -> Result<Tensor<T>> {
        call(&PERMUTE, [Attr::Ints(order.to_vec())], [self.untyped()])
    }

    /// A new axis of length 1 before position `axis` (negative: counted from the end, -1 after the
    /// last).
    ///
    /// # Panics
    ///
    /// If there is no such position.
    #[track_caller]
    pub fn unsqueeze(&self, axis: isize) -> Tensor<T> {
        let axis = expect(check_axis("unsqueeze", axis, self.ndim() + 1));
        let mut shape = self.shape_owned();
        shape.insert(axis, 1);
        self.reshape(shape)
    }

    /// Without an axis of length 1.
    ///
    /// # Panics
    ///
    /// If there is no such axis or it has another length; see [`Tensor::try_squeeze`].
    #[track_caller]
    pub fn squeeze(&self, axis: isize) -> Tensor<T> {
        expect(self.try_squeeze(axis))
    }

    /// [`Tensor::squeeze`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Axis`] if there is no such axis or it has another length than 1.
    #[track_caller]
    pub fn try_squeeze(&self, axis: isize) -> Result<Tensor<T>> {
        let rank = self.ndim();
        let mut shape = self.shape_owned();
        if shape.remove(check_axis("squeeze", axis, rank)?) != 1 {
            return Err(Error::Axis { op: "squeeze", axis, rank, why: "does not have length 1" });
        }
        self.try_reshape(shape)
    }

    /// `len` elements of an axis from `start` on; the other axes stay whole. Copies nothing.
    ///
    /// # Panics
    ///
    /// If there is no such axis or it has fewer than `start + len` elements.
    #[track_caller]
    pub fn narrow(&self, axis: isize, start: usize, len: usize) -> Tensor<T> {
        let narrowed = self.try_slice_axis(axis, start, start.saturating_add(len), 1);
        expect(narrowed.map_err(|error| match error {
            Error::Value { .. } => Error::Value {
                op: "narrow",
                parameter: "start + len",
                expected: format!("at most {}, the length of axis {axis}", self.length(axis)),
                found: format!("{start} + {len}"),
            },
            error => error.called("narrow"),
        }))
    }

    /// The elements `start, start + step, ..` below `end` of an axis. Copies nothing.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(vec![0.0, 1.0, 2.0, 3.0, 4.0]);
    /// assert_eq!(x.slice_axis(0, 1, 5, 2).to_vec(), [1.0, 3.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such axis, `start > end`, `end` is beyond the axis or `step` is 0.
    #[track_caller]
    pub fn slice_axis(&self, axis: isize, start: usize, end: usize, step: usize) -> Tensor<T> {
        expect(self.try_slice_axis(axis, start, end, step))
    }

    /// [`Tensor::slice_axis`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Axis`] if there is no such axis, [`Error::Value`] if `start`, `end` and `step` do
    /// not fit it.
    #[track_caller]
    pub fn try_slice_axis(
        &self,
        axis: isize,
        start: usize,
        end: usize,
        step: usize,
    ) -> Result<Tensor<T>> {
        let (start, step) = (Attr::Int(start as isize), Attr::Int(step as isize));
        call(&SLICE, [Attr::Int(axis), start, Attr::shape(&[end]), step], [self.untyped()])
    }

    /// Element `index` of an axis, which is taken away.
    ///
    /// # Panics
    ///
    /// If there is no such axis or it is not longer than `index`.
    #[track_caller]
    pub fn select(&self, axis: isize, index: usize) -> Tensor<T> {
        let picked = self.try_slice_axis(axis, index, index.saturating_add(1), 1);
        let picked = expect(picked.map_err(|error| match error {
            Error::Value { .. } => Error::Index {
                op: "select",
                parameter: "index".into(),
                index: i64::try_from(index).unwrap_or(i64::MAX),
                len: self.length(axis),
            },
            error => error.called("select"),
        }));
        picked.squeeze(axis)
    }

    /// The length of an axis that exists.
    fn length(&self, axis: isize) -> usize {
        let axis = if axis < 0 { axis + self.ndim() as isize } else { axis };
        self.shape()[axis as usize]
    }

    /// An axis in the opposite order.
    ///
    /// # Panics
    ///
    /// If there is no such axis.
    #[track_caller]
    pub fn flip(&self, axis: isize) -> Tensor<T> {
        expect(call(&FLIP, [Attr::Int(axis)], [self.untyped()]))
    }

    /// Parts of equal length along an axis.
    ///
    /// # Panics
    ///
    /// If there is no such axis or `parts` does not divide its length; see [`Tensor::try_split`].
    #[doc(alias = "chunk")]
    #[track_caller]
    pub fn split(&self, parts: usize, axis: isize) -> Vec<Tensor<T>> {
        expect(self.try_split(parts, axis))
    }

    /// [`Tensor::split`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Axis`] or [`Error::Value`].
    #[track_caller]
    pub fn try_split(&self, parts: usize, axis: isize) -> Result<Vec<Tensor<T>>> {
        T::split(self, parts, axis, Location::caller())
    }

    /// Tensors one after the other along an axis; the other axes agree.
    ///
    /// # Panics
    ///
    /// If there is no tensor, no such axis, or the other axes differ; see [`Tensor::try_concat`].
    #[doc(alias = "cat")]
    #[track_caller]
    pub fn concat(tensors: &[&Tensor<T>], axis: isize) -> Tensor<T> {
        expect(Tensor::try_concat(tensors, axis))
    }

    /// [`Tensor::concat`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Count`], [`Error::Axis`] or [`Error::Shape`].
    #[track_caller]
    pub fn try_concat(tensors: &[&Tensor<T>], axis: isize) -> Result<Tensor<T>> {
        call(&CONCAT, [Attr::Int(axis)], tensors.iter().map(|x| x.untyped()))
    }

    /// Tensors of one shape along a new axis.
    ///
    /// # Panics
    ///
    /// If there is no tensor, no such position for an axis, or the shapes differ.
    #[track_caller]
    pub fn stack(tensors: &[&Tensor<T>], axis: isize) -> Tensor<T> {
        if let Some(first) = tensors.first() {
            expect(check_axis("stack", axis, first.ndim() + 1));
            for (i, t) in tensors.iter().enumerate() {
                if t.shape() != first.shape() {
                    expect(Err(Error::Shape {
                        op: "stack",
                        parameter: format!("tensors[{i}]"),
                        expected: format!("of shape {:?}, as the first is", first.shape()),
                        found: t.shape().to_vec(),
                    }))
                }
            }
        }
        let raised: Vec<Tensor<T>> = tensors.iter().map(|t| t.unsqueeze(axis)).collect();
        let stacked = Tensor::try_concat(&raised.iter().collect::<Vec<_>>(), axis);
        expect(stacked.map_err(|error| error.called("stack")))
    }

    /// A tensor with the same elements and data of its own: a change in place of one is not seen by the
    /// other. Gradients flow through it.
    ///
    /// A [`clone`](Clone::clone) and a [`detach`](Tensor::detach)ed tensor share their data with this
    /// one; see [`Tensor`](Tensor#shared-data). The elements are copied when one of the two is changed.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0, 2.0]);
    /// x.set_stop_gradient(false);
    /// let mut y = x.copy();
    /// y *= 3.0;
    /// assert_eq!((x.to_vec(), y.to_vec()), (vec![1.0, 2.0], vec![3.0, 6.0]));
    /// y.sum().backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec(), [3.0, 3.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[doc(alias = "clone")]
    #[track_caller]
    pub fn copy(&self) -> Tensor<T> {
        T::copy(self, Location::caller())
    }

    /// The same elements in a row-major buffer; this tensor itself where they are so already.
    #[track_caller]
    pub fn contiguous(&self) -> Tensor<T> {
        T::contiguous(self, Location::caller())
    }
}

pub(super) fn copy<T: Element>(x: &Tensor<T>, caller: Caller) -> Tensor<T> {
    if trace::is_noting() {
        // Nothing changes in place in a program.
        return x.reshape(x.shape_owned());
    }
    let pull = |(), dy: Tensor<T>, _: [bool; 1]| Ok([Some(dy)]);
    finish("copy", caller, x, x.read().into_owned(), Elementwise(()), pull)
}

pub(super) fn contiguous<T: Element>(x: &Tensor<T>, caller: Caller) -> Tensor<T> {
    if trace::is_noting() {
        return x.reshape(x.shape_owned());
    }
    if x.read().is_row_major() {
        return x.clone();
    }
    let value = x.read().contiguous().into_owned();
    let pull = |(), dy: Tensor<T>, _: [bool; 1]| Ok([Some(dy)]);
    finish("contiguous", caller, x, value, Elementwise(()), pull)
}

fn flip<T: Element>(x: &Tensor<T>, axis: isize, caller: Caller) -> Result<Tensor<T>> {
    let position = check_axis("flip", axis, x.ndim())?;
    let value = {
        let read = x.read();
        let row_major = read.contiguous();
        let data = row_major.as_slice().unwrap_or(&[]);
        let around = Around::new(x.shape(), position);
        Value::written(x.shape_owned(), |out| pick::reverse(data, around, out))
    };
    let pull = |axis, dy: Tensor<T>, _: [bool; 1]| Ok([Some(dy.flip(axis))]);
    Ok(finish("flip", caller, x, value, Elementwise(SavedAttr(axis)), pull))
}

fn reshape<T: Element>(x: &Tensor<T>, shape: Shape, caller: Caller) -> Result<Tensor<T>> {
    let n = element_count("reshape", &shape)?;
    if n != x.len() {
        return Err(Error::Shape {
            op: "reshape",
            parameter: "shape".into(),
            expected: format!("a shape of {} elements, as {:?} has", x.len(), x.shape()),
            found: shape.to_vec(),
        });
    }
    let value = x.read().into_owned().reshaped(shape);
    let state = with_push::<T, _, _>(Reshaped, SavedAttr(x.shape_owned()));
    Ok(finish("reshape", caller, x, value, state, |shape, dy, _| Ok([Some(dy.reshape(shape))])))
}

fn permute<T: Element>(x: &Tensor<T>, order: &[isize], caller: Caller) -> Result<Tensor<T>> {
    let rank = x.ndim();
    if order.len() != rank {
        return Err(Error::Count {
            op: "permute",
            what: "axes in `order`".into(),
            expected: rank,
            found: order.len(),
        });
    }
    let mut positions = Shape::new();
    for &a in order {
        let position = check_axis("permute", a, rank)?;
        if positions.contains(&position) {
            return Err(Error::Axis { op: "permute", axis: a, rank, why: "stands twice" });
        }
        positions.push(position);
    }
    let value = {
        let x = x.read();
        let strides = x.strides();
        let shape = positions.iter().map(|&p| x.shape()[p]).collect();
        let strides = positions.iter().map(|&p| strides[p]).collect();
        x.restrided(shape, strides, 0)
    };
    let state = with_push::<T, _, _>(Permuted, SavedAttr(positions));
    Ok(finish("permute", caller, x, value, state, |positions, dy, _| {
        let mut back = vec![0; positions.len()];
        positions.iter().enumerate().for_each(|(i, &p)| back[p] = i as isize);
        Ok([Some(dy.permute(&back))])
    }))
}

fn broadcast_to<T: Numeric>(x: &Tensor<T>, shape: Shape, caller: Caller) -> Result<Tensor<T>> {
    element_count("broadcast_to", &shape)?;
    if broadcast("broadcast_to", x.shape(), &shape).ok().as_ref() != Some(&shape) {
        return Err(Error::Shape {
            op: "broadcast_to",
            parameter: "shape".into(),
            expected: format!("a shape that {:?} broadcasts to", x.shape()),
            found: shape.to_vec(),
        });
    }
    let value = x.read().broadcast_to(&shape);
    if !x.is_recorded() {
        return Ok(unrecorded("broadcast_to", caller, [x], value));
    }
    let pull = |shape: Shape, dy: Tensor<T>, _: [bool; 1]| Ok([Some(dy.sum_to(&shape))]);
    let state = with_push::<T, _, _>(Broadcast, SavedAttr(x.shape_owned()));
    Ok(record("broadcast_to", caller, [x], value, state, pull))
}

fn slice<T: Element>(
    x: &Tensor<T>,
    axis: isize,
    (start, end, step): (usize, Option<usize>, usize),
    caller: Caller,
) -> Result<Tensor<T>> {
    let position = check_axis("slice_axis", axis, x.ndim())?;
    let n = x.shape()[position];
    let end = end.unwrap_or(n);
    if start > end || end > n || step == 0 {
        return Err(Error::Value {
            op: "slice_axis",
            parameter: "start, end and step",
            expected: format!(
                "start <= end <= {n} and step >= 1 on axis {axis} of {:?}",
                x.shape()
            ),
            found: format!("{start}, {end} and {step}"),
        });
    }
    // A longer step takes the first element only, as this one does.
    let step = step.min(n.max(1));
    let value = part(&x.read(), position, (start, end, step));
    let state = with_push::<T, _, _>(Sliced, SavedAttr((x.shape_owned(), axis, start, step)));
    Ok(finish("slice_axis", caller, x, value, state, |(shape, axis, start, step), dy, _| {
        Ok([Some(dy.spread(shape, axis, start, step))])
    }))
}

/// Each `step`th element of an axis, from `start` to below `end`.
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
        return Err(Error::Value {
            op: "split",
            parameter: "parts",
            expected: format!("a divisor of {n}, the length of axis {axis}"),
            found: parts.to_string(),
        });
    }
    let len = n / parts;
    let mut all = Vec::new();
    if all.try_reserve_exact(parts).is_err() {
        panic!("out of memory: a list of {parts} tensors");
    }
    let ranges = (0..parts).map(|i| (i * len, (i + 1) * len, 1));
    if trace::is_noting() {
        for range in ranges {
            all.push(x.try_slice_axis(axis, range.0, range.1, range.2)?);
        }
        return Ok(all);
    }
    {
        let x = x.read();
        all.extend(ranges.map(|range| Tensor::new(part(&x, position, range))));
    }
    // The rule of elements without gradients is not even compiled.
    if const { !T::DTYPE.is_float() } || !x.is_recorded() {
        let lost = Lost::of("split", caller, x);
        return Ok(all.into_iter().map(|part| part.with_lost(lost)).collect());
    }
    let shape = all.first().map(Tensor::shape_owned).unwrap_or_default();
    let call = SplitCall { axis, shape, taken: Mutex::new(vec![false; parts]) };
    let (op, state) =
        (const { &Split::<T>(PhantomData) }, State::new(Some(Arc::new(call)), Entries::new()));
    let node = NodeRef::record(op, Edges::One(x.edge()), state, caller);
    for (slot, part) in (0..).zip(&mut all) {
        part.attach(node.clone(), slot);
    }
    Ok(all)
}

/// The op that gives parts: their gradients, one after the other, are that of the whole.
struct Split<T>(PhantomData<fn() -> T>);

struct SplitCall {
    axis: isize,
    /// Of each part.
    shape: Shape,
    /// Of which parts a backward took the gradient. One may walk from some, and another from others.
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
        let none = OnceCell::new();
        let none = || {
            let zeros = || Tensor::new(Value::full(call.shape.clone(), T::ZERO));
            Tensor::clone(none.get_or_init(zeros))
        };
        let mut grads = grads.into_iter();
        let grad = |_| grads.next().flatten().map_or_else(none, typed);
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

impl<T: Element> Tensor<T> {
    /// The opposite of a slice: zeros of `shape` with this tensor in the places of the slice.
    #[track_caller]
    fn spread(&self, shape: Shape, axis: isize, start: usize, step: usize) -> Tensor<T> {
        let position = expect(check_axis("slice_axis", axis, shape.len()));
        let end = (start + self.shape()[position] * step).min(shape[position]);
        let mut value = Value::full(shape.clone(), T::ZERO);
        let x = self.read();
        if x.len() > 0
            && let Some(data) = value.as_mut_slice()
        {
            let own = row_major(&shape);
            let mut steps = own.clone();
            steps[position] *= step;
            let first = start * own[position];
            let (from, raw) = (x.strides(), x.raw());
            for_each_row(x.shape(), [&from, &steps], |[i, o], n, [s, t]| {
                let out = &mut data[first + o..];
                match (s, t) {
                    (1, 1) => out[..n].copy_from_slice(&raw[i..i + n]),
                    (1, _) => (out.iter_mut().step_by(t).zip(&raw[i..i + n]))
                        .for_each(|(out, &x)| *out = x),
                    _ => (0..n).for_each(|k| out[k * t] = raw[i + k * s]),
                }
            });
        }
        let state = SavedAttr((axis, start, end, step));
        let pull = |(axis, start, end, step), dy: Tensor<T>, _: [bool; 1]| {
            Ok([Some(dy.slice_axis(axis, start, end, step))])
        };
        finish("slice_axis", Location::caller(), self, value, state, pull)
    }
}

/// The error of joining no tensors.
fn nothing() -> Error {
    Error::Count { op: "concat", what: "tensors, or more".into(), expected: 1, found: 0 }
}

fn concat<T: Element>(tensors: &[&Tensor<T>], axis: isize, caller: Caller) -> Result<Tensor<T>> {
    let first = tensors.first().ok_or_else(nothing)?;
    let position = check_axis("concat", axis, first.ndim())?;
    let mut shape = first.shape_owned();
    shape[position] = 0;
    for (i, t) in tensors.iter().enumerate() {
        let agrees = t.ndim() == shape.len()
            && (0..shape.len()).all(|k| k == position || t.shape()[k] == first.shape()[k]);
        if !agrees {
            return Err(Error::Shape {
                op: "concat",
                parameter: format!("tensors[{i}]"),
                expected: format!(
                    "of the shape {:?} of the first, but for axis {axis}",
                    first.shape()
                ),
                found: t.shape().to_vec(),
            });
        }
        shape[position] = shape[position].saturating_add(t.shape()[position]);
    }
    element_count("concat", &shape)?;
    let reads: Vec<_> = tensors.iter().map(|t| t.read()).collect();
    let parts: Vec<_> = reads.iter().map(|x| x.contiguous()).collect();
    // None where there is nothing to copy: other axes may be of any length then.
    let outer: usize = if shape.contains(&0) { 0 } else { shape[..position].iter().product() };
    let value = Value::build(shape, |out| {
        for row in 0..outer {
            for part in &parts {
                let data = part.as_slice().unwrap_or(&[]);
                let n = data.len() / outer;
                out.extend_from_slice(&data[row * n..(row + 1) * n]);
            }
        }
    });
    if !is_grad_enabled() || tensors.iter().all(|t| t.stop_gradient()) {
        let lost = |lost: Lost, x: &&Tensor<T>| lost.and(Lost::of("concat", caller, x));
        return Ok(Tensor::new(value).with_lost(tensors.iter().fold(Lost::NONE, lost)));
    }
    let edges: Vec<Edge> = tensors.iter().map(|t| t.edge()).collect();
    let lengths: Vec<usize> = tensors.iter().map(|t| t.shape()[position]).collect();
    Ok(record_edges(
        "concat",
        caller,
        edges,
        value,
        with_push::<T, _, _>(Concatenated, SavedAttr((lengths, axis))),
        |(lengths, axis), dy, wants| {
            let mut start = 0;
            Ok(lengths
                .iter()
                .zip(wants)
                .map(|(&n, wanted)| {
                    start += n;
                    wanted.then(|| dy.narrow(axis, start - n, n))
                })
                .collect())
        },
    ))
}

/// Forward mode: each is linear, so the tangent goes where the elements go.
macro_rules! moved {
    ($($name:ident<$bound:ident> $kept:ty: |$keeps:pat_param, $dx:ident, $shape:ident| $dy:expr;)*) => {$(
        struct $name;

        impl<T: $bound> PushRule<T, SavedAttr<$kept>> for $name {
            fn push(
                $keeps: $kept,
                $dx: &[Option<Tensor<T>>],
                $shape: &[usize],
            ) -> Result<Option<Tensor<T>>> {
                $dy
            }
        }
    )*};
}

moved! {
    Reshaped<Element> Shape: |_, dx, shape| match &dx[0] {
        Some(dx) => dx.try_reshape(Shape::from_slice(shape)).map(Some),
        None => Ok(None),
    };
    Permuted<Element> Shape: |positions, dx, _shape| match &dx[0] {
        Some(dx) => {
            let order: Vec<isize> = positions.iter().map(|&position| position as isize).collect();
            dx.try_permute(&order).map(Some)
        }
        None => Ok(None),
    };
    Broadcast<Numeric> Shape: |_, dx, shape| match &dx[0] {
        Some(dx) => dx.try_broadcast_to(Shape::from_slice(shape)).map(Some),
        None => Ok(None),
    };
    Sliced<Element> (Shape, isize, usize, usize): |(whole, axis, start, step), dx, shape| match &dx[0] {
        Some(dx) => {
            let n = shape[check_axis("slice_axis", axis, whole.len())?];
            let end = if n == 0 { start } else { start + (n - 1) * step + 1 };
            dx.try_slice_axis(axis, start, end, step).map(Some)
        }
        None => Ok(None),
    };
    Concatenated<Element> (Vec<usize>, isize): |(lengths, axis), dx, shape| {
        let position = check_axis("concat", axis, shape.len())?;
        let part = |(dx, n): (&Option<Tensor<T>>, usize)| {
            dx.clone().unwrap_or_else(|| {
                let mut part = Shape::from_slice(shape);
                part[position] = n;
                Tensor::new(Value::full(part, T::ZERO))
            })
        };
        let parts: Vec<Tensor<T>> = dx.iter().zip(lengths).map(part).collect();
        Tensor::try_concat(&parts.iter().collect::<Vec<_>>(), axis).map(Some)
    };
}

impl Triangle {
    #[track_caller]
    fn of<T: Numeric>(self, x: &Tensor<T>) -> Result<Tensor<T>> {
        let (def, diagonal) = match self {
            Self::Lower(diagonal) => (&TRIL, diagonal),
            Self::Upper(diagonal) => (&TRIU, diagonal),
        };
        call(def, [Attr::Int(diagonal)], [x.untyped()])
    }

    fn name(self) -> &'static str {
        match self {
            Self::Lower(_) => "tril",
            Self::Upper(_) => "triu",
        }
    }

    /// The columns of a row of length `n` that are in it.
    fn columns(self, row: usize, n: usize) -> Range<usize> {
        let on = |diagonal: isize| diagonal.saturating_add_unsigned(row);
        let clamped = |column: isize| usize::try_from(column).map_or(0, |column| column.min(n));
        match self {
            Self::Lower(diagonal) => 0..clamped(on(diagonal).saturating_add(1)),
            Self::Upper(diagonal) => clamped(on(diagonal))..n,
        }
    }
}

/// Zero elsewhere, whatever was there: the gradient likewise.
fn triangle<T: Numeric>(x: &Tensor<T>, part: Triangle, caller: Caller) -> Result<Tensor<T>> {
    let &[.., m, n] = x.shape() else {
        return Err(Error::Shape {
            op: part.name(),
            parameter: RECEIVER.into(),
            expected: "of two axes or more".into(),
            found: x.shape().to_vec(),
        });
    };
    let value = {
        let x = x.read();
        let x = x.contiguous();
        let rows = x.as_slice().unwrap_or(&[]).chunks_exact(n.max(1));
        Value::written(Shape::from_slice(x.shape()), |out| {
            for (i, (to, from)) in out.chunks_exact_mut(n.max(1)).zip(rows).enumerate() {
                let columns = part.columns(i % m, n);
                to[..columns.start].fill(T::ZERO);
                to[columns.clone()].copy_from_slice(&from[columns.clone()]);
                to[columns.end..].fill(T::ZERO);
            }
        })
    };
    let pull = |part: Triangle, dy: Tensor<T>, _: [bool; 1]| Ok([Some(part.of(&dy)?)]);
    Ok(finish(part.name(), caller, x, value, Elementwise(SavedAttr(part)), pull))
}

impl<T: Numeric> Tensor<T> {
    /// Broadcast to a shape that this one broadcasts to. Copies nothing.
    ///
    /// # Panics
    ///
    /// If this shape does not broadcast to the other; see [`Tensor::try_broadcast_to`].
    #[doc(alias = "expand")]
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntoShape) -> Tensor<T> {
        expect(self.try_broadcast_to(shape))
    }

    /// [`Tensor::broadcast_to`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if this shape does not broadcast to the other.
    #[track_caller]
    pub fn try_broadcast_to(&self, shape: impl IntoShape) -> Result<Tensor<T>> {
        call(&BROADCAST_TO, [Attr::shape(&shape.into_shape())], [self.untyped()])
    }

    /// The lower triangle of the last two axes; zero above diagonal `diagonal`, whatever was there: also for
    /// NaN and infinities, and in the gradient. Diagonal 1 is the one above the main diagonal, -1 the one
    /// below.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[1.0, f64::INFINITY], [3.0, 4.0]]);
    /// assert_eq!(x.tril(0).to_vec(), [1.0, 0.0, 3.0, 4.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If there are fewer than two axes.
    #[track_caller]
    pub fn tril(&self, diagonal: isize) -> Tensor<T> {
        expect(Triangle::Lower(diagonal).of(self))
    }

    /// The upper triangle of the last two axes; zero below diagonal `diagonal`, as in [`Tensor::tril`].
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.triu(1).to_vec(), [0.0, 2.0, 0.0, 0.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If there are fewer than two axes.
    #[track_caller]
    pub fn triu(&self, diagonal: isize) -> Tensor<T> {
        expect(Triangle::Upper(diagonal).of(self))
    }
}
