//! Pooling: one number for each window of an image.

use std::ops::Range;
use std::panic::Location;

use super::super::call::call;
use super::super::gather::Picks;
use super::super::table::{Attr, OpDef, Type, entries, exactly, float, for_programs, message};
use super::super::{Caller, Float, HasMean, pairs};
use super::conv::{ConvPart, compute_part};
use super::window::{Convolution, Plan, PoolOptions, images, open_batch};
use crate::array::simd::{Kernel, dispatch};
use crate::array::threads::each_chunk;
use crate::array::{Shape, Value};
use crate::error::{Error, Result};
use crate::graph::{Element, GradMode, Rule, Saved, Tensor, finish};

/// Minimum number of window elements, in whole channels, in a part of the work.
const PART: usize = 64 * 1024;
/// Number of adjacent windows that are compared at once.
const LANES: usize = 8;

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
    if !x.is_empty() && i32::try_from(height * width).is_err() {
        return Err(Error::TooLarge { op: "max_pool2d", shape: x.shape().to_vec() });
    }
    let mut positions = Value::<i32>::any(Shape::from_slice(&[n * c, rows * columns]));
    let value = x.row_major(Shape::from_slice(&[n, c, rows, columns]), |x, out| {
        maxima(&plan, x, out, positions.make_mut());
    });
    Ok(finish("max_pool2d", caller, &[x], value, || {
        Rule::new([Saved::plain(Tensor::from_value(positions))], move |saved, dy: Tensor<T>, _| {
            let positions = saved.plain::<Tensor<i32>>();
            let dy = dy.reshape([n * c, rows * columns]);
            let shape = Shape::from_slice(&[n * c, height * width]);
            let dx = if dy.would_record() {
                Picks::Elements.put_back(shape, 1, &positions.cast(), &dy)?
            } else {
                let positions = positions.read();
                let positions = positions.as_slice().unwrap_or(&[]);
                Tensor::from_value(dy.row_major(shape, |dy, dx| put_back(&plan, positions, dy, dx)))
            };
            Ok([Some(dx.reshape([n, c, height, width]))])
        })
    }))
}

/// The number of channels in a part of the work.
fn channels_at_once(plan: &Plan) -> usize {
    (PART / (plan.windows() * plan.taps()).max(1)).max(1)
}

/// Writes each window's greatest element, or first NaN, and its position in its channel. No window is empty.
fn maxima<T: Float>(plan: &Plan, x: &[T], best: &mut [T], positions: &mut [i32]) {
    let (part, size) = (channels_at_once(plan), plan.input[0] * plan.input[1]);
    let chunk = part * plan.windows();
    let parts = best.chunks_mut(chunk).zip(positions.chunks_mut(chunk));
    each_chunk(&mut Vec::from_iter(parts), 1, &|index, parts| {
        for (best, positions) in parts {
            dispatch(Maxima(plan, &x[index * part * size..], best, positions));
        }
    });
}

struct Maxima<'a, T>(&'a Plan, &'a [T], &'a mut [T], &'a mut [i32]);

impl<T: Float> Kernel for Maxima<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(plan, x, best, positions) = self;
        let ([height, width], [lines, windows]) = (plan.input, plan.output);
        let last = plan.window.kernel[1] - 1;
        // The windows without padding to their left and right.
        let whole = plan.columns([0, 0]).0.start..plan.columns([0, last]).0.end;
        let rows = best.chunks_exact_mut(windows).zip(positions.chunks_exact_mut(windows));
        for (line, (best, positions)) in rows.enumerate() {
            let x = &x[line / lines * height * width..];
            let rows = plan.inside(0, line % lines);
            let mut window = 0;
            while window < windows {
                if whole.contains(&window) && whole.len() >= LANES {
                    // The last group has some windows of the group before.
                    window = window.min(whole.end - LANES);
                    let to = (&mut best[window..], &mut positions[window..]);
                    greatest::<T, LANES>(plan, x, [rows.clone(), plan.inside(1, window)], to);
                    window += LANES;
                } else {
                    let to = (&mut best[window..], &mut positions[window..]);
                    greatest::<T, 1>(plan, x, [rows.clone(), plan.inside(1, window)], to);
                    window += 1;
                }
            }
        }
    }
}

