//! The three products of a convolution: the pictures' with the weights, and those that are its
//! gradients. Each is computed some rows of windows at a time, so that what is spread out for it
//! stays in a second cache.

use std::ops::Range;

use super::super::Float;
use super::window::{Convolution, Plan};
use crate::array::buffer::Buffer;
use crate::array::gemm::{Left, Pieces, Runs, add_dots};
use crate::array::simd::{Kernel, Vectored, dispatch};
use crate::array::threads::{each_chunk, num_threads};

/// Bytes of pictures that are spread out at once.
const SPREAD_BYTES: usize = 384 << 10;
/// So many multiplications at least a part of the work has, some 20 µs.
const PART: usize = 1 << 20;
/// Rows of a result that a thread computes where there are few units; a number of a tile's.
const TALL: usize = 32;
/// Windows along which products for a gradient of the weights are summed before the sums of
/// vectors are joined.
const LONG: usize = 1024;
/// Sums for a gradient of the weights that are summed in the end.
const PARTIAL_SUMS: usize = 16;

impl Convolution {
    /// Numbers of a channel, and of what it becomes.
    fn input(&self) -> usize {
        self.plan.input[0] * self.plan.input[1]
    }

    fn depth(&self) -> usize {
        self.channels * self.plan.taps()
    }

    /// Numbers of a group's weights.
    fn weights(&self) -> usize {
        self.outputs * self.depth()
    }

    /// Whether every sum is one of nothing.
    fn is_empty(&self) -> bool {
        [self.units, self.channels, self.outputs].contains(&0)
            || self.plan.window.kernel.contains(&0)
    }

    /// Units whose products are worth a part of the work.
    fn part(&self) -> usize {
        (PART / (self.weights() * self.plan.windows())).clamp(1, self.units)
    }

    /// Of results with so many rows a unit: how many of them are computed at once, and how many are
    /// a part of the work. Each row is computed in the same way, whichever stand beside it.
    fn rows(&self, rows: usize) -> [usize; 2] {
        let is_small = self.units < 2 * num_threads() && num_threads() > 1;
        if is_small && rows.is_multiple_of(TALL) { [TALL; 2] } else { [rows, self.part() * rows] }
    }
}

/// How rows of windows of a unit are spread out: for each channel and each column of the window,
/// the elements that lie there in all windows. These are planes as wide as there are windows in a
/// row, and what lies in a row of the window is a run of whole rows of such a plane.
struct Spread {
    /// Whether rows of the window share rows of the planes: each is then some rows further down.
    /// Otherwise each has rows of its own.
    shared: bool,
    /// Rows of windows.
    lines: usize,
    /// Rows of a plane, of all rows of the window together.
    rows: usize,
    /// Whether the picture lies so already.
    as_it_is: bool,
}

/// Some rows of windows, and for each row of a plane the row of the picture, if that is on the
/// picture and of these windows.
struct Block {
    lines: Range<usize>,
    sources: Vec<Option<usize>>,
    /// Where windows are as many in a row as the picture is wide, and planes have all rows in one
    /// run: those of the plane that are on the picture. They differ from the picture's by a shift.
    shifted: Option<Range<usize>>,
}

impl Spread {
    /// Of as many rows of windows as fit the cache with so many channels.
    fn new<T>(of: &Convolution, channels: usize) -> Self {
        let window = &of.plan.window;
        let [height, width] = of.plan.output;
        let as_it_is = of.plan.taps() == 1 && window.stride == [1, 1] && window.padding == [0, 0];
        let mut parts = 1;
        loop {
            let lines = height.div_ceil(parts);
            let apart = window.kernel[0] * lines;
            let joined = (window.kernel[0] - 1).saturating_mul(window.dilation[0]);
            let joined = joined.saturating_add(lines);
            let shared = window.stride[0] == 1 && joined <= apart;
            let rows = if shared { joined } else { apart };
            let bytes = channels * window.kernel[1] * rows * width * size_of::<T>();
            if as_it_is || lines == 1 || bytes <= SPREAD_BYTES {
                return Self { shared, lines, rows, as_it_is };
            }
            parts += 1;
        }
    }

