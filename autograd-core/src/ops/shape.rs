//! Ops that change the shape or the order of elements.

use std::panic::Location;

use smallvec::smallvec;

use super::call::{call, linear};
use super::masks::choose;
use super::table::{
    Attr, Dims, Form, Lengths, OpDef, Operator, ShapeOf, Type, any, broadcast as broadcast_forms,
    computed, entries, exactly, for_programs, message, number, one,
};
use super::{Caller, Numeric, expect, pairs};
use crate::array::shape::{
    axes as check_axes, axis as check_axis, broadcast, copied, element_count, same,
};
use crate::array::{IntoDims, Shape, Value};
use crate::error::{Error, Plural, RECEIVER, Result};
use crate::graph::{AnyTensor, Composite, Element, Tensor, is_grad_enabled, is_noting, unrecorded};

entries! {
    SHAPES:

    /// The lengths of the axes. Free ones are lengths of the input's axes, and one follows from the number of elements.
    RESHAPE = OpDef {
        attrs: &[("shape", Type::Dims), ("kept", Type::Kept)],
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let to = &with_kept(op, &x.dims);
            let known = |dims: &Dims| dims.iter().flatten().copied().collect::<Shape>();
            if x.dims.contains(&None) {
                // The number of elements is unknown, so only the shape itself is checked.
                if op.ints(1).is_empty() {
                    lengths(to, &known(to)).map_err(message)?;
                }
                return Ok(vec![Form::new(x.dtype, to.clone())]);
            }
            let shape = lengths(to, &known(&x.dims)).map_err(message)?;
            Ok(vec![Form::new(x.dtype, shape.into_iter().map(Some).collect())])
        }),
        run: |op, x, at| any!(x, x => {
            let from = x.shape();
            let shape = match op.ints(1) {
                [] => lengths(op.dims(0), from)?,
                _ => lengths(&with_kept(op, &from.iter().copied().map(Some).collect()), from)?,
            };
            Ok(reshape(&x, shape, at))
        }),
        lengths: Lengths::OfReshape,
        ..OpDef::new("reshape")
    };

    PERMUTE = OpDef {
        attrs: &[("order", Type::Ints)],
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let positions = order(op.ints(0), x.dims.len()).map_err(message)?;
            Ok(vec![Form::new(x.dtype, positions.iter().map(|&at| x.dims[at]).collect())])
        }),
        run: |op, x, at| any!(x, x => Ok(permute(&x, order(op.ints(0), x.ndim())?, at))),
        ..OpDef::new("permute")
    };

    /// A free axis of the shape takes the input's length.
    BROADCAST_TO = OpDef {
        attrs: &[("shape", Type::Dims)],
        infer: for_programs(|op, inputs| {
            let ([x], to) = (exactly(inputs)?, op.dims(0));
            // A free axis may be broadcast to any length, like an axis of length 1.
            let from: Shape = x.dims.iter().map(|dim| dim.unwrap_or(1)).collect();
            wide(to, &from).map_err(message)?;
            let lead = to.len() - from.len();
            let length = |(at, dim): (usize, &Option<usize>)| dim.or_else(|| x.dims[at - lead]);
            Ok(vec![Form::new(x.dtype, to.iter().enumerate().map(length).collect())])
        }),
        run: |op, x, at| number!(x, x => Ok(broadcast_to(&x, wide(op.dims(0), x.shape())?, at))),
        lengths: Lengths::OfInput,
        ..OpDef::new("broadcast_to")
    };

    /// A free length is that of the input's axis.
    SUM_TO = OpDef {
        attrs: &[("shape", Type::Dims)],
        infer: for_programs(|op, inputs| {
            let ([x], to) = (exactly(inputs)?, op.dims(0));
            if broadcast_forms(to, &x.dims)?.len() > x.dims.len() {
                return Err(format!("{} cannot be broadcast to {x}", ShapeOf(to)));
            }
            let lead = x.dims.len() - to.len();
            let length = |(at, dim): (usize, &Option<usize>)| dim.or(x.dims[at + lead]);
            Ok(vec![Form::new(x.dtype, to.iter().enumerate().map(length).collect())])
        }),
        run: |op, x, _| number!(x, x => sum_to(&x, op.dims(0))),
        lengths: Lengths::OfInput,
        ..OpDef::new("sum_to")
    };

    TRIL = triangle_op("tril");

    TRIU = triangle_op("triu");
}

