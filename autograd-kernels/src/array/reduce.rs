//! Sums, products, extremes along axes.

use std::ops::Range;

use super::buffer::Buffer;
use super::feed::BlockReader;
use super::math::Math;
use super::shape::count;
use super::simd::{Kernel, dispatch};
use super::threads::{each_chunk_of, grain};
use super::{Shape, Storable, Value};

/// An associative function of two elements, with its neutral element as the start.
pub trait Fold<T: Copy>: Sync {
    /// Whether the result is independent of the order, to the last bit.
    fn is_exact(&self) -> bool {
        false
    }
    fn start(&self) -> T;
    fn join(&self, a: T, b: T) -> T;

    fn block(&self, data: &[T]) -> T {
        if data.len() <= 16 {
            return data.iter().fold(self.start(), |a, &b| self.join(a, b));
        }
        let mut lanes = [self.start(); LANES];
        dispatch(FoldKernel(&mut lanes, data, self));
        join_lanes(lanes, self)
    }

    /// Folds rows into the first slice, which is as long as a row.
    fn rows(&self, sums: &mut [T], rows: &[T]) {
        dispatch(FoldRowsKernel(sums, rows, self));
    }
}

pub struct Plus;

impl<T: Math> Fold<T> for Plus {
    #[inline(always)]
    fn start(&self) -> T {
        T::zero()
    }

    #[inline(always)]
    fn join(&self, a: T, b: T) -> T {
        a + b
    }
}

/// The number of partial sums. A constant, so that sums are the same on every CPU.
const LANES: usize = 32;
/// Elements until partial sums are joined pairwise: errors grow with the logarithm of the length.
const BLOCK: usize = 4096;
/// Rows that are summed one by one before their sums are joined pairwise.
const ROWS: usize = 64;
/// Elements of a row that are summed together: their sums stay in the L1 cache.
pub(super) const TILE: usize = 2048;
/// Elements that are summed in the time of one element of a pass that also writes.
pub(super) const SUMS_PER_WRITE: usize = 4;

pub(super) fn at_once(elements: usize) -> usize {
    grain(elements, SUMS_PER_WRITE)
}

/// Adds elements to lanes: the first one, and every [`LANES`]th after it, to the first lane.
struct FoldKernel<'a, T, F: ?Sized>(&'a mut [T; LANES], &'a [T], &'a F);

impl<T: Copy, F: Fold<T> + ?Sized> Kernel for FoldKernel<'_, T, F> {
    type Output = ();
    const WIDE: bool = false;

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(lanes, data, fold) = self;
        if fold.is_exact() {
            // The compiler vectorizes this loop itself; with lanes it would emit gathers.
            lanes[0] = data.iter().fold(lanes[0], |a, &b| fold.join(a, b));
            return;
        }
        let mut sums = *lanes;
        let (blocks, rest) = data.as_chunks::<LANES>();
        for block in blocks {
            for (sum, x) in sums.iter_mut().zip(block) {
                *sum = fold.join(*sum, *x);
            }
        }
        *lanes = sums;
        for (lane, x) in lanes.iter_mut().zip(rest) {
            *lane = fold.join(*lane, *x);
        }
    }
}

/// Joins all lanes. Not inlined: in one function with the loop, it would impair the loop's vectorization.
#[inline(never)]
fn join_lanes<T: Copy, F: Fold<T> + ?Sized>(mut lanes: [T; LANES], fold: &F) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = fold.join(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

struct FoldRowsKernel<'a, T, F: ?Sized>(&'a mut [T], &'a [T], &'a F);

impl<T: Copy, F: Fold<T> + ?Sized> Kernel for FoldRowsKernel<'_, T, F> {
    type Output = ();
    const WIDE: bool = false;

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(sums, rows, fold) = self;
        let n = sums.len();
        for (tile, sums) in sums.chunks_mut(TILE).enumerate() {
            for row in rows.chunks_exact(n) {
                for (a, b) in sums.iter_mut().zip(&row[tile * TILE..]) {
                    *a = fold.join(*a, *b);
                }
            }
        }
    }
}

/// Reduces a range by a tree whose form depends on the length alone: cut in two, at a multiple of `unit`,
/// until a part is no longer than `most`.
fn tree<R>(
    range: Range<usize>,
    [unit, most]: [usize; 2],
    leaf: &mut dyn FnMut(Range<usize>) -> R,
    join: &dyn Fn(R, R) -> R,
) -> R {
    let len = range.len();
    if len <= most {
        return leaf(range);
    }
    let cut = range.start + (len / 2).next_multiple_of(unit).min(len);
    let left = tree(range.start..cut, [unit, most], leaf, join);
    let right = tree(cut..range.end, [unit, most], leaf, join);
    join(left, right)
}

/// As [`tree`]: threads compute its branches of up to `most` items, if that pays for `elements`; the
/// results are joined at the end.
pub(super) fn shared_tree<R: Send>(
    (len, elements): (usize, usize),
    [unit, most]: [usize; 2],
    branch: &(dyn Fn(Range<usize>) -> R + Sync),
    join: &dyn Fn(R, R) -> R,
) -> R {
    if len <= most {
        return branch(0..len);
    }
    let mut branches = Vec::new();
    tree(0..len, [unit, most], &mut |range| branches.push((range, None)), &|(), ()| ());
    each_chunk_of(elements / SUMS_PER_WRITE, &mut branches, 1, &|_, chunk| {
        let (range, result) = &mut chunk[0];
        *result = Some(branch(range.clone()));
    });
    let mut results = branches.into_iter().filter_map(|(_, result)| result);
    let mut next = |_| results.next().unwrap_or_else(|| unreachable!("the tree is the same"));
    tree(0..len, [unit, most], &mut next, join)
}

