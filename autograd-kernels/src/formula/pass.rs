//! One pass over memory: a formula over values of any layout, broadcast to one shape.
//!
//! The result is made block by block. What lies row-major is read where it is; anything else is
//! gathered into a block-sized buffer first. A result is written where it belongs, or summed
//! where it is wanted in a smaller shape: the gradient of an input that was broadcast, the sum of a
//! loss. Large passes are cut into chunks, which threads share; their sums are summed in order,
//! so figures do not depend on the threads.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use super::program::{Program, Written};
use super::sums::Sums;
use crate::array::buffer::Buffer;
use crate::array::deferred::{PIECE, Steps};
use crate::array::elementwise::Arg;
use crate::array::feed::Feed;
use crate::array::math::Math;
use crate::array::shape::copied;
use crate::array::threads::{each_grain, each_of};
use crate::array::{Shape, Storable, Value};

/// Elements a block of a formula with so many results: a few KiB an operand, so that blocks stay in
/// the first cache.
pub const fn block_of(outputs: usize) -> usize {
    if outputs == 1 { 2048 } else { 512 }
}

/// Elements a block that is written over, of which there is a copy beside it: while one block is written
/// the next ones are read, if they are short.
const OVER: usize = 512;

/// Elements a chunk, which one thread computes.
const CHUNK: usize = 16 * 1024;

/// What a pass computes, whatever it is made of.
pub trait Formula<T: Storable>: Written + Send + Sync {
    /// How many results there are.
    fn outputs(&self) -> usize;
    /// Computes a block; true where an angle was beyond what the formula takes: then the block is
    /// to be computed by [`program`](Written::program).
    fn run(&self, block: &mut Block<'_, T>) -> bool;
    /// A formula of one result over operands that stand inline, with their unused rest; `before` is the one
    /// before the last, if it reads two. True where it could not, or met such an angle: then what is in `out`
    /// is of no use.
    fn run_inline(
        &self,
        _before: Option<&T::Inline>,
        _last: &T::Inline,
        _out: &mut T::Inline,
    ) -> bool {
        true
    }
}

/// The buffers of a program while it runs.
pub struct Scratch<T: Storable> {
    pub(super) numbers: Vec<Buffer<T>>,
    pub(super) masks: Vec<Buffer<bool>>,
}

/// Of a program that did not run yet.
impl<T: Storable> Default for Scratch<T> {
    fn default() -> Self {
        Self { numbers: Vec::new(), masks: Vec::new() }
    }
}

/// A block of operands and results.
pub struct Block<'a, T: Storable> {
    pub(super) len: usize,
    pub(super) reals: &'a [&'a [T]],
    pub(super) masks: &'a [&'a [bool]],
    /// Where the results go, [`block_of`] their number apart.
    pub(super) out: &'a mut [T],
    pub(super) scratch: &'a mut Scratch<T>,
}

/// A formula on its way through the blocks of a pass, of which the first is the longest.
pub struct Running<'f, T: Storable> {
    formula: &'f dyn Formula<T>,
    scratch: Scratch<T>,
    /// What computes the blocks with angles that the formula does not take.
    program: Option<Box<(Program, Scratch<T>)>>,
}

impl<'f, T: Storable + Math> Running<'f, T> {
    pub fn new(formula: &'f dyn Formula<T>) -> Self {
        Self { formula, scratch: Scratch::default(), program: None }
    }

    /// Computes a block. The results stand [`block_of`] their number apart.
    pub fn block(&mut self, len: usize, reals: &[&[T]], masks: &[&[bool]], out: &mut [T]) {
        let Self { formula, scratch, program } = self;
        if formula.run(&mut Block { len, reals, masks, out, scratch }) {
            let again =
                program.get_or_insert_with(|| Box::new((formula.program(), Scratch::default())));
            let (program, scratch) = &mut **again;
            program.run(&mut Block { len, reals, masks, out, scratch });
        }
    }
}

/// A formula over one block of `len` elements, without a pass. There are `padded` in the operands, and
/// room for as many results: then whole vectors are computed. Results stand `block_of` their number
/// apart.
pub fn run_block<T: Storable + Math>(
    formula: &dyn Formula<T>,
    [len, padded]: [usize; 2],
    reals: &[&[T]],
    masks: &[&[bool]],
    out: &mut [T],
) {
    let mut scratch = Scratch::default();
    let mut block = Block { len: padded, reals, masks, out, scratch: &mut scratch };
    if !formula.run(&mut block) {
        return;
    }
    // What stands beyond the length may be anything, also an angle that is too large.
    block.len = len;
    if formula.run(&mut block) {
        *block.scratch = Scratch::default();
        formula.program().run(&mut block);
    }
}

