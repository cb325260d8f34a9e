//! Indexing: parts of tensors by ranges, numbers, new axes, tensors and masks; and assignment to parts.

use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

use smallvec::smallvec;

use super::call::call;
use super::gather::{Picks, changed, check_indices, index_of, select};
use super::masks::places;
use super::table::{
    Attr, Dims, Form, Gradient, OpDef, Type, computed, entries, exactly, for_programs, number, one,
    position, several,
};
use super::{Caller, Numeric, Operand, expect, pairs, trace};
use crate::array::shape::{broadcast, row_major};
use crate::array::{DType, Shape};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{Composite, Element, Tensor};

/// In an index, a new axis of length 1; see [`Tensor::i`].
#[derive(Clone, Copy, Debug)]
pub struct NewAxis;

/// In an index, all axes that the other parts do not cover; see [`Tensor::i`].
#[derive(Clone, Copy, Debug)]
pub struct Ellipsis;

/// In an index, every n-th element of a range: `Step(1..9, 2)`; see [`Tensor::i`].
#[derive(Clone, Copy, Debug)]
pub struct Step<R>(pub R, pub usize);

#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum Item {
    At(i64),
    /// The start, the end and the step.
    Range(Option<i64>, End, usize),
    NewAxis,
    Ellipsis,
    List(Tensor<i64>),
    Mask(Tensor<bool>),
}

#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum End {
    Open,
    Below(i64),
    With(i64),
}

#[doc(hidden)]
pub trait Position: Copy {
    fn position(self) -> i64;
}

/// A part of an index: see [`Tensor::i`].
pub trait IntoIndexItem {
    #[doc(hidden)]
    fn item(self) -> Item;
}

macro_rules! items {
    (ranges: $([$($of:tt)*] $range:ty: |$it:pat_param| $start:expr, $end:expr;)*) => {
        items! { $(
            [$($of)*] $range: |$it| Item::Range($start, $end, 1);
            [$($of)*] Step<$range>: |Step($it, step)| Item::Range($start, $end, step);
        )* }
    };
    ($([$($of:tt)*] $part:ty: |$it:pat_param| $item:expr;)*) => {$(
        impl $($of)* IntoIndexItem for $part {
            fn item(self) -> Item {
                let $it = self;
                $item
            }
        }
    )*};
}

items! { ranges:
    [] RangeFull: |_| None, End::Open;
    [<N: Position>] Range<N>: |r| Some(r.start.position()), End::Below(r.end.position());
    [<N: Position>] RangeFrom<N>: |r| Some(r.start.position()), End::Open;
    [<N: Position>] RangeInclusive<N>: |r| Some(r.start().position()), match r.end_bound() {
        Bound::Excluded(end) => End::Below(end.position()),
        _ => End::With(r.end().position()),
    };
    [<N: Position>] RangeTo<N>: |r| None, End::Below(r.end.position());
    [<N: Position>] RangeToInclusive<N>: |r| None, End::With(r.end.position());
}

items! {
    [] NewAxis: |_| Item::NewAxis;
    [] Ellipsis: |_| Item::Ellipsis;
    [] &Tensor<i64>: |index| Item::List(index.clone());
    [] &Tensor<bool>: |mask| Item::Mask(mask.clone());
}

macro_rules! positions {
    ($($t:ty)*) => {$(
        impl Position for $t {
            fn position(self) -> i64 {
                // A position too large for `i64` is outside every axis too.
                i64::try_from(self).unwrap_or(i64::MAX)
            }
        }

        items! { [] $t: |at| Item::At(at.position()); }
    )*};
}

positions! { i32 i64 isize usize }

/// An index: one part, or a tuple of up to eight; see [`Tensor::i`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an index",
    note = "an index is a part or a tuple of parts: a number, a range, `Step(range, n)`, `NewAxis`, `Ellipsis`, or a reference to a tensor of `i64` or `bool`"
)]
pub trait IntoIndex {
    #[doc(hidden)]
    fn items(self) -> Vec<Item>;
}

#[diagnostic::do_not_recommend]
impl<I: IntoIndexItem> IntoIndex for I {
    fn items(self) -> Vec<Item> {
        vec![self.item()]
    }
}

macro_rules! tuples {
    ($($($part:ident)+;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($part: IntoIndexItem),+> IntoIndex for ($($part,)+) {
            #[allow(non_snake_case, reason = "a part has the name of its type")]
            fn items(self) -> Vec<Item> {
                let ($($part,)+) = self;
                vec![$($part.item()),+]
            }
        }
    )*};
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}

