//! A chain's pass: block by block, and on threads chunk by chunk.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use super::blocks::{Block, Input, Item, Lengths, Operand, Whole, fix, for_dtype};
use super::kernels::{Number, cast, choose, compare};
use super::{Chain, Code, Link, Linked, Panicked, Source};
use crate::array::threads::each_of;
use crate::array::{DType, Shape, Storable, Value};
use crate::formula::{Running, Sums, block_of};
use crate::graph::{AnyTensor, Tensor};

/// Elements a chunk, which one thread computes: a whole number of blocks.
const CHUNK: usize = 16 * 1024;

/// The sums of a result.
enum AnySums {
    Float32(Sums<f32>),
    Float64(Sums<f64>),
}

impl AnySums {
    fn new(dtype: DType, target: &[usize], shape: &[usize], start: usize) -> Option<Box<Self>> {
        match dtype {
            DType::Float32 => Some(Box::new(Self::Float32(Sums::new(target, shape, start)))),
            DType::Float64 => Some(Box::new(Self::Float64(Sums::new(target, shape, start)))),
            _ => None,
        }
    }

    fn take(&mut self, block: &Block<'_>, part: std::ops::Range<usize>) {
        match self {
            Self::Float32(sums) => sums.take(&f32::read(block)[part]),
            Self::Float64(sums) => sums.take(&f64::read(block)[part]),
        }
    }

    fn join(&mut self, next: Self) {
        match (self, next) {
            (Self::Float32(sums), Self::Float32(next)) => sums.join(next),
            (Self::Float64(sums), Self::Float64(next)) => sums.join(next),
            _ => unreachable!("a result has one type"),
        }
    }

    fn finish(self, shape: Shape) -> AnyTensor {
        match self {
            Self::Float32(sums) => Tensor::new(Value::from_vec(shape, sums.finish())).into(),
            Self::Float64(sums) => Tensor::new(Value::from_vec(shape, sums.finish())).into(),
        }
    }
}

/// Of each result that is asked for, if it is added up.
type AllSums = SmallVec<[Option<Box<AnySums>>; 2]>;

impl Chain {
    /// How many elements are computed at once where results are added up to these shapes, as the
    /// passes of their links alone would; none where these differ.
    pub(crate) fn chunk(&self, shape: &[usize], targets: &[Option<Shape>]) -> Option<usize> {
        let mut parts: SmallVec<[(usize, usize); 2]> = SmallVec::new();
        for (ask, target) in self.asked.iter().zip(targets) {
            let Some(target) = target.as_ref().filter(|target| target[..] != *shape) else {
                continue;
            };
            let (link, len) = (self.link_of(ask.result), target.iter().product());
            match parts.iter_mut().find(|(other, _)| *other == link) {
                Some((_, sum)) => *sum += len,
                None => parts.push((link, len)),
            }
        }
        let great = parts.iter().filter(|(_, sum)| *sum > CHUNK / 4).count();
        match great {
            0 => Some(CHUNK),
            _ if great == parts.len() => Some(shape.iter().product()),
            _ => None,
        }
    }

