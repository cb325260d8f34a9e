//! Ops that pick elements by an integer tensor. Picking and adding back are each other's adjoints, so
//! each is the other's rule, for every order of derivative.

use std::ptr;

use smallvec::smallvec;

use super::call::call;
use super::table::{
    Attr, Computed, Form, Inferred, OpDef, Operator, Type, arithmetic, computed, entries, exactly,
    for_programs, number, position, same_dtype, several,
};
use super::{Binary, Caller, Numeric, pairs};
use crate::array::integer::Additions;
use crate::array::pick::{self, AxisShape};
use crate::array::rows::for_each_row;
use crate::array::shape::{axis as check_axis, copied, element_count, row_major};
use crate::array::{DType, Shape, Value};
use crate::error::{Error, Plural, RECEIVER, Result};
use crate::graph::{AnyTensor, Element, Rule, Saved, Tensor, finish, unrecorded};

const CHECKED_AT_ONCE: usize = 256;

pub(crate) fn check_indices(
    op: &'static str,
    parameter: &str,
    index: &Value<i64>,
    len: usize,
) -> Result<()> {
    let index = index.contiguous();
    let data = index.as_slice().unwrap_or(&[]);
    // As an unsigned number, a negative index is outside every axis.
    let outside = |&i: &i64| i as u64 >= len as u64;
    // A loop that may end at each element is not vectorized.
    let any = |part: &[i64]| part.iter().fold(false, |any, i| any | outside(i));
    if !data.chunks(CHECKED_AT_ONCE).any(any) {
        return Ok(());
    }
    let Some(at) = data.iter().position(outside) else { return Ok(()) };
    let position = place(at, index.shape());
    let parameter = match position.is_empty() {
        true => parameter.into(),
        false if parameter == RECEIVER => format!("element {position:?} of {parameter}"),
        false => format!("{parameter}{position:?}"),
    };
    let index = data[at];
    Err(Error::Index { op, parameter, index, len })
}

/// Returns the position on each axis of the element at a row-major position.
pub(super) fn place(at: usize, shape: &[usize]) -> Vec<usize> {
    row_major(shape).iter().zip(shape).map(|(stride, n)| at / stride % n).collect()
}

/// Calls `visit(i, picked)` for each index in row-major order, with the picked element's offset.
fn for_each_picked(
    index: &Value<i64>,
    axis: usize,
    strides: &[usize],
    visit: &mut dyn FnMut(usize, usize),
) {
    let mut others = Shape::from_slice(strides);
    others[axis] = 0;
    let (own, raw) = (index.strides(), index.raw());
    let mut position = 0;
    for_each_row(index.shape(), [&own, &others], |[at, start], n, [step, other]| {
        for k in 0..n {
            visit(position, start + k * other + raw[at + k * step] as usize * strides[axis]);
            position += 1;
        }
    });
}

entries! {
    PICKS:

    INDEX_SELECT = OpDef {
        infer: for_programs(|op, inputs| {
            let [x, index] = exactly(inputs)?;
            let [count] = indices(index)?.dims[..] else {
                return Err(format!("its index must be a vector, found {index}"));
            };
            let mut out = x.clone();
            out.dims[position(op.int(0), x.dims.len())?] = count;
            Ok(vec![out])
        }),
        ..picking_op("index_select")
    };

    GATHER = OpDef {
        infer: for_programs(|op, inputs| {
            let [x, index] = exactly(inputs)?;
            position(op.int(0), x.dims.len())?;
            if indices(index)?.dims.len() != x.dims.len() {
                let axes = Plural(x.dims.len(), "axis", "axes");
                return Err(format!("its index must have {axes}, found {index}"));
            }
            Ok(vec![Form::new(arithmetic(Binary::Add, x)?.dtype, index.dims.clone())])
        }),
        ..picking_op("gather")
    };

    INDEX_ADD = adding_op("index_add");

    SCATTER_ADD = adding_op("scatter_add");

    SCATTER = OpDef {
        run: |op, values, at| {
            let [x, index, source] = several(values)?;
            let index = index_of(index)?;
            number!(smallvec![x, source], (x, source) => {
                scattered(&x, op.int(0), (&index, &source), at)
            })
        },
        ..adding_op("scatter")
    };
}

