//! Indexing: parts of tensors by ranges, numbers, new axes, tensors and masks.

use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

use smallvec::smallvec;

use super::call::call;
use super::gather::{index_of, indices};
use super::masks::places;
use super::pairs;
use super::table::{
    Attr, Computed, Dims, Form, OpDef, Operator, Type, any, broadcast as broadcast_forms, entries,
    for_programs, position,
};
use crate::array::Shape;
use crate::array::shape::{broadcast, row_major};
use crate::error::{Error, Result};
use crate::graph::{Element, Tensor};

/// In an index, a new axis of length 1; see [`Tensor::i`].
///
/// ```
/// use autograd_core::{NewAxis, Tensor};
///
/// let x = Tensor::<f64>::zeros([2, 3]);
/// assert_eq!(x.i(NewAxis).shape(), [1, 2, 3]);
/// assert_eq!(x.i((.., NewAxis, 0)).shape(), [2, 1]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct NewAxis;

/// In an index, all axes that the other parts do not cover; see [`Tensor::i`].
///
/// ```
/// use autograd_core::{Ellipsis, Tensor};
///
/// let x = Tensor::<f64>::zeros([2, 3, 4, 5]);
/// assert_eq!(x.i((Ellipsis, 0)).shape(), [2, 3, 4]);
/// assert_eq!(x.i((0, Ellipsis, 1..)).shape(), [3, 4, 4]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ellipsis;

/// In an index, every n-th element of a range; see [`Tensor::i`].
///
/// ```
/// use autograd_core::{Step, Tensor};
///
/// let x = Tensor::<i64>::arange(10);
/// assert_eq!(x.i(Step(1..9, 3)).to_vec(), [1, 4, 7]);
/// assert_eq!(x.i(Step(-4.., 2)).to_vec(), [6, 8]);
/// ```
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
///
/// ```
/// use autograd_core::{IntoIndexItem, Step, Tensor};
///
/// fn columns(x: &Tensor<i64>, part: impl IntoIndexItem) -> Vec<i64> {
///     x.i((.., part)).to_vec()
/// }
///
/// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
/// assert_eq!(columns(&x, -1), [3, 6]);
/// assert_eq!(columns(&x, ..2), [1, 2, 4, 5]);
/// assert_eq!(columns(&x, Step(.., 2)), [1, 3, 4, 6]);
/// assert_eq!(columns(&x, &Tensor::from([2, 0])), [3, 1, 6, 4]);
/// assert_eq!(columns(&x, &Tensor::from([false, true, true])), [2, 3, 5, 6]);
/// ```
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
///
/// ```
/// use autograd_core::{IntoIndex, Tensor};
///
/// fn sum_of(x: &Tensor<i64>, index: impl IntoIndex) -> i64 {
///     x.i(index).sum().item()
/// }
///
/// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
/// assert_eq!(sum_of(&x, 1), 4 + 5 + 6);
/// assert_eq!(sum_of(&x, (.., 0)), 1 + 4);
/// assert_eq!(sum_of(&x, (0, 1..)), 2 + 3);
/// assert_eq!(sum_of(&x, &x.gt_scalar(3)), 4 + 5 + 6);
/// ```
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

/// # Indexing
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
                be broadcast together",
            "Tensor::from([1.0, 2.0]).try_i(2)" => Index {
            part("i", self, index.items())
        }
    }
}

/// The index with an ellipsis as whole axes, and with all other axes at its end.
pub(super) fn whole(op: &'static str, shape: &[usize], mut items: Vec<Item>) -> Result<Vec<Item>> {
    let rank = shape.len();
    let named: usize = items.iter().map(axes_of).sum();
    let ellipses = items.iter().filter(|item| matches!(item, Item::Ellipsis)).count();
    let Some(left) = rank.checked_sub(named) else {
        let what = format!("axes of the shape {shape:?}, or fewer, in the index");
        return Err(Error::Count { op, what, expected: rank, found: named });
    };
    if ellipses > 1 {
        let what = "or no ellipsis in the index".into();
        return Err(Error::Count { op, what, expected: 1, found: ellipses });
    }
    let at = items.iter().position(|item| matches!(item, Item::Ellipsis));
    let end = at.map_or(items.len()..items.len(), |at| at..at + 1);
    items.splice(end, (0..left).map(|_| Item::ALL));
    Ok(items)
}

impl Item {
    pub(super) const ALL: Self = Self::Range(None, End::Open, 1);
}

/// The number of axes that a part of an index takes.
pub(super) fn axes_of(item: &Item) -> usize {
    match item {
        Item::NewAxis | Item::Ellipsis => 0,
        Item::Mask(mask) => mask.ndim(),
        Item::At(_) | Item::Range(..) | Item::List(_) => 1,
    }
}

pub(super) fn check_mask(
    op: &'static str,
    shape: &[usize],
    axis: usize,
    mask: &Tensor<bool>,
) -> Result<()> {
    let of = &shape[axis..axis + mask.ndim()];
    if of == mask.shape() {
        return Ok(());
    }
    let parameter = format!("the mask of axis {axis} and on");
    Err(Error::shape(op, parameter, format!("of shape {of:?}, as these axes are"), mask.shape()))
}

