//! Pooling: one number for each window of a picture.

use std::panic::Location;

use triomphe::Arc;

use super::super::trace::{self, Attr, Call};
use super::super::{Caller, Float, HasMean, expect};
use super::conv::{fold, unfold};
use super::window::{IntoPair, Plan, Window};
use super::writable;
use crate::array::buffer::Buffer;
use crate::array::{Shape, Value};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{Element, GradMode, Lost, Plain, Tensor, record, unrecorded};

/// A pooling window and how it moves: by default as far as it is long, without padding.
///
/// Each number is for both directions, or `[vertical, horizontal]`; a plain window size can stand
/// for the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    kernel: [usize; 2],
    stride: Option<[usize; 2]>,
    padding: [usize; 2],
}

impl PoolOptions {
    /// Window, stride and padding.
    pub(crate) fn parts(self) -> [[usize; 2]; 3] {
        [self.kernel, self.stride.unwrap_or(self.kernel), self.padding]
    }

    #[cfg(feature = "static-graph")]
    pub(crate) fn of_parts([kernel, stride, padding]: [[usize; 2]; 3]) -> Self {
        Self { kernel, stride: Some(stride), padding }
    }

    /// A window of this size.
    pub fn new(kernel: impl IntoPair) -> Self {
        Self { kernel: kernel.into_pair(), stride: None, padding: [0, 0] }
    }

    /// How far the window moves.
    pub fn stride(mut self, stride: impl IntoPair) -> Self {
        self.stride = Some(stride.into_pair());
        self
    }

    /// How far the window may reach over each side of the picture, at most half its size.
    pub fn padding(mut self, padding: impl IntoPair) -> Self {
        self.padding = padding.into_pair();
        self
    }

    fn plan(self, op: &'static str, shape: &[usize]) -> Result<Plan> {
        let Self { kernel, stride, padding } = self;
        // So that every window has an element of the picture.
        if (0..2).any(|i| padding[i] > kernel[i] / 2) {
            return Err(Error::Value {
                op,
                parameter: "padding",
                expected: format!("at most half the window {kernel:?}"),
                found: format!("{padding:?}"),
            });
        }
        let window = Window { kernel, stride: stride.unwrap_or(kernel), padding, dilation: [1, 1] };
        let plan = Plan::new(op, window, shape)?;
        if plan.input.contains(&0) {
            return Err(Error::Shape {
                op,
                parameter: RECEIVER.into(),
                expected: "pictures of one element or more".into(),
                found: shape.to_vec(),
            });
        }
        Ok(plan)
    }
}

impl<K: IntoPair> From<K> for PoolOptions {
    fn from(kernel: K) -> Self {
        Self::new(kernel)
    }
}

fn output_shape(x: &[usize], plan: &Plan) -> Shape {
    Shape::from_slice(&[x[0], x[1], plan.output[0], plan.output[1]])
}

/// The shape of what pooling makes of pictures of this shape.
#[cfg(feature = "static-graph")]
pub(crate) fn pool2d_shape(
    op: &'static str,
    options: PoolOptions,
    input: &[usize],
) -> Result<[usize; 4]> {
    let [height, width] = options.plan(op, input)?.output;
    Ok([input[0], input[1], height, width])
}

pub(in crate::ops) fn max_pool2d<T: Float>(
    x: &Tensor<T>,
    options: PoolOptions,
    caller: Caller,
) -> Result<Tensor<T>> {
    if trace::is_noting() {
        let (call, inputs) =
            (Call::op("max_pool2d", [Attr::Pairs(options.parts().to_vec())]), vec![trace::any(x)]);
        return trace::op(|| call, || inputs, caller, || max_pool2d(x, options, caller));
    }
    let plan = options.plan("max_pool2d", x.shape())?;
    let size = plan.input[0] * plan.input[1];
    if !x.is_empty() && i32::try_from(size).is_err() {
        return Err(Error::TooLarge { op: "max_pool2d", shape: x.shape().to_vec() });
    }
    let shape = output_shape(x.shape(), &plan);
    let mut places = Buffer::any(shape.iter().product());
    let value = {
        let x = x.read();
        let x = x.contiguous();
        let x = x.as_slice().unwrap_or(&[]);
        Value::written(shape, |best| T::maxima(&plan, x, best, &mut places))
    };
    if !x.is_recorded() {
        return Ok(unrecorded("max_pool2d", caller, [x], value));
    }
    let places = Plain(Places { plan, places: Arc::new(places) });
    Ok(record("max_pool2d", caller, [x], value, places, |places, dy, _| {
        Ok([Some(put_back(places, &dy, Location::caller()))])
    }))
}

/// Where in its channel the greatest element of each window lies.
#[derive(Clone)]
struct Places {
    plan: Plan,
    places: Arc<Buffer<i32>>,
}

/// Pictures of zeros, to which a number for each window is added where its element lies.
fn put_back<T: Float>(at: Places, dy: &Tensor<T>, caller: Caller) -> Tensor<T> {
    let [height, width] = at.plan.input;
    let shape = Shape::from_slice(&[dy.shape()[0], dy.shape()[1], height, width]);
    let value = {
        let dy = dy.read();
        let dy = dy.contiguous();
        let dy = dy.as_slice().unwrap_or(&[]);
        Value::written(shape, |dx| T::put_back(&at.plan, &at.places, dy, dx))
    };
    if !dy.is_recorded() {
        return unrecorded("put_back", caller, [dy], value);
    }
    record("put_back", caller, [dy], value, Plain(at), |at, dx, _| {
        Ok([Some(pick(at, &dx, Location::caller()))])
    })
}

