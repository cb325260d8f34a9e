//! The positions of windows on an image, for convolution and pooling.

use std::ops::Range;

use super::super::options;
use super::super::table::{Dims, Form, Operator};
use crate::array::shape::element_count;
use crate::error::{Error, RECEIVER, Result};

/// One number for both directions, or `[vertical, horizontal]`.
///
/// ```
/// use autograd_core::{Conv2dOptions, PoolOptions, Tensor};
///
/// assert_eq!(Conv2dOptions::new().stride(2), Conv2dOptions::new().stride([2, 2]));
/// let x = Tensor::from([[[[1.0, 2.0], [3.0, 4.0]]]]);
/// assert_eq!(x.max_pool2d(PoolOptions::new([1, 2])).to_vec(), [2.0, 4.0]);
/// ```
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
    pub(crate) dilation: [usize; 2],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(super) window: Window,
    pub(crate) input: [usize; 2],
    /// The number of windows, vertically and horizontally.
    pub(crate) output: [usize; 2],
}

impl Plan {
    /// Creates a plan; an error if a number is out of range or no window fits into images of this shape.
    pub(crate) fn new(op: &'static str, window: Window, shape: &[usize]) -> Result<Plan> {
        let positive =
            [("kernel", window.kernel), ("stride", window.stride), ("dilation", window.dilation)];
        for (parameter, [vertical, horizontal]) in positive {
            if vertical == 0 || horizontal == 0 {
                let found = format!("{:?}", [vertical, horizontal]);
                return Err(Error::value(op, parameter, "at least 1", found));
            }
        }
        let &[_, _, height, width] = shape else {
            let expected = "images of shape [n, channels, height, width]";
            return Err(Error::shape(op, RECEIVER, expected, shape));
        };
        let mut output = [0; 2];
        let mut needed = [0; 2];
        for (i, n) in [height, width].into_iter().enumerate() {
            // All positions are inside the padded image, so none of them overflows.
            let both = window.padding[i].checked_mul(2);
            let (Some(both), Some(padded)) = (both, both.and_then(|both| both.checked_add(n)))
            else {
                let expected = "smaller: the padded image is too large for this machine";
                return Err(Error::value(op, "padding", expected, format!("{:?}", window.padding)));
            };
            let span = window.dilation[i].saturating_mul(window.kernel[i] - 1).saturating_add(1);
            needed[i] = span.saturating_sub(both);
            if let Some(free) = padded.checked_sub(span) {
                output[i] = free / window.stride[i] + 1;
            }
        }
        if output.contains(&0) {
            let [height, width] = needed;
            let expected =
                format!("at least {height} high and {width} wide, for one window to fit");
            return Err(Error::shape(op, RECEIVER, expected, shape));
        }
        let [kernel_height, kernel_width] = window.kernel;
        let all = [shape[0], shape[1], kernel_height, kernel_width, output[0], output[1]];
        element_count(op, &all)?;
        Ok(Plan { window, input: [height, width], output })
    }

    pub(crate) fn taps(&self) -> usize {
        self.window.kernel[0] * self.window.kernel[1]
    }

    pub(crate) fn windows(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// Returns row and column of an element of the window, by its row-major position.
    pub(super) fn tap(&self, place: usize) -> [usize; 2] {
        [place / self.window.kernel[1], place % self.window.kernel[1]]
    }

    /// Returns the part of the image that a window without gaps covers, in one direction.
    pub(super) fn inside(&self, direction: usize, window: usize) -> Range<usize> {
        let Window { kernel, stride, padding, .. } = self.window;
        let [start, padding] = [window * stride[direction], padding[direction]];
        let end = (start + kernel[direction] - padding).min(self.input[direction]);
        start.saturating_sub(padding)..end
    }

    /// Returns the image's row at an element of window row `y`; `None` in the padding.
    pub(super) fn row(&self, tap: [usize; 2], y: usize) -> Option<usize> {
        let row = y * self.window.stride[0] + tap[0] * self.window.dilation[0];
        row.checked_sub(self.window.padding[0]).filter(|&row| row < self.input[0])
    }

    /// Returns the windows of a row that have element `tap` inside the image, and its column in the first.
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

/// Options of a convolution: by default stride 1, no padding, no gaps, one group. Each number is
/// for both directions, or `[vertical, horizontal]`.
///
/// ```
/// use autograd_core::{Conv2dOptions, Tensor};
///
/// let options = Conv2dOptions::new().stride(2).padding([1, 0]).dilation(2).groups(2);
/// let (x, weight) = (Tensor::<f32>::ones([1, 4, 9, 9]), Tensor::ones([6, 2, 3, 3]));
/// assert_eq!(x.conv2d(&weight, None, options).shape(), [1, 6, 4, 3]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv2dOptions {
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) groups: usize,
}

