//! Rows in groups: sums of the rows that share an index, counts, and repeated rows.

use std::iter::repeat_n;
use std::panic::Location;

use smallvec::smallvec;

use super::call::{call, linear};
use super::gather::{Picks, check_indices, index_of, select};
use super::table::{
    Attr, Form, Gradient, OpDef, Type, arithmetic, entries, exactly, for_programs, number,
    position, same_dtype, several,
};
use super::{Binary, Caller, Numeric, expect, pairs};
use crate::array::elementwise::convert;
use crate::array::shape::{axis as check_axis, element_count};
use crate::array::{DType, Shape};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{Composite, GradMode, Lost, Rule, Saved, Tensor, finish, unrecorded};

entries! {
    SEGMENTS:

    SEGMENT_SUM = OpDef {
        attrs: &[("segments", Type::Int)],
        infer: for_programs(|op, inputs| {
            let [x, index] = exactly(inputs)?;
            if index.dtype != DType::Int64 || index.dims.len() != 1 {
                return Err(format!("its index must be a vector of int64, found {index}"));
            }
            let mut out = arithmetic(Binary::Add, x)?.clone();
            let Some(first) = out.dims.first_mut() else {
                return Err("takes one axis or more, found a scalar".to_owned());
            };
            *first = Some(op.int(0) as usize);
            Ok(vec![Form::new(x.dtype, out.dims)])
        }),
        run: |op, values, at| {
            let [x, index] = several(values)?;
            let index = index_of(index)?;
            number!(smallvec![x], x => segment_sum(&x, &index, op.int(0) as usize, at))
        },
        ..OpDef::new("segment_sum")
    };

    REPEAT_INTERLEAVE = OpDef {
        attrs: &[("times", Type::Int), ("axis", Type::Int)],
        infer: for_programs(|op, inputs| {
            let mut out = exactly::<1>(inputs)?[0].clone();
            arithmetic(Binary::Add, &out)?;
            let length = &mut out.dims[position(op.int(1), inputs[0].dims.len())?];
            *length = length.map(|n| n.saturating_mul(op.int(0) as usize));
            Ok(vec![out])
        }),
        run: |op, x, at| number!(x, x => repeated(&x, op.int(0) as usize, op.int(1), at)),
        ..OpDef::new("repeat_interleave")
    };

    SEARCHSORTED = OpDef {
        attrs: &[("right", Type::Flag)],
        infer: for_programs(|_, inputs| {
            let [sorted, values] = exactly(inputs)?;
            same_dtype(arithmetic(Binary::Add, sorted)?, values)?;
            if sorted.dims.len() != 1 {
                return Err(format!("its sorted numbers must be a vector, found {sorted}"));
            }
            Ok(vec![Form::new(DType::Int64, values.dims.clone())])
        }),
        run: |op, values, at| {
            number!(values, (sorted, values) => searchsorted(&sorted, &values, op.flag(0), at))
        },
        gradient: Gradient::None,
        ..OpDef::new("searchsorted")
    };
}

fn repeated<T: Numeric>(
    x: &Tensor<T>,
    times: usize,
    axis: isize,
    caller: Caller,
) -> Result<Tensor<T>> {
    let position = check_axis(REPEAT_INTERLEAVE.name, axis, x.ndim())?;
    let mut shape = x.shape_owned();
    shape[position] = shape[position].saturating_mul(times);
    element_count(REPEAT_INTERLEAVE.name, &shape)?;
    let each = |k: usize| repeat_n(k as i64, times);
    let index = Tensor::from((0..x.shape()[position]).flat_map(each).collect::<Vec<i64>>());
    let value = GradMode::of(false, || select(Picks::Slices, x, axis, &index, caller));
    let value = value.map_err(|error| error.called(REPEAT_INTERLEAVE.name))?.read().into_owned();
    let back = move |(index, shape): (Tensor<i64>, Shape), dy: Tensor<T>| {
        Picks::Slices.put_back(shape, position, &index, &dy)
    };
    let along = move |_: (Tensor<i64>, Shape), dx: &Tensor<T>, _: &[usize]| {
        dx.try_repeat_interleave(times, axis)
    };
    let kept = (index, x.shape_owned());
    Ok(linear(REPEAT_INTERLEAVE.name, caller, x, value, kept, back, along))
}

fn searchsorted<T: Numeric>(
    sorted: &Tensor<T>,
    values: &Tensor<T>,
    right: bool,
    caller: Caller,
) -> Result<Tensor<i64>> {
    let op = SEARCHSORTED.name;
    if sorted.ndim() != 1 {
        return Err(Error::shape(op, RECEIVER, "a list (one axis)", sorted.shape()));
    }
    let ranks: Vec<i64> = sorted.to_vec().iter().map(|x| x.rank(false)).collect();
    let place = |x: T| {
        let rank = x.rank(false);
        ranks.partition_point(|&of| if right { of <= rank } else { of < rank }) as i64
    };
    let lost = Lost::without_derivative(op, caller, values);
    Ok(Tensor::from_value(convert(&values.read(), place)).with_lost(lost))
}

