//! Pooling: one number for each window of an image.

use std::ops::Range;
use std::panic::Location;

use super::super::call::call;
use super::super::gather::Picks;
use super::super::table::{Attr, OpDef, Type, entries, exactly, float, for_programs, message};
use super::super::{Caller, Float, HasMean, pairs};
use super::conv::{ConvPart, compute_part};
use super::window::{Convolution, Plan, PoolOptions, images, open_batch};
use crate::array::Shape;
use crate::array::pick::{self, AxisShape};
use crate::array::threads::each_chunk;
use crate::error::Result;
use crate::graph::{Element, GradMode, Rule, Saved, Tensor, finish};

/// Minimum number of window elements, in whole channels, in a part of the work.
const PART: usize = 64 * 1024;

entries! {
    POOLS:

    MAX_POOL2D = OpDef {
        run: |op, x, at| float!(x, x => max_pool2d(&x, PoolOptions::of(op)?, at)),
        ..pool("max_pool2d")
    };

    AVG_POOL2D = OpDef {
        run: |op, x, at| float!(x, x => avg_pool2d(&x, PoolOptions::of(op)?, at)),
        ..pool("avg_pool2d")
    };
}

const fn pool(name: &'static str) -> OpDef {
    OpDef {
        attrs: &[("kernel stride padding", Type::Pairs)],
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let options = PoolOptions::of(op)?;
            let input = images(float(x)?)?;
            let [height, width] = options.plan(op.def.name, &input).map_err(message)?.output;
            Ok(vec![open_batch(x, [input[0], input[1], height, width])])
        }),
        ..OpDef::new(name)
    }
}

fn max_pool2d<T: Float>(x: &Tensor<T>, options: PoolOptions, caller: Caller) -> Result<Tensor<T>> {
    let plan = options.plan("max_pool2d", x.shape())?;
    let [n, c, ..] = x.shape()[..] else { unreachable!("a plan is for images") };
    let ([height, width], [rows, columns]) = (plan.input, plan.output);
    let positions = Shape::from_slice(&[n * c, rows * columns]);
    let positions = x.row_major(positions, |x, out| maxima(&plan, x, out));
    let around = AxisShape { outer: n * c, n: height * width, inner: 1 };
    let value = x.row_major(Shape::from_slice(&[n, c, rows, columns]), |x, out| {
        let index = positions.as_slice().unwrap_or(&[]);
        pick::gather(x, around, index, rows * columns, out);
    });
    Ok(finish("max_pool2d", caller, &[x], value, || {
        Rule::new([Saved::plain(Tensor::new(positions))], move |saved, dy: Tensor<T>, _| {
            let (shape, dy) = ([n * c, height * width], dy.reshape([n * c, rows * columns]));
            let dx = Picks::Elements.put_back(Shape::from_slice(&shape), 1, &saved.plain(), &dy)?;
            Ok([Some(dx.reshape([n, c, height, width]))])
        })
    }))
}

/// Writes the position, in its channel, of each window's greatest element, or first NaN. No window is empty.
fn maxima<T: Float>(plan: &Plan, x: &[T], positions: &mut [i64]) {
    let size = plan.input[0] * plan.input[1];
    let part = (PART / (plan.windows() * plan.taps()).max(1)).max(1);
    each_chunk(positions, part * plan.windows(), &|index, positions| {
        let channels = x[index * part * size..].chunks_exact(size);
        for (x, positions) in channels.zip(positions.chunks_exact_mut(plan.windows())) {
            for (y, positions) in positions.chunks_exact_mut(plan.output[1]).enumerate() {
                let rows = plan.inside(0, y);
                for (window, position) in positions.iter_mut().enumerate() {
                    let columns = plan.inside(1, window);
                    *position = greatest(x, plan.input[1], rows.clone(), columns) as i64;
                }
            }
        }
    });
}