const fn triangle_op(name: &'static str) -> OpDef {
    OpDef {
        attrs: &[("diagonal", Type::Int)],
        infer: for_programs(|_, inputs| {
            let [x] = exactly(inputs)?;
            match x.dims.len() {
                0 | 1 => Err(format!("takes two axes or more, found {x}")),
                _ => Ok(vec![x.clone()]),
            }
        }),
        // Elements outside the triangle become 0, whatever their value.
        run: |op, x, at| {
            let x = one(x)?;
            let inside = triangle(op, x.shape())?;
            match x {
                AnyTensor::Bool(x) => computed(Ok(x.and(&inside))),
                x => number!(smallvec![x], x => {
                    choose(op.def.name, &inside, &x, &Tensor::default(), at)
                }),
            }
        },
        ..OpDef::new(name)
    }
}

/// The shape of a reshape, with the lengths of the input's axes that are kept.
fn with_kept(op: &Operator, from: &Dims) -> Dims {
    let mut kept = op.ints(1).iter();
    let mut length =
        |dim: &Option<usize>| dim.or_else(|| *from.get(usize::try_from(*kept.next()?).ok()?)?);
    op.dims(0).iter().map(&mut length).collect()
}

/// Returns the lengths of the axes; a free length follows from the number of elements of `from`.
fn lengths(dims: &Dims, from: &[usize]) -> Result<Shape> {
    let op = "reshape";
    let known: Shape = dims.iter().flatten().copied().collect();
    let (product, count) = (element_count(op, &known)?, element_count(op, from)?);
    let expected = match dims.len() - known.len() {
        0 if product == count => return Ok(known),
        0 => {
            let of = Plural(count, "element", "elements");
            let expected =
                format!("a shape with {of}, as many as the tensor of shape {from:?} has");
            return Err(Error::shape(op, "shape", expected, &known));
        }
        1 if product > 0 && count.is_multiple_of(product) => {
            return Ok(dims.iter().map(|dim| dim.unwrap_or(count / product)).collect());
        }
        1 if product == 0 => {
            "lengths other than 0 beside -1, whose length is not determined".to_owned()
        }
        1 => format!("lengths whose product divides {count}, the number of elements of {from:?}"),
        _ => "a shape with at most one free length (-1)".to_owned(),
    };
    Err(Error::value(op, "shape", expected, ShapeOf(dims)))
}

fn given(op: &'static str, dims: impl IntoDims) -> Result<Attr> {
    let expected = "lengths of 0 or more, or -1 for a free one";
    dims.into_dims().map(Attr::Dims).map_err(|n| Error::value(op, "shape", expected, n))
}

/// Returns the lengths to which axes of the lengths `from` are broadcast; a free axis keeps its length.
fn wide(dims: &Dims, from: &[usize]) -> Result<Shape> {
    let op = "broadcast_to";
    let lead = dims.len().saturating_sub(from.len());
    let kept = |at: usize| at.checked_sub(lead).and_then(|at| from.get(at)).copied();
    let lengths = dims.iter().enumerate().map(|(at, dim)| dim.or_else(|| kept(at)));
    let Some(to) = lengths.collect::<Option<Shape>>() else {
        let expected = format!("a shape that {from:?} broadcasts to, with a length for a new axis");
        return Err(Error::value(op, "shape", expected, ShapeOf(dims)));
    };
    element_count(op, &to)?;
    if broadcast(op, from, &to).ok().as_ref() == Some(&to) {
        return Ok(to);
    }
    Err(Error::shape(op, "shape", format!("a shape that {from:?} broadcasts to"), &to))
}