const fn picking_op(name: &'static str) -> OpDef {
    OpDef {
        attrs: &[("axis", Type::Int)],
        run: |op, values, at| {
            let [x, index] = several(values)?;
            let index = index_of(index)?;
            let picks = Picks::of(op);
            if let AnyTensor::Bool(x) = x {
                let picked = select(picks, &x.cast::<u8>(), op.int(0), &index, at);
                return computed(picked.map(|picked| picked.cast::<bool>()));
            }
            number!(smallvec![x], x => select(picks, &x, op.int(0), &index, at))
        },
        ..OpDef::new(name)
    }
}

/// An entry for an op that adds elements of the last input to the first, whose form the result has.
const fn adding_op(name: &'static str) -> OpDef {
    OpDef {
        attrs: &[("axis", Type::Int)],
        infer: for_programs(|op, inputs| {
            position(op.int(0), changed(op, inputs)?[0].dims.len())?;
            changed(op, inputs)
        }),
        run: |op, values, at| {
            let [x, index, source] = several(values)?;
            let index = index_of(index)?;
            number!(smallvec![x, source], (x, source) => {
                summed(Picks::of(op), &x, op.int(0), (&index, &source), at)
            })
        },
        ..OpDef::new(name)
    }
}

/// Returns the form of the first of three inputs; an index places elements of the last one in it.
pub(super) fn changed(_: &Operator, inputs: &[&Form]) -> Inferred {
    let [x, index, source] = exactly(inputs)?;
    indices(index)?;
    same_dtype(x, source)?;
    Ok(vec![arithmetic(Binary::Add, x)?.clone()])
}

pub(super) fn indices(index: &Form) -> Result<&Form, String> {
    if index.dtype == DType::Int64 {
        return Ok(index);
    }
    Err(format!("its index must be int64, found {}", index.dtype))
}

pub(super) fn index_of(tensor: AnyTensor) -> Computed<Tensor<i64>> {
    tensor.downcast().ok_or_else(|| "its index must be int64".to_owned())
}

/// What an index picks along an axis: whole slices, or one element for each index.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Picks {
    Slices,
    Elements,
}

impl Picks {
    fn of(op: &Operator) -> Self {
        let is = |def: &OpDef| ptr::eq(op.def, def);
        if is(&INDEX_SELECT) || is(&INDEX_ADD) { Self::Slices } else { Self::Elements }
    }

    /// Returns the op that picks, and the op that adds to the picked elements.
    fn ops(self) -> [&'static OpDef; 2] {
        match self {
            Self::Slices => [&INDEX_SELECT, &INDEX_ADD],
            Self::Elements => [&GATHER, &SCATTER_ADD],
        }
    }

    #[track_caller]
    fn pick<T: Element>(
        self,
        x: &Tensor<T>,
        axis: isize,
        index: &Tensor<i64>,
    ) -> Result<Tensor<T>> {
        call(self.ops()[0], [Attr::Int(axis)], [x.untyped(), index.untyped()])
    }

    #[track_caller]
    fn add<T: Element>(
        self,
        x: &Tensor<T>,
        axis: isize,
        index: &Tensor<i64>,
        source: &Tensor<T>,
    ) -> Result<Tensor<T>> {
        call(self.ops()[1], [Attr::Int(axis)], [x.untyped(), index.untyped(), source.untyped()])
    }

    /// The adjoint of picking: adds `source` to zeros. All indices must be valid.
    #[track_caller]
    pub(super) fn put_back<T: Numeric>(
        self,
        shape: Shape,
        axis: usize,
        index: &Tensor<i64>,
        source: &Tensor<T>,
    ) -> Result<Tensor<T>> {
        if source.would_record() {
            return self.add(&Tensor::zeros(shape), axis as isize, index, source);
        }
        Ok(Tensor::from_value(added(self, Value::full(shape, T::ZERO), axis, index, source)?))
    }

    /// Returns the axis as a position and the picked shape; an error if `index` or `source` does not fit.
    pub(super) fn fit(
        self,
        op: &'static str,
        of: &[usize],
        axis: isize,
        index: &Tensor<i64>,
        source: Option<&[usize]>,
    ) -> Result<(usize, Shape)> {
        let position = check_axis(op, axis, of.len())?;
        let shape = self.shape(op, of, position, index.shape())?;
        if let Some(source) = source.filter(|source| *source != &shape[..]) {
            let expected = match self {
                Self::Slices => format!("of shape {shape:?}, one slice for each index"),
                Self::Elements => format!("of the shape {shape:?} of `index`"),
            };
            return Err(Error::shape(op, "source", expected, source));
        }
        check_indices(op, "index", &index.read(), of[position])?;
        Ok((position, shape))
    }

