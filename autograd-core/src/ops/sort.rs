//! Sorting, the `k` greatest, the median, extremes and their positions, along an axis.

use super::call::call;
use super::reduce::{Max, Min, grouped};
use super::table::{
    Attr, Form, Gradient, OpDef, Type, arithmetic, entries, exactly, for_programs, number,
    position, reduced,
};
use super::{Binary, Caller, Numeric, expect, pairs};
use crate::array::pick::{self, AxisShape};
use crate::array::reduce::Fold;
use crate::array::shape::{axes as check_axes, axis as check_axis};
use crate::array::{DType, IntoAxes, Shape};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{Lost, Tensor};

entries! {
    SORTS:

    ARGMAX = OpDef {
        run: |op, x, at| number!(x, x => best("argmax", &x, op.int(0), at, &Max)),
        ..best_op("argmax")
    };

    ARGMIN = OpDef {
        run: |op, x, at| number!(x, x => best("argmin", &x, op.int(0), at, &Min)),
        ..best_op("argmin")
    };

    ARGSORT = OpDef {
        attrs: &[("axis", Type::Int), ("descending", Type::Flag)],
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            position(op.int(0), arithmetic(Binary::Add, x)?.dims.len())?;
            Ok(vec![Form::new(DType::Int64, x.dims.clone())])
        }),
        run: |op, x, at| number!(x, x => argsort(&x, op.int(0), op.flag(1), at)),
        gradient: Gradient::None,
        ..OpDef::new("argsort")
    };

    /// One operator, as the middle follows the number of elements.
    MEDIAN = OpDef {
        attrs: &[("axes", Type::Ints)],
        infer: for_programs(|op, inputs| {
            let x = arithmetic(Binary::Add, exactly::<1>(inputs)?[0])?;
            Ok(vec![Form::new(x.dtype, reduced(&x.dims, op.ints(0), false)?)])
        }),
        run: |op, x, _| number!(x, x => median(&x, op.ints(0))),
        ..OpDef::new("median")
    };
}

fn median<T: Numeric>(x: &Tensor<T>, axes: &[isize]) -> Result<Tensor<T>> {
    let (grouped, _) = grouped(x, &check_axes(MEDIAN.name, axes, x.ndim())?);
    let n = grouped.shape().last().map_or(0, |&n| n);
    if n == 0 {
        let expected = "of one element or more along the reduced axes";
        return Err(Error::shape(MEDIAN.name, RECEIVER, expected, x.shape()));
    }
    let (sorted, _) = grouped.sort(-1, false);
    let last = sorted.select(-1, n - 1);
    last.is_nan().try_where_else(&last, sorted.select(-1, (n - 1) / 2))
}

fn argsort<T: Numeric>(
    x: &Tensor<T>,
    axis: isize,
    descending: bool,
    caller: Caller,
) -> Result<Tensor<i64>> {
    let around = AxisShape::new(x.shape(), check_axis("argsort", axis, x.ndim())?);
    Ok(positions("argsort", x, x.shape_owned(), caller, &|data, out| {
        out.iter_mut().zip(data).for_each(|(out, x)| *out = x.rank(descending));
        sort(out, around);
    }))
}

/// Replaces the ranks along an axis by the positions that sort them in ascending order. Stable.
fn sort(ranks: &mut [i64], AxisShape { outer, n, inner }: AxisShape) {
    let mut row: Vec<(i64, i64)> = Vec::with_capacity(n);
    for first in (0..outer).flat_map(|block| (0..inner).map(move |i| block * n * inner + i)) {
        row.clear();
        row.extend((0..n).map(|i| (ranks[first + i * inner], i as i64)));
        row.sort_by_key(|&(rank, _)| rank);
        row.iter().enumerate().for_each(|(i, &(_, at))| ranks[first + i * inner] = at);
    }
}

fn positions<T: Numeric>(
    op: &'static str,
    x: &Tensor<T>,
    shape: Shape,
    caller: Caller,
    find: &dyn Fn(&[T], &mut [i64]),
) -> Tensor<i64> {
    let lost = Lost::without_derivative(op, caller, x);
    Tensor::from_value(x.row_major(shape, find)).with_lost(lost)
}

