//! One pass over memory: a formula over values of any layout, broadcast to one shape, block by
//! block. Row-major data is read in place; anything else is first gathered into a block-sized
//! buffer. A result is written in place, or reduced if a smaller shape is wanted: the gradient of
//! an input that was broadcast, the sum of a loss. Large passes are cut into chunks, which threads
//! share; their sums are joined in order, so results do not depend on the threads.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::program::{Program, Written};
use super::sums::Sums;
use crate::array::buffer::Buffer;
use crate::array::feed::BlockReader;
use crate::array::math::Math;
use crate::array::shape::{copied, count, same};
use crate::array::threads::each_chunk_of;
use crate::array::{Cheap, Shape, Step, Storable, Value, fits_inline};

/// Elements per block of a formula with so many results: a block's data fits the L1 cache.
pub const fn block_of(outputs: usize) -> usize {
    if outputs == 1 { 2048 } else { 512 }
}

/// Elements per chunk; one thread computes a chunk.
const CHUNK: usize = 16 * 1024;

pub trait Formula<T: Storable>: Written + Send + Sync {
    fn outputs(&self) -> usize;
    /// Computes the used elements of a block by the formula's program.
    fn run_program(&self, block: &mut Block<'_, T>);
    /// The cheap function that the formula is, if any.
    fn cheap(&self) -> Option<Cheap> {
        None
    }
    /// Computes `len` elements of each result by the compiled loop. Returns false if there is none, or if an angle
    /// was too large for it; `out` is then unspecified.
    fn run_loop(&self, _len: usize, _: &[&[T]], _: &[&[bool]], _out: &mut [T]) -> bool {
        false
    }
}

impl<T: Storable> dyn Formula<T> + '_ {
    /// Computes a block by the loop, or its read part by the program.
    fn compute(&self, block: &mut Block<'_, T>) {
        let Block { len, read, reals, masks, ref mut out, .. } = *block;
        let mut run_loop = |len| self.run_loop(len, reals, masks, out);
        if !run_loop(len) && (read == len || !run_loop(read)) {
            self.run_program(block);
        }
    }
}

/// State that a formula keeps between blocks, of which the first is the longest.
pub struct Scratch<T: Storable> {
    pub(super) numbers: Vec<Buffer<T>>,
    pub(super) masks: Vec<Buffer<bool>>,
    /// The program for blocks that a compiled formula cannot compute.
    pub(super) program: Option<Box<(Program, Scratch<T>)>>,
}

impl<T: Storable> Default for Scratch<T> {
    fn default() -> Self {
        Self { numbers: Vec::new(), masks: Vec::new(), program: None }
    }
}

pub struct Block<'a, T: Storable> {
    pub(super) len: usize,
    /// The number of elements that are used; the rest may have any content.
    pub(super) read: usize,
    pub(super) reals: &'a [&'a [T]],
    pub(super) masks: &'a [&'a [bool]],
    /// The results, [`block_of`] their number apart.
    pub(super) out: &'a mut [T],
    pub(super) scratch: &'a mut Scratch<T>,
}

/// Runs a formula over one block of `len` elements, without a pass. Operands and results have
/// memory for `padded` elements, to compute whole vectors. Results are [`block_of`] their number apart.
pub fn run_block<T: Storable>(
    formula: &dyn Formula<T>,
    [len, padded]: [usize; 2],
    reals: &[&[T]],
    masks: &[&[bool]],
    out: &mut [T],
) {
    let scratch = &mut Scratch::default();
    formula.compute(&mut Block { len: padded, read: len, reals, masks, out, scratch });
}

pub enum Operand<'a, T: Storable> {
    Ref(&'a Value<T>),
    /// An operand whose buffer may be overwritten.
    Own(Value<T>),
    /// An operand that no result depends on.
    Absent,
}

impl<T: Storable> Operand<'_, T> {
    fn get(&self) -> Option<&Value<T>> {
        match self {
            Self::Ref(value) => Some(value),
            Self::Own(value) => Some(value),
            Self::Absent => None,
        }
    }

    fn feed(&self, shape: &[usize], start: usize) -> BlockReader<'_, T> {
        match self.get() {
            Some(value) => BlockReader::new(value, shape, start),
            None => BlockReader::Same(Buffer::default(), T::ZERO),
        }
    }
}