    /// Numbers of the planes of a channel.
    fn len(&self, of: &Convolution) -> usize {
        match self.as_it_is {
            true => 0,
            false => of.plan.window.kernel[1] * self.rows * of.plan.output[1],
        }
    }

    fn blocks(&self, of: &Convolution) -> Vec<Block> {
        let height = of.plan.output[0];
        let apart = if self.shared { 1 } else { of.plan.window.kernel[0] };
        let block = |start: usize| {
            let lines = start..(start + self.lines).min(height);
            let rows = self.rows / apart;
            let read = rows - (self.lines - lines.len());
            let source = |row| {
                let on_picture = of.plan.row([row / rows, 0], start + row % rows);
                on_picture.filter(|_| row % rows < read)
            };
            let sources: Vec<Option<usize>> = (0..self.rows).map(source).collect();
            let on_picture = |row: &usize| sources[*row].is_some();
            let (top, bottom) = ((0..self.rows).find(on_picture), (0..self.rows).rfind(on_picture));
            let same = self.shared && of.plan.stride(1) == 1;
            let same = same && of.plan.output[1] == of.plan.input[1];
            let shifted = top.zip(bottom).filter(|_| same).map(|(top, bottom)| top..bottom + 1);
            Block { lines, sources, shifted }
        };
        (0..height).step_by(self.lines).map(block).collect()
    }

    /// Where the run of each element of the window starts, in the order of the weights.
    fn starts(&self, of: &Convolution, channels: usize) -> Vec<usize> {
        let width = of.plan.output[1];
        let [_, columns] = of.plan.window.kernel;
        let mut starts = Vec::with_capacity(channels * of.plan.taps());
        for channel in 0..channels {
            of.plan.for_each_tap(|[y, x]| {
                let plane = (channel * columns + x) * self.rows;
                starts.push((plane + self.row(of, y)) * width);
            });
        }
        starts
    }

    /// The row of a plane from which on a row of the window stands.
    fn row(&self, of: &Convolution, y: usize) -> usize {
        y * if self.shared { of.plan.window.dilation[0] } else { self.lines }
    }

    /// These channels, spread out, or as they are.
    fn out<'a, T: Float>(
        &self,
        of: &Convolution,
        channels: &'a [T],
        block: &Block,
        planes: &'a mut [T],
    ) -> &'a [T] {
        if self.as_it_is {
            return channels;
        }
        dispatch(Out { plan: &of.plan, block, channels, planes });
        planes
    }
}

struct Out<'a, T> {
    plan: &'a Plan,
    block: &'a Block,
    channels: &'a [T],
    planes: &'a mut [T],
}

impl<T: Float> Kernel for Out<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { plan, block: Block { sources, shifted, .. }, channels, planes } = self;
        let ([height, width], windows) = (plan.input, plan.output[1]);
        let (columns, step) = (plan.window.kernel[1], plan.stride(1));
        for (index, plane) in planes.chunks_exact_mut(sources.len() * windows).enumerate() {
            let channel = &channels[index / columns * height * width..][..height * width];
            let (inside, first) = plan.columns([0, index % columns]);
            if let Some(rows) = shifted {
                let source = sources[rows.start].unwrap_or_default();
                let from = &channel[source * width + first..][..rows.len() * width - first];
                let (above, rest) = plane.split_at_mut(rows.start * width);
                let (to, below) = rest.split_at_mut(rows.len() * width);
                above.fill(T::ZERO);
                below.fill(T::ZERO);
                let count = from.len() - inside.start;
                to[inside.start..][..count].copy_from_slice(&from[..count]);
                clear_outside(to, width, &inside);
                continue;
            }
            if inside.len() < windows {
                plane.fill(T::ZERO);
            }
            for (to, &source) in plane.chunks_exact_mut(windows).zip(sources) {
                let Some(row) = source else {
                    to.fill(T::ZERO);
                    continue;
                };
                let from = &channel[row * width + first..(row + 1) * width];
                let to = &mut to[inside.clone()];
                match step {
                    1 => copy(&from[..to.len()], to),
                    _ => to.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, &x)| *to = x),
                }
            }
        }
    }
}

