//! The three products of a convolution: of images and weights, and its two gradients. Each copies images
//! to columns (im2col), some rows of windows at a time, so that these stay in the second-level cache.

use std::ops::Range;

use super::super::Float;
use super::window::{Convolution, Plan};
use crate::array::buffer::Buffer;
use crate::array::gemm::Matrix;
use crate::array::reduce::{Fold, Plus};
use crate::array::threads::each_chunk;

/// Bytes of columns that are in use at once.
const COLUMN_BYTES: usize = 384 << 10;
/// Minimum number of multiplications in a part of the work, about 20 µs.
const PART: usize = 1 << 20;
/// Maximum number of partial sums over images for a gradient of the weights.
const PARTIAL_SUMS: usize = 16;

impl Convolution {
    /// The number of elements of a unit's image, and of its result.
    fn sizes(&self) -> [usize; 2] {
        let [height, width] = self.plan.input;
        [self.channels * height * width, self.outputs * self.plan.windows()]
    }

    fn depth(&self) -> usize {
        self.channels * self.plan.taps()
    }

    fn is_empty(&self) -> bool {
        [self.units, self.channels, self.outputs].contains(&0)
    }

    fn part(&self) -> usize {
        (PART / (self.outputs * self.depth() * self.plan.windows())).clamp(1, self.units)
    }

    /// Whether the image is its own columns.
    fn is_pointwise(&self) -> bool {
        let window = &self.plan.window;
        self.plan.taps() == 1 && window.stride == [1, 1] && window.padding == [0, 0]
    }

    /// Returns blocks of rows of windows that fit the cache, for numbers of `bytes` bytes.
    fn blocks(&self, bytes: usize) -> Vec<Range<usize>> {
        let [height, width] = self.plan.output;
        let fit = COLUMN_BYTES / (self.depth() * width * bytes);
        let lines = if self.is_pointwise() { height } else { fit.clamp(1, height) };
        let block = |start: usize| start..(start + lines).min(height);
        (0..height).step_by(lines).map(block).collect()
    }

    fn columns<T: Float>(&self, blocks: &[Range<usize>]) -> Buffer<T> {
        let lines = if self.is_pointwise() { 0 } else { blocks.first().map_or(0, Range::len) };
        Buffer::any(self.depth() * lines * self.plan.output[1])
    }

    /// Returns a unit's image as columns, or unchanged if pointwise.
    fn as_columns<'a, T: Float>(
        &self,
        x: &'a [T],
        lines: &Range<usize>,
        columns: &'a mut [T],
    ) -> &'a [T] {
        if self.is_pointwise() {
            return x;
        }
        let columns = &mut columns[..self.depth() * lines.len() * self.plan.output[1]];
        unfold(&self.plan, x, lines, columns);
        columns
    }

    fn weights<'a, T>(&self, w: &'a [T], unit: usize) -> &'a [T] {
        let weights = self.outputs * self.depth();
        &w[unit % self.groups * weights..][..weights]
    }
}

fn rows<T>(data: &[T], step: usize) -> Matrix<'_, T> {
    Matrix { data, rows: step, columns: 1 }
}

/// Rows of columns that are one run in the image, too: all rows of an element of the window if each has as many
/// windows as the image has columns, and one row otherwise.
struct Run {
    rows: Range<usize>,
    /// The windows of a row whose element is inside the image.
    inside: Range<usize>,
    /// The image offset of the first row's first element inside the image; `None` for rows in the padding.
    start: Option<usize>,
}

impl Run {
    /// Returns the elements of the columns from the first inside the image to the last.
    fn span(&self, windows: usize) -> Range<usize> {
        let [first, last] = [self.rows.start, self.rows.end - 1].map(|row| row * windows);
        first + self.inside.start..last + self.inside.end
    }

    /// Writes zeros to the windows whose element is in the padding.
    fn clear_padding<T: Float>(&self, columns: &mut [T], windows: usize) {
        let rows = &mut columns[self.rows.start * windows..self.rows.end * windows];
        for window in (0..self.inside.start).chain(self.inside.end..windows) {
            rows[window..].iter_mut().step_by(windows).for_each(|x| *x = T::ZERO);
        }
    }
}

/// Passes the runs of all elements of the window.
fn for_each_run(plan: &Plan, lines: &Range<usize>, mut visit: impl FnMut(Run)) {
    let is_joined = plan.window.stride == [1, 1] && plan.output[1] == plan.input[1];
    for index in 0..plan.taps() {
        let tap = plan.tap(index);
        let (inside, first) = plan.columns(tap);
        let row = |y: usize| plan.row(tap, y).filter(|_| !inside.is_empty());
        let mut y = lines.start;
        while y < lines.end {
            let from = row(y);
            let alike = |&next: &usize| row(next).is_some() == from.is_some();
            let most = if is_joined { lines.end } else { y + 1 };
            let count = (y..most).take_while(alike).count();
            let at = index * lines.len() + y - lines.start;
            let start = from.map(|row| row * plan.input[1] + first);
            let inside = if start.is_some() { inside.clone() } else { 0..0 };
            visit(Run { rows: at..at + count, inside, start });
            y += count;
        }
    }
}

