//! Axes exchanged, added and removed, padding, repetition, windows, splits: composed of other ops.

use super::{Numeric, expect, pairs};
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
            let n = self.length("roll", axis);
            let moved = if n == 0 { 0 } else { shift.rem_euclid(n as isize) as usize };
            let parts = [self.narrow(axis, n - moved, moved), self.narrow(axis, 0, n - moved)];
            Tensor::concat(&[&parts[0], &parts[1]], axis)
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
            let (op, rank) = ("unfold", self.ndim());
            let position = expect(check_axis(op, axis, rank));
            let n = self.shape()[position];
            if size == 0 || size > n || step == 0 {
                let expected = format!("1 <= size <= {n}, the length of axis {axis}, and step >= 1");
                let found = format!("{size} and {step}");
                expect(Err(Error::value(op, "size and step", expected, found)))
            }
            let windows = (n - size) / step + 1;
            let mut shape = self.shape_owned();
            shape[position] = windows;
            shape.insert(position + 1, size);
            expect(element_count(op, &shape));
            let index: Vec<i64> = (0..windows)
                .flat_map(|window| (0..size).map(move |k| (window * step + k) as i64))
                .collect();
            let picked = self.index_select(position as isize, &Tensor::from(index)).reshape(shape);
            let axes = 0..=rank as isize;
            let within = position as isize + 1;
            let order: Vec<isize> = axes.filter(|&axis| axis != within).chain([within]).collect();
            picked.permute(&order)
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
            padded(self, widths, padding)
        }
    }
}

#[track_caller]
fn padded<T: Numeric>(x: &Tensor<T>, widths: &[[usize; 2]], padding: Padding) -> Result<Tensor<T>> {
    let (op, rank) = ("pad", x.ndim());
    let Some(first) = rank.checked_sub(widths.len()) else {
        let what = "pairs in `widths`, or fewer".into();
        return Err(Error::Count { op, what, expected: rank, found: widths.len() });
    };
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