    fn shape(
        self,
        op: &'static str,
        shape: &[usize],
        axis: usize,
        index: &[usize],
    ) -> Result<Shape> {
        let expected = match (self, index) {
            (Self::Slices, &[count]) => {
                let mut shape = copied(shape);
                shape[axis] = count;
                return Ok(shape);
            }
            (Self::Slices, _) => "a list of indices (one axis)".to_owned(),
            (Self::Elements, _) => {
                let shorter = |i: usize| i == axis || index[i] <= shape[i];
                if index.len() == shape.len() && (0..shape.len()).all(shorter) {
                    return Ok(copied(index));
                }
                let rank = Plural(shape.len(), "axis", "axes");
                format!("of {rank}, on each but {axis} no longer than {shape:?}")
            }
        };
        Err(Error::shape(op, "index", expected, index))
    }
}

pub(super) fn select<T: Numeric>(
    picks: Picks,
    x: &Tensor<T>,
    axis: isize,
    index: &Tensor<i64>,
    caller: Caller,
) -> Result<Tensor<T>> {
    let op = picks.ops()[0].name;
    let (position, shape) = picks.fit(op, x.shape(), axis, index, None)?;
    element_count(op, &shape)?;
    let value = taken(picks, &x.read(), position, &index.read(), shape);
    if !x.would_record() {
        return Ok(unrecorded(op, caller, &[x], value).and_lost(index));
    }
    Ok(finish(op, caller, &[x], value, || {
        let shape = x.shape_owned();
        Rule::new([Saved::input(1, index)], move |saved, dy: Tensor<T>, _| {
            Ok([Some(picks.put_back(shape.clone(), position, &saved.tensor()?, &dy)?)])
        })
        .with_push(move |saved, tangents: &[Option<Tensor<T>>], _| {
            let index = saved.tensor()?;
            tangents[0].as_ref().map(|dx| picks.pick(dx, axis, &index)).transpose()
        })
    }))
}

fn taken<T: Numeric>(
    picks: Picks,
    x: &Value<T>,
    axis: usize,
    index: &Value<i64>,
    shape: Shape,
) -> Value<T> {
    if picks == Picks::Slices {
        let (around, index) = (AxisShape::new(x.shape(), axis), index.to_vec());
        let x = x.contiguous();
        let data = x.as_slice().unwrap_or(&[]);
        return Value::written(shape, &mut |out| pick::select(data, around, &index, out));
    }
    match (alike(x.shape(), axis, &shape), x.as_slice(), index.as_slice()) {
        (Some(around), Some(x), Some(index)) => {
            let n = shape[axis];
            Value::written(shape, &mut |out| pick::gather(x, around, index, n, out))
        }
        _ => Value::written(shape, &mut |out| {
            let raw = x.raw();
            for_each_picked(index, axis, &x.strides(), &mut |i, at| out[i] = raw[at]);
        }),
    }
}

fn summed<T: Numeric>(
    picks: Picks,
    x: &Tensor<T>,
    axis: isize,
    (index, source): (&Tensor<i64>, &Tensor<T>),
    caller: Caller,
) -> Result<Tensor<T>> {
    let op = picks.ops()[1].name;
    let (position, _) = picks.fit(op, x.shape(), axis, index, Some(source.shape()))?;
    let value = added(picks, x.read().into_owned(), position, index, source)?;
    if !x.would_record() && !source.would_record() {
        return Ok(unrecorded(op, caller, &[x, source], value).and_lost(index));
    }
    Ok(finish(op, caller, &[x, source], value, || {
        Rule::new([Saved::input(1, index)], move |saved, dy: Tensor<T>, wants| {
            let index = saved.tensor()?;
            let picked = wants[1].then(|| picks.pick(&dy, axis, &index)).transpose()?;
            Ok([wants[0].then_some(dy), picked])
        })
    }))
}