/// Runs a formula over operands broadcast to `shape`. Result `k` gets the shape `targets[k]`, which must
/// broadcast to `shape`; it is summed if that is smaller, and omitted if that is `None`.
pub fn pass<T: Storable + Math>(
    shape: &[usize],
    reals: &mut [Operand<'_, T>],
    masks: &[Cow<'_, Value<bool>>],
    targets: &[Option<Shape>],
    formula: &dyn Formula<T>,
) -> SmallVec<[Option<Value<T>>; 1]> {
    let len = count(shape);
    let is_whole = |target: &Shape| same(target, shape);
    let is_one = formula.outputs() == 1 && targets[0].as_ref().is_some_and(is_whole);
    if is_one && masks.is_empty() {
        let result = uniform(shape, reals, formula);
        if let Some(result) = result.or_else(|| deferred(shape, reals, formula)) {
            return SmallVec::from_iter([Some(result)]);
        }
    }
    let mut results: SmallVec<[Option<Value<T>>; 1]> = SmallVec::new();
    // A single result overwrites an operand that is not shared.
    let over = reals.iter_mut().position(|operand| match operand {
        Operand::Own(value) if is_one && same(value.shape(), shape) => {
            !value.is_deferred() && value.as_mut_slice().is_some()
        }
        _ => false,
    });
    match over.map(|k| std::mem::replace(&mut reals[k], Operand::Absent)) {
        Some(Operand::Own(value)) => results.push(Some(value)),
        _ => {
            for target in targets {
                let needed = target.as_ref().is_some_and(is_whole);
                results.push(needed.then(|| Value::any(copied(shape))));
            }
        }
    }
    // A broadcast operand is materialized first: otherwise all threads would wait for the first reader.
    let broadcast =
        reals.iter().filter_map(Operand::get).filter(|value| !same(value.shape(), shape));
    broadcast.for_each(Value::materialize);
    let work = Work { shape, reals, masks, targets, formula, over };
    // The sums of all chunks are stored together, so their number is limited.
    let sums = targets.iter().flatten().filter(|target| !is_whole(target));
    let sums: usize = sums.map(|target| count(target)).sum();
    let chunk = if sums > CHUNK / 4 { len } else { CHUNK };
    let sums = {
        let mut outputs: SmallVec<[&mut [T]; 2]> = SmallVec::new();
        for result in &mut results {
            outputs.push(result.as_mut().and_then(Value::as_mut_slice).unwrap_or_default());
        }
        match len <= chunk {
            true => work.run(0, len, &mut outputs),
            false => work.shared(len, chunk, outputs),
        }
    };
    for (k, sums) in sums.into_iter().enumerate() {
        if let (Some(sums), Some(target)) = (sums, &targets[k]) {
            results[k] = Some(Value::from_vec(copied(target), sums.finish()));
        }
    }
    results
}

/// The result if every operand is uniform: one number, broadcast.
fn uniform<T: Storable>(
    shape: &[usize],
    reals: &[Operand<'_, T>],
    formula: &dyn Formula<T>,
) -> Option<Value<T>> {
    if fits_inline::<T>(count(shape)) {
        return None;
    }
    let mut numbers: SmallVec<[T; 4]> = SmallVec::new();
    for x in reals {
        numbers.push(x.get().map_or(Some(T::ZERO), Value::uniform)?);
    }
    let operands: SmallVec<[&[T]; 4]> = numbers.iter().map(std::slice::from_ref).collect();
    let mut result = [T::ZERO];
    run_block(formula, [1; 2], &operands, &[], &mut result);
    Some(Value::scalar(result[0]).broadcast_to(shape))
}

/// The deferred result of a cheap function of a large operand and, if there is a second operand, a number.
fn deferred<T: Storable + Math>(
    shape: &[usize],
    reals: &mut [Operand<'_, T>],
    formula: &dyn Formula<T>,
) -> Option<Value<T>> {
    let function = formula.cheap()?;
    let is_large = |x: &Value<T>| same(x.shape(), shape) && x.can_defer();
    let at = reals.iter().position(|x| x.get().is_some_and(is_large))?;
    let number = match reals {
        [_] => T::ZERO,
        [a, b] => if at == 0 { b } else { a }.get()?.uniform()?,
        _ => return None,
    };
    let value = match std::mem::replace(&mut reals[at], Operand::Absent) {
        Operand::Own(value) => value,
        Operand::Ref(value) => value.clone(),
        Operand::Absent => return None,
    };
    Some(value.deferred(Step { function, at: at as u8, number }))
}

type AllSums<T> = SmallVec<[Option<Sums<T>>; 1]>;

struct Work<'a, T: Storable> {
    shape: &'a [usize],
    reals: &'a [Operand<'a, T>],
    masks: &'a [Cow<'a, Value<bool>>],
    targets: &'a [Option<Shape>],
    formula: &'a dyn Formula<T>,
    /// The operand that the result overwrites; its data is in the result's buffer.
    over: Option<usize>,
}

impl<T: Storable + Math> Work<'_, T> {
    /// Runs all chunks, on threads if that pays.
    fn shared(&self, len: usize, chunk: usize, outputs: SmallVec<[&mut [T]; 2]>) -> AllSums<T> {
        type Part<'a, T> = (SmallVec<[&'a mut [T]; 2]>, AllSums<T>);
        let starts = || (0..len).step_by(chunk);
        let mut parts: Vec<Part<'_, T>> = starts().map(|_| Part::default()).collect();
        for mut rest in outputs {
            for ((outputs, _), start) in parts.iter_mut().zip(starts()) {
                let n = chunk.min(len - start).min(rest.len());
                outputs.push(rest.split_off_mut(..n).unwrap_or_default());
            }
        }
        each_chunk_of(len, &mut parts, 1, &|part, parts| {
            let (start, (outputs, sums)) = (part * chunk, &mut parts[0]);
            *sums = self.run(start, chunk.min(len - start), outputs);
        });
        let joined = parts.into_iter().map(|(_, sums)| sums).reduce(|mut all, sums| {
            for (all, sums) in all.iter_mut().zip(sums) {
                if let (Some(all), Some(sums)) = (all, sums) {
                    all.join(sums);
                }
            }
            all
        });
        joined.unwrap_or_default()
    }

    /// Computes `len` elements from `start` on; `outputs` are the slices of the results that are not summed.
    fn run(&self, start: usize, len: usize, outputs: &mut [&mut [T]]) -> AllSums<T> {
        let Self { shape, formula, .. } = *self;
        let mut feeds: SmallVec<[BlockReader<'_, T>; 4]> = SmallVec::new();
        for (k, operand) in self.reals.iter().enumerate() {
            let overwritten = self.over == Some(k);
            feeds.push(if overwritten {
                BlockReader::Slice(&[])
            } else {
                operand.feed(shape, start)
            });
        }
        let mut mask_feeds: SmallVec<[BlockReader<'_, bool>; 2]> = SmallVec::new();
        for mask in self.masks {
            mask_feeds.push(BlockReader::new(mask, shape, start));
        }
        let mut sums: AllSums<T> = SmallVec::new();
        for target in self.targets {
            let summed = target.as_ref().filter(|target| !same(target, shape));
            sums.push(summed.map(|target| Sums::new(target, shape, start)));
        }
        let direct = outputs.len() == 1 && !outputs[0].is_empty();
        let copies = self.over.is_some();
        // If nothing is copied to a block, the whole chunk is one block.
        let all_here = || feeds.iter().all(|feed| matches!(feed, BlockReader::Slice(_)));
        let stride = match direct && !copies && all_here() {
            true => len,
            false => block_of(outputs.len()),
        };
        let mut copy = Buffer::any(if copies { stride.min(len) } else { 0 });
        let mut buffer = Buffer::default();
        if !direct {
            let each = if outputs.len() == 1 { stride.min(len) } else { stride };
            buffer = Buffer::any(outputs.len() * each);
        }
        let mut scratch = Scratch::default();
        let mut at = 0;
        while at < len {
            let n = stride.min(len - at);
            feeds.iter_mut().for_each(|feed| feed.advance(n));
            mask_feeds.iter_mut().for_each(|feed| feed.advance(n));
            if copies {
                copy[..n].copy_from_slice(&outputs[0][at..at + n]);
            }
            let mut x: SmallVec<[&[T]; 4]> = SmallVec::new();
            for (k, feed) in feeds.iter().enumerate() {
                x.push(if self.over == Some(k) { &copy[..n] } else { feed.block(start + at, n) });
            }
            let mut m: SmallVec<[&[bool]; 2]> = SmallVec::new();
            mask_feeds.iter().for_each(|feed| m.push(feed.block(start + at, n)));
            let out = if direct { &mut outputs[0][at..at + n] } else { &mut buffer[..] };
            let scratch = &mut scratch;
            formula.compute(&mut Block { len: n, read: n, reals: &x, masks: &m, out, scratch });
            if !direct {
                for (k, (output, sums)) in outputs.iter_mut().zip(&mut sums).enumerate() {
                    let result = &buffer[k * stride..][..n];
                    match sums {
                        Some(sums) => sums.take(result),
                        // The result is not wanted, or has the full shape.
                        None if output.is_empty() => {}
                        None => output[at..at + n].copy_from_slice(result),
                    }
                }
            }
            at += n;
        }
        sums
    }
}