impl Default for Conv2dOptions {
    fn default() -> Self {
        Self { stride: [1, 1], padding: [0, 0], dilation: [1, 1], groups: 1 }
    }
}

impl Conv2dOptions {
    /// Returns stride, padding, dilation and, twice, the number of groups.
    pub(crate) fn parts(self) -> [[usize; 2]; 4] {
        let Self { stride, padding, dilation, groups } = self;
        [stride, padding, dilation, [groups; 2]]
    }

    pub(super) fn of(op: &Operator) -> Result<Self, String> {
        let [stride, padding, dilation, [groups, _]] = counted(op.pairs(0))?;
        Ok(Self { stride, padding, dilation, groups })
    }

    /// Creates options with stride 1, no padding, no gaps and one group.
    ///
    /// ```
    /// use autograd_core::{Conv2dOptions, Tensor};
    ///
    /// let (x, weight) = (Tensor::<f32>::ones([1, 1, 6, 5]), Tensor::ones([1, 1, 3, 3]));
    /// assert_eq!(x.conv2d(&weight, None, Conv2dOptions::new()).shape(), [1, 1, 4, 3]);
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    options! {
        /// The distance by which the window moves.
        ///
        /// ```
        /// use autograd_core::{Conv2dOptions, Tensor};
        ///
        /// let (x, weight) = (Tensor::<f32>::ones([1, 1, 9, 9]), Tensor::ones([1, 1, 3, 3]));
        /// let options = Conv2dOptions::new().stride([2, 3]);
        /// assert_eq!(x.conv2d(&weight, None, options).shape(), [1, 1, 4, 3]);
        /// ```
        pub fn stride(stride: impl IntoPair).into_pair();

        /// The number of zeros around the image, on each side.
        ///
        /// ```
        /// use autograd_core::{Conv2dOptions, Tensor};
        ///
        /// let (x, weight) = (Tensor::<f32>::ones([1, 1, 1, 2]), Tensor::ones([1, 1, 1, 1]));
        /// let y = x.conv2d(&weight, None, Conv2dOptions::new().padding([0, 1]));
        /// assert_eq!(y.to_vec(), [0.0, 1.0, 1.0, 0.0]);
        /// ```
        pub fn padding(padding: impl IntoPair).into_pair();

        /// The distance between the elements of a window.
        ///
        /// ```
        /// use autograd_core::{Conv2dOptions, Tensor};
        ///
        /// let x = Tensor::from([[[[1.0, 10.0, 100.0, 1000.0]]]]);
        /// let options = Conv2dOptions::new().dilation(2);
        /// let y = x.conv2d(&Tensor::ones([1, 1, 1, 2]), None, options);
        /// assert_eq!(y.to_vec(), [101.0, 1010.0]);
        /// ```
        pub fn dilation(dilation: impl IntoPair).into_pair();

        /// The number of groups of channels, each convolved with its own weights.
        ///
        /// ```
        /// use autograd_core::{Conv2dOptions, Tensor};
        ///
        /// // Two channels, each with its own weight.
        /// let x = Tensor::from([1.0, 10.0]).reshape([1, 2, 1, 1]);
        /// let weight = Tensor::from([2.0, 3.0]).reshape([2, 1, 1, 1]);
        /// let y = x.conv2d(&weight, None, Conv2dOptions::new().groups(2));
        /// assert_eq!(y.to_vec(), [2.0, 30.0]);
        /// ```
        pub fn groups(groups: usize);
    }
}