impl<T: Element> Tensor<T> {
    pairs! {
        /// Returns what an index selects. It has a part for each axis; axes after its last are kept whole.
        ///
        /// | part | what it selects |
        /// |---|---|
        /// | `2`, `-1` | one element; the axis is removed. Negative numbers count from the end. |
        /// | `1..3`, `1..=2`, `..-1`, `..` | a range |
        /// | `Step(1.., 2)` | every second element of a range |
        /// | [`NewAxis`] | nothing: adds a new axis of length 1 |
        /// | [`Ellipsis`] | whole axes: all that the other parts do not cover |
        /// | `&Tensor<i64>` | the elements at the listed indices, in the shape of the list |
        /// | `&Tensor<bool>` | the elements where it is true, for as many axes as it has |
        ///
        /// Clippy takes a literal `1..-1` for an empty range (`reversed_empty_ranges`): allow that lint, or
        /// write `-3..-1`.
        ///
        /// Without a tensor in the index, no element is copied. Several tensors of one index are broadcast
        /// together and paired, as in NumPy: their axes replace the axis of the first tensor, but come
        /// first in the result if a range or a new axis is between tensors; numbers then count as tensors.
        ///
        /// ```
        /// use autograd_core::{NewAxis, Step, Tensor};
        ///
        /// let x = Tensor::<i64>::arange(12).reshape([3, 4]);
        /// assert_eq!(x.i(-1).to_vec(), [8, 9, 10, 11]);
        /// assert_eq!(x.i((.., 1..-1)).to_vec(), [1, 2, 5, 6, 9, 10]);
        /// assert_eq!(x.i((0, Step(.., 2))).to_vec(), [0, 2]);
        /// assert_eq!(x.i((NewAxis, .., 0)).shape(), [1, 3]);
        /// assert_eq!(x.i((&Tensor::from([0, 2]), &Tensor::from([1, -1]))).to_vec(), [1, 11]);
        /// assert_eq!(x.i(&x.gt_scalar(9)).to_vec(), [10, 11]);
        /// ```
        #[doc(alias = "slice")]
        #[doc(alias = "getitem")]
        #[doc(alias = "__getitem__")]
        pub fn i, try_i(&self, index: impl IntoIndex) -> Tensor<T>,
            Count | Index | Value | Shape | Broadcast if "there are more parts than axes, two ellipses, a number or \
                range outside its axis, a step of 0, a mask of another shape than its axes, or tensors that cannot \
                be broadcast together" {
            part("i", self, index.items())
        }
    }
}

/// # Assignment to parts
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Returns a copy with `elements`, which broadcast, in the part that an index selects, as for
        /// [`Tensor::i`]; the last one, if it selects an element several times. The gradient of a replaced
        /// element is 0.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        /// assert_eq!(x.slice_assign((.., 0), 0.0).to_vec(), [0.0, 2.0, 0.0, 4.0]);
        /// ```
        #[doc(alias = "setitem")]
        #[doc(alias = "index_fill")]
        pub fn slice_assign(&self, index: impl IntoIndex, elements: impl Operand<T>) -> Tensor<T>,
            Panics if "[`Tensor::i`] does not take the index, or the elements cannot be broadcast to the part" {
            let _composite = Composite::here();
            expect(elements.lend(|of| put_part("slice_assign", self, index.items(), of, false)))
        }

        /// As [`Tensor::slice_assign`]; with `accumulate`, the elements are added instead, also several to one.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([0, 0, 0]);
        /// let index = Tensor::from([2, 0, 2]);
        /// assert_eq!(x.index_put(&index, &Tensor::from([1, 5, 7]), true).to_vec(), [5, 0, 8]);
        /// assert_eq!(x.index_put(&index, &Tensor::from([1, 5, 7]), false).to_vec(), [5, 0, 7]);
        /// ```
        pub fn index_put, try_index_put(
            &self,
            index: impl IntoIndex,
            elements: impl Operand<T>,
            accumulate: bool,
        ) -> Tensor<T>,
            Count | Index | Value | Shape | Broadcast | Overflow if "[`Tensor::i`] does not take the index, the \
                elements cannot be broadcast to the part, or an integer sum is outside of the element type" {
            let _composite = Composite::here();
            elements.lend(|of| put_part("index_put", self, index.items(), of, accumulate))
        }
    }
}

#[track_caller]
fn put_part<T: Numeric>(
    op: &'static str,
    x: &Tensor<T>,
    items: Vec<Item>,
    elements: &Tensor<T>,
    accumulate: bool,
) -> Result<Tensor<T>> {
    // In a trace an axis may be free, so the positions are computed by ops.
    let places = match trace::is_noting() {
        true => Tensor::<i64>::ones_like(&x.flatten()).cumsum(0) - 1,
        false => Tensor::arange(x.len()),
    };
    let places = places.reshape(x.shape_owned());
    let places = part(op, &places, items)?;
    let fits = broadcast(op, elements.shape(), places.shape());
    if !fits.is_ok_and(|shape| &shape[..] == places.shape()) {
        let expected =
            format!("of a shape that is broadcast to {:?}, that of the part", places.shape());
        return Err(Error::shape(op, "elements", expected, elements.shape()));
    }
    let elements = match trace::is_noting() {
        // In the shape of `places` in each run.
        true => places.ge_scalar(0).try_where_else(elements, Tensor::default())?,
        false => elements.broadcast_to(places.shape_owned()),
    };
    let elements = elements.flatten();
    let (flat, places) = (x.flatten(), places.flatten());
    let put = match accumulate {
        true => flat.try_index_add(0, &places, &elements).map_err(|error| error.called(op))?,
        false => call(&PUT, [], [flat.untyped(), places.untyped(), elements.untyped()])?,
    };
    Ok(put.reshape(x.shape_owned()))
}

