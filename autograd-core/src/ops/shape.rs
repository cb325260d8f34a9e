//! Ops that give elements another shape or order, and compute none.

use std::ops::Range;
use std::panic::Location;

use super::call::{call, finish, linear};
use super::names::Triangle;
use super::table::attr::{Attr, Type};
use super::table::form::{Dims, Form, ShapeOf};
use super::table::forms::{exactly, position, reshaped};
use super::table::values::{any, number};
use super::table::{Lengths, OpDef, entries};
use super::trace;
use super::{Caller, Numeric, expect};
use crate::array::shape::{axis as check_axis, broadcast, element_count};
use crate::array::{IntoDims, Shape, Value};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{Element, Elementwise, SavedAttr, Tensor, with_push};

entries! {
    SHAPES:

    /// Lengths of the axes, of which one may be free.
    RESHAPE = OpDef {
        attrs: &[("shape", Type::Dims)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![Form::new(x.dtype, reshaped(&x.dims, op.dims(0))?)])
        },
        run: |op, x, at| any!(x, x => reshape(&x, lengths(op.dims(0), x.shape())?, at)),
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

    TRIL = OpDef {
        run: |op, x, at| any!(x, x => triangle(&x, Triangle::Lower(op.int(0)), at)),
        ..triangle_op("tril")
    };

    TRIU = OpDef {
        run: |op, x, at| any!(x, x => triangle(&x, Triangle::Upper(op.int(0)), at)),
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
                _ => Ok(vec![x.clone()]),
            }
        },
        ..OpDef::new(name)
    }
}

/// Lengths of axes, the free one of which takes what is left of the elements of `from`.
fn lengths(dims: &Dims, from: &[usize]) -> Result<Shape> {
    if !dims.contains(&None) {
        return Ok(dims.iter().flatten().copied().collect());
    }
    let known: Shape = dims.iter().flatten().copied().collect();
    let count = element_count("reshape", from)?;
    let known = element_count("reshape", &known)?;
    let misfit = |expected| {
        Err(Error::Value {
            op: "reshape",
            parameter: "shape",
            expected,
            found: ShapeOf(dims).to_string(),
        })
    };
    if dims.iter().filter(|dim| dim.is_none()).count() > 1 {
        return misfit("at most one free length (-1)".to_owned());
    }
    if known == 0 || !count.is_multiple_of(known) {
        return misfit(format!(
            "lengths whose product divides {count}, the number of elements of {from:?}"
        ));
    }
    Ok(dims.iter().map(|dim| dim.unwrap_or(count / known)).collect())
}

/// The lengths that a call was given.
fn given(op: &'static str, dims: impl IntoDims) -> Result<Attr> {
    dims.into_dims().map(Attr::Dims).map_err(|n| Error::Value {
        op,
        parameter: "shape",
        expected: "lengths of 0 or more, or -1 for a free one".to_owned(),
        found: n.to_string(),
    })
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

impl<T: Element> Tensor<T> {
    /// The same elements in row-major order under another shape. Shares the buffer where it is
    /// row-major. One length may be free, which takes what is left: -1, or `None` beside lengths that
    /// are computed.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::<f32>::zeros([4, 6]);
    /// assert_eq!(x.reshape([-1, 3]).shape(), [8, 3]);
    /// assert_eq!(x.reshape([Some(x.len() / 12), None]).shape(), [2, 12]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the number of elements differs, a free length does not come out whole, or two are free; see
    /// [`Tensor::try_reshape`].
    #[doc(alias = "view")]
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoDims) -> Tensor<T> {
        expect(self.try_reshape(shape))
    }

    /// [`Tensor::reshape`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the number of elements differs, [`Error::Value`] if a free length does not come
    /// out whole, two are free, or one is negative and not -1.
    #[track_caller]
    pub fn try_reshape(&self, shape: impl IntoDims) -> Result<Tensor<T>> {
        call(&RESHAPE, [given("reshape", shape)?], [self.untyped()])
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
    finish("copy", caller, [x], x.read().into_owned(), Elementwise(()), pull)
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
    finish("contiguous", caller, [x], value, Elementwise(()), pull)
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
    Ok(finish("reshape", caller, [x], value, state, |shape, dy, _| Ok([Some(dy.reshape(shape))])))
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
    Ok(finish("permute", caller, [x], value, state, |positions, dy, _| {
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
    let pull = |shape: Shape, dy: Tensor<T>, _: [bool; 1]| Ok([Some(dy.sum_to(&shape))]);
    let state = with_push::<T, _, _>(Broadcast, SavedAttr(x.shape_owned()));
    Ok(finish("broadcast_to", caller, [x], value, state, pull))
}

linear! {
    Reshaped<Element, SavedAttr<Shape>> |_, dx, shape| dx.try_reshape(Shape::from_slice(shape));
    Permuted<Element, SavedAttr<Shape>> |positions, dx, _shape| {
        let order: Vec<isize> = positions.iter().map(|&position| position as isize).collect();
        dx.try_permute(&order)
    };
    Broadcast<Numeric, SavedAttr<Shape>> |_, dx, shape| dx.try_broadcast_to(shape);
}

impl Triangle {
    #[track_caller]
    fn of<T: Element>(self, x: &Tensor<T>) -> Result<Tensor<T>> {
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
fn triangle<T: Element>(x: &Tensor<T>, part: Triangle, caller: Caller) -> Result<Tensor<T>> {
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
    Ok(finish(part.name(), caller, [x], value, Elementwise(SavedAttr(part)), pull))
}

impl<T: Numeric> Tensor<T> {
    /// Broadcast to a shape that this one broadcasts to; -1 keeps the length of an axis. Copies nothing.
    ///
    /// # Panics
    ///
    /// If this shape does not broadcast to the other; see [`Tensor::try_broadcast_to`].
    #[doc(alias = "expand")]
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntoDims) -> Tensor<T> {
        expect(self.try_broadcast_to(shape))
    }

    /// [`Tensor::broadcast_to`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if this shape does not broadcast to the other, [`Error::Value`] if a length is
    /// negative and not -1.
    #[track_caller]
    pub fn try_broadcast_to(&self, shape: impl IntoDims) -> Result<Tensor<T>> {
        call(&BROADCAST_TO, [given("broadcast_to", shape)?], [self.untyped()])
    }
}

impl<T: Element> Tensor<T> {
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