fn greatest<T: Float>(x: &[T], width: usize, rows: Range<usize>, columns: Range<usize>) -> usize {
    let first = rows.start * width + columns.start;
    let (mut best, mut most) = (first, x[first]);
    for row in rows {
        let start = row * width + columns.start;
        for (position, &x) in (start..).zip(&x[start..][..columns.len()]) {
            if x > most || num_traits::Float::is_nan(x) && !num_traits::Float::is_nan(most) {
                (best, most) = (position, x);
            }
        }
    }
    best
}

/// A convolution with ones, divided by the number of elements inside the image: padding does not count.
fn avg_pool2d<T: Float>(x: &Tensor<T>, options: PoolOptions, caller: Caller) -> Result<Tensor<T>> {
    let plan = options.plan("avg_pool2d", x.shape())?;
    let [n, c, ..] = x.shape()[..] else { unreachable!("a plan is for images") };
    let ([height, width], [rows, columns]) = (plan.input, plan.output);
    let value = GradMode::of(false, || {
        let x = x.reshape([n * c, 1, height, width]);
        (window_sums(plan, ConvPart::Output, &x) / counts(plan)).reshape([n, c, rows, columns])
    });
    let value = value.read().into_owned();
    Ok(finish(AVG_POOL2D.name, caller, &[x], value, || {
        Rule::new([], move |_, dy: Tensor<T>, _| {
            let shares = dy.reshape([n * c, 1, rows, columns]) / counts(plan);
            Ok([Some(window_sums(plan, ConvPart::Input, &shares).reshape([n, c, height, width]))])
        })
    }))
}

fn counts<T: Float>(plan: Plan) -> Tensor<T> {
    let [height, width] = plan.input;
    window_sums(plan, ConvPart::Output, &Tensor::ones([1, 1, height, width]))
}

/// Returns the sum of each window of images with one channel, or applies the adjoint.
fn window_sums<T: Float>(plan: Plan, part: ConvPart, x: &Tensor<T>) -> Tensor<T> {
    let of = Convolution { plan, units: x.shape()[0], groups: 1, channels: 1, outputs: 1 };
    let ones = Tensor::ones([1, 1, plan.window.kernel[0], plan.window.kernel[1]]);
    let operands = if part == ConvPart::Output { [x, &ones] } else { [&ones, x] };
    compute_part(of, part, operands, Location::caller())
}

/// # Pooling
impl<T: Float> Tensor<T> {
    pairs! {
        /// Returns the greatest element of each window of images `[n, channels, height, width]`; NaN if any
        /// is NaN. The first of equal elements gets the gradient.
        ///
        /// ```
        /// use autograd_core::{PoolOptions, Tensor};
        ///
        /// let x = Tensor::<f32>::arange(16).reshape([1, 1, 4, 4]);
        /// assert_eq!(x.max_pool2d(2).to_vec(), [5.0, 7.0, 13.0, 15.0]);
        /// assert_eq!(x.max_pool2d(PoolOptions::new(3).stride(2).padding(1)).shape(), [1, 1, 2, 2]);
        /// ```
        pub fn max_pool2d, try_max_pool2d(&self, options: impl Into<PoolOptions>) -> Tensor<T>,
            Shape | Value | TooLarge if
            "there are no images, not one window fits, or an option is out of range"
        {
            call(&MAX_POOL2D, [Attr::Pairs(options.into().parts().to_vec())], [self.untyped()])
        }
    }
}

/// # Pooling by means
impl<T: Element> Tensor<T> {
    pairs! {
        /// Returns the mean of each window of images `[n, channels, height, width]`. Padding does not count,
        /// as in Paddle.
        pub fn avg_pool2d, try_avg_pool2d(&self, options: impl Into<PoolOptions>) -> Tensor<T>,
            Shape | Value | TooLarge if
            "there are no images, not one window fits, or an option is out of range"
            where T: HasMean
        {
            call(&AVG_POOL2D, [Attr::Pairs(options.into().parts().to_vec())], [self.untyped()])
        }
    }
}