#[track_caller]
fn part<T: Element>(op: &'static str, x: &Tensor<T>, items: Vec<Item>) -> Result<Tensor<T>> {
    let rank = x.ndim();
    let axes_of = |item: &Item| match item {
        Item::NewAxis | Item::Ellipsis => 0,
        Item::Mask(mask) => mask.ndim(),
        Item::At(_) | Item::Range(..) | Item::List(_) => 1,
    };
    let named: usize = items.iter().map(axes_of).sum();
    let ellipses = items.iter().filter(|item| matches!(item, Item::Ellipsis)).count();
    let Some(left) = rank.checked_sub(named) else {
        let what = format!("axes of the shape {:?}, or fewer, in the index", x.shape());
        return Err(Error::Count { op, what, expected: rank, found: named });
    };
    if ellipses > 1 {
        let what = "or no ellipsis in the index".into();
        return Err(Error::Count { op, what, expected: 1, found: ellipses });
    }
    let paired = items.iter().any(|item| matches!(item, Item::List(_) | Item::Mask(_)));
    let mut y = x.clone();
    // The next axis of `x`, and of `y`.
    let (mut own, mut at) = (0, 0);
    let mut lists: Vec<(usize, Tensor<i64>)> = Vec::new();
    for item in items {
        let axis = at as isize;
        let taken = if matches!(item, Item::Ellipsis) { left } else { axes_of(&item) };
        at += match item {
            Item::Ellipsis => left,
            Item::NewAxis => {
                y = y.unsqueeze(axis);
                1
            }
            Item::Range(start, end, step) => {
                y = ranged(op, &y, (own, at), (start, end, step))?;
                1
            }
            Item::At(index) if !paired => {
                let n = x.shape()[own];
                check_inside(op, &[index], own, n)?;
                y = y.select(axis, index.rem_euclid(n as i64) as usize);
                0
            }
            Item::At(index) => {
                lists.push((at, inside(op, x, own, Tensor::from(index))?));
                1
            }
            Item::List(index) => {
                lists.push((at, inside(op, x, own, index)?));
                1
            }
            Item::Mask(mask) => {
                let of = &x.shape()[own..own + taken];
                if of != mask.shape() {
                    let parameter = format!("the mask of axis {own} and on");
                    let expected = format!("of shape {of:?}, as these axes are");
                    return Err(Error::shape(op, parameter, expected, mask.shape()));
                }
                let mut shape = y.shape_owned();
                shape.drain(at..at + taken);
                shape.insert(at, mask.len());
                y = y.reshape(shape);
                mask.is_read(op);
                lists.push((at, Tensor::from(places(&mask)).and_lost(&mask)));
                1
            }
        };
        own += taken;
    }
    if lists.is_empty() { Ok(y.apart_from(x)) } else { listed(op, &y, lists) }
}

#[track_caller]
fn ranged<T: Element>(
    op: &'static str,
    y: &Tensor<T>,
    (own, at): (usize, usize),
    (start, end, step): (Option<i64>, End, usize),
) -> Result<Tensor<T>> {
    let n = y.shape()[at] as i64;
    let from_end = |position: i64| if position < 0 { position + n } else { position };
    let first = from_end(start.unwrap_or(0));
    let beyond = match end {
        End::Open => n,
        End::Below(end) => from_end(end),
        End::With(end) => from_end(end).saturating_add(1),
    };
    if first < 0 || first > beyond || beyond > n || step == 0 {
        let start = start.map_or(String::new(), |start| start.to_string());
        let range = match end {
            End::Open => format!("{start}.."),
            End::Below(end) => format!("{start}..{end}"),
            End::With(end) => format!("{start}..={end}"),
        };
        let step = if step == 1 { String::new() } else { format!(" by steps of {step}") };
        let expected =
            format!("a range with a step of 1 or more inside axis {own}, which has length {n}");
        let found = format!("{range}{step}");
        return Err(Error::value(op, "the index", expected, found));
    }
    // Not for `0..n`: in a trace, whether an op runs must not depend on the length.
    if let (None, End::Open, 1) = (start, end, step) {
        return Ok(y.clone());
    }
    y.try_slice_axis(at as isize, first as usize, beyond as usize, step)
}