    /// The results that were asked for, of `shape`, to which every operand can be stretched, or added
    /// up to their `targets`. The first may be written over the first operand, where `over` says so
    /// and nobody else holds that; others to the places of `into`.
    pub(crate) fn run(
        &self,
        (shape, chunk): (&[usize], usize),
        mut operands: SmallVec<[AnyTensor; 4]>,
        over: bool,
        into: SmallVec<[Option<AnyTensor>; 2]>,
        targets: &[Option<Shape>],
    ) -> Result<SmallVec<[AnyTensor; 2]>, Panicked> {
        let is_whole = |k: usize| targets[k].as_ref().is_none_or(|target| target[..] == *shape);
        let dtype = |k: usize| self.results[self.asked[k].result].0;
        let mut own = None;
        if over && !self.asked.is_empty() && is_whole(0) && dtype(0) == self.operands[0] {
            own = Whole::of(&mut operands[0], shape);
        }
        let is_over = own.is_some();
        operands.iter_mut().for_each(fix);
        let whole = |(k, into): (usize, Option<AnyTensor>)| match own.take() {
            Some(own) => own,
            None if is_whole(k) => Whole::new(dtype(k), shape, into),
            None => Whole::new(dtype(k), &[0], None),
        };
        let mut values: SmallVec<[Whole; 2]> = into.into_iter().enumerate().map(whole).collect();
        let failed = AtomicUsize::new(0);
        let sums = {
            let read = operands.iter().map(|operand| Operand::new(operand, shape));
            let read: SmallVec<[Operand<'_>; 4]> = read.collect();
            let pass = Pass {
                chain: self,
                shape,
                operands: &read,
                targets,
                over: is_over,
                failed: &failed,
            };
            let outputs = values.iter_mut().map(Whole::block).collect();
            let len = shape.iter().product();
            catch_unwind(AssertUnwindSafe(|| pass.run(len, chunk, outputs)))
        };
        let sums =
            sums.map_err(|panic| Panicked { link: failed.load(Ordering::Relaxed), panic })?;
        let results = values.into_iter().zip(sums).zip(targets);
        Ok(results
            .map(|((value, sums), target)| match (sums, target) {
                (Some(sums), Some(target)) => sums.finish(target.clone()),
                _ => value.tensor(),
            })
            .collect())
    }
}

/// What every chunk of a pass needs.
struct Pass<'a> {
    chain: &'a Chain,
    shape: &'a [usize],
    operands: &'a [Operand<'a>],
    targets: &'a [Option<Shape>],
    /// Whether the first operand stands where the first output will.
    over: bool,
    /// The link that panicked.
    failed: &'a AtomicUsize,
}

/// Leaves where it was dropped in a panic.
struct At<'a> {
    link: Cell<usize>,
    failed: &'a AtomicUsize,
}

impl Drop for At<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.failed.store(self.link.get(), Ordering::Relaxed);
        }
    }
}

