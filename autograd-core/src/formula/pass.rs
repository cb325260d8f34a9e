//! One pass over memory: a formula over values of any layout, stretched to one shape.
//!
//! The result is made block by block. What lies row-major is read where it is; anything else is
//! gathered into a block-sized buffer first. A result is written where it belongs, or added up
//! where it is wanted in a smaller shape: the gradient of an input that was stretched, the sum of a
//! loss.

use smallvec::SmallVec;

use super::program::{Program, Scratch};
use crate::array::math::Math;
use crate::array::reduce::{Fold, fold_slice};
use crate::array::shape::{copied, row_major, stretched};
use crate::array::{Shape, Storable, Value};

/// Elements a block: a few KiB an operand, so that blocks stay in the first cache.
pub(crate) const BLOCK: usize = 2048;

/// What a pass computes, whatever it is made of.
pub trait Formula<T>: Written + Send + Sync {
    /// How many results there are.
    fn outputs(&self) -> usize;
    /// Computes a block; true where an angle was beyond what the formula takes: then the block is
    /// to be computed by [`program`](Written::program).
    fn run(&self, block: &mut Block<'_, T>) -> bool;
}

/// What can be written down as a program.
pub trait Written {
    /// The program.
    fn program(&self) -> Program;
}

/// A block of operands and results.
pub struct Block<'a, T> {
    pub(super) len: usize,
    pub(super) reals: &'a [&'a [T]],
    pub(super) masks: &'a [&'a [bool]],
    pub(super) out: &'a mut [T],
    /// How far apart the results stand in `out`.
    pub(super) stride: usize,
    pub(super) scratch: &'a mut Scratch<T>,
}

/// An operand of a pass.
pub(crate) enum Operand<'a, T: Storable> {
    Ref(&'a Value<T>),
    /// One whose buffer may be written.
    Own(Value<T>),
}

impl<T: Storable> Operand<'_, T> {
    fn value(&self) -> &Value<T> {
        match self {
            Self::Ref(value) => value,
            Self::Own(value) => value,
        }
    }
}