/// Writes channels as columns: for each element of the window, its value in each window of these rows.
fn unfold<T: Float>(plan: &Plan, channels: &[T], lines: &Range<usize>, columns: &mut [T]) {
    let (size, windows, step) =
        (plan.input[0] * plan.input[1], plan.output[1], plan.window.stride[1]);
    let columns = columns.chunks_exact_mut(plan.taps() * lines.len() * windows);
    for (channel, columns) in columns.enumerate() {
        let channel = &channels[channel * size..][..size];
        for_each_run(plan, lines, |run| {
            if let Some(start) = run.start {
                let (to, from) = (&mut columns[run.span(windows)], &channel[start..]);
                match step {
                    1 => to.copy_from_slice(&from[..to.len()]),
                    _ => to.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, &x)| *to = x),
                }
            }
            run.clear_padding(columns, windows);
        });
    }
}

/// The adjoint of [`unfold`]: adds columns to channels. Overwrites columns in the padding.
fn fold<T: Float>(plan: &Plan, columns: &mut [T], lines: &Range<usize>, channels: &mut [T]) {
    let (size, windows, step) =
        (plan.input[0] * plan.input[1], plan.output[1], plan.window.stride[1]);
    let columns = columns.chunks_exact_mut(plan.taps() * lines.len() * windows);
    for (channel, columns) in columns.enumerate() {
        let channel = &mut channels[channel * size..][..size];
        for_each_run(plan, lines, |run| {
            let Some(start) = run.start else { return };
            run.clear_padding(columns, windows);
            let (from, to) = (&columns[run.span(windows)], &mut channel[start..]);
            match step {
                1 => Plus.rows(&mut to[..from.len()], from),
                _ => to.iter_mut().step_by(step).zip(from).for_each(|(to, &x)| *to = *to + x),
            }
        });
    }
}

pub(super) fn convolve<T: Float>(of: &Convolution, x: &[T], w: &[T], y: &mut [T]) {
    if of.is_empty() {
        return y.fill(T::ZERO);
    }
    let ([from, to], part, blocks) = (of.sizes(), of.part(), of.blocks(size_of::<T>()));
    let (windows, width, depth) = (of.plan.windows(), of.plan.output[1], of.depth());
    each_chunk(y, part * to, &|index, y| {
        let mut columns = of.columns(&blocks);
        for (unit, y) in (index * part..).zip(y.chunks_exact_mut(to)) {
            for lines in &blocks {
                let data = of.as_columns(&x[unit * from..][..from], lines, &mut columns);
                let n = lines.len() * width;
                let (w, y) = (rows(of.weights(w, unit), depth), &mut y[lines.start * width..]);
                T::float_product([of.outputs, depth, n], w, rows(data, n), y, windows);
            }
        }
    });
}

pub(super) fn convolve_back<T: Float>(of: &Convolution, w: &[T], dy: &[T], dx: &mut [T]) {
    if of.is_empty() || dx.is_empty() {
        return dx.fill(T::ZERO);
    }
    let ([to, from], part, blocks) = (of.sizes(), of.part(), of.blocks(size_of::<T>()));
    let (windows, width, depth) = (of.plan.windows(), of.plan.output[1], of.depth());
    each_chunk(dx, part * to, &|index, dx| {
        let mut columns = of.columns(&blocks);
        for (unit, dx) in (index * part..).zip(dx.chunks_exact_mut(to)) {
            let (w, dy) =
                (rows(of.weights(w, unit), depth).transposed(), &dy[unit * from..][..from]);
            if of.is_pointwise() {
                let size = [depth, of.outputs, windows];
                T::float_product(size, w, rows(dy, windows), dx, windows);
                continue;
            }
            dx.fill(T::ZERO);
            for lines in &blocks {
                let n = lines.len() * width;
                let (columns, dy) = (&mut columns[..depth * n], &dy[lines.start * width..]);
                T::float_product([depth, of.outputs, n], w, rows(dy, windows), columns, n);
                fold(&of.plan, columns, lines, dx);
            }
        }
    });
}

pub(super) fn convolve_weights<T: Float>(of: &Convolution, x: &[T], dy: &[T], dw: &mut [T]) {
    dw.fill(T::ZERO);
    if of.is_empty() {
        return;
    }
    let ([from, to], blocks) = (of.sizes(), of.blocks(size_of::<T>()));
    let (windows, width, depth) = (of.plan.windows(), of.plan.output[1], of.depth());
    // Parts are whole images, so that each has units of all groups.
    let part = (of.units / of.groups).div_ceil(PARTIAL_SUMS) * of.groups;
    let mut sums = Buffer::any(of.units.div_ceil(part) * dw.len());
    each_chunk(&mut sums, dw.len(), &|index, dw| {
        dw.fill(T::ZERO);
        let mut columns = of.columns(&blocks);
        for unit in index * part..of.units.min((index + 1) * part) {
            let weights = of.outputs * depth;
            let dw = &mut dw[unit % of.groups * weights..][..weights];
            for lines in &blocks {
                let data = of.as_columns(&x[unit * from..][..from], lines, &mut columns);
                let n = lines.len() * width;
                let dy = rows(&dy[unit * to + lines.start * width..], windows);
                T::add_dots([of.outputs, n, depth], dy, rows(data, n), dw);
            }
        }
    });
    for sums in sums.chunks_exact(dw.len()) {
        dw.iter_mut().zip(sums).for_each(|(dw, &sum)| *dw = *dw + sum);
    }
}