/// Zeros in the columns that lie outside.
#[inline(always)]
fn clear_outside<T: Float>(rows: &mut [T], width: usize, inside: &Range<usize>) {
    for column in (0..inside.start).chain(inside.end..width) {
        rows[column..].iter_mut().step_by(width).for_each(|x| *x = T::ZERO);
    }
}

/// As `copy_from_slice`, without a call for rows of small pictures.
#[inline(always)]
fn copy<T: Copy>(from: &[T], to: &mut [T]) {
    match from.len() {
        32..=64 => ends::<T, 32>(from, to),
        16..=31 => ends::<T, 16>(from, to),
        8..=15 => ends::<T, 8>(from, to),
        4..=7 => ends::<T, 4>(from, to),
        _ => to.copy_from_slice(from),
    }
}

/// The first `N` numbers and the last.
#[inline(always)]
fn ends<T: Copy, const N: usize>(from: &[T], to: &mut [T]) {
    if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut()) {
        *to = *from;
    }
    if let (Some(from), Some(to)) = (from.last_chunk::<N>(), to.last_chunk_mut()) {
        *to = *from;
    }
}

/// The adjoint of [`Out`]: adds planes to channels.
struct Back<'a, T> {
    plan: &'a Plan,
    block: &'a Block,
    planes: &'a mut [T],
    channels: &'a mut [T],
}

impl<T: Float> Kernel for Back<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { plan, block: Block { sources, shifted, .. }, planes, channels } = self;
        let ([height, width], windows) = (plan.input, plan.output[1]);
        let (columns, step) = (plan.window.kernel[1], plan.stride(1));
        for (index, plane) in planes.chunks_exact_mut(sources.len() * windows).enumerate() {
            let channel = &mut channels[index / columns * height * width..][..height * width];
            let (inside, first) = plan.columns([0, index % columns]);
            if let Some(rows) = shifted {
                let source = sources[rows.start].unwrap_or_default();
                let to = &mut channel[source * width + first..][..rows.len() * width - first];
                let plane = &mut plane[rows.start * width..rows.end * width];
                clear_outside(plane, width, &inside);
                let from = &plane[inside.start..];
                to.iter_mut().zip(from).for_each(|(to, &x)| *to = *to + x);
                continue;
            }
            for (from, &source) in plane.chunks_exact(windows).zip(sources) {
                let Some(row) = source else { continue };
                let to = &mut channel[row * width + first..(row + 1) * width];
                let from = &from[inside.clone()];
                match step {
                    1 => to.iter_mut().zip(from).for_each(|(to, &x)| *to = *to + x),
                    _ => to.iter_mut().step_by(step).zip(from).for_each(|(to, &x)| *to = *to + x),
                }
            }
        }
    }
}

/// The weights of each group as a left operand.
fn lefts<T: Float + Vectored>(
    of: &Convolution,
    w: &[T],
    rows: &[usize],
    columns: &[usize],
) -> Vec<Left<T>> {
    w.chunks_exact(of.weights()).map(|w| Left::new(w, rows, columns)).collect()
}