fn order(given: &[isize], rank: usize) -> Result<Shape> {
    let op = "permute";
    if given.len() != rank {
        let what = "axes in `order`".into();
        return Err(Error::Count { op, what, expected: rank, found: given.len() });
    }
    check_axes(op, given, rank)?;
    given.iter().map(|&axis| Ok(check_axis(op, axis, rank)?)).collect()
}

// Not in `pairs!`: the compiler quotes this signature in the error of a call on an `Option`.
/// # Shapes
impl<T: Element> Tensor<T> {
    /// Returns the elements in row-major order with another shape; shares a row-major buffer. One length may
    /// be free and follows from the others: -1, or `None` beside lengths that are computed.
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
    /// If the number of elements differs, a free length would not be whole, or two are free; see
    /// [`Tensor::try_reshape`].
    #[doc(alias = "view")]
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoDims) -> Tensor<T> {
        expect(self.try_reshape(shape))
    }

    /// [`Tensor::reshape`], with an error instead of a panic.
    ///
    /// ```
    /// use autograd_core::{Error, Tensor};
    ///
    /// let x = Tensor::<f32>::zeros([4, 6]);
    /// assert_eq!(x.try_reshape([-1, 3])?.shape(), [8, 3]);
    /// assert!(matches!(x.try_reshape([5, 5]), Err(Error::Shape { .. })));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the number of elements differs, [`Error::Value`] if a free length would
    /// not be whole, two are free, or one is negative and not -1.
    #[track_caller]
    pub fn try_reshape(&self, shape: impl IntoDims) -> Result<Tensor<T>> {
        call(&RESHAPE, [given("reshape", shape)?, Attr::NONE_KEPT], [self.untyped()])
    }

    pairs! {
        /// Permutes the axes: axis `i` of the result is axis `order[i]` of this tensor. No element is copied.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        /// assert_eq!(x.unsqueeze(0).permute(&[2, 0, 1]).shape(), [3, 1, 2]);
        /// ```
        #[doc(alias = "permute_dims")]
        pub fn permute, try_permute(&self, order: &[isize]) -> Tensor<T>,
            Count | Axis if "`order` does not name every axis once",
            "Tensor::<f64>::ones([2, 3]).try_permute(&[0, 0])" => Axis {
            call(&PERMUTE, [Attr::Ints(order.to_vec())], [self.untyped()])
        }
    }

    /// Returns all elements in row-major order along one axis.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.flatten().shape(), [6]);
    /// ```
    #[doc(alias = "ravel")]
    #[track_caller]
    pub fn flatten(&self) -> Tensor<T> {
        self.reshape([self.len()])
    }

    /// Returns a tensor with the same elements and its own data, unlike a [`clone`](Clone::clone) or a
    /// [`detach`](Tensor::detach)ed tensor: see [`Tensor`](Tensor#shared-data). Gradients flow through the
    /// copy. The elements are copied when one of the two is changed.
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

    /// Returns the same elements in a row-major buffer: as [`Tensor::copy`], if they are row-major already.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.t().contiguous().to_vec(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// ```
    #[track_caller]
    pub fn contiguous(&self) -> Tensor<T> {
        T::contiguous(self, Location::caller())
    }

    /// This result of an op: a copy if the op changed nothing and `operand` itself came out of it.
    #[track_caller]
    pub(crate) fn apart_from(self, operand: &Tensor<T>) -> Tensor<T> {
        if self.is_same(operand) { operand.copy() } else { self }
    }
}

pub(super) fn copy<T: Element>(x: &Tensor<T>, caller: Caller) -> Tensor<T> {
    same_elements("copy", caller, x, Value::clone)
}

pub(super) fn contiguous<T: Element>(x: &Tensor<T>, caller: Caller) -> Tensor<T> {
    same_elements("contiguous", caller, x, |value| value.contiguous().into_owned())
}

fn same_elements<T: Element>(
    name: &'static str,
    caller: Caller,
    x: &Tensor<T>,
    copied: fn(&Value<T>) -> Value<T>,
) -> Tensor<T> {
    let _composite = Composite::at(caller);
    if is_noting() {
        // A program changes nothing in place, so the data may be shared. Any axis may be free.
        return x.permute(&(0..x.ndim() as isize).collect::<Vec<_>>());
    }
    let value = copied(&x.read());
    linear(name, caller, x, value, (), |(), dy| Ok(dy), |(), dx, _| Ok(dx.clone()))
}