/// Runs a formula over operands stretched to `shape`. Result `k` comes in the shape `targets[k]`,
/// from which `shape` is stretched: added up where it is smaller; not at all if that is `None`.
pub(crate) fn pass<T: Storable + Math>(
    shape: &[usize],
    mut reals: SmallVec<[Operand<'_, T>; 4]>,
    masks: &[&Value<bool>],
    targets: &[Option<Shape>],
    formula: &dyn Formula<T>,
) -> SmallVec<[Option<Value<T>>; 1]> {
    let len: usize = shape.iter().product();
    let mut sinks: SmallVec<[Sink<T>; 2]> =
        targets.iter().map(|target| Sink::new(target.as_ref(), shape)).collect();
    let single = formula.outputs() == 1;
    // The first whole result is written over an operand that nobody else holds.
    let mut reused = None;
    if single && matches!(sinks[0], Sink::Whole(_)) {
        reused = reals.iter_mut().enumerate().find_map(|(k, operand)| {
            let Operand::Own(value) = operand else { return None };
            let free = value.shape() == shape && value.as_mut_slice().is_some();
            free.then(|| (k, std::mem::replace(value, Value::scalar(T::ZERO))))
        });
    }
    let mut feeds: SmallVec<[Feed<'_, T>; 4]> =
        reals.iter().map(|operand| Feed::new(operand.value(), shape)).collect();
    if let Some((k, _)) = &reused {
        feeds[*k] = Feed::Reused(Vec::new());
    }
    let mut mask_feeds: SmallVec<[Feed<'_, bool>; 2]> =
        masks.iter().map(|mask| Feed::new(mask, shape)).collect();
    let mut scratch = Scratch::default();
    let mut fallback: Option<(Program, Scratch<T>)> = None;
    let mut out = Vec::new();
    let direct = single && matches!(sinks[0], Sink::Whole(_));
    if !direct {
        let each = if single { BLOCK.min(len) } else { BLOCK };
        out.resize(formula.outputs() * each, T::ZERO);
    }
    let mut start = 0;
    while start < len {
        let n = BLOCK.min(len - start);
        if let Some((k, value)) = &mut reused {
            let block = value.as_mut_slice().map(|data| &data[start..start + n]);
            feeds[*k].copy(block.unwrap_or(&[]));
        }
        feeds.iter_mut().for_each(|feed| feed.advance(n));
        mask_feeds.iter_mut().for_each(|feed| feed.advance(n));
        let x: SmallVec<[&[T]; 4]> = feeds.iter().map(|feed| feed.block(start, n)).collect();
        let m: SmallVec<[&[bool]; 2]> = mask_feeds.iter().map(|f| f.block(start, n)).collect();
        let to: &mut [T] = match (&mut reused, &mut sinks[0]) {
            (Some((_, value)), _) => {
                value.as_mut_slice().map_or(&mut [], |data| &mut data[start..start + n])
            }
            (None, Sink::Whole(vec)) if direct => {
                vec.resize(start + n, T::ZERO);
                &mut vec[start..]
            }
            _ => &mut out[..],
        };
        let mut block =
            Block { len: n, reals: &x, masks: &m, out: to, stride: BLOCK, scratch: &mut scratch };
        if formula.run(&mut block) {
            let (program, scratch) =
                fallback.get_or_insert_with(|| (formula.program(), Scratch::default()));
            let to = &mut *block.out;
            let mut block = Block { len: n, reals: &x, masks: &m, out: to, stride: BLOCK, scratch };
            program.run(&mut block);
        }
        if !direct {
            for (k, sink) in sinks.iter_mut().enumerate() {
                sink.take(&out[k * BLOCK..][..n]);
            }
        }
        start += n;
    }
    if let Some((_, value)) = reused {
        return SmallVec::from_iter([Some(value)]);
    }
    sinks.into_iter().zip(targets).map(|(sink, target)| sink.finish(target.as_ref())).collect()
}

/// Where the blocks of an operand come from.
enum Feed<'a, T: Storable> {
    /// Row-major data.
    Slice(&'a [T]),
    /// One number for all elements.
    Same(Vec<T>, T),
    /// Anything else, gathered into a block.
    Gathered(&'a [T], Walk, Vec<T>),
    /// A copy of what will be overwritten.
    Reused(Vec<T>),
}

impl<'a, T: Storable> Feed<'a, T> {
    fn new(value: &'a Value<T>, shape: &[usize]) -> Self {
        if value.shape() == shape
            && let Some(data) = value.as_slice()
        {
            return Self::Slice(data);
        }
        let walk = Walk::new(shape, &value.strides_as(shape));
        match walk.axes.as_slice() {
            [] | [(_, 0)] => {
                Self::Same(Vec::new(), value.raw().first().copied().unwrap_or(T::ZERO))
            }
            [(n, 1)] if value.raw().len() >= *n => Self::Slice(&value.raw()[..*n]),
            _ => Self::Gathered(value.raw(), walk, Vec::new()),
        }
    }

    fn copy(&mut self, block: &[T]) {
        if let Self::Reused(copy) = self {
            copy.clear();
            copy.extend_from_slice(block);
        }
    }

    /// Makes the next `n` elements ready.
    fn advance(&mut self, n: usize) {
        match self {
            Self::Slice(_) | Self::Reused(_) => {}
            // The first block is the longest.
            Self::Same(block, element) => {
                if block.is_empty() {
                    block.resize(n, *element);
                }
            }
            Self::Gathered(raw, walk, block) => {
                block.clear();
                walk.runs(n, |start, n, step| match step {
                    1 => block.extend_from_slice(&raw[start..start + n]),
                    0 => block.extend(std::iter::repeat_n(raw[start], n)),
                    _ => block.extend((0..n).map(|i| raw[start + i * step])),
                });
            }
        }
    }

    fn block(&self, start: usize, n: usize) -> &[T] {
        match self {
            Self::Slice(data) => &data[start..start + n],
            Self::Same(block, _) | Self::Gathered(_, _, block) | Self::Reused(block) => &block[..n],
        }
    }
}

/// Where the blocks of a result go.
enum Sink<T: Storable> {
    /// Nobody wants it.
    Nowhere,
    /// In the whole shape, row-major.
    Whole(Vec<T>),
    /// Added up: the sums, and what rounding took from those that are single.
    Sum(Walk, Vec<T>, Vec<T>),
}

impl<T: Storable + Math> Sink<T> {
    fn new(target: Option<&Shape>, shape: &[usize]) -> Self {
        let Some(target) = target else { return Self::Nowhere };
        if target.as_slice() == shape {
            return Self::Whole(T::pool().take(shape.iter().product()));
        }
        let sums = vec![T::ZERO; target.iter().product()];
        let strides = stretched(target, &row_major(target), shape);
        Self::Sum(Walk::new(shape, &strides), sums.clone(), sums)
    }

    fn take(&mut self, block: &[T]) {
        match self {
            Self::Nowhere => {}
            Self::Whole(vec) => vec.extend_from_slice(block),
            Self::Sum(walk, sums, lost) => {
                let mut at = 0;
                walk.runs(block.len(), |start, n, step| {
                    let part = &block[at..at + n];
                    at += n;
                    match step {
                        0 => add(&mut sums[start], &mut lost[start], fold_slice(part, Plus)),
                        _ => {
                            for (i, x) in part.iter().enumerate() {
                                let k = start + i * step;
                                sums[k] = sums[k] + *x;
                            }
                        }
                    }
                });
            }
        }
    }

    fn finish(self, target: Option<&Shape>) -> Option<Value<T>> {
        let shape = copied(target?);
        match self {
            Self::Nowhere => None,
            Self::Whole(vec) => Some(Value::from_vec(shape, vec)),
            Self::Sum(_, mut sums, lost) => {
                for (sum, lost) in sums.iter_mut().zip(lost) {
                    // What an infinite sum has lost is no number.
                    if lost.magnitude() < T::INFINITY {
                        *sum = *sum + lost;
                    }
                }
                Some(Value::from_vec(shape, sums))
            }
        }
    }
}

/// Adds with the rounding error kept apart (Neumaier), so that the sum of many blocks is as good
/// as that of one.
fn add<T: Math>(sum: &mut T, lost: &mut T, x: T) {
    let total = *sum + x;
    let (large, small) = if sum.magnitude() >= x.magnitude() { (*sum, x) } else { (x, *sum) };
    *lost = *lost + ((large - total) + small);
    *sum = total;
}

#[derive(Clone, Copy)]
struct Plus;

impl<T: Math> Fold<T> for Plus {
    #[inline(always)]
    fn start(self) -> T {
        T::lit(0.0)
    }

    #[inline(always)]
    fn join(self, a: T, b: T) -> T {
        a + b
    }
}

/// Walks the elements of a strided operand in row-major order, a block at a time.
struct Walk {
    /// Merged axes, innermost last: length and step.
    axes: SmallVec<[(usize, usize); 4]>,
    /// The position on each axis.
    index: SmallVec<[usize; 4]>,
}

impl Walk {
    fn new(shape: &[usize], strides: &[usize]) -> Self {
        let mut axes: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        for (&n, &step) in shape.iter().zip(strides) {
            if n == 1 {
                continue;
            }
            match axes.last_mut() {
                Some((m, outer)) if *outer == step * n => {
                    *m *= n;
                    *outer = step;
                }
                _ => axes.push((n, step)),
            }
        }
        let index = SmallVec::from_elem(0, axes.len());
        Self { axes, index }
    }

    /// Calls `run(start, length, step)` for each run of the next `count` elements.
    fn runs(&mut self, mut count: usize, mut run: impl FnMut(usize, usize, usize)) {
        let Some((&(inner, step), outer)) = self.axes.split_last() else {
            return run(0, count, 1);
        };
        let last = outer.len();
        while count > 0 {
            let row: usize = outer.iter().zip(&self.index).map(|((_, s), i)| s * i).sum();
            let n = count.min(inner - self.index[last]);
            run(row + self.index[last] * step, n, step);
            count -= n;
            self.index[last] += n;
            let mut axis = last;
            while axis > 0 && self.index[axis] == self.axes[axis].0 {
                self.index[axis] = 0;
                axis -= 1;
                self.index[axis] += 1;
            }
        }
    }
}
