//! Axes exchanged, added, removed, reversed, rotated and repeated, and windows.

use super::call::{call, linear};
use super::shape::copy;
use super::table::{
    Attr, Form, OpDef, Type, any, arithmetic, entries, exactly, for_programs, message, number,
    position, same_along,
};
use super::{Binary, Caller, Numeric, expect, pairs};
use crate::array::Shape;
use crate::array::pick::{self, AxisShape};
use crate::array::shape::{axes as check_axes, axis as check_axis, element_count};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{Element, Tensor};

// Each is one operator of a program, as the lengths of the parts follow the length of the axis.
entries! {
    LAYOUTS:

    FLIP = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: for_programs(same_along),
        run: |op, x, at| any!(x, x => flip(&x, op.int(0), at)),
        ..OpDef::new("flip")
    };

    ROLL = OpDef {
        attrs: &[("axis", Type::Int), ("shift", Type::Int)],
        infer: for_programs(same_along),
        run: |op, x, at| any!(x, x => rolled(&x, op.int(0), op.int(1), at)),
        ..OpDef::new("roll")
    };

    /// One number for each axis of the result.
    REPEAT = OpDef {
        attrs: &[("times", Type::Ints)],
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let new = new_axes(op.ints(0).len(), x.dims.len()).map_err(message)?;
            let lengths = std::iter::repeat_n(Some(1), new).chain(x.dims.iter().copied());
            let repeated = lengths.zip(op.ints(0)).map(|(n, &times)| Some(n? * times as usize));
            Ok(vec![Form::new(arithmetic(Binary::Add, x)?.dtype, repeated.collect())])
        }),
        run: |op, x, _| number!(x, x => repeated(&x, op.ints(0))),
        ..OpDef::new("repeat")
    };

    UNFOLD = OpDef {
        attrs: &[("axis", Type::Int), ("size", Type::Int), ("step", Type::Int)],
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let (axis, [size, step]) = (op.int(0), [1, 2].map(|at| op.int(at) as usize));
            let mut dims = x.dims.clone();
            let dim = &mut dims[position(axis, x.dims.len())?];
            let windows = dim.map(|n| window_count(axis, n, size, step));
            *dim = windows.transpose().map_err(message)?;
            dims.push(Some(size));
            Ok(vec![Form::new(x.dtype, dims)])
        }),
        run: |op, x, _| {
            let [size, step] = [1, 2].map(|at| op.int(at) as usize);
            any!(x, x => unfolded(&x, op.int(0), size, step))
        },
        ..OpDef::new("unfold")
    };
}

/// The positions of new axes in the result. An error counts the axes that the tensor has.
pub(super) fn inserted_axes(op: &'static str, axes: &[isize], rank: usize) -> Result<Shape> {
    check_axes(op, axes, rank + axes.len()).map_err(|error| match error.into() {
        Error::Axis { op, axis, why, .. } => Error::Axis { op, axis, rank, why },
        other => other,
    })
}

#[track_caller]
fn unsqueezed<T: Element>(op: &'static str, x: &Tensor<T>, axes: &[isize]) -> Tensor<T> {
    if axes.is_empty() {
        return x.copy();
    }
    let mut shape = x.shape_owned();
    for position in expect(inserted_axes(op, axes, x.ndim())) {
        shape.insert(position, 1);
    }
    x.reshape(shape)
}

#[track_caller]
fn squeezed<T: Element>(op: &'static str, x: &Tensor<T>, axes: &[isize]) -> Result<Tensor<T>> {
    if axes.is_empty() {
        return Ok(x.copy());
    }
    let (rank, mut shape) = (x.ndim(), x.shape_owned());
    let positions = check_axes(op, axes, rank)?;
    for &axis in axes {
        if shape[check_axis(op, axis, rank)?] != 1 {
            return Err(Error::Axis { op, axis, rank, why: "does not have length 1" });
        }
    }
    for &position in positions.iter().rev() {
        shape.remove(position);
    }
    x.try_reshape(shape)
}