fn segment_sum<T: Numeric>(
    x: &Tensor<T>,
    index: &Tensor<i64>,
    segments: usize,
    caller: Caller,
) -> Result<Tensor<T>> {
    let op = SEGMENT_SUM.name;
    let Some((&rows, _)) = x.shape().split_first() else {
        return Err(Error::shape(op, RECEIVER, "of one axis or more", x.shape()));
    };
    if index.shape() != [rows] {
        let expected = format!("of shape [{rows}], one index for each slice of axis 0");
        return Err(Error::shape(op, "index", expected, index.shape()));
    }
    check_indices(op, "index", &index.read(), segments)?;
    let mut shape = x.shape_owned();
    shape[0] = segments;
    element_count(op, &shape)?;
    let sums = GradMode::of(false, || Picks::Slices.put_back(shape, 0, index, x));
    let value = sums.map_err(|error| error.called(op))?.read().into_owned();
    if !x.would_record() {
        return Ok(unrecorded(op, caller, &[x], value).and_lost(index));
    }
    Ok(finish(op, caller, &[x], value, || {
        Rule::new([Saved::input(1, index)], |saved, dy: Tensor<T>, _| {
            Ok([Some(dy.try_index_select(0, &saved.tensor()?)?)])
        })
        .with_push(move |saved, tangents: &[Option<Tensor<T>>], _| {
            let index = saved.tensor()?;
            tangents[0].as_ref().map(|dx| dx.try_segment_sum(&index, segments)).transpose()
        })
    }))
}

/// # Rows in groups
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Adds up the slices of axis 0 that have the same index: slice `k` of the result, of which there are
        /// `segments`, is the sum of the slices whose index is `k`. The indices need no order; a segment
        /// without slices is 0.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let rows = Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
        /// let sums = rows.segment_sum(&Tensor::from([1, 0, 1]), 3);
        /// assert_eq!(sums.to_vec(), [3.0, 4.0, 6.0, 8.0, 0.0, 0.0]);
        /// ```
        #[doc(alias = "unsorted_segment_sum")]
        pub fn segment_sum, try_segment_sum(
            &self,
            index: &Tensor<i64>,
            segments: usize,
        ) -> Tensor<T>,
            Shape | Index | TooLarge | Overflow if "this is a scalar, `index` is no list with one index for each \
                slice, an index is not below `segments`, the result has more elements than this machine can \
                address, or an integer sum is outside of the element type",
            "Tensor::from([1.0, 2.0]).try_segment_sum(&Tensor::from([0, 2]), 2)" => Index {
            call(&SEGMENT_SUM, [Attr::Int(segments as isize)], [self.untyped(), index.untyped()])
        }
    }
}

