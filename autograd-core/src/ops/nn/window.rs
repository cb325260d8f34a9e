//! Where windows lie on a picture: the arithmetic that convolution and pooling share.

use std::ops::Range;

use crate::array::shape::element_count;
use crate::error::{Error, RECEIVER, Result};

/// One number for both directions, or `[vertical, horizontal]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not one `usize` or two of them",
    label = "write one number for both directions, or `[vertical, horizontal]`"
)]
pub trait IntoPair {
    #[doc(hidden)]
    fn into_pair(self) -> [usize; 2];
}

impl IntoPair for usize {
    fn into_pair(self) -> [usize; 2] {
        [self, self]
    }
}

impl IntoPair for [usize; 2] {
    fn into_pair(self) -> [usize; 2] {
        self
    }
}

/// A window and how it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
    pub(crate) dilation: [usize; 2],
}

/// A window on pictures of a known size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(super) window: Window,
    /// Height and width of a picture.
    pub(crate) input: [usize; 2],
    /// How many windows there are, vertically and horizontally.
    pub(crate) output: [usize; 2],
}

impl Plan {
    /// An error if a number is out of range or not one window fits into pictures of this shape.
    pub(crate) fn new(op: &'static str, window: Window, shape: &[usize]) -> Result<Plan> {
        let positive =
            [("kernel", window.kernel), ("stride", window.stride), ("dilation", window.dilation)];
        for (parameter, [vertical, horizontal]) in positive {
            if vertical == 0 || horizontal == 0 {
                return Err(Error::Value {
                    op,
                    parameter,
                    expected: "at least 1".into(),
                    found: format!("{:?}", [vertical, horizontal]),
                });
            }
        }
        let &[_, _, height, width] = shape else {
            return Err(Error::Shape {
                op,
                parameter: RECEIVER.into(),
                expected: "pictures of shape [n, channels, height, width]".into(),
                found: shape.to_vec(),
            });
        };
        let mut output = [0; 2];
        let mut needed = [0; 2];
        for (i, n) in [height, width].into_iter().enumerate() {
            // What does not fit 64 bits cannot be held in memory either.
            let wide = |n: usize| n as u128;
            let span = wide(window.dilation[i]) * (wide(window.kernel[i]) - 1) + 1;
            let padded = wide(n) + 2 * wide(window.padding[i]);
            needed[i] =
                span.saturating_sub(2 * wide(window.padding[i])).min(wide(usize::MAX)) as usize;
            let Some(room) = padded.checked_sub(span) else {
                continue;
            };
            output[i] = (room / wide(window.stride[i]) + 1).min(wide(usize::MAX)) as usize;
        }
        if output.contains(&0) {
            return Err(Error::Shape {
                op,
                parameter: RECEIVER.into(),
                expected: format!(
                    "at least {} high and {} wide, for one window to fit",
                    needed[0], needed[1]
                ),
                found: shape.to_vec(),
            });
        }
        let [kernel_height, kernel_width] = window.kernel;
        let all = [shape[0], shape[1], kernel_height, kernel_width, output[0], output[1]];
        element_count(op, &all)?;
        Ok(Plan { window, input: [height, width], output })
    }

    /// How many elements a window has.
    pub(crate) fn taps(&self) -> usize {
        self.window.kernel[0] * self.window.kernel[1]
    }

    /// How many windows lie on a picture.
    pub(crate) fn windows(&self) -> usize {
        self.output[0] * self.output[1]
    }

    pub(super) fn stride(&self, direction: usize) -> usize {
        self.window.stride[direction]
    }

    /// Visits the elements of the window in row-major order.
    pub(super) fn for_each_tap(&self, mut visit: impl FnMut([usize; 2])) {
        for y in 0..self.window.kernel[0] {
            for x in 0..self.window.kernel[1] {
                visit([y, x]);
            }
        }
    }

    /// The row of the picture that an element of window row `y` lies on; none in the padding.
    pub(super) fn row(&self, tap: [usize; 2], y: usize) -> Option<usize> {
        let row = y * self.window.stride[0] + tap[0] * self.window.dilation[0];
        row.checked_sub(self.window.padding[0]).filter(|&row| row < self.input[0])
    }

    /// Which windows of a row have this element on the picture, and on which column of it the
    /// first of them does.
    pub(super) fn columns(&self, tap: [usize; 2]) -> (Range<usize>, usize) {
        let (stride, padding) = (self.window.stride[1], self.window.padding[1]);
        let shift = tap[1] * self.window.dilation[1];
        let windows = self.output[1];
        let start = padding.saturating_sub(shift).div_ceil(stride).min(windows);
        let end = (self.input[1] + padding).saturating_sub(shift).div_ceil(stride).min(windows);
        if start >= end {
            return (start..start, 0);
        }
        (start..end, start * stride + shift - padding)
    }
}