fn scattered<T: Numeric>(
    x: &Tensor<T>,
    axis: isize,
    (index, source): (&Tensor<i64>, &Tensor<T>),
    caller: Caller,
) -> Result<Tensor<T>> {
    let op = SCATTER.name;
    let (position, _) = Picks::Elements.fit(op, x.shape(), axis, index, Some(source.shape()))?;
    let (list, from) = (index.read(), source.read());
    let (list, from) = (list.contiguous(), from.contiguous());
    let shape = copied(x.shape());
    let source_data = from.as_slice().unwrap_or(&[]);
    let placed = Added {
        picks: Picks::Elements,
        shape: &shape,
        axis: position,
        index: &list,
        source: source_data,
    };
    let value = pick::changed(x.read().into_owned(), |data| placed.add(data, |_, new| new));
    if !x.would_record() && !source.would_record() {
        return Ok(unrecorded(op, caller, &[x, source], value).and_lost(index));
    }
    Ok(finish(op, caller, &[x, source], value, || {
        Rule::new([Saved::input(1, index)], move |saved, dy: Tensor<T>, wants| {
            let (index, zero) = (saved.tensor::<i64>()?, Tensor::from(T::ZERO));
            let of_x = || dy.try_scatter(axis, &index, &zero.broadcast_to(index.shape()));
            let of_source = || {
                let last = is_last(dy.shape(), position, &index)?;
                last.try_where_else(&Picks::Elements.pick(&dy, axis, &index)?, &zero)
            };
            Ok([wants[0].then(of_x).transpose()?, wants[1].then(of_source).transpose()?])
        })
    }))
}

/// Whether an index is the last along the axis that names its element.
fn is_last(shape: &[usize], axis: usize, index: &Tensor<i64>) -> Result<Tensor<bool>> {
    let mut along = vec![1; shape.len()];
    along[axis] = index.shape()[axis];
    let order = Tensor::<i64>::arange(along[axis]).reshape(along).broadcast_to(index.shape());
    let last = Tensor::zeros(shape).try_scatter(axis as isize, index, &order)?;
    Ok(last.try_gather(axis as isize, index)?.equal(&order))
}

fn added<T: Numeric>(
    picks: Picks,
    x: Value<T>,
    axis: usize,
    index: &Tensor<i64>,
    source: &Tensor<T>,
) -> Result<Value<T>> {
    let (index, source) = (index.read(), source.read());
    let (index, source) = (index.contiguous(), source.contiguous());
    let source = source.as_slice().unwrap_or(&[]);
    let shape = copied(x.shape());
    let added = Added { picks, shape: &shape, axis, index: &index, source };
    T::added(picks.ops()[1].name, x, &added)
}

struct Added<'a, T> {
    picks: Picks,
    shape: &'a [usize],
    axis: usize,
    index: &'a Value<i64>,
    source: &'a [T],
}

impl<T: Numeric> Additions<T> for Added<'_, T> {
    fn add<A: Copy + Send + Sync>(&self, data: &mut [A], plus: impl Fn(A, T) -> A + Sync) {
        let &Self { picks, shape, axis, index, source } = self;
        let list = index.as_slice().unwrap_or(&[]);
        match (picks, alike(shape, axis, index.shape())) {
            (Picks::Slices, _) => {
                pick::add_at(data, AxisShape::new(shape, axis), list, source, plus);
            }
            (_, Some(around)) => {
                pick::scatter_add(data, around, (list, index.shape()[axis]), source, plus);
            }
            _ => for_each_picked(index, axis, &row_major(shape), &mut |i, at| {
                data[at] = plus(data[at], source[i]);
            }),
        }
    }
}

/// Returns the shape around an axis, if an index has the same lengths on all other axes.
fn alike(shape: &[usize], axis: usize, index: &[usize]) -> Option<AxisShape> {
    let same =
        index.len() == shape.len() && (0..shape.len()).all(|i| i == axis || index[i] == shape[i]);
    // An index without elements is excluded: the axis may have none either.
    (same && !index.contains(&0)).then(|| AxisShape::new(shape, axis))
}

/// # Picking by index
///
/// Indices count from 0; a negative index is an error, like any other outside its axis. Indices have no
/// gradient. An element that is picked several times gets the sum of the gradients.
impl<T: Element> Tensor<T> {
    pairs! {
        /// Returns the slices of an axis in the order of a list of indices `[k]`: the axis gets the length `k`. Indices
        /// count from 0: a negative one is an error.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
        /// let y = x.index_select(0, &Tensor::from([2, 0, 2]));
        /// assert_eq!(y.to_vec(), [5.0, 6.0, 1.0, 2.0, 5.0, 6.0]);
        /// ```
        #[doc(alias = "take")]
        pub fn index_select, try_index_select(&self, axis: isize, index: &Tensor<i64>) -> Tensor<T>,
            Axis | Shape | Index if "there is no such axis, `index` is not a list, or an index lies outside the \
                axis",
            "Tensor::from([1.0, 2.0]).try_index_select(0, &Tensor::from([2]))" => Index {
            Picks::Slices.pick(self, axis, index)
        }
    }
}