/// A formula of either type on its way; none of a link that has none.
enum Formulas<'f> {
    Float32(Running<'f, f32>),
    Float64(Running<'f, f64>),
    None,
}

impl Pass<'_> {
    /// Chunk by chunk, on threads where that pays.
    fn run(&self, len: usize, chunk: usize, mut outputs: SmallVec<[Block<'_>; 2]>) -> AllSums {
        if len <= chunk {
            return self.part(0, len, &mut outputs);
        }
        type Lot<'a> = (SmallVec<[Block<'a>; 2]>, AllSums);
        let mut rests = outputs;
        let mut lots: Vec<Mutex<Lot<'_>>> = Vec::with_capacity(len.div_ceil(chunk));
        for _ in (0..len).step_by(chunk) {
            let split = std::mem::take(&mut rests).into_iter().map(|block| block.split(chunk));
            let (first, others): (SmallVec<[_; 2]>, _) = split.map(|[a, b]| (a, b)).unzip();
            rests = others;
            lots.push(Mutex::new((first, AllSums::new())));
        }
        each_of(len, lots.len(), &|part| {
            let start = part * chunk;
            let mut lot = lots[part].lock().unwrap_or_else(PoisonError::into_inner);
            let (outputs, sums) = &mut *lot;
            *sums = self.part(start, chunk.min(len - start), outputs);
        });
        let sums = |lot: Mutex<Lot<'_>>| lot.into_inner().unwrap_or_else(PoisonError::into_inner).1;
        let joined = lots.into_iter().map(sums).reduce(|mut all, sums| {
            for (all, sums) in
                all.iter_mut().zip(sums).filter_map(|(all, sums)| all.as_mut().zip(sums))
            {
                all.join(*sums);
            }
            all
        });
        joined.unwrap_or_default()
    }

    /// The `len` elements from `start` on; whole results stand in `outputs`.
    fn part(&self, start: usize, len: usize, outputs: &mut [Block<'_>]) -> AllSums {
        let Self { chain, shape, operands, targets, over, failed } = *self;
        let used = |operand: usize| chain.reads[operand];
        let feeds = operands.iter().enumerate().map(|(operand, value)| match operand {
            0 if over => value.copies(),
            _ if used(operand) => value.feed(shape, start),
            _ => value.copies(),
        });
        let mut feeds: SmallVec<[Input<'_>; 4]> = feeds.collect();
        let mut running: SmallVec<[Formulas<'_>; 8]> = chain
            .links
            .iter()
            .map(|link| match &link.code {
                Code::Float32(of) => Formulas::Float32(Running::new(of.formula())),
                Code::Float64(of) => Formulas::Float64(Running::new(of.formula())),
                _ => Formulas::None,
            })
            .collect();
        let mut sums: AllSums = (chain.asked.iter().zip(targets))
            .map(|(ask, target)| match target {
                Some(target) if target[..] != *shape => {
                    AnySums::new(chain.results[ask.result].0, target, shape, start)
                }
                _ => None,
            })
            .collect();
        let block = chain.block;
        let mut lengths = Lengths::default();
        chain.registers.iter().for_each(|dtype| lengths.add(*dtype, block));
        lengths.add(DType::Float32, chain.wide[0]);
        lengths.add(DType::Float64, chain.wide[1]);
        lengths.with_room(|mut room| {
            let mut registers: SmallVec<[Block<'_>; 8]> =
                chain.registers.iter().map(|dtype| room.take(*dtype, block)).collect();
            let (wide32, wide64) = (room.f32s, room.f64s);
            let at = At { link: Cell::new(0), failed };
            for from in (0..len).step_by(block) {
                let n = block.min(len - from);
                if over && used(0) {
                    feeds[0].copy(&outputs[0].part(from, from + n));
                }
                feeds.iter_mut().for_each(|feed| feed.advance(n));
                let registers = registers.iter_mut().map(|register| register.part(0, n));
                let outputs = outputs.iter_mut().map(|output| output.part(from, from + n));
                let mut buffers: SmallVec<[Block<'_>; 8]> = registers.chain(outputs).collect();
                let mut now = Now {
                    chain,
                    feeds: &feeds,
                    start: start + from,
                    len: n,
                    buffers: &mut buffers,
                };
                for ((k, link), running) in chain.links.iter().enumerate().zip(&mut running) {
                    at.link.set(k);
                    match running {
                        Formulas::Float32(running) => now.formula(link, running, wide32),
                        Formulas::Float64(running) => now.formula(link, running, wide64),
                        Formulas::None => now.link(link),
                    }
                }
                now.add_up(&mut sums);
            }
        });
        sums
    }
}

/// A block that is computed.
struct Now<'a, 'b> {
    chain: &'a Chain,
    feeds: &'a [Input<'a>],
    /// Its first element in the whole, and its length.
    start: usize,
    len: usize,
    /// The registers, and then the outputs.
    buffers: &'a mut [Block<'b>],
}

impl<'b> Now<'_, 'b> {
    fn read<T: Item>(&self, source: Source) -> &[T] {
        match source {
            Source::Operand(operand) => T::fed(&self.feeds[operand]).block(self.start, self.len),
            Source::Result(result) => match self.chain.buffer(result) {
                Some(buffer) => T::read(&self.buffers[buffer]),
                None => unreachable!("what is read has a place"),
            },
        }
    }

    /// Shows where a result is written, if anybody reads it.
    fn write<T: Item>(&mut self, result: usize, run: impl FnOnce(&Self, &mut [T])) {
        let Some(buffer) = self.chain.buffer(result) else { return };
        let out: &'b mut [T] = T::take(&mut self.buffers[buffer]);
        run(self, out);
        self.buffers[buffer] = T::block(out);
    }

    /// A link without a formula.
    fn link(&mut self, link: &Link) {
        let dtype = |at: usize| self.chain.dtype(link.reads[at]);
        match link.code {
            Code::Binary(_) | Code::Scalar { .. } => match dtype(0) {
                DType::Float32 => self.arithmetic::<f32>(link),
                DType::Float64 => self.arithmetic::<f64>(link),
                DType::Int32 => self.arithmetic::<i32>(link),
                DType::Int64 => self.arithmetic::<i64>(link),
                DType::UInt8 => self.arithmetic::<u8>(link),
                DType::Bool => unreachable!("masks have no arithmetic"),
            },
            Code::Fill(dtype, ones) => for_dtype!(dtype, T => {
                self.write(link.first, |_, out: &mut [T]| {
                    out.fill(if ones { T::ONE } else { T::ZERO });
                });
            }),
            Code::Compare(test) => for_dtype!(dtype(0), T => {
                self.write(link.first, |now, out| {
                    let [a, b] = [0, 1].map(|at| now.read::<T>(link.reads[at]));
                    compare(test, out, a, b);
                });
            }),
            Code::Where => match dtype(1) {
                DType::Float32 => self.choose::<f32>(link),
                DType::Float64 => self.choose::<f64>(link),
                _ => unreachable!("a choice is of floats"),
            },
            Code::Cast(to) => for_dtype!(dtype(0), T => self.cast::<T>(link, to)),
            Code::Float32(_) | Code::Float64(_) => unreachable!("it has a formula"),
        }
    }

    fn choose<T: Item>(&mut self, link: &Link) {
        self.write(link.first, |now, out| {
            let [on, off] = [1, 2].map(|at| now.read::<T>(link.reads[at]));
            choose(out, now.read(link.reads[0]), on, off);
        });
    }

    fn cast<T: Item>(&mut self, link: &Link, to: DType) {
        for_dtype!(to, U => {
            self.write(link.first, |now, out: &mut [U]| cast(out, now.read::<T>(link.reads[0])));
        });
    }

    fn arithmetic<T: Number>(&mut self, link: &Link) {
        let chain = self.chain;
        let buffer = chain.buffer(link.first);
        // What it is written over stands there already.
        let is_over = |at: usize| match link.reads[at] {
            Source::Operand(_) => false,
            Source::Result(result) => chain.buffer(result) == buffer,
        };
        self.write(link.first, |now, out: &mut [T]| {
            let read = |at: usize| now.read::<T>(link.reads[at]);
            match link.code {
                Code::Binary(op) => {
                    let [f, exchanged] = T::zips(op);
                    match (is_over(0), is_over(1)) {
                        (true, _) => f.run(out, read(1)),
                        (_, true) => exchanged.run(out, read(0)),
                        _ => f.run_onto(out, read(0), read(1)),
                    }
                }
                Code::Scalar { op, scalar, swapped } => {
                    let (f, scalar) = (T::zips(op)[usize::from(swapped)], T::nearest(scalar));
                    match is_over(0) {
                        true => f.run_scalar(out, scalar),
                        false => f.run_scalar_onto(out, read(0), scalar),
                    }
                }
                _ => unreachable!("it is arithmetic"),
            }
        });
    }

    fn formula<T: Linked + Item>(
        &mut self,
        link: &Link,
        running: &mut Running<'_, T>,
        wide: &mut [T],
    ) {
        let chain = self.chain;
        let is_real = |source: &Source| chain.dtype(*source) == T::DTYPE;
        let (reals, masks) = link.reads.split_at(link.reads.partition_point(is_real));
        let results = link.code.results();
        if results == 1 {
            return self.write(link.first, |now, out| {
                let reals: SmallVec<[&[T]; 3]> = reals.iter().map(|&x| now.read(x)).collect();
                let masks: SmallVec<[&[bool]; 2]> = masks.iter().map(|&x| now.read(x)).collect();
                running.block(now.len, &reals, &masks, out);
            });
        }
        // Its results stand in one buffer, in blocks of a length of their own.
        let stride = block_of(results);
        for start in (0..self.len).step_by(stride) {
            let part = start..self.len.min(start + stride);
            let read = |&x: &Source| &self.read::<T>(x)[part.clone()];
            let reals: SmallVec<[&[T]; 3]> = reals.iter().map(read).collect();
            let read = |&x: &Source| &self.read::<bool>(x)[part.clone()];
            let masks: SmallVec<[&[bool]; 2]> = masks.iter().map(read).collect();
            running.block(part.len(), &reals, &masks, &mut wide[..results * stride]);
            drop((reals, masks));
            for k in 0..results {
                self.write(link.first + k, |_, out| {
                    out[part.clone()].copy_from_slice(&wide[k * stride..][..part.len()]);
                });
            }
        }
    }

    /// Adds up what is asked for in a smaller shape.
    fn add_up(&mut self, sums: &mut AllSums) {
        let chain = self.chain;
        for (k, ask) in chain.asked.iter().enumerate().filter(|(_, ask)| ask.sums) {
            let Some(register) = chain.buffer(ask.result) else { continue };
            let (before, outputs) = self.buffers.split_at_mut(chain.registers.len());
            let Some(sums) = &mut sums[k] else {
                outputs[k].copy(&before[register]);
                continue;
            };
            let step = chain.block_of(ask.result);
            for start in (0..self.len).step_by(step) {
                sums.take(&before[register], start..self.len.min(start + step));
            }
        }
    }
}
