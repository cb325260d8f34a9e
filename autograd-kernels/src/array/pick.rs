//! Kernels along one axis: select and gather by an index, scatter, reverse, cumulative sums,
//! argmax. Row-major data is seen as `[outer, n, inner]` around the axis: if `inner` is 1, kernels
//! go row by row of `outer`, otherwise slice by slice.

use super::buffer::Buffer;
use super::reduce::{Fold, fold_slice};
use super::shape::count;
use super::simd::{Kernel, dispatch};
use super::threads::each_chunk;
use super::{Storable, Value};

/// Elements per chunk; one thread computes a chunk.
const CHUNK: usize = 16 * 1024;

/// Rows whose running sums are interleaved: within a row, each addition waits for the previous one.
const ROW_GROUP: usize = 8;

#[derive(Clone, Copy)]
pub struct AxisShape {
    pub outer: usize,
    pub n: usize,
    pub inner: usize,
}

impl AxisShape {
    pub fn new(shape: &[usize], axis: usize) -> Self {
        // No elements, no steps, however long the other axes are.
        let outer = if shape.contains(&0) { 0 } else { count(&shape[..axis]) };
        Self { outer, n: shape[axis], inner: count(&shape[axis + 1..]) }
    }

    fn block(self) -> usize {
        self.n * self.inner
    }

    fn of<T>(self, data: &[T], at: usize) -> &[T] {
        &data[at * self.block()..][..self.block()]
    }

    /// Calls `run` for each part of a result, on threads if that pays: block, first step, slices.
    fn each_part<T: Send>(self, out: &mut [T], run: impl Fn(usize, usize, &mut [T]) + Sync) {
        if out.is_empty() {
            return;
        }
        let steps = CHUNK.div_ceil(self.inner);
        each_chunk(out, steps * self.inner, &|chunk, part| {
            let (mut step, mut rest) = (chunk * steps, part);
            while !rest.is_empty() {
                let first = step % self.n;
                let count = (self.n - first).min(rest.len() / self.inner);
                let (part, others) = std::mem::take(&mut rest).split_at_mut(count * self.inner);
                run(step / self.n, first, part);
                (step, rest) = (step + count, others);
            }
        });
    }

    /// Calls `run` for groups of blocks of data of this shape, on threads if that pays.
    fn each_block<T: Send>(self, data: &mut [T], run: impl Fn(usize, &mut [T]) + Sync) {
        if data.is_empty() {
            return;
        }
        let blocks = CHUNK.div_ceil(self.block());
        each_chunk(data, blocks * self.block(), &|chunk, part| {
            for (index, block) in part.chunks_exact_mut(self.block()).enumerate() {
                run(chunk * blocks + index, block);
            }
        });
    }
}

/// Writes the slices of `x` that `index` names; all indices are valid.
pub fn select<T: Storable>(x: &[T], around: AxisShape, index: &[i64], out: &mut [T]) {
    let inner = around.inner;
    AxisShape { n: index.len(), ..around }.each_part(out, |block, first, part| {
        let x = around.of(x, block);
        if inner == 1 {
            for (to, &i) in part.iter_mut().zip(&index[first..]) {
                *to = x[i as usize];
            }
            return;
        }
        for (to, &i) in part.chunks_exact_mut(inner).zip(&index[first..]) {
            to.copy_from_slice(&x[i as usize * inner..][..inner]);
        }
    });
}

/// Adds the slices of `source` to the slices of `data` that `index` names; all indices are valid.
pub fn add_at<A: Copy + Send, T: Copy + Sync>(
    data: &mut [A],
    around: AxisShape,
    index: &[i64],
    source: &[T],
    plus: impl Fn(A, T) -> A + Sync,
) {
    let inner = around.inner;
    let sources = AxisShape { n: index.len(), ..around };
    around.each_block(data, |block, data| {
        let source = sources.of(source, block);
        if inner == 1 {
            for (&i, &from) in index.iter().zip(source) {
                let to = &mut data[i as usize];
                *to = plus(*to, from);
            }
            return;
        }
        for (&i, from) in index.iter().zip(source.chunks_exact(inner)) {
            let to = &mut data[i as usize * inner..][..inner];
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = plus(*to, from));
        }
    });
}

/// Writes the elements of `x` that `index` names; the index has `x`'s shape, but `n` along the axis.
pub fn gather<T: Storable>(x: &[T], around: AxisShape, index: &[i64], n: usize, out: &mut [T]) {
    let inner = around.inner;
    let indices = AxisShape { n, ..around };
    indices.each_part(out, |block, first, part| {
        let x = around.of(x, block);
        let index = &indices.of(index, block)[first * inner..];
        if inner == 1 {
            for (to, &i) in part.iter_mut().zip(index) {
                *to = x[i as usize];
            }
            return;
        }
        for (to, index) in part.chunks_exact_mut(inner).zip(index.chunks_exact(inner)) {
            for (k, (to, &i)) in to.iter_mut().zip(index).enumerate() {
                *to = x[i as usize * inner + k];
            }
        }
    });
}

/// Adds the elements of `source` to the elements of `data` that `index` names; both have `data`'s shape, with
/// length `n` along the axis.
pub fn scatter_add<A: Copy + Send, T: Copy + Sync>(
    data: &mut [A],
    around: AxisShape,
    (index, n): (&[i64], usize),
    source: &[T],
    plus: impl Fn(A, T) -> A + Sync,
) {
    let inner = around.inner;
    let indices = AxisShape { n, ..around };
    around.each_block(data, |block, data| {
        let pairs = indices.of(index, block).iter().zip(indices.of(source, block));
        let mut add = |at: usize, from: T| data[at] = plus(data[at], from);
        if inner == 1 {
            pairs.for_each(|(&i, &from)| add(i as usize, from));
            return;
        }
        for (k, (&i, &from)) in (0..inner).cycle().zip(pairs) {
            add(i as usize * inner + k, from);
        }
    });
}