/// The adjoint of [`put_back`]: of each window the element that lies there.
fn pick<T: Float>(at: Places, x: &Tensor<T>, caller: Caller) -> Tensor<T> {
    let shape = output_shape(x.shape(), &at.plan);
    let value = {
        let x = x.read();
        let x = x.contiguous();
        let x = x.as_slice().unwrap_or(&[]);
        Value::written(shape, |y| T::pick(&at.plan, &at.places, x, y))
    };
    if !x.is_recorded() {
        return unrecorded("pick", caller, [x], value);
    }
    record("pick", caller, [x], value, Plain(at), |at, dy, _| {
        Ok([Some(put_back(at, &dy, Location::caller()))])
    })
}

pub(in crate::ops) fn avg_pool2d<T: Float>(
    x: &Tensor<T>,
    options: PoolOptions,
    caller: Caller,
) -> Result<Tensor<T>> {
    if trace::is_noting() {
        let (call, inputs) =
            (Call::op("avg_pool2d", [Attr::Pairs(options.parts().to_vec())]), vec![trace::any(x)]);
        return trace::op(|| call, || inputs, caller, || avg_pool2d(x, options, caller));
    }
    let plan = options.plan("avg_pool2d", x.shape())?;
    let shape = output_shape(x.shape(), &plan);
    let [n, c, height, width] = [x.shape()[0], x.shape()[1], plan.input[0], plan.input[1]];
    let off = GradMode::set(false);
    // Of each window, how many elements lie on the picture: the padding does not count.
    let ones = Tensor::<T>::ones([1, 1, height, width]);
    let counts = unfold(&ones, plan, caller).sum_axes(&[1]);
    let sums = unfold(x, plan, caller).reshape([n, c, plan.taps(), plan.windows()]).sum_axes(&[2]);
    let value = (sums / &counts).reshape(shape);
    drop(off);
    if !x.is_recorded() {
        return Ok(value.with_lost(Lost::of("avg_pool2d", caller, x)));
    }
    let state = Plain((plan, counts));
    Ok(record("avg_pool2d", caller, [x], writable(value), state, |(plan, counts), dy, _| {
        let (n, c) = (dy.shape()[0], dy.shape()[1]);
        let shares = dy.reshape([n, c, 1, plan.windows()]) / counts;
        let columns = shares.broadcast_to([n, c, plan.taps(), plan.windows()]);
        let columns = columns.reshape([n, c * plan.taps(), plan.windows()]);
        Ok([Some(fold(&columns, plan, Location::caller()))])
    }))
}

/// # Pooling
impl<T: Float> Tensor<T> {
    /// The greatest element of each window of pictures `[n, channels, height, width]`; NaN if any
    /// is. The first of equal ones gets the gradient.
    ///
    /// ```
    /// use autograd_core::{PoolOptions, Tensor};
    ///
    /// let x = Tensor::<f32>::arange(16).reshape([1, 1, 4, 4]);
    /// assert_eq!(x.max_pool2d(2).to_vec(), [5.0, 7.0, 13.0, 15.0]);
    /// assert_eq!(x.max_pool2d(PoolOptions::new(3).stride(2).padding(1)).shape(), [1, 1, 2, 2]);
    /// ```
    ///
    /// # Panics
    ///
    /// If there are no pictures, not one window fits, or an option is out of range; see
    /// [`Tensor::try_max_pool2d`].
    #[track_caller]
    pub fn max_pool2d(&self, options: impl Into<PoolOptions>) -> Tensor<T> {
        expect(T::max_pool2d(self, options.into(), Location::caller()))
    }

    /// [`Tensor::max_pool2d`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::Value`] or [`Error::TooLarge`].
    #[track_caller]
    pub fn try_max_pool2d(&self, options: impl Into<PoolOptions>) -> Result<Tensor<T>> {
        T::max_pool2d(self, options.into(), Location::caller())
    }
}

/// # Pooling by means
impl<T: Element> Tensor<T> {
    /// The mean of each window of pictures `[n, channels, height, width]`. As in Paddle, padding
    /// does not count.
    ///
    /// # Panics
    ///
    /// If there are no pictures, not one window fits, or an option is out of range; see
    /// [`Tensor::try_avg_pool2d`].
    #[track_caller]
    pub fn avg_pool2d(&self, options: impl Into<PoolOptions>) -> Tensor<T>
    where
        T: HasMean,
    {
        expect(T::avg_pool2d(self, options.into(), Location::caller()))
    }

    /// [`Tensor::avg_pool2d`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::Value`] or [`Error::TooLarge`].
    #[track_caller]
    pub fn try_avg_pool2d(&self, options: impl Into<PoolOptions>) -> Result<Tensor<T>>
    where
        T: HasMean,
    {
        T::avg_pool2d(self, options.into(), Location::caller())
    }
}