/// # Axes
impl<T: Element> Tensor<T> {
    pairs! {
        /// Exchanges two axes. No element is copied.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::<f32>::zeros([2, 3, 4]).swap_axes(0, -1).shape(), [4, 3, 2]);
        /// ```
        #[doc(alias = "transpose")]
        #[doc(alias = "swapaxes")]
        #[doc(alias = "swap_dims")]
        pub fn swap_axes(&self, a: isize, b: isize) -> Tensor<T>,
            Panics if "there is no such axis" {
            let rank = self.ndim();
            let position = |axis| check_axis("swap_axes", axis, rank);
            let (a, b) = (expect(position(a)), expect(position(b)));
            let mut order: Vec<isize> = (0..rank as isize).collect();
            order.swap(a, b);
            self.permute(&order)
        }

        /// Exchanges the last two axes. No element is copied.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        /// assert_eq!(x.transpose().shape(), [3, 2]);
        /// ```
        pub fn transpose(&self) -> Tensor<T>, Panics if "there are fewer than two axes" {
            if self.ndim() < 2 {
                let expected = "of two axes or more";
                expect(Err(Error::shape("transpose", RECEIVER, expected, self.shape())))
            }
            self.swap_axes(-2, -1)
        }

        /// Exchanges the last two axes: [`Tensor::transpose`] under its short name.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        /// assert_eq!(x.t().to_vec(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        /// ```
        #[doc(alias = "mT")]
        #[doc(alias = "T")]
        pub fn t(&self) -> Tensor<T>, Panics if "there are fewer than two axes" {
            self.transpose()
        }

        /// Adds an axis of length 1 before position `axis`; -1 is after the last.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        /// assert_eq!(x.unsqueeze(0).shape(), [1, 2, 3]);
        /// assert_eq!(x.unsqueeze(-1).shape(), [2, 3, 1]);
        /// ```
        #[doc(alias = "unsqueeze_dim")]
        pub fn unsqueeze(&self, axis: isize) -> Tensor<T>, Panics if "there is no such position" {
            unsqueezed("unsqueeze", self, &[axis])
        }

        /// Adds axes of length 1 at these positions of the result; see [`Tensor::unsqueeze`] for one.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::<f32>::zeros([2, 3]).unsqueeze_axes(&[0, -1]);
        /// assert_eq!(x.shape(), [1, 2, 3, 1]);
        /// assert_eq!(x.squeeze_axes(&[0, -1]).shape(), [2, 3]);
        /// ```
        #[doc(alias = "expand_dims")]
        pub fn unsqueeze_axes(&self, axes: &[isize]) -> Tensor<T>,
            Panics if "there is no such position in the result, or one is named twice" {
            unsqueezed("unsqueeze_axes", self, axes)
        }

        /// Removes an axis of length 1.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 2.0]]);
        /// assert_eq!(x.squeeze(0).shape(), [2]);
        /// ```
        pub fn squeeze, try_squeeze(&self, axis: isize) -> Tensor<T>,
            Axis if "there is no such axis or its length is not 1",
            "Tensor::from([[1.0, 2.0]]).try_squeeze(1)" => Axis {
            squeezed("squeeze", self, &[axis])
        }

        /// Removes these axes, which must have length 1; see [`Tensor::squeeze`] for one.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::<f32>::zeros([1, 3, 1]).squeeze_axes(&[0, -1]).shape(), [3]);
        /// ```
        pub fn squeeze_axes(&self, axes: &[isize]) -> Tensor<T>,
            Panics if "there is no such axis, it is named twice, or its length is not 1" {
            expect(squeezed("squeeze_axes", self, axes))
        }

        /// Reverses the order of an axis.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([1.0, 2.0, 3.0]);
        /// assert_eq!(x.flip(0).to_vec(), [3.0, 2.0, 1.0]);
        /// ```
        pub fn flip(&self, axis: isize) -> Tensor<T>, Panics if "there is no such axis" {
            expect(flipped(self, axis))
        }

        /// Moves the elements of an axis by `shift` positions; those that leave at one end enter at the other.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([1, 2, 3, 4]);
        /// assert_eq!(x.roll(1, 0).to_vec(), [4, 1, 2, 3]);
        /// assert_eq!(x.roll(-1, 0).to_vec(), [2, 3, 4, 1]);
        /// ```
        pub fn roll(&self, shift: isize, axis: isize) -> Tensor<T>,
            Panics if "there is no such axis" {
            expect(call(&ROLL, [Attr::Int(axis), Attr::Int(shift)], [self.untyped()]))
        }

        /// Returns windows of `size` elements along an axis, one every `step` elements, as a new last axis.
        /// The axis then has length `(n - size) / step + 1`, rounded down.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([1, 2, 3, 4, 5]).unfold(0, 3, 2);
        /// assert_eq!((x.shape(), x.to_vec()), (&[2, 3][..], vec![1, 2, 3, 3, 4, 5]));
        /// ```
        #[doc(alias = "sliding_window_view")]
        pub fn unfold(&self, axis: isize, size: usize, step: usize) -> Tensor<T>,
            Panics if "there is no such axis, `step` is 0, or `size` is 0 or longer than the axis" {
            let [size, step] = [size, step].map(|n| Attr::Int(isize::try_from(n).unwrap_or(isize::MAX)));
            expect(call(&UNFOLD, [Attr::Int(axis), size, step], [self.untyped()]))
        }

    }
}