/// Options of a convolution of signals: by default stride 1, no padding, no gaps, one group.
///
/// ```
/// use autograd_core::nn::Conv1d;
/// use autograd_core::{Conv1dOptions, Tensor};
///
/// let options = Conv1dOptions::new().stride(2).padding(1).dilation(2).groups(2);
/// let layer = Conv1d::<f32>::new(4, 6, 3, options);
/// assert_eq!(layer.forward(&Tensor::ones([1, 4, 9])).shape(), [1, 6, 4]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv1dOptions {
    stride: usize,
    padding: usize,
    dilation: usize,
    groups: usize,
}

impl Default for Conv1dOptions {
    fn default() -> Self {
        Self { stride: 1, padding: 0, dilation: 1, groups: 1 }
    }
}

impl Conv1dOptions {
    /// Creates options with stride 1, no padding, no gaps and one group.
    ///
    /// ```
    /// use autograd_core::nn::Conv1d;
    /// use autograd_core::{Conv1dOptions, Tensor};
    ///
    /// let layer = Conv1d::<f32>::new(1, 1, 3, Conv1dOptions::new());
    /// assert_eq!(layer.forward(&Tensor::ones([1, 1, 9])).shape(), [1, 1, 7]);
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    options! {
        /// The distance by which the window moves.
        ///
        /// ```
        /// use autograd_core::nn::Conv1d;
        /// use autograd_core::{Conv1dOptions, Tensor};
        ///
        /// let layer = Conv1d::<f32>::new(1, 1, 3, Conv1dOptions::new().stride(2));
        /// assert_eq!(layer.forward(&Tensor::ones([1, 1, 9])).shape(), [1, 1, 4]);
        /// ```
        pub fn stride(stride: usize);

        /// The number of zeros at each end of the signal.
        ///
        /// ```
        /// use autograd_core::nn::Conv1d;
        /// use autograd_core::{Conv1dOptions, Tensor};
        ///
        /// let layer = Conv1d::<f32>::new(1, 1, 3, Conv1dOptions::new().padding(1));
        /// assert_eq!(layer.forward(&Tensor::ones([1, 1, 9])).shape(), [1, 1, 9]);
        /// ```
        pub fn padding(padding: usize);

        /// The distance between the elements of a window.
        ///
        /// ```
        /// use autograd_core::nn::Conv1d;
        /// use autograd_core::{Conv1dOptions, Tensor};
        ///
        /// let layer = Conv1d::<f32>::new(1, 1, 3, Conv1dOptions::new().dilation(2));
        /// assert_eq!(layer.forward(&Tensor::ones([1, 1, 9])).shape(), [1, 1, 5]);
        /// ```
        pub fn dilation(dilation: usize);

        /// The number of groups of channels, each convolved with its own weights.
        ///
        /// ```
        /// use autograd_core::Conv1dOptions;
        /// use autograd_core::nn::Conv1d;
        ///
        /// // Each of the two groups has two of the four channels.
        /// let layer = Conv1d::<f32>::new(4, 6, 3, Conv1dOptions::new().groups(2));
        /// assert_eq!(layer.weight.shape(), [6, 2, 3]);
        /// ```
        pub fn groups(groups: usize);
    }

    /// The options for images of height 1.
    #[cfg(feature = "nn")]
    pub(crate) fn of_images(self) -> Conv2dOptions {
        let Self { stride, padding, dilation, groups } = self;
        Conv2dOptions {
            stride: [1, stride],
            padding: [0, padding],
            dilation: [1, dilation],
            groups,
        }
    }
}

/// Options of a pooling window: by default it moves by its size, without padding. Each number is
/// for both directions, or `[vertical, horizontal]`; a plain window size can replace the options.
///
/// ```
/// use autograd_core::{PoolOptions, Tensor};
///
/// let options = PoolOptions::new([2, 4]).stride(2).padding([1, 0]);
/// assert_eq!(Tensor::<f32>::ones([1, 3, 8, 8]).avg_pool2d(options).shape(), [1, 3, 5, 3]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    kernel: [usize; 2],
    stride: Option<[usize; 2]>,
    padding: [usize; 2],
}