/// # Repeated, sorted and distinct elements
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Repeats each slice of an axis `times` times, one after the other.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let y = Tensor::from([1.0, 2.0]).repeat_interleave(2, 0);
        /// assert_eq!(y.to_vec(), [1.0, 1.0, 2.0, 2.0]);
        /// ```
        pub fn repeat_interleave, try_repeat_interleave(
            &self,
            times: usize,
            axis: isize,
        ) -> Tensor<T>,
            Axis | TooLarge if "there is no such axis, or the result has more elements than this machine can address",
            "Tensor::from([1.0, 2.0]).try_repeat_interleave(2, 1)" => Axis {
            let attrs = [Attr::Int(times as isize), Attr::Int(axis)];
            call(&REPEAT_INTERLEAVE, attrs, [self.untyped()])
        }

        /// Repeats each slice of an axis as often as its count says, one after the other: 0 leaves it out.
        /// Not in programs, as the length depends on the counts.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let y = Tensor::from([1.0, 2.0, 3.0]).repeat_interleave_with_counts(&Tensor::from([2, 0, 1]), 0);
        /// assert_eq!(y.to_vec(), [1.0, 1.0, 3.0]);
        /// ```
        pub fn repeat_interleave_with_counts, try_repeat_interleave_with_counts(
            &self,
            counts: &Tensor<i64>,
            axis: isize,
        ) -> Tensor<T>,
            Axis | Shape | Value | TooLarge if "there is no such axis, `counts` is no list with one count for each \
                slice, a count is negative, or the result has more elements than this machine can address",
            "Tensor::from([1.0, 2.0]).try_repeat_interleave_with_counts(&Tensor::from([1, -1]), 0)" => Value {
            let op = "repeat_interleave_with_counts";
            let position = check_axis(op, axis, self.ndim())?;
            let mut shape = self.shape_owned();
            if counts.shape() != [shape[position]] {
                let expected = format!("of shape [{}], one count for each slice", shape[position]);
                return Err(Error::shape(op, "counts", expected, counts.shape()));
            }
            counts.is_read(op);
            let list = counts.to_vec();
            if let Some(count) = list.iter().find(|&&count| count < 0) {
                return Err(Error::value(op, "counts", "of numbers from 0", count));
            }
            shape[position] = list.iter().fold(0, |sum, &count| sum.saturating_add(count as usize));
            element_count(op, &shape)?;
            let each = list.iter().zip(0..).flat_map(|(&count, k)| repeat_n(k, count as usize));
            let index = Tensor::from(each.collect::<Vec<i64>>());
            let _composite = Composite::here(op);
            self.try_index_select(axis, &index).map_err(|error| error.called(op))
        }

        /// Returns for each value the position in this ascending list where it would be inserted: before equal
        /// numbers, or after them if `right`, as in NumPy: positions in the shape of `values`. NaN is last.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let edges = Tensor::from([1.0, 2.0, 2.0, 4.0]);
        /// assert_eq!(edges.searchsorted(&Tensor::from([2.0, 5.0, 0.0]), false).to_vec(), [1, 4, 0]);
        /// assert_eq!(edges.searchsorted(&Tensor::from([2.0]), true).to_vec(), [3]);
        /// ```
        #[doc(alias = "bucketize")]
        pub fn searchsorted, try_searchsorted(&self, values: &Tensor<T>, right: bool) -> Tensor<i64>,
            Shape if "this is not a list",
            "Tensor::from([[1.0, 2.0]]).try_searchsorted(&Tensor::from([1.5]), false)" => Shape {
            call(&SEARCHSORTED, [Attr::Flag(right)], [self.untyped(), values.untyped()])
        }
    }

    /// Returns the distinct elements in ascending order, the position of each element among them, in the
    /// shape of this tensor, and how often each occurs. NaN is last and occurs once; -0 equals 0. The
    /// distinct elements have no gradient; that of `x.gather(..)` by positions flows. Not in programs: the
    /// length depends on the elements.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let (values, inverse, counts) = Tensor::from([3, 1, 3, 2]).unique();
    /// assert_eq!(values.to_vec(), [1, 2, 3]);
    /// assert_eq!(inverse.to_vec(), [2, 0, 2, 1]);
    /// assert_eq!(counts.to_vec(), [1, 1, 2]);
    /// ```
    #[track_caller]
    pub fn unique(&self) -> (Tensor<T>, Tensor<i64>, Tensor<i64>) {
        self.is_read("unique");
        let at = Location::caller();
        let mut all: Vec<(i64, usize, T)> = Vec::with_capacity(self.len());
        all.extend(self.to_vec().into_iter().enumerate().map(|(i, x)| (x.rank(false), i, x)));
        all.sort_by_key(|&(rank, i, _)| (rank, i));
        let (mut values, mut counts) = (Vec::new(), Vec::<i64>::new());
        let mut inverse = vec![0_i64; all.len()];
        let mut before = None;
        for (rank, i, x) in all {
            if before != Some(rank) {
                values.push(x);
                counts.push(0);
                before = Some(rank);
            }
            inverse[i] = values.len() as i64 - 1;
            counts[values.len() - 1] += 1;
        }
        let lost = Lost::without_derivative("unique", at, self);
        let inverse = Tensor::from(inverse).reshape(self.shape());
        (Tensor::from(values).with_lost(lost), inverse, Tensor::from(counts))
    }
}

impl Tensor<i64> {
    /// Returns how often each number from 0 to the greatest occurs, or to `least - 1` if that is greater.
    /// Not in programs, as the length depends on the numbers: there use [`Tensor::segment_sum`] of ones.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::<i64>::from([2, 0, 2]).bincount(0).to_vec(), [1, 0, 2]);
    /// assert_eq!(Tensor::<i64>::from([1]).bincount(4).to_vec(), [0, 1, 0, 0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If a number is negative, or the result has more elements than this machine can address.
    #[track_caller]
    pub fn bincount(&self, least: usize) -> Tensor<i64> {
        self.is_read("bincount");
        let greatest = self.to_vec().into_iter().max().unwrap_or(-1);
        let len = least.max(usize::try_from(greatest.saturating_add(1)).unwrap_or(0));
        expect(check_indices("bincount", RECEIVER, &self.read(), len.max(1)));
        let list = self.reshape([self.len()]);
        let counts = Tensor::<i64>::ones([self.len()]).try_segment_sum(&list, len);
        expect(counts.map_err(|error| error.called("bincount")))
    }
}