fn reshape<T: Element>(x: &Tensor<T>, shape: Shape, caller: Caller) -> Tensor<T> {
    let value = x.read().into_owned().reshaped(shape);
    let back = |shape: Shape, dy: Tensor<T>| dy.try_reshape(shape);
    let along = |_, dx: &Tensor<T>, shape: &[usize]| dx.try_reshape(Shape::from_slice(shape));
    linear(RESHAPE.name, caller, x, value, x.shape_owned(), back, along)
}

fn permute<T: Element>(x: &Tensor<T>, positions: Shape, caller: Caller) -> Tensor<T> {
    let value = {
        let x = x.read();
        x.restrided(reordered(x.shape(), &positions), reordered(&x.strides(), &positions), 0)
    };
    let back = |positions: Shape, dy: Tensor<T>| dy.try_permute(&inverse(&positions));
    let along = |positions: Shape, dx: &Tensor<T>, _: &[usize]| dx.try_permute(&signed(&positions));
    linear(PERMUTE.name, caller, x, value, positions, back, along)
}

fn reordered(lengths: &[usize], positions: &[usize]) -> Shape {
    positions.iter().map(|&position| lengths[position]).collect()
}

pub(super) fn inverse(order: &[usize]) -> Vec<isize> {
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &axis)| inverse[axis] = at as isize);
    inverse
}

pub(super) fn signed(positions: &[usize]) -> Vec<isize> {
    positions.iter().map(|&position| position as isize).collect()
}

fn broadcast_to<T: Numeric>(x: &Tensor<T>, shape: Shape, caller: Caller) -> Tensor<T> {
    let back = |shape: Shape, dy: Tensor<T>| Ok(dy.unbroadcast(&shape));
    let along = |_, dx: &Tensor<T>, shape: &[usize]| dx.try_broadcast_to(shape);
    let value = x.read().broadcast_to(&shape);
    linear(BROADCAST_TO.name, caller, x, value, x.shape_owned(), back, along)
}

fn triangle(op: &Operator, shape: &[usize]) -> Result<Tensor<bool>> {
    let &[.., m, n] = shape else {
        return Err(Error::shape(op.def.name, RECEIVER, "of two axes or more", shape));
    };
    let (lower, diagonal) = (op.def.name == "tril", op.int(0));
    Ok(Tensor::from_value(Value::written(Shape::from_slice(&[m, n]), &mut |out| {
        for (row, out) in (0..).zip(out.chunks_exact_mut(n.max(1))) {
            // The number of elements left of the diagonal; in a lower triangle, including the diagonal.
            let left = diagonal.saturating_add(row).saturating_add(lower.into());
            let (left, right) = out.split_at_mut(left.clamp(0, n as isize) as usize);
            left.fill(lower);
            right.fill(!lower);
        }
    })))
}