/// # Repetition
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Repeats the tensor along each axis, as NumPy's `tile`. More numbers than axes add axes in front.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([1, 2]).repeat(&[2, 2]);
        /// assert_eq!((x.shape(), x.to_vec()), (&[2, 4][..], vec![1, 2, 1, 2, 1, 2, 1, 2]));
        /// ```
        #[doc(alias = "tile")]
        pub fn repeat(&self, times: &[usize]) -> Tensor<T>,
            Panics if "there are fewer numbers than axes, or the result is too large" {
            let times = times.iter().map(|&n| isize::try_from(n).unwrap_or(isize::MAX)).collect();
            expect(call(&REPEAT, [Attr::Ints(times)], [self.untyped()]))
        }

    }
}

/// The number of axes that a repetition adds in front.
fn new_axes(times: usize, rank: usize) -> Result<usize> {
    times.checked_sub(rank).ok_or_else(|| {
        let (op, what) = ("repeat", "or more numbers in `times`".into());
        Error::Count { op, what, expected: rank, found: times }
    })
}

#[track_caller]
fn repeated<T: Numeric>(x: &Tensor<T>, times: &[isize]) -> Result<Tensor<T>> {
    let mut lengths = Shape::from_elem(1, new_axes(times.len(), x.ndim())?);
    lengths.extend_from_slice(x.shape());
    // Each repeated axis follows one of length 1, which is broadcast.
    let (mut apart, mut wide, mut out) = (Shape::new(), Shape::new(), Shape::new());
    for (&n, &times) in lengths.iter().zip(times) {
        let times = times as usize;
        if times != 1 {
            apart.push(1);
            wide.push(times);
        }
        apart.push(n);
        wide.push(n);
        out.push(n.saturating_mul(times));
    }
    element_count("repeat", &out)?;
    x.try_reshape(apart)?.try_broadcast_to(wide)?.try_reshape(out)
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

fn rolled<T: Element>(
    x: &Tensor<T>,
    axis: isize,
    shift: isize,
    caller: Caller,
) -> Result<Tensor<T>> {
    let n = x.shape()[check_axis("roll", axis, x.ndim())?];
    let moved = if n == 0 { 0 } else { shift.rem_euclid(n as isize) as usize };
    if moved == 0 {
        return Ok(copy(x, caller));
    }
    let [end, start] =
        [(n - moved, n), (0, n - moved)].map(|(start, end)| x.try_slice_axis(axis, start, end, 1));
    Tensor::try_concat(&[&end?, &start?], axis)
}

/// The length of an axis of `n` elements that is divided into windows.
fn window_count(axis: isize, n: usize, size: usize, step: usize) -> Result<usize> {
    if size == 0 || size > n || step == 0 {
        let expected =
            format!("such that 1 <= size <= {n}, the length of axis {axis}, and step >= 1");
        let found = format!("{size} and {step}");
        return Err(Error::value("unfold", "size and step", expected, found));
    }
    Ok((n - size) / step + 1)
}

fn unfolded<T: Element>(x: &Tensor<T>, axis: isize, size: usize, step: usize) -> Result<Tensor<T>> {
    let (op, rank) = ("unfold", x.ndim());
    let position = check_axis(op, axis, rank)?;
    let windows = window_count(axis, x.shape()[position], size, step)?;
    let mut shape = x.shape_owned();
    shape[position] = windows;
    shape.insert(position + 1, size);
    element_count(op, &shape)?;
    let starts = (0..windows).map(|window| window * step);
    let index: Vec<i64> =
        starts.flat_map(|start| (start..start + size).map(|at| at as i64)).collect();
    let picked = x.try_index_select(position as isize, &Tensor::from(index))?.try_reshape(shape)?;
    let axes = 0..=rank as isize;
    let within = position as isize + 1;
    let order: Vec<isize> = axes.filter(|&axis| axis != within).chain([within]).collect();
    picked.try_permute(&order)
}