#[track_caller]
pub(super) fn part<T: Element>(
    op: &'static str,
    x: &Tensor<T>,
    items: Vec<Item>,
) -> Result<Tensor<T>> {
    let items = whole(op, x.shape(), items)?;
    let paired = items.iter().any(|item| matches!(item, Item::List(_) | Item::Mask(_)));
    let mut y = x.clone();
    // The next axis of `x`, and of `y`.
    let (mut own, mut at) = (0, 0);
    // Each list with its axis of `y`, and of `x`.
    let (mut lists, mut axes, mut named) = (Vec::new(), Vec::new(), Vec::new());
    let mut list = |at: usize, own: usize, list: Tensor<i64>| {
        axes.push(at as isize);
        named.push(own as isize);
        lists.push(list.untyped());
    };
    for item in items {
        let (axis, taken) = (at as isize, axes_of(&item));
        at += match item {
            Item::Ellipsis => unreachable!("it is written out"),
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
                list(at, own, Tensor::from(index));
                1
            }
            Item::List(index) => {
                list(at, own, index);
                1
            }
            Item::Mask(mask) => {
                check_mask(op, x.shape(), own, &mask)?;
                let mut shape = y.shape_owned();
                shape.drain(at..at + taken);
                shape.insert(at, mask.len());
                y = y.reshape(shape);
                mask.is_read(op);
                list(at, own, Tensor::from(places(&mask)).and_lost(&mask));
                1
            }
        };
        own += taken;
    }
    if lists.is_empty() {
        return Ok(y.apart_from(x));
    }
    let attrs = [Attr::Ints(axes), Attr::Ints(named)];
    call(&LISTED, attrs, std::iter::once(y.untyped()).chain(lists))
        .map_err(|error| error.called(op))
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

/// Returns indices of an axis of length `n`, with negative ones counted from its end; an error if one is outside.
fn inside(index: &Tensor<i64>, axis: usize, n: usize) -> Result<Tensor<i64>> {
    let read = index.to_vec();
    check_inside(LISTED.name, &read, axis, n)?;
    if read.iter().all(|&at| at >= 0) {
        return Ok(index.clone());
    }
    let read = read.into_iter().map(|at| at.rem_euclid(n as i64));
    Ok(Tensor::from_vec(index.shape(), read.collect())?.and_lost(index))
}

/// Where the axes of the picked elements are in the result: with the first list, if the lists are adjacent.
fn first_of(axes: &[usize]) -> usize {
    let adjacent = axes.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    axes.first().copied().filter(|_| adjacent).unwrap_or(0)
}

/// Returns the elements that lists of indices pick, each list along an axis.
#[track_caller]
fn listed<T: Element>(y: &Tensor<T>, lists: &[Tensor<i64>], axes: &[usize]) -> Result<Tensor<T>> {
    let mut shape = Shape::new();
    for list in lists {
        shape = broadcast(LISTED.name, &shape, list.shape())?;
    }
    let first = first_of(axes);
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
    for (list, stride) in lists.iter().zip(row_major(&lengths)) {
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

    /// The elements at lists of indices, each along one of the axes; errors call these axes by other names.
    LISTED = OpDef {
        attrs: &[("axes", Type::Ints), ("named", Type::Ints)],
        infer: for_programs(|op, inputs| {
            let [x, lists @ ..] = inputs else { return Err("takes a tensor and lists".to_owned()) };
            let axes = list_axes(op, lists.len(), x.dims.len())?;
            let mut picked = Dims::new();
            for list in lists {
                picked = broadcast_forms(&picked, &indices(list)?.dims)?;
            }
            let others = x.dims.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
            let mut dims: Dims = others.map(|(_, &dim)| dim).collect();
            dims.insert_many(first_of(&axes), picked);
            Ok(vec![Form::new(x.dtype, dims)])
        }),
        run: |op, values, _| {
            let mut values = values.into_iter();
            let x = values.next().ok_or("takes a tensor and lists")?;
            let lists = values.map(index_of).collect::<Computed<Vec<Tensor<i64>>>>()?;
            let axes = list_axes(op, lists.len(), x.shape().len())?;
            let named = axes.iter().zip(op.ints(1)).zip(&lists);
            let lists = named.map(|((&axis, &name), list)| inside(list, name as usize, x.shape()[axis]));
            let lists = lists.collect::<Result<Vec<_>>>()?;
            any!(smallvec![x], x => listed(&x, &lists, &axes))
        },
        ..OpDef::new("i")
    };
}

/// The axes of an operator of so many lists.
fn list_axes(op: &Operator, lists: usize, rank: usize) -> Computed<Vec<usize>> {
    let axes = op.ints(0).iter().map(|&axis| position(axis, rank));
    let axes = axes.collect::<Computed<Vec<usize>>>()?;
    let is_sorted = axes.windows(2).all(|pair| pair[0] < pair[1]);
    match is_sorted && axes.len() == lists && op.ints(1).len() == lists {
        true => Ok(axes),
        false => Err("must have one axis for each list, in order".to_owned()),
    }
}