/// # Addition and choice by index
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Adds the slices of `source` to those that `index` names on an axis, in the shape of this tensor: the
        /// adjoint of [`Tensor::index_select`].
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::<f64>::zeros([3]);
        /// let y = x.index_add(0, &Tensor::from([2, 2]), &Tensor::from([1.0, 5.0]));
        /// assert_eq!(y.to_vec(), [0.0, 0.0, 6.0]);
        /// ```
        pub fn index_add, try_index_add(
            &self,
            axis: isize,
            index: &Tensor<i64>,
            source: &Tensor<T>,
        ) -> Tensor<T>,
            Axis | Shape | Index | Overflow if "there is no such axis, `index` is not a list, an index lies outside \
                the axis, `source` has not one slice for each index, or an integer sum is outside of the element \
                type",
            "Tensor::from([1.0]).try_index_add(0, &Tensor::from([0, 0]), &Tensor::from([2.0]))" => Shape {
            Picks::Slices.add(self, axis, index, source)
        }

        /// Returns the elements that `index` picks along an axis, in its shape: along axis 0 of a matrix,
        /// `y[i, j] = x[index[i, j], j]`. On the other axes `index` may be shorter than this tensor. A negative index
        /// is an error.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        /// let y = x.gather(1, &Tensor::from([[2], [0]]));
        /// assert_eq!(y.to_vec(), [3.0, 4.0]);
        /// ```
        #[doc(alias = "take_along_axis")]
        pub fn gather, try_gather(&self, axis: isize, index: &Tensor<i64>) -> Tensor<T>,
            Axis | Shape | Index if "there is no such axis, `index` has another rank or is longer on another axis, \
                or an index lies outside the axis",
            "Tensor::from([[1.0, 2.0]]).try_gather(1, &Tensor::from([0]))" => Shape {
            Picks::Elements.pick(self, axis, index)
        }

        /// Writes elements of `source` over those that `index` picks, in the shape of this tensor. Of several for one
        /// element the last along the axis counts, and has the gradient.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let y = Tensor::from([1, 2, 3]).scatter(0, &Tensor::from([2, 0]), &Tensor::from([7, 8]));
        /// assert_eq!(y.to_vec(), [8, 2, 7]);
        /// ```
        pub fn scatter, try_scatter(
            &self,
            axis: isize,
            index: &Tensor<i64>,
            source: &Tensor<T>,
        ) -> Tensor<T>,
            Axis | Shape | Index if "there is no such axis, `index` has another rank or is longer on another axis, \
                `source` has another shape than `index`, or an index lies outside the axis",
            "Tensor::from([1, 2]).try_scatter(0, &Tensor::from([-1]), &Tensor::from([7]))" => Index {
            call(&SCATTER, [Attr::Int(axis)], [self.untyped(), index.untyped(), source.untyped()])
        }

        /// Adds elements of `source` to those that `index` picks: the adjoint of [`Tensor::gather`]. A negative index is
        /// an error.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let counts = Tensor::from([0, 0, 0]).scatter_add(0, &Tensor::from([2, 0, 2]), &Tensor::from([1, 1, 1]));
        /// assert_eq!(counts.to_vec(), [1, 0, 2]);
        /// ```
        #[doc(alias = "put_along_axis")]
        pub fn scatter_add, try_scatter_add(
            &self,
            axis: isize,
            index: &Tensor<i64>,
            source: &Tensor<T>,
        ) -> Tensor<T>,
            Axis | Shape | Index | Overflow if "there is no such axis, `index` has another rank or is longer on \
                another axis, `source` has another shape than `index`, an index lies outside the axis, or an \
                integer sum is outside of the element type",
            "Tensor::from([200_u8]).try_scatter_add(0, &Tensor::from([0]), &Tensor::from([100]))" => Overflow {
            Picks::Elements.add(self, axis, index, source)
        }
    }
}