impl PoolOptions {
    pub(crate) fn parts(self) -> [[usize; 2]; 3] {
        [self.kernel, self.stride.unwrap_or(self.kernel), self.padding]
    }

    pub(super) fn of(op: &Operator) -> Result<Self, String> {
        let [kernel, stride, padding] = counted(op.pairs(0))?;
        Ok(Self { kernel, stride: Some(stride), padding })
    }

    /// Creates options for a window of this size.
    ///
    /// ```
    /// use autograd_core::{PoolOptions, Tensor};
    ///
    /// let x = Tensor::from([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]]);
    /// assert_eq!(x.max_pool2d(PoolOptions::new([1, 3])).to_vec(), [3.0, 6.0]);
    /// ```
    pub fn new(kernel: impl IntoPair) -> Self {
        Self { kernel: kernel.into_pair(), stride: None, padding: [0, 0] }
    }

    options! {
        /// The distance by which the window moves.
        ///
        /// ```
        /// use autograd_core::{PoolOptions, Tensor};
        ///
        /// let x = Tensor::from([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]]);
        /// let y = x.max_pool2d(PoolOptions::new(2).stride(1));
        /// assert_eq!(y.to_vec(), [5.0, 6.0]);
        /// ```
        pub fn stride(stride: impl IntoPair).into_pair().into();

        /// How far the window may extend beyond each side of the image, at most half its size.
        ///
        /// ```
        /// use autograd_core::{PoolOptions, Tensor};
        ///
        /// let x = Tensor::from([[[[1.0, 2.0, 3.0]]]]);
        /// let y = x.max_pool2d(PoolOptions::new([1, 2]).padding([0, 1]));
        /// assert_eq!(y.to_vec(), [1.0, 3.0]);
        /// ```
        pub fn padding(padding: impl IntoPair).into_pair();
    }

    pub(super) fn plan(self, op: &'static str, shape: &[usize]) -> Result<Plan> {
        let Self { kernel, stride, padding } = self;
        // Every window must have an element of the image.
        if (0..2).any(|i| padding[i] > kernel[i] / 2) {
            let expected = format!("at most half the window {kernel:?}");
            return Err(Error::value(op, "padding", expected, format!("{padding:?}")));
        }
        let window = Window { kernel, stride: stride.unwrap_or(kernel), padding, dilation: [1, 1] };
        let plan = Plan::new(op, window, shape)?;
        if plan.input.contains(&0) {
            let expected = "images of one element or more";
            return Err(Error::shape(op, RECEIVER, expected, shape));
        }
        Ok(plan)
    }
}

impl<K: IntoPair> From<K> for PoolOptions {
    fn from(kernel: K) -> Self {
        Self::new(kernel)
    }
}

/// The sizes of a convolution. A unit is a group of channels of an image; the groups take turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Convolution {
    pub(crate) plan: Plan,
    pub(crate) units: usize,
    pub(crate) groups: usize,
    /// The number of channels of a group.
    pub(crate) channels: usize,
    pub(crate) outputs: usize,
}

/// Returns the shape of images; a free batch counts as 1.
pub(super) fn images(x: &Form) -> Result<Vec<usize>, String> {
    let (batch, rest) = x.dims.split_first().ok_or("takes images, found a scalar")?;
    let rest: Option<Vec<usize>> = rest.iter().copied().collect();
    let rest =
        rest.ok_or_else(|| format!("of images, only the first axis can be free, found {x}"))?;
    Ok(std::iter::once(batch.unwrap_or(1)).chain(rest).collect())
}

pub(super) fn open_batch(x: &Form, shape: [usize; 4]) -> Form {
    let mut dims: Dims = shape.into_iter().map(Some).collect();
    dims[0] = x.dims[0];
    Form::new(x.dtype, dims)
}

/// Returns the pairs of some options; an error if a file has more or fewer.
fn counted<const N: usize>(pairs: &[[usize; 2]]) -> Result<[[usize; 2]; N], String> {
    pairs.try_into().map_err(|_| format!("takes {} numbers, found {}", 2 * N, 2 * pairs.len()))
}