pub fn fold_slice<T: Storable>(data: &[T], fold: &dyn Fold<T>) -> T {
    fold_part(BlockReader::Slice(data), 0..data.len(), fold)
}

/// Folds a range of elements, the next ones of the feed.
fn fold_part<T: Storable>(
    mut feed: BlockReader<'_, T>,
    range: Range<usize>,
    fold: &dyn Fold<T>,
) -> T {
    let mut block = |range: Range<usize>| {
        feed.advance(range.len());
        fold.block(feed.block(range.start, range.len()))
    };
    tree(range, [BLOCK; 2], &mut block, &|a, b| fold.join(a, b))
}

/// As [`fold_part`], on several threads if that pays; `feed` starts at a given element.
fn fold_shared<'a, T: Storable>(
    feed: &(dyn Fn(usize) -> BlockReader<'a, T> + Sync),
    len: usize,
    fold: &dyn Fold<T>,
) -> T {
    let branch = |range: Range<usize>| fold_part(feed(range.start), range, fold);
    let most = at_once(len).max(BLOCK);
    shared_tree((len, len), [BLOCK, most], &branch, &|a, b| fold.join(a, b))
}

fn fold_long_slice<T: Storable>(data: &[T], fold: &dyn Fold<T>) -> T {
    match data.len() {
        ..=BLOCK => fold.block(data),
        len => fold_shared(&|_| BlockReader::Slice(data), len, fold),
    }
}

/// Folds along sorted `axes`, which are kept with length 1.
pub fn fold_axes<T: Storable>(x: &Value<T>, axes: &[usize], fold: &dyn Fold<T>) -> Value<T> {
    let mut shape = Shape::from_slice(x.shape());
    axes.iter().for_each(|&axis| shape[axis] = 1);
    if let (Some(element), Some(_)) = (x.uniform(), axes.first()) {
        let count = axes.iter().map(|&axis| x.shape()[axis]).product();
        let all = repeated(element, count, fold.start(), |a, b| fold.join(a, b));
        return Value::scalar(all).broadcast_to(&shape);
    }
    if axes.len() == x.rank() {
        // Deferred elements are computed block by block.
        let all = match if x.is_deferred() { None } else { x.as_slice() } {
            Some(data) => fold_long_slice(data, fold),
            None => fold_shared(&|start| BlockReader::new(x, x.shape(), start), x.len(), fold),
        };
        return Value::full(shape, all);
    }
    // Adjacent axes are folded as one, the innermost first.
    let mut x = x.contiguous().into_owned();
    for group in axes.chunk_by(|axis, next| axis + 1 == *next).rev() {
        x = fold_group(&x, group[0]..group[group.len() - 1] + 1, fold);
    }
    x
}

pub(super) fn repeated<T: Copy>(
    element: T,
    mut count: usize,
    start: T,
    join: impl Fn(T, T) -> T,
) -> T {
    let (mut all, mut power) = (start, element);
    while count > 0 {
        if count % 2 == 1 {
            all = join(all, power);
        }
        power = join(power, power);
        count /= 2;
    }
    all
}

fn fold_group<T: Storable>(x: &Value<T>, axes: Range<usize>, fold: &dyn Fold<T>) -> Value<T> {
    let mut shape = Shape::from_slice(x.shape());
    let n = count(&shape[axes.clone()]);
    let inner = count(&shape[axes.end..]);
    shape[axes].fill(1);
    let data = x.as_slice().unwrap_or(&[]);
    if inner == 1 {
        return Value::written(shape, &mut |out| {
            each_row(data, out, &|row| fold_long_slice(row, fold));
        });
    }
    let mut out = Value::full(shape, fold.start());
    if let Some(out) = out.as_mut_slice() {
        let groups = (at_once(data.len()) / (n * inner).max(1)).max(1);
        each_chunk_of(data.len() / SUMS_PER_WRITE, out, groups * inner, &|chunk, out| {
            for (i, out) in out.chunks_exact_mut(inner).enumerate() {
                let at = (chunk * groups + i) * n * inner;
                fold_rows(&data[at..at + n * inner], out, fold);
            }
        });
    }
    out
}

/// Writes a result for each row to `out`, on threads if that pays.
pub(super) fn each_row<T: Sync, U: Send>(
    data: &[T],
    out: &mut [U],
    result: &(dyn Fn(&[T]) -> U + Sync),
) {
    let n = data.len() / out.len().max(1);
    let rows = (at_once(data.len()) / n.max(1)).max(1);
    each_chunk_of(data.len() / SUMS_PER_WRITE, out, rows, &|chunk, out| {
        for (i, out) in out.iter_mut().enumerate() {
            *out = result(&data[(chunk * rows + i) * n..][..n]);
        }
    });
}

/// Folds rows as long as `out` into it, which is the start; on several threads if that pays.
fn fold_rows<T: Storable>(rows: &[T], out: &mut [T], fold: &dyn Fold<T>) {
    let n = out.len();
    let count = rows.len() / n;
    if count <= ROWS {
        return fold.rows(out, rows);
    }
    let leaf = |range: Range<usize>| {
        let mut sums = Buffer::any(n);
        sums.fill(fold.start());
        fold.rows(&mut sums, &rows[range.start * n..range.end * n]);
        sums
    };
    let join = |mut sums: Buffer<T>, others: Buffer<T>| {
        fold.rows(&mut sums, &others);
        sums
    };
    let most = ROWS.max(at_once(rows.len()) / n);
    let branch = |range| tree(range, [ROWS; 2], &mut { leaf }, &join);
    out.copy_from_slice(&shared_tree((count, rows.len()), [ROWS, most], &branch, &join));
}