/// Compares the elements of `N` adjacent windows; `rows` and `columns` are those of the first.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "an index names a place in several arrays")]
fn greatest<T: Float, const N: usize>(
    plan: &Plan,
    x: &[T],
    [rows, columns]: [Range<usize>; 2],
    (to, to_positions): (&mut [T], &mut [i32]),
) {
    let (width, step) = (plan.input[1], plan.window.stride[1]);
    let steps: [i32; N] = std::array::from_fn(|i| (i * step) as i32);
    let mut best = [T::LOWEST; N];
    let mut positions = steps.map(|step| (rows.start * width + columns.start) as i32 + step);
    for row in rows {
        for position in row * width + columns.start..row * width + columns.end {
            let new = spaced::<T, N>(&x[position..], step);
            for i in 0..N {
                let first_nan =
                    num_traits::Float::is_nan(new[i]) & !num_traits::Float::is_nan(best[i]);
                let better = (new[i] > best[i]) | first_nan;
                best[i] = if better { new[i] } else { best[i] };
                positions[i] = if better { position as i32 + steps[i] } else { positions[i] };
            }
        }
    }
    to[..N].copy_from_slice(&best);
    to_positions[..N].copy_from_slice(&positions);
}

/// Returns every `step`th element.
#[inline(always)]
fn spaced<T: Float, const N: usize>(x: &[T], step: usize) -> [T; N] {
    // Constant distances are loads of whole vectors.
    match (x.first_chunk::<{ 2 * LANES }>(), step) {
        (Some(x), 1) => std::array::from_fn(|i| x[i]),
        (Some(x), 2) => std::array::from_fn(|i| x[2 * i]),
        _ => std::array::from_fn(|i| x[i * step]),
    }
}

/// Adds each window's gradient to the element at its position.
fn put_back<T: Float>(plan: &Plan, positions: &[i32], dy: &[T], dx: &mut [T]) {
    let (part, size) = (channels_at_once(plan), plan.input[0] * plan.input[1]);
    each_chunk(dx, part * size, &|index, dx| {
        dx.fill(T::ZERO);
        let first = index * part * plan.windows();
        let windows = positions[first..].chunks_exact(plan.windows());
        let windows = windows.zip(dy[first..].chunks_exact(plan.windows()));
        for (dx, (positions, dy)) in dx.chunks_exact_mut(size).zip(windows) {
            for (&position, &dy) in positions.iter().zip(dy) {
                let to = &mut dx[position as usize];
                *to = *to + dy;
            }
        }
    });
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
        /// Returns the greatest element of each window of images `[n, channels, height, width]`, as such images; NaN
        /// if any is NaN. The first of equal elements gets the gradient. A length becomes
        /// `(l + 2 padding - kernel) / stride + 1`, rounded down, as in PyTorch.
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
            "there are no images, not one window fits, or an option is out of range",
            "Tensor::<f32>::ones([1, 1, 2, 2]).try_max_pool2d(3)" => Shape
        {
            call(&MAX_POOL2D, [Attr::Pairs(options.into().parts().to_vec())], [self.untyped()])
        }
    }
}

/// # Pooling by means
impl<T: Element> Tensor<T> {
    pairs! {
        /// Returns the mean of each window of images `[n, channels, height, width]`, in the shape of
        /// [`Tensor::max_pool2d`]. Padding does not count, as in Paddle.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[[[1.0, 2.0], [3.0, 4.0]]]]);
        /// assert_eq!(x.avg_pool2d(2).to_vec(), [2.5]);
        /// ```
        pub fn avg_pool2d, try_avg_pool2d(&self, options: impl Into<PoolOptions>) -> Tensor<T>,
            Shape | Value | TooLarge if
            "there are no images, not one window fits, or an option is out of range",
            "Tensor::<f32>::ones([1, 1, 2, 2]).try_avg_pool2d(0)" => Value
            where T: HasMean
        {
            call(&AVG_POOL2D, [Attr::Pairs(options.into().parts().to_vec())], [self.untyped()])
        }
    }
}