const fn best_op(name: &'static str) -> OpDef {
    OpDef {
        attrs: &[("axis", Type::Int)],
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let x = arithmetic(Binary::Add, x)?;
            Ok(vec![Form::new(DType::Int64, reduced(&x.dims, &[op.int(0)], false)?)])
        }),
        gradient: Gradient::None,
        ..OpDef::new(name)
    }
}

/// Returns the shape around an axis, which must have elements, and the shape without the axis.
fn around_elements(op: &'static str, shape: &[usize], axis: isize) -> Result<(AxisShape, Shape)> {
    let position = check_axis(op, axis, shape.len())?;
    let around = AxisShape::new(shape, position);
    if around.n == 0 {
        let expected = format!("of one element or more along axis {axis}");
        return Err(Error::shape(op, RECEIVER, expected, shape));
    }
    Ok((around, [&shape[..position], &shape[position + 1..]].concat().into()))
}

/// Returns the position along an axis of the element that beats all others; the first of equal ones.
fn best<T: Numeric>(
    op: &'static str,
    x: &Tensor<T>,
    axis: isize,
    caller: Caller,
    fold: &impl Fold<T>,
) -> Result<Tensor<i64>> {
    let (around, shape) = around_elements(op, x.shape(), axis)?;
    Ok(positions(op, x, shape, caller, &|data, out| pick::best(data, around, fold, out)))
}

