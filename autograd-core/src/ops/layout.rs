//! Axes exchanged, added and removed, padding, repetition, windows, splits: composed of other ops.

use super::call::call;
use super::shape::copy;
use super::table::{
    Attr, Form, OpDef, Operator, Type, any, arithmetic, entries, exactly, for_programs, message,
    number, position, same_along,
};
use super::{Binary, Caller, Numeric, expect, pairs};
use crate::array::Shape;
use crate::array::shape::{axes as check_axes, axis as check_axis, element_count};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{Composite, Element, Tensor};

/// What [`Tensor::pad`] puts around a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Padding {
    /// One number, converted to the element type as by Rust's `as`.
    Constant(f64),
    /// The elements mirrored at the first and last element, which are not repeated: `3 2 | 1 2 3 | 2 1`.
    Reflect,
    /// The first and the last element: `1 1 | 1 2 3 | 3 3`.
    Replicate,
    /// The elements from the other end: `2 3 | 1 2 3 | 1 2`.
    Circular,
}

impl Padding {
    /// Returns which of `n` elements is at a position; for a constant, any element outside.
    fn source(self, position: isize, n: usize) -> i64 {
        let n = n as isize;
        let at = match self {
            Self::Constant(_) | Self::Replicate => position.clamp(0, n - 1),
            Self::Circular => position.rem_euclid(n),
            Self::Reflect => {
                let period = (2 * (n - 1)).max(1);
                let at = position.rem_euclid(period);
                at.min(period - at).min(n - 1)
            }
        };
        at as i64
    }
}

// Each is one operator of a program, as the lengths of the parts follow the length of the axis.
entries! {
    LAYOUTS:

    ROLL = OpDef {
        attrs: &[("axis", Type::Int), ("shift", Type::Int)],
        infer: for_programs(same_along),
        run: |op, x, at| any!(x, x => rolled(&x, op.int(0), op.int(1), at)),
        ..OpDef::new("roll")
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

    PAD = OpDef {
        attrs: &[("widths", Type::Pairs), ("mode", Type::Int), ("value", Type::Number)],
        show: for_programs(|op| format!("widths={:?}, {:?}", op.pairs(0), padding_of(op))),
        infer: for_programs(|op, inputs| {
            let x = arithmetic(Binary::Add, exactly::<1>(inputs)?[0])?;
            let mut dims = x.dims.clone();
            let first = first_padded(dims.len(), op.pairs(0)).map_err(message)?;
            for (dim, [before, behind]) in dims[first..].iter_mut().zip(op.pairs(0)) {
                *dim = dim.map(|n| n.saturating_add(*before).saturating_add(*behind));
            }
            Ok(vec![Form::new(x.dtype, dims)])
        }),
        run: |op, x, at| number!(x, x => padded(&x, op.pairs(0), padding_of(op), at)),
        ..OpDef::new("pad")
    };
}

#[track_caller]
fn unsqueezed<T: Element>(op: &'static str, x: &Tensor<T>, axes: &[isize]) -> Tensor<T> {
    if axes.is_empty() {
        return x.copy();
    }
    let mut shape = x.shape_owned();
    for position in expect(check_axes(op, axes, x.ndim() + axes.len())) {
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
        pub fn transpose(&self) -> Tensor<T>, Panics if "there are fewer than two axes" {
            if self.ndim() < 2 {
                let expected = "of two axes or more";
                expect(Err(Error::shape("transpose", RECEIVER, expected, self.shape())))
            }
            self.swap_axes(-2, -1)
        }

        /// Exchanges the last two axes: [`Tensor::transpose`] under its short name.
        pub fn t(&self) -> Tensor<T>, Panics if "there are fewer than two axes" {
            self.transpose()
        }

        /// Adds an axis of length 1 before position `axis`; -1 is after the last.
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
        pub fn squeeze, try_squeeze(&self, axis: isize) -> Tensor<T>,
            Axis if "there is no such axis or its length is not 1" {
            squeezed("squeeze", self, &[axis])
        }

        /// Removes these axes, which must have length 1; see [`Tensor::squeeze`] for one.
        pub fn squeeze_axes(&self, axes: &[isize]) -> Tensor<T>,
            Panics if "there is no such axis, it is named twice, or its length is not 1" {
            expect(squeezed("squeeze_axes", self, axes))
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

        /// Splits an axis into at most `parts` parts of equal length, the last perhaps shorter; an empty one
        /// into `parts` empty ones.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let lengths = |parts| Tensor::<i64>::arange(5).chunk(parts, 0).iter().map(Tensor::len).collect::<Vec<_>>();
        /// assert_eq!((lengths(2), lengths(4)), (vec![3, 2], vec![2, 2, 1]));
        /// ```
        #[doc(alias = "array_split")]
        pub fn chunk(&self, parts: usize, axis: isize) -> Vec<Tensor<T>>,
            Panics if "there is no such axis or `parts` is 0" {
            let n = self.length("chunk", axis);
            if parts == 0 {
                expect(Err(Error::value("chunk", "parts", "1 or more", 0)))
            }
            if n == 0 {
                return self.split(parts, axis);
            }
            let _composite = Composite::here();
            let each = n.div_ceil(parts);
            let starts = (0..n).step_by(each);
            starts.map(|start| self.narrow(axis, start, each.min(n - start))).collect()
        }

        /// Splits an axis into parts of these lengths.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let parts = Tensor::from([1, 2, 3]).split_with_sizes(&[1, 2], 0);
        /// assert_eq!((parts[0].to_vec(), parts[1].to_vec()), (vec![1], vec![2, 3]));
        /// ```
        #[doc(alias = "split")]
        pub fn split_with_sizes, try_split_with_sizes(&self, sizes: &[usize], axis: isize) -> Vec<Tensor<T>>,
            Axis | Value if "there is no such axis, or the lengths do not add up to its length" {
            let op = "split_with_sizes";
            let n = self.shape()[check_axis(op, axis, self.ndim())?];
            if sizes.iter().fold(0, |sum: usize, &n| sum.saturating_add(n)) != n {
                let expected = format!("lengths that add up to {n}, the length of axis {axis}");
                return Err(Error::value(op, "sizes", expected, format!("{sizes:?}")));
            }
            let (mut start, mut all) = (0, Vec::new());
            for &len in sizes {
                all.push(self.try_slice_axis(axis, start, start + len, 1)?);
                start += len;
            }
            Ok(all)
        }
    }
}

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
            let Some(new) = times.len().checked_sub(self.ndim()) else {
                let (op, what) = ("repeat", "or more numbers in `times`".into());
                expect(Err(Error::Count { op, what, expected: self.ndim(), found: times.len() }))
            };
            let mut lengths = Shape::from_elem(1, new);
            lengths.extend_from_slice(self.shape());
            // Each repeated axis follows one of length 1, which is broadcast.
            let (mut apart, mut wide, mut out) = (Shape::new(), Shape::new(), Shape::new());
            for (&n, &times) in lengths.iter().zip(times) {
                if times != 1 {
                    apart.push(1);
                    wide.push(times);
                }
                apart.push(n);
                wide.push(n);
                out.push(n.saturating_mul(times));
            }
            expect(element_count("repeat", &out));
            self.reshape(apart).broadcast_to(wide).reshape(out)
        }

        /// Pads the tensor: `widths` has `[before, after]` for each of the last axes. Elements that are
        /// mirrored or wrapped repeat several times if the padding is longer, as in NumPy.
        ///
        /// ```
        /// use autograd_core::{Padding, Tensor};
        ///
        /// let x = Tensor::from([[1, 2, 3]]);
        /// assert_eq!(x.pad(&[[1, 2]], Padding::Reflect).to_vec(), [2, 1, 2, 3, 2, 1]);
        /// assert_eq!(x.pad(&[[1, 0], [0, 1]], Padding::Constant(0.0)).to_vec(), [0, 0, 0, 0, 1, 2, 3, 0]);
        /// ```
        #[doc(alias = "pad_with_zeros")]
        pub fn pad, try_pad(&self, widths: &[[usize; 2]], padding: Padding) -> Tensor<T>,
            Count | TooLarge | Shape if "there are more pairs than axes, the result is too large, or an axis of \
                length 0 is padded with its own elements" {
            let (mode, value) = match padding {
                Padding::Constant(value) => (0, value),
                Padding::Reflect => (1, 0.0),
                Padding::Replicate => (2, 0.0),
                Padding::Circular => (3, 0.0),
            };
            let attrs = [Attr::Pairs(widths.to_vec()), Attr::Int(mode), Attr::Number(value)];
            call(&PAD, attrs, [self.untyped()])
        }
    }
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
        let expected = format!("1 <= size <= {n}, the length of axis {axis}, and step >= 1");
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