/// A formula of one result over a row-major operand, written over it; `before` is the operand
/// before, where there is one. Both may be longer than `len`, as in [`run_block`].
pub fn run_over<T: Storable + Math>(
    formula: &dyn Formula<T>,
    len: usize,
    before: Option<&[T]>,
    data: &mut [T],
) {
    let inline = T::Inline::try_from(data).ok();
    if let Some(copy) = inline {
        return run_one(formula, len, before, copy.as_ref(), data);
    }
    each_grain(&mut data[..len], &|start, part| {
        let mut copy = Buffer::any(OVER.min(part.len()));
        for (index, block) in part.chunks_mut(OVER).enumerate() {
            let copy = &mut copy[..block.len()];
            copy.copy_from_slice(block);
            let start = start + index * OVER;
            let before = before.map(|x| &x[start..start + block.len()]);
            run_one(formula, block.len(), before, copy, block);
        }
    });
}

/// A formula of one result over a row-major operand, or two, of one length, written elsewhere.
pub fn run_onto<T: Storable + Math>(
    formula: &dyn Formula<T>,
    before: Option<&[T]>,
    x: &[T],
    out: &mut [T],
) {
    each_grain(out, &|start, part| {
        for (index, block) in part.chunks_mut(CHUNK).enumerate() {
            let start = start + index * CHUNK;
            let here = start..start + block.len();
            run_one(formula, block.len(), before.map(|x| &x[here.clone()]), &x[here], block);
        }
    });
}

fn run_one<T: Storable + Math>(
    formula: &dyn Formula<T>,
    len: usize,
    before: Option<&[T]>,
    x: &[T],
    out: &mut [T],
) {
    let lengths = [len, out.len()];
    match before {
        Some(before) => run_block(formula, lengths, &[before, x], &[], out),
        None => run_block(formula, lengths, &[x], &[], out),
    }
}

/// An operand of a pass.
pub enum Operand<'a, T: Storable> {
    Ref(&'a Value<T>),
    /// One whose buffer may be written.
    Own(Value<T>),
    /// One that no result depends on.
    Absent,
}

impl<'a, T: Storable> From<Arg<'a, T>> for Operand<'a, T> {
    fn from(operand: Arg<'a, T>) -> Self {
        match operand {
            Arg::Own(value) => Self::Own(value),
            Arg::Ref(value) => Self::Ref(value),
        }
    }
}

impl<T: Storable> Operand<'_, T> {
    fn will_be_read(&self, shape: &[usize]) {
        match self {
            Self::Ref(value) => value.will_be_read(shape),
            Self::Own(value) => value.will_be_read(shape),
            Self::Absent => {}
        }
    }

    /// Its blocks from element `start` on.
    fn feed(&self, shape: &[usize], start: usize) -> Feed<'_, T> {
        match self {
            Self::Ref(value) => Feed::new(value, shape, start),
            Self::Own(value) => Feed::new(value, shape, start),
            Self::Absent => Feed::Same(Buffer::default(), T::ZERO),
        }
    }
}

/// Runs a formula over operands broadcast to `shape`. Result `k` comes in the shape `targets[k]`,
/// from which `shape` is broadcast: summed where it is smaller; not at all if that is `None`.
pub fn pass<T: Storable + Math>(
    shape: &[usize],
    mut reals: SmallVec<[Operand<'_, T>; 4]>,
    masks: &[&Value<bool>],
    targets: &[Option<Shape>],
    formula: &dyn Formula<T>,
) -> SmallVec<[Option<Value<T>>; 1]> {
    let len: usize = shape.iter().product();
    let whole = |target: &Option<Shape>| matches!(target, Some(target) if target[..] == *shape);
    // The only result is written over an operand that nobody else holds.
    let (mut over, mut steps) = (None, Steps::none());
    if formula.outputs() == 1 && whole(&targets[0]) {
        over = reals.iter_mut().enumerate().find_map(|(k, operand)| {
            let Operand::Own(value) = operand else { return None };
            if value.shape() != shape {
                return None;
            }
            steps = value.take_steps()?;
            Some((k, std::mem::replace(value, Value::scalar(T::ZERO))))
        });
    }
    reals.iter().for_each(|operand| operand.will_be_read(shape));
    let place = |target| {
        let needed = over.is_none() && whole(target);
        needed.then(|| Value::written(copied(shape), |_| {}))
    };
    let mut fresh: SmallVec<[Option<Value<T>>; 2]> = targets.iter().map(place).collect();
    let place = over.as_ref().map(|(k, _)| (*k, &steps));
    let work = Work { shape, reals: &reals, masks, targets, formula, over: place };
    // The sums of all chunks are stored side by side, so their number is limited.
    let sums = targets.iter().flatten().filter(|target| target[..] != *shape);
    let sums: usize = sums.map(|target| target.iter().product::<usize>()).sum();
    let chunk = if sums > CHUNK / 4 { len } else { CHUNK };
    let sums = {
        let outputs = fresh.iter_mut().map(|value| value.as_mut()?.as_mut_slice());
        let mut outputs: SmallVec<[&mut [T]; 2]> = outputs.map(Option::unwrap_or_default).collect();
        if let Some(data) = over.as_mut().and_then(|(_, value)| value.as_mut_slice()) {
            outputs[0] = data;
        }
        match len <= chunk {
            true => work.run(0, len, &mut outputs),
            false => work.shared(len, chunk, outputs),
        }
    };
    if let Some((_, value)) = over {
        return SmallVec::from_iter([Some(value)]);
    }
    let results = fresh.into_iter().zip(sums).zip(targets);
    results
        .map(|((fresh, sums), target)| {
            let target = target.as_ref()?;
            match sums {
                Some(sums) => Some(Value::from_vec(copied(target), sums.finish())),
                None => fresh,
            }
        })
        .collect()
}

/// The sums of each result that is summed.
type AllSums<T> = SmallVec<[Option<Sums<T>>; 1]>;

/// What every chunk of a pass needs.
struct Work<'a, T: Storable> {
    shape: &'a [usize],
    reals: &'a [Operand<'a, T>],
    masks: &'a [&'a Value<bool>],
    targets: &'a [Option<Shape>],
    formula: &'a dyn Formula<T>,
    /// The operand that the result is written over, and what is to be computed over it before: it
    /// stands where the result will.
    over: Option<(usize, &'a Steps<T>)>,
}