/// `y`, from pictures and weights.
pub(super) fn convolve<T: Float + Vectored>(of: &Convolution, x: &[T], w: &[T], y: &mut [T]) {
    if of.is_empty() {
        return y.fill(T::ZERO);
    }
    let (windows, width) = (of.plan.windows(), of.plan.output[1]);
    let spread = Spread::new::<T>(of, of.channels);
    let (starts, blocks) = (spread.starts(of, of.channels), spread.blocks(of));
    let rows: Vec<usize> = (0..of.outputs).map(|output| output * of.depth()).collect();
    let lefts = lefts(of, w, &rows, &Vec::from_iter(0..of.depth()));
    let [tall, part] = of.rows(of.outputs);
    each_chunk(y, part * windows, &|index, y| {
        let mut planes = Buffer::any(of.channels * spread.len(of));
        for (row, y) in (index * part..).step_by(tall).zip(y.chunks_exact_mut(tall * windows)) {
            let (unit, first) = (row / of.outputs, row % of.outputs);
            let unit_of_x = of.channels * of.input();
            let channels = &x[unit * unit_of_x..][..unit_of_x];
            for block in &blocks {
                let data = spread.out(of, channels, block, &mut planes);
                let runs = Runs { data, starts: &starts };
                let y = &mut y[block.lines.start * width..];
                let n = block.lines.len() * width;
                lefts[unit % of.groups].times(first..first + tall, runs, n, y, windows);
            }
        }
    });
}

