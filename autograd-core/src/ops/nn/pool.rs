//! Pooling: one number for each window of a picture.

use std::panic::Location;
use std::sync::Arc;

use super::super::call::call;
use super::super::table::attr::Type;
use super::super::table::forms::{exactly, float as float_form};
use super::super::table::values::{float, message};
use super::super::table::{OpDef, entries};
use super::super::{Caller, Float, HasMean, expect};
use super::conv::{fold, unfold};
use super::window::{Plan, PoolOptions, counted, fixed, open_batch, pictures};
use super::writable;
use crate::array::buffer::Buffer;
use crate::array::{Shape, Value};
use crate::error::{Error, Result};
use crate::graph::{Element, GradMode, Hidden, Lost, SavedAttr, Tensor, record, unrecorded};

fn output_shape(x: &[usize], plan: &Plan) -> Shape {
    Shape::from_slice(&[x[0], x[1], plan.output[0], plan.output[1]])
}

entries! {
    POOLS:

    MAX_POOL2D = OpDef {
        run: |op, x, at| {
            float!(x, x => max_pool2d(&x, PoolOptions::of_parts(fixed(op.pairs(0))), at))
        },
        ..pool("max_pool2d")
    };

    AVG_POOL2D = OpDef {
        run: |op, x, at| {
            float!(x, x => avg_pool2d(&x, PoolOptions::of_parts(fixed(op.pairs(0))), at))
        },
        ..pool("avg_pool2d")
    };
}

/// What becomes of each window of pictures.
const fn pool(name: &'static str) -> OpDef {
    OpDef {
        attrs: &[("kernel stride padding", Type::Pairs)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            let options = PoolOptions::of_parts(counted(op.pairs(0))?);
            let input = pictures(float_form(x)?)?;
            let [height, width] = options.plan(op.def.name, &input).map_err(message)?.output;
            Ok(vec![open_batch(x, [input[0], input[1], height, width])])
        },
        ..OpDef::new(name)
    }
}

fn max_pool2d<T: Float>(x: &Tensor<T>, options: PoolOptions, caller: Caller) -> Result<Tensor<T>> {
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
    let places = Hidden(Arc::new(Places { plan, places }));
    Ok(record("max_pool2d", caller, [x], value, places, |places, dy, _| {
        Ok([Some(put_back(&places, &dy, Location::caller()))])
    }))
}

/// Where in its channel the greatest element of each window lies.
struct Places {
    plan: Plan,
    places: Buffer<i32>,
}

/// Pictures of zeros, to which a number for each window is added where its element lies.
fn put_back<T: Float>(at: &Arc<Places>, dy: &Tensor<T>, caller: Caller) -> Tensor<T> {
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
    record("put_back", caller, [dy], value, Hidden(Arc::clone(at)), |at, dx, _| {
        Ok([Some(pick(&at, &dx, Location::caller()))])
    })
}

/// The adjoint of [`put_back`]: of each window the element that lies there.
fn pick<T: Float>(at: &Arc<Places>, x: &Tensor<T>, caller: Caller) -> Tensor<T> {
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
    record("pick", caller, [x], value, Hidden(Arc::clone(at)), |at, dy, _| {
        Ok([Some(put_back(&at, &dy, Location::caller()))])
    })
}

fn avg_pool2d<T: Float>(x: &Tensor<T>, options: PoolOptions, caller: Caller) -> Result<Tensor<T>> {
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
    let state = SavedAttr((plan, counts));
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
        expect(call(&MAX_POOL2D, [options.into().attr()], [self.untyped()]))
    }

    /// [`Tensor::max_pool2d`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::Value`] or [`Error::TooLarge`].
    #[track_caller]
    pub fn try_max_pool2d(&self, options: impl Into<PoolOptions>) -> Result<Tensor<T>> {
        call(&MAX_POOL2D, [options.into().attr()], [self.untyped()])
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
        expect(call(&AVG_POOL2D, [options.into().attr()], [self.untyped()]))
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
        call(&AVG_POOL2D, [options.into().attr()], [self.untyped()])
    }
}