/// # Along an axis
///
/// Sorting is stable: equal elements keep their order. NaN is last, also in descending order. The gradient
/// of an element flows back to its position in the input.
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Returns the elements along an axis in ascending or descending order, and their positions, both in the shape
        /// of this tensor.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let (values, places) = Tensor::from([2.0, 3.0, 1.0]).sort(0, false);
        /// assert_eq!(values.to_vec(), [1.0, 2.0, 3.0]);
        /// assert_eq!(places.to_vec(), [2, 0, 1]);
        /// ```
        #[doc(alias = "sort_last_dim")]
        #[doc(alias = "sort_with_indices")]
        #[doc(alias = "sort_descending")]
        pub fn sort(&self, axis: isize, descending: bool) -> (Tensor<T>, Tensor<i64>),
            Panics if "there is no such axis" {
            let order = expect(self.order("sort", axis, descending));
            (self.gather(axis, &order), order)
        }

        /// Returns the positions along an axis that sort its elements in ascending or descending order, in the shape
        /// of this tensor.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([2.0, f64::NAN, 1.0, 2.0]);
        /// assert_eq!(x.argsort(0, false).to_vec(), [2, 0, 3, 1]);
        /// ```
        #[doc(alias = "arg_sort_last_dim")]
        #[doc(alias = "argsort_descending")]
        pub fn argsort(&self, axis: isize, descending: bool) -> Tensor<i64>,
            Panics if "there is no such axis" {
            expect(self.order("argsort", axis, descending))
        }

        /// Returns the `k` greatest elements along an axis, the greatest first, and their positions. NaN is
        /// last (in PyTorch first). The `k` least ones are the first of an ascending [`Tensor::sort`].
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let (values, places) = Tensor::from([[2.0, 3.0, 1.0], [4.0, 4.0, 5.0]]).topk(2, -1);
        /// assert_eq!(values.to_vec(), [3.0, 2.0, 5.0, 4.0]);
        /// assert_eq!(places.to_vec(), [1, 0, 2, 0]);
        /// ```
        #[doc(alias = "top_k")]
        #[doc(alias = "topk_with_indices")]
        pub fn topk(&self, k: usize, axis: isize) -> (Tensor<T>, Tensor<i64>),
            Panics if "there is no such axis, or it has fewer than `k` elements" {
            let order = expect(self.order("topk", axis, true));
            let n = self.length("topk", axis);
            if k > n {
                let expected = format!("at most {n}, the length of axis {axis}");
                expect(Err(Error::value("topk", "k", expected, k)))
            }
            let order = order.narrow(axis, 0, k);
            (self.gather(axis, &order), order)
        }

        /// Returns the greatest element along an axis, which is removed, and its position, as
        /// [`Tensor::argmax`]. The gradient flows to that element alone; in [`Tensor::max_axes`], equal
        /// elements share it.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let (values, places) = Tensor::from([[1.0, 3.0, 3.0], [6.0, 5.0, 4.0]]).max_with_indices(1);
        /// assert_eq!(values.to_vec(), [3.0, 6.0]);
        /// assert_eq!(places.to_vec(), [1, 0]);
        /// ```
        #[doc(alias = "max_dim_with_indices")]
        pub fn max_with_indices(&self, axis: isize) -> (Tensor<T>, Tensor<i64>),
            Panics if "there is no such axis or it has length 0" {
            let places = self.try_argmax(axis).map_err(|error| error.called("max_with_indices"));
            self.picked(axis, expect(places))
        }

        /// [`Tensor::max_with_indices`] for the least element.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let (least, index) = Tensor::from([3.0, 1.0]).min_with_indices(0);
        /// assert_eq!((least.item(), index.item()), (1.0, 1));
        /// ```
        #[doc(alias = "min_dim_with_indices")]
        pub fn min_with_indices(&self, axis: isize) -> (Tensor<T>, Tensor<i64>),
            Panics if "there is no such axis or it has length 0" {
            let places = self.try_argmin(axis).map_err(|error| error.called("min_with_indices"));
            self.picked(axis, expect(places))
        }

        /// Returns the median of all elements as a scalar: of two middle ones the lesser, as in PyTorch; NaN if
        /// any is NaN. The gradient flows to one element, even among equals (PyTorch's `median()` shares it).
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::from([4.0, 1.0, 3.0, 2.0]).median().item(), 2.0);
        /// ```
        pub fn median(&self) -> Tensor<T>, Panics if "there are no elements" {
            self.median_axes([])
        }

        /// [`Tensor::median`] along `axes`, which are removed; along all axes if none is given.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 5.0, 2.0]]);
        /// assert_eq!(x.median_axes(1).to_vec(), [2.0]);
        /// ```
        #[doc(alias = "median_dim")]
        pub fn median_axes(&self, axes: impl IntoAxes) -> Tensor<T>,
            Panics if "an axis does not exist or is named twice, or there are no elements along them" {
            let axes = Attr::Ints(axes.as_axes().to_vec());
            expect(call(&MEDIAN, [axes], [self.untyped()]))
        }

        /// Returns the position of the greatest element along an axis, which is removed: the first of
        /// equal ones, and the first NaN if there is one.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 3.0, 2.0], [6.0, 5.0, 6.0]]);
        /// assert_eq!(x.argmax(1).to_vec(), [1, 0]);
        /// ```
        pub fn argmax, try_argmax(&self, axis: isize) -> Tensor<i64>,
            Axis | Shape if "there is no such axis or it has length 0",
            "Tensor::from([1.0, 2.0]).try_argmax(1)" => Axis {
            call(&ARGMAX, [Attr::Int(axis)], [self.untyped()])
        }

        /// [`Tensor::argmax`] for the least element.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::from([3.0, 1.0, 2.0]).argmin(0).item(), 1);
        /// ```
        pub fn argmin, try_argmin(&self, axis: isize) -> Tensor<i64>,
            Axis | Shape if "there is no such axis or it has length 0",
            "Tensor::<f64>::zeros([0]).try_argmin(0)" => Shape {
            call(&ARGMIN, [Attr::Int(axis)], [self.untyped()])
        }
    }

    #[track_caller]
    fn order(&self, op: &'static str, axis: isize, descending: bool) -> Result<Tensor<i64>> {
        let attrs = [Attr::Int(axis), Attr::Flag(descending)];
        call(&ARGSORT, attrs, [self.untyped()]).map_err(|error| error.called(op))
    }

    #[track_caller]
    fn picked(&self, axis: isize, places: Tensor<i64>) -> (Tensor<T>, Tensor<i64>) {
        (self.gather(axis, &places.unsqueeze(axis)).squeeze(axis), places)
    }
}