/// The gradient of the pictures, from the weights and that of `y`.
pub(super) fn convolve_back<T: Float + Vectored>(
    of: &Convolution,
    w: &[T],
    dy: &[T],
    dx: &mut [T],
) {
    if of.is_empty() || dx.is_empty() {
        return dx.fill(T::ZERO);
    }
    let (windows, width) = (of.plan.windows(), of.plan.output[1]);
    let spread = Spread::new::<T>(of, of.channels);
    let blocks = spread.blocks(of);
    let [kernel_rows, kernel_columns] = of.plan.window.kernel;
    // A plane that rows of the window share is the sum of the products for each of them: of rows of
    // `dy` that lie higher the lower the row of the window is, with zeros above and below.
    let (joined, apart) = if spread.shared { (kernel_rows, 1) } else { (1, kernel_rows) };
    let margin = spread.row(of, joined - 1);
    let length = if margin == 0 { windows } else { (spread.lines + 2 * margin) * width };
    let (mut rows, mut columns, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for channel in 0..of.channels {
        for x in 0..kernel_columns {
            rows.extend((0..apart).map(|y| channel * of.plan.taps() + y * kernel_columns + x));
        }
    }
    for output in 0..of.outputs {
        for y in 0..joined {
            columns.push(output * of.depth() + y * kernel_columns);
            starts.push(output * length + (margin - spread.row(of, y)) * width);
        }
    }
    let lefts = lefts(of, w, &rows, &columns);
    let [tall, part] = of.rows(of.channels);
    let planes_of_channel = kernel_columns * apart;
    each_chunk(dx, part * of.input(), &|index, dx| {
        let mut planes = Buffer::any(tall * spread.len(of));
        let mut padded = Buffer::any(if margin == 0 { 0 } else { of.outputs * length });
        padded.fill(T::ZERO);
        for (row, dx) in (index * part..).step_by(tall).zip(dx.chunks_exact_mut(tall * of.input()))
        {
            let (unit, first) = (row / of.channels, row % of.channels);
            let (left, dy) = (&lefts[unit % of.groups], &dy[unit * of.outputs * windows..]);
            if spread.as_it_is {
                let runs = Runs { data: dy, starts: &starts };
                left.times(first..first + tall, runs, windows, dx, windows);
                continue;
            }
            dx.fill(T::ZERO);
            for block in &blocks {
                let n = block.lines.len() * width;
                let dy = &dy[block.lines.start * width..];
                if margin > 0 {
                    for (to, dy) in padded.chunks_exact_mut(length).zip(dy.chunks(windows)) {
                        let to = &mut to[margin * width..][..spread.lines * width];
                        to[..n].copy_from_slice(&dy[..n]);
                        to[n..].fill(T::ZERO);
                    }
                }
                let data = if margin == 0 { dy } else { &padded };
                // No row above the picture and none below it, where a plane has all in one run.
                let on_picture = |&row: &usize| apart > 1 || block.sources[row].is_some();
                let all = 0..block.lines.len() + margin;
                let (Some(top), Some(bottom)) =
                    (all.clone().find(on_picture), all.rev().find(on_picture))
                else {
                    continue;
                };
                let runs = Runs { data: &data[top * width..], starts: &starts };
                let rows = first * planes_of_channel..(first + tall) * planes_of_channel;
                let (n, to) = ((bottom + 1 - top) * width, &mut planes[top * width..]);
                left.times(rows, runs, n, to, spread.rows / apart * width);
                dispatch(Back { plan: &of.plan, block, planes: &mut planes, channels: dx });
            }
        }
    });
}

/// The gradient of the weights, from pictures and that of `y`.
pub(super) fn convolve_weights<T: Float + Vectored>(
    of: &Convolution,
    x: &[T],
    dy: &[T],
    dw: &mut [T],
) {
    dw.fill(T::ZERO);
    if of.is_empty() {
        return;
    }
    let pictures = of.units / of.groups;
    // Sums of parts of the pictures, each of so many that to add them up costs little.
    let part = pictures.div_ceil(PARTIAL_SUMS).max(4 * LONG / of.plan.windows());
    let parts = pictures.div_ceil(part);
    if parts == 1 {
        let is_small = num_threads() > 1 && of.outputs.is_multiple_of(TALL);
        let tall = if is_small { TALL } else { of.outputs };
        return each_chunk(dw, tall * of.depth(), &|index, dw| {
            add_weights(of, x, dy, 0..pictures, index * tall, dw);
        });
    }
    let mut sums = Buffer::any(parts * dw.len());
    sums.fill(T::ZERO);
    each_chunk(&mut sums, dw.len(), &|index, dw| {
        add_weights(of, x, dy, index * part..pictures.min((index + 1) * part), 0, dw);
    });
    for sums in sums.chunks_exact(dw.len()) {
        dw.iter_mut().zip(sums).for_each(|(dw, &sum)| *dw = *dw + sum);
    }
}

/// The same of some pictures, for outputs of all groups from one on.
fn add_weights<T: Float + Vectored>(
    of: &Convolution,
    x: &[T],
    dy: &[T],
    pictures: Range<usize>,
    first: usize,
    dw: &mut [T],
) {
    let (windows, width, taps) = (of.plan.windows(), of.plan.output[1], of.plan.taps());
    let spread = Spread::new::<T>(of, 1);
    let blocks = spread.blocks(of);
    // Small pictures are taken together, so that sums are long.
    let together = (LONG / windows).clamp(1, pictures.len());
    let room = SPREAD_BYTES / (together * spread.len(of) * size_of::<T>()).max(1);
    let most = room.clamp(1, of.channels);
    let starts = spread.starts(of, most);
    let mut planes = Buffer::any(together * most * spread.len(of));
    for picture in pictures.clone().step_by(together) {
        let count = together.min(pictures.end - picture);
        for (index, dw) in dw.chunks_mut(of.weights()).enumerate() {
            let (group, m) = (first / of.outputs + index, dw.len() / of.depth());
            let output = picture * of.groups * of.outputs + first + index * of.outputs;
            for channel in (0..of.channels).step_by(most) {
                let channels = most.min(of.channels - channel);
                let from = |picture: usize| {
                    let first = (picture * of.groups + group) * of.channels + channel;
                    &x[first * of.input()..]
                };
                let starts = &starts[..channels * taps];
                for block in &blocks {
                    let mut data = from(picture);
                    let mut right = of.groups * of.channels * of.input();
                    if !spread.as_it_is {
                        right = channels * spread.len(of);
                        for (i, planes) in planes.chunks_exact_mut(right).take(count).enumerate() {
                            spread.out(of, from(picture + i), block, planes);
                        }
                        data = &planes;
                    }
                    let n = block.lines.len() * width;
                    let left = of.groups * of.outputs * windows;
                    let pieces = Pieces { count, n, left, right };
                    let dy = &dy[output * windows + block.lines.start * width..];
                    let dw = &mut dw[channel * taps..];
                    add_dots(m, dy, Runs { data, starts }, pieces, dw, [windows, of.depth()]);
                }
            }
        }
    }
}