pub fn reverse<T: Storable>(x: &[T], around: AxisShape, out: &mut [T]) {
    let AxisShape { n, inner, .. } = around;
    around.each_part(out, |block, first, part| {
        let count = part.len() / inner;
        let from = &around.of(x, block)[(n - first - count) * inner..][..part.len()];
        if inner == 1 {
            part.iter_mut().zip(from.iter().rev()).for_each(|(to, from)| *to = *from);
            return;
        }
        for (to, from) in part.chunks_exact_mut(inner).zip(from.chunks_exact(inner).rev()) {
            to.copy_from_slice(from);
        }
    });
}

/// Adds to each slice the previous one, or, with `from_end`, the next one.
pub fn accumulate<T: Storable>(
    data: &mut [T],
    around: AxisShape,
    from_end: bool,
    plus: impl Fn(T, T) -> T + Sync,
) {
    let AxisShape { n, inner, .. } = around;
    if inner == 1 {
        // Groups of rows are treated as blocks.
        let rows = AxisShape { outer: 1, n: ROW_GROUP, inner: n };
        let whole = data.len() - data.len() % rows.block().max(1);
        let (groups, rest) = data.split_at_mut(whole);
        rows.each_block(groups, |_, group| running_sums::<T, ROW_GROUP>(group, n, from_end, &plus));
        rest.chunks_exact_mut(n.max(1))
            .for_each(|row| running_sums::<T, 1>(row, n, from_end, &plus));
        return;
    }
    around.each_block(data, |_, block| {
        for k in 1..n {
            let cut = if from_end { n - k } else { k } * inner;
            let (low, high) = block.split_at_mut(cut);
            let (low, high) = (&mut low[cut - inner..], &mut high[..inner]);
            let (to, from) = if from_end { (low, high) } else { (high, low) };
            to.iter_mut().zip(from).for_each(|(to, from)| *to = plus(*to, *from));
        }
    });
}

fn running_sums<T: Storable, const R: usize>(
    rows: &mut [T],
    n: usize,
    from_end: bool,
    plus: &impl Fn(T, T) -> T,
) {
    let mut all = rows.chunks_exact_mut(n);
    let mut rows: [&mut [T]; R] = std::array::from_fn(|_| all.next().unwrap_or_default());
    let first = if from_end { n - 1 } else { 0 };
    let mut sums: [T; R] = std::array::from_fn(|r| rows[r][first]);
    for step in 1..n {
        let k = if from_end { n - 1 - step } else { step };
        for (row, sum) in rows.iter_mut().zip(&mut sums) {
            *sum = plus(row[k], *sum);
            row[k] = *sum;
        }
    }
}

/// Changes a row-major copy, in the value's own buffer if it is not shared.
pub fn changed<T: Storable>(mut x: Value<T>, change: impl FnOnce(&mut [T])) -> Value<T> {
    change(x.make_mut());
    x
}

/// The position of the best element along the axis: the first of equal ones, or the first NaN if there is
/// one. The axis has at least one element; `fold` returns the better of two, or NaN.
pub fn best<T: Storable + PartialEq, F: Fold<T>>(
    data: &[T],
    around: AxisShape,
    fold: &F,
    out: &mut [i64],
) {
    debug_assert_eq!(out.len(), around.outer * around.inner);
    if around.inner == 1 {
        let rows = (CHUNK / around.n).max(1);
        return each_chunk(out, rows, &|chunk, out| {
            for (i, place) in out.iter_mut().enumerate() {
                let row = around.of(data, chunk * rows + i);
                *place = dispatch(Find(row, fold_slice(row, fold))) as i64;
            }
        });
    }
    each_chunk(out, around.inner, &|at, places| {
        let block = around.of(data, at);
        places.fill(0);
        let mut best = Buffer::any(places.len());
        best.copy_from_slice(&block[..places.len()]);
        for (step, row) in block.chunks_exact(places.len()).enumerate().skip(1) {
            dispatch(Better { row, step: step as i64, best: &mut best, places, fold });
        }
    });
}

/// The position of the first element that equals this one or is NaN.
struct Find<'a, T>(&'a [T], T);

impl<T: Copy + PartialEq> Kernel for Find<'_, T> {
    type Output = usize;
    const WIDE: bool = false;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> usize {
        let Self(row, best) = self;
        #[allow(clippy::eq_op, reason = "the test for NaN that all number types share")]
        let is = |x: T| x == best || x != x;
        // In groups, without a branch for each element.
        let holds = |part: &[T]| part.iter().fold(false, |found, &x| found | is(x));
        let before = row.chunks(64).take_while(|part| !holds(part)).count() * 64;
        let rest = row.get(before..).unwrap_or_default();
        before + rest.iter().position(|&x| is(x)).unwrap_or(0)
    }
}

/// Records in `places` the step of an element of a row that is better than the best before it.
struct Better<'a, T, F> {
    row: &'a [T],
    step: i64,
    best: &'a mut [T],
    places: &'a mut [i64],
    fold: &'a F,
}

impl<T: Copy + PartialEq, F: Fold<T>> Kernel for Better<'_, T, F> {
    type Output = ();
    const WIDE: bool = false;

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { row, step, best, places, fold } = self;
        for ((&x, best), place) in row.iter().zip(best).zip(places) {
            let better = fold.join(*best, x);
            // NaN is not equal to itself: it beats every number, and nothing beats NaN.
            #[allow(clippy::eq_op, reason = "the test for NaN that all number types share")]
            let found = *best == *best && better != *best;
            *place = if found { step } else { *place };
            *best = better;
        }
    }
}