/// Returns the first axis that is padded.
fn first_padded(rank: usize, widths: &[[usize; 2]]) -> Result<usize> {
    let what = || "pairs in `widths`, or fewer".into();
    let first = rank.checked_sub(widths.len());
    first.ok_or_else(|| Error::Count {
        op: "pad",
        what: what(),
        expected: rank,
        found: widths.len(),
    })
}

fn padding_of(op: &Operator) -> Padding {
    match op.int(1) {
        0 => Padding::Constant(op.number(2)),
        1 => Padding::Reflect,
        2 => Padding::Replicate,
        _ => Padding::Circular,
    }
}

fn padded<T: Numeric>(
    x: &Tensor<T>,
    widths: &[[usize; 2]],
    padding: Padding,
    caller: Caller,
) -> Result<Tensor<T>> {
    let op = "pad";
    let (rank, first) = (x.ndim(), first_padded(x.ndim(), widths)?);
    if widths.as_flattened().iter().all(|&width| width == 0) {
        return Ok(copy(x, caller));
    }
    let mut shape = x.shape_owned();
    for (n, [before, behind]) in shape[first..].iter_mut().zip(widths) {
        *n = n.saturating_add(*before).saturating_add(*behind);
    }
    element_count(op, &shape)?;
    let mut padded = x.clone();
    for (axis, &[before, behind]) in (first..).zip(widths) {
        let n = x.shape()[axis];
        if before + behind == 0 {
            continue;
        }
        if n == 0 {
            let Padding::Constant(value) = padding else {
                let expected = format!("of one element or more along axis {axis}");
                return Err(Error::shape(op, RECEIVER, expected, x.shape()));
            };
            let mut shape = padded.shape_owned();
            shape[axis] = before + behind;
            // Joined with the empty tensor, so that the result is in its graph.
            let constant = Tensor::full(shape, T::nearest(value));
            padded = Tensor::try_concat(&[&padded, &constant], axis as isize)?;
            continue;
        }
        let positions = -(before as isize)..(n + behind) as isize;
        let index: Vec<i64> = positions.clone().map(|at| padding.source(at, n)).collect();
        padded = padded.try_index_select(axis as isize, &Tensor::from(index))?;
        if let Padding::Constant(value) = padding {
            let inside: Vec<bool> = positions.map(|at| at >= 0 && at < n as isize).collect();
            let mut shape = Shape::from_elem(1, rank - axis);
            shape[0] = inside.len();
            let inside = Tensor::from(inside).try_reshape(shape)?;
            padded = inside.try_where_else(&padded, Tensor::from(T::nearest(value)))?;
        }
    }
    Ok(padded.apart_from(x))
}