impl<T: Storable + Math> Work<'_, T> {
    /// Chunk by chunk, on threads where that pays.
    fn shared(&self, len: usize, chunk: usize, outputs: SmallVec<[&mut [T]; 2]>) -> AllSums<T> {
        struct Part<'a, T> {
            outputs: SmallVec<[&'a mut [T]; 2]>,
            sums: AllSums<T>,
        }
        let parts = || (0..len).step_by(chunk);
        let mut lots: Vec<_> =
            parts().map(|_| Part { outputs: SmallVec::new(), sums: SmallVec::new() }).collect();
        for output in outputs {
            let mut rest = output;
            for (part, start) in lots.iter_mut().zip(parts()) {
                let n = chunk.min(len - start).min(rest.len());
                let (first, others) = std::mem::take(&mut rest).split_at_mut(n);
                part.outputs.push(first);
                rest = others;
            }
        }
        let lots: Vec<_> = lots.into_iter().map(Mutex::new).collect();
        each_of(len, lots.len(), &|part| {
            let start = part * chunk;
            let mut lot = lots[part].lock().unwrap_or_else(PoisonError::into_inner);
            lot.sums = self.run(start, chunk.min(len - start), &mut lot.outputs);
        });
        let sums =
            |lot: Mutex<Part<'_, T>>| lot.into_inner().unwrap_or_else(PoisonError::into_inner).sums;
        let joined = lots.into_iter().map(sums).reduce(|mut all, sums| {
            for (all, sums) in
                all.iter_mut().zip(sums).filter_map(|(all, sums)| all.as_mut().zip(sums))
            {
                all.join(sums);
            }
            all
        });
        joined.unwrap_or_default()
    }

    /// `len` elements from `start` on; `outputs` are the places of those results that are not added
    /// up.
    fn run(&self, start: usize, len: usize, outputs: &mut [&mut [T]]) -> AllSums<T> {
        let Self { shape, formula, .. } = *self;
        let reals = self.reals.iter().enumerate();
        let feeds = reals.map(|(k, operand)| match self.over {
            Some((over, steps)) if over == k => Feed::Over(Buffer::default(), Some(steps)),
            _ => operand.feed(shape, start),
        });
        let mut feeds: SmallVec<[Feed<'_, T>; 4]> = feeds.collect();
        let masks = self.masks.iter().map(|mask| Feed::new(mask, shape, start));
        let mut mask_feeds: SmallVec<[Feed<'_, bool>; 2]> = masks.collect();
        let mut sums: AllSums<T> = self
            .targets
            .iter()
            .map(|target| match target {
                Some(target) if target[..] != *shape => Some(Sums::new(target, shape, start)),
                _ => None,
            })
            .collect();
        let direct = outputs.len() == 1 && !outputs[0].is_empty();
        let deferred = feeds.iter().any(|feed| matches!(feed, Feed::Deferred(..)));
        let stride = match self.over {
            Some(_) => OVER,
            None if deferred && outputs.len() == 1 => PIECE,
            None => block_of(outputs.len()),
        };
        let mut buffer = Buffer::default();
        if !direct {
            let each = if outputs.len() == 1 { stride.min(len) } else { stride };
            buffer = Buffer::any(outputs.len() * each);
        }
        let mut running = Running::new(formula);
        let mut at = 0;
        while at < len {
            let n = stride.min(len - at);
            if let Some((k, _)) = self.over {
                feeds[k].copy(&outputs[0][at..at + n]);
            }
            feeds.iter_mut().for_each(|feed| feed.advance(n));
            mask_feeds.iter_mut().for_each(|feed| feed.advance(n));
            let x: SmallVec<[&[T]; 4]> =
                feeds.iter().map(|feed| feed.block(start + at, n)).collect();
            let m: SmallVec<[&[bool]; 2]> =
                mask_feeds.iter().map(|feed| feed.block(start + at, n)).collect();
            let out = if direct { &mut outputs[0][at..at + n] } else { &mut buffer[..] };
            running.block(n, &x, &m, out);
            if !direct {
                for (k, (output, sums)) in outputs.iter_mut().zip(&mut sums).enumerate() {
                    let result = &buffer[k * stride..][..n];
                    match sums {
                        Some(sums) => sums.take(result),
                        // Nobody wants it, or it is as large as the whole.
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