fn check_inside(op: &'static str, index: &[i64], axis: usize, n: usize) -> Result<()> {
    let len = n as i64;
    match index.iter().find(|&&at| at < -len || at >= len) {
        Some(&index) => {
            Err(Error::Index { op, parameter: format!("the index of axis {axis}"), index, len: n })
        }
        None => Ok(()),
    }
}

/// Returns indices of an axis of `x`, with negative ones counted from its end; an error if one is outside.
#[track_caller]
fn inside<T: Element>(
    op: &'static str,
    x: &Tensor<T>,
    axis: usize,
    index: Tensor<i64>,
) -> Result<Tensor<i64>> {
    index.is_read(op);
    let read = index.to_vec();
    check_inside(op, &read, axis, x.shape()[axis])?;
    if read.iter().all(|&at| at >= 0) {
        return Ok(index);
    }
    let length = call(&LENGTH, [Attr::Int(axis as isize)], [x.untyped()])?;
    index.lt_scalar(0_i64).try_where_else(&index + length, &index)
}

/// Returns the elements that lists of indices pick, each list along an axis. All indices are inside.
#[track_caller]
fn listed<T: Element>(
    op: &'static str,
    y: &Tensor<T>,
    lists: Vec<(usize, Tensor<i64>)>,
) -> Result<Tensor<T>> {
    let mut shape = Shape::new();
    for (_, list) in &lists {
        shape = broadcast(op, &shape, list.shape())?;
    }
    let axes: Vec<usize> = lists.iter().map(|&(axis, _)| axis).collect();
    let adjacent = axes.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let first = if adjacent { axes[0] } else { 0 };
    let mut order: Vec<isize> =
        (0..y.ndim()).filter(|axis| !axes.contains(axis)).map(|axis| axis as isize).collect();
    order.splice(first..first, axes.iter().map(|&axis| axis as isize));
    let lengths: Shape = axes.iter().map(|&axis| y.shape()[axis]).collect();
    let mut together = y.permute(&order).shape_owned();
    let mut out = together.clone();
    together.drain(first..first + axes.len());
    together.insert(first, lengths.iter().product());
    out.drain(first..first + axes.len());
    out.insert_many(first, shape.iter().copied());
    let y = y.permute(&order).reshape(together);
    // One index for all these axes: the row-major position.
    let mut index: Option<Tensor<i64>> = None;
    for ((_, list), stride) in lists.iter().zip(row_major(&lengths)) {
        let part = list.broadcast_to(shape.clone());
        let part = if stride == 1 { part } else { part * stride as i64 };
        index = Some(match index {
            Some(sum) => sum + part,
            None => part,
        });
    }
    let index = index.unwrap_or_default().flatten();
    Ok(y.try_index_select(first as isize, &index)?.reshape(out))
}

entries! {
    ITEMS:

    /// The length of an axis, as a scalar.
    LENGTH = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: for_programs(|op, inputs| {
            position(op.int(0), exactly::<1>(inputs)?[0].dims.len())?;
            Ok(vec![Form::new(DType::Int64, Dims::new())])
        }),
        run: |op, x, _| {
            let x = one(x)?;
            let n = x.shape()[position(op.int(0), x.shape().len())?];
            computed(Ok(Tensor::from(n as i64)))
        },
        gradient: Gradient::None,
        ..OpDef::new("length")
    };

    PUT = OpDef {
        infer: for_programs(changed),
        run: |_, values, at| {
            let [x, index, source] = several(values)?;
            let index = index_of(index)?;
            number!(smallvec![x, source], (x, source) => put(&x, &index, &source, at))
        },
        ..OpDef::new("index_put")
    };
}

/// Returns the list `x` with the elements of `source` at the positions in `index`; the last one wins.
fn put<T: Numeric>(
    x: &Tensor<T>,
    index: &Tensor<i64>,
    source: &Tensor<T>,
    caller: Caller,
) -> Result<Tensor<T>> {
    let op = "index_put";
    for (parameter, found, like) in
        [(RECEIVER, x.shape(), x.shape()), ("index", index.shape(), source.shape())]
    {
        if found.len() != 1 || found != like {
            return Err(Error::shape(op, parameter, "a list as long as its elements", found));
        }
    }
    check_indices(op, "index", &index.read(), x.len())?;
    // Of the elements of `x` and, behind them, those of `source`: the ones that stay, and the last written ones.
    let mut kept: Vec<i64> = (0..x.len() as i64).collect();
    (x.len() as i64..).zip(index.to_vec()).for_each(|(from, at)| kept[at as usize] = from);
    let both = Tensor::try_concat([x, source], 0)?;
    select(Picks::Slices, &both, 0, &Tensor::from(kept).and_lost(index), caller)
}