/// # Broadcasting
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Broadcasts to another shape; -1 keeps the length of an axis. No element is copied.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([1.0, 2.0]);
        /// assert_eq!(x.broadcast_to([2, -1]).to_vec(), [1.0, 2.0, 1.0, 2.0]);
        /// ```
        #[doc(alias = "expand")]
        pub fn broadcast_to, try_broadcast_to(&self, shape: impl IntoDims) -> Tensor<T>,
            Shape | Value if "this shape does not broadcast to the other, or a length is negative and not -1",
            "Tensor::from([1.0, 2.0]).try_broadcast_to([3])" => Shape {
            call(&BROADCAST_TO, [given("broadcast_to", shape)?], [self.untyped()])
        }

        /// Sums over the axes along which broadcasting repeats a tensor of `shape` to this one's: the
        /// gradient of a broadcast operand.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let dy = Tensor::from([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]);
        /// assert_eq!(dy.sum_to(&[3]).to_vec(), [11.0, 22.0, 33.0]);
        /// assert_eq!(dy.sum_to(&[2, 1]).to_vec(), [6.0, 60.0]);
        /// ```
        #[doc(alias = "sum_to_size")]
        pub fn sum_to, try_sum_to(&self, shape: &[usize]) -> Tensor<T>,
            Shape if "`shape` cannot be broadcast to this one",
            "Tensor::from([1.0, 2.0]).try_sum_to(&[3])" => Shape {
            call(&SUM_TO, [Attr::shape(shape)], [self.untyped()])
        }
    }

    /// [`Tensor::broadcast_to`] for a shape that is known to fit.
    #[track_caller]
    pub(crate) fn rebroadcast(&self, shape: &[usize]) -> Tensor<T> {
        match is_noting() {
            true => self.broadcast_to(shape),
            false => broadcast_to(self, copied(shape), Location::caller()),
        }
    }

    /// [`Tensor::sum_to`] for a shape that is known to fit.
    #[track_caller]
    pub(crate) fn unbroadcast(self, shape: &[usize]) -> Tensor<T> {
        if self.shape() == shape {
            return self;
        }
        let axes = broadcast_axes(self.shape(), shape);
        if !is_grad_enabled() && !is_noting() {
            return summed_to(&self, &axes, shape);
        }
        let summed = if axes.is_empty() { self } else { self.sum_axes_keep(signed(&axes)) };
        if summed.shape() == shape { summed } else { summed.reshape(Shape::from_slice(shape)) }
    }
}

#[track_caller]
fn sum_to<T: Numeric>(x: &Tensor<T>, dims: &Dims) -> Result<Tensor<T>> {
    let lead = x.ndim().saturating_sub(dims.len());
    let own = |at: usize| x.shape().get(at + lead).copied();
    let lengths = dims.iter().enumerate().map(|(at, dim)| dim.or_else(|| own(at)));
    let shape: Shape = lengths.flatten().collect();
    let fits = broadcast("sum_to", &shape, x.shape());
    if fits.is_ok_and(|whole| same(&whole, x.shape())) {
        // The reshape gives a new tensor even if nothing is summed.
        return Ok(x.try_reshape(x.shape_owned())?.unbroadcast(&shape));
    }
    let expected = format!("one that can be broadcast to {:?}", x.shape());
    Err(Error::shape("sum_to", "shape", expected, &shape))
}

fn broadcast_axes(wide: &[usize], shape: &[usize]) -> Shape {
    let extra = wide.len() - shape.len();
    let is_broadcast = |&i: &usize| i < extra || (shape[i - extra] == 1 && wide[i] != 1);
    (0..wide.len()).filter(is_broadcast).collect()
}

fn summed_to<T: Numeric>(x: &Tensor<T>, axes: &[usize], shape: &[usize]) -> Tensor<T> {
    let sum = expect(T::sum("sum", &x.read(), axes)).reshaped(copied(shape));
    unrecorded("sum", Location::caller(), &[x], sum)
}

/// # Triangles
impl<T: Element> Tensor<T> {
    pairs! {
        /// Returns the lower triangle of the last two axes. Elements above diagonal `diagonal` (0 is the main
        /// one, 1 above it) become 0, even NaN and infinities, and so does their gradient.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, f64::INFINITY], [3.0, 4.0]]);
        /// assert_eq!(x.tril(0).to_vec(), [1.0, 0.0, 3.0, 4.0]);
        /// ```
        pub fn tril(&self, diagonal: isize) -> Tensor<T>,
            Panics if "there are fewer than two axes" {
            expect(call(&TRIL, [Attr::Int(diagonal)], [self.untyped()]))
        }

        /// Returns the upper triangle, zero below diagonal `diagonal`; see [`Tensor::tril`].
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        /// assert_eq!(x.triu(1).to_vec(), [0.0, 2.0, 0.0, 0.0]);
        /// ```
        pub fn triu(&self, diagonal: isize) -> Tensor<T>,
            Panics if "there are fewer than two axes" {
            expect(call(&TRIU, [Attr::Int(diagonal)], [self.untyped()]))
        }
    }
}
