//! Functions of each element that read each other's results, in one pass over memory: each block
//! goes through all of them while it is in the first cache, and every result that is asked for is
//! written. The kernels are those of the ops, so the figures are too.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use super::binary::kernels;
use super::elementwise::Handle;
use super::rules::{Target, place};
use super::{Binary, Float};
use crate::array::feed::Feed;
use crate::array::shape::copied;
use crate::array::threads::each;
use crate::array::{Storable, Value};
use crate::formula::{Formula, Running, block_of};
use crate::graph::Tensor;

/// Elements a chunk, which one thread computes: a whole number of blocks.
const CHUNK: usize = 16 * 1024;
/// Elements a block, at most; a formula of one result takes so many at once.
const BLOCK: usize = 2048;
/// The blocks of all operands and results should fit into the first cache.
const CACHE: usize = 48 * 1024;

/// What a link reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// An operand of the chain, of its shape or stretched to it.
    Operand(usize),
    /// A result of an earlier link: results are counted through all links.
    Result(usize),
}

/// One function of a chain.
pub(crate) enum Code<T: Float> {
    /// The results of an op.
    Forward(Handle<T>),
    /// The gradients of an op's differentiable inputs, from what its compiled backward gets.
    Backward(Handle<T>),
    /// Of two operands.
    Binary(Binary),
    /// With a number on the right, or on the left where `swapped`.
    Scalar { op: Binary, scalar: T, swapped: bool },
    /// One number everywhere.
    Fill(T),
}

impl<T: Float> Code<T> {
    fn results(&self) -> usize {
        match self {
            Self::Forward(op) => op.info().outputs,
            Self::Backward(op) => op.info().differentiable.iter().filter(|wants| **wants).count(),
            Self::Binary(_) | Self::Scalar { .. } | Self::Fill(_) => 1,
        }
    }

    fn formula(&self) -> Option<&dyn Formula<T>> {
        match self {
            Self::Forward(op) => Some(op.forward()),
            Self::Backward(op) => op.compiled_backward(),
            Self::Binary(_) | Self::Scalar { .. } | Self::Fill(_) => None,
        }
    }

    /// Whether it can be written over what it reads.
    fn is_arithmetic(&self) -> bool {
        matches!(self, Self::Binary(_) | Self::Scalar { .. })
    }
}

struct Link<T: Float> {
    code: Code<T>,
    reads: SmallVec<[Source; 3]>,
    /// The first of its results.
    first: usize,
}

/// Where a block of a result stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nobody reads it.
    Nowhere,
    Register(usize),
    Output(usize),
}

/// See the [module](self).
pub(crate) struct Chain<T: Float> {
    links: Vec<Link<T>>,
    /// Of each result.
    places: Vec<Place>,
    registers: usize,
    outputs: usize,
    /// Which operands links read.
    reads: Vec<bool>,
    /// Room for the results of a formula that has several.
    wide: usize,
}

impl<T: Float> Chain<T> {
    /// Without links yet.
    pub(crate) fn new(operands: usize) -> Self {
        let (links, places) = (Vec::new(), Vec::new());
        Self { links, places, registers: 0, outputs: 0, reads: vec![false; operands], wide: 0 }
    }

    /// Adds a link; its results are those from the one that is returned on.
    pub(crate) fn link(&mut self, code: Code<T>, reads: &[Source]) -> usize {
        let (first, results) = (self.places.len(), code.results());
        for read in reads {
            if let Source::Operand(operand) = *read {
                self.reads[operand] = true;
            }
        }
        if results > 1 {
            self.wide = self.wide.max(results * block_of(results));
        }
        self.places.extend(std::iter::repeat_n(Place::Nowhere, results));
        self.links.push(Link { code, reads: SmallVec::from_slice(reads), first });
        first
    }

    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// Says which results are asked for, each once, and finds a place for each of them.
    pub(crate) fn finish(&mut self, outputs: &[usize]) {
        let mut last = vec![None; self.places.len()];
        for (at, link) in self.links.iter().enumerate() {
            for read in &link.reads {
                if let Source::Result(result) = *read {
                    last[result] = Some(at);
                }
            }
        }
        self.outputs = outputs.len();
        outputs.iter().enumerate().for_each(|(k, &result)| self.places[result] = Place::Output(k));
        let mut free = Vec::new();
        for (at, link) in self.links.iter().enumerate() {
            let mut dies: SmallVec<[usize; 3]> = SmallVec::new();
            for read in &link.reads {
                if let Source::Result(result) = *read
                    && let Place::Register(register) = self.places[result]
                    && last[result] == Some(at)
                    && !dies.contains(&register)
                {
                    dies.push(register);
                }
            }
            let distinct = link.reads.len() < 2 || link.reads[0] != link.reads[1];
            let over = dies.first().copied().filter(|_| distinct && link.code.is_arithmetic());
            let mut taken = None;
            let own = link.first..link.first + link.code.results();
            for (place, last) in self.places[own.clone()].iter_mut().zip(&last[own]) {
                if *place != Place::Nowhere || last.is_none() {
                    continue;
                }
                if over.is_some() {
                    taken = over;
                }
                let register = over.or_else(|| free.pop()).unwrap_or_else(|| {
                    self.registers += 1;
                    self.registers - 1
                });
                *place = Place::Register(register);
            }
            free.extend(dies.into_iter().filter(|register| taken != Some(*register)));
        }
    }

    /// The results that were asked for, all of `shape`, to which every operand can be stretched. The
    /// first may be written over the first operand, where `over` says so and nobody else holds that;
    /// others to the places of `into`.
    pub(crate) fn run(
        &self,
        shape: &[usize],
        mut operands: SmallVec<[Tensor<T>; 4]>,
        over: bool,
        into: SmallVec<[Target<T>; 2]>,
    ) -> SmallVec<[Tensor<T>; 2]> {
        let mut own = None;
        if over && self.outputs > 0 {
            let empty = Tensor::new(Value::scalar(T::ZERO));
            match std::mem::replace(&mut operands[0], empty).try_into_value() {
                Ok(mut value) => match value.shape() == shape && value.as_mut_slice().is_some() {
                    true => own = Some(value),
                    false => operands[0] = Tensor::new(value),
                },
                Err(tensor) => operands[0] = tensor,
            }
        }
        let is_over = own.is_some();
        let mut values: SmallVec<[Value<T>; 2]> = into
            .into_iter()
            .map(|into| own.take().unwrap_or_else(|| place(into).rewritten(copied(shape), |_| {})))
            .collect();
        let read: SmallVec<[_; 4]> = operands.iter().map(Tensor::read).collect();
        let operands: SmallVec<[&Value<T>; 4]> = read.iter().map(|read| &**read).collect();
        let pass = Pass { chain: self, shape, operands: &operands, over: is_over };
        let outputs = values.iter_mut().map(|value| match value.as_mut_slice() {
            Some(data) => data,
            None => unreachable!("it was made for this pass"),
        });
        shared(outputs.collect(), &|start, outputs| pass.part(start, outputs));
        values.into_iter().map(Tensor::new).collect()
    }

    /// Which of the buffers, registers and then outputs, a result is in.
    fn buffer(&self, result: usize) -> Option<usize> {
        match self.places[result] {
            Place::Nowhere => None,
            Place::Register(register) => Some(register),
            Place::Output(output) => Some(self.registers + output),
        }
    }
}

/// Chunk by chunk, on threads where that pays.
fn shared<T: Send>(
    mut outputs: SmallVec<[&mut [T]; 2]>,
    work: &(dyn Fn(usize, &mut [&mut [T]]) + Sync),
) {
    let len = outputs.first().map_or(0, |output| output.len());
    if len <= CHUNK {
        if len > 0 {
            work(0, &mut outputs);
        }
        return;
    }
    let mut rests: SmallVec<[_; 2]> =
        outputs.into_iter().map(|output| output.chunks_mut(CHUNK)).collect();
    let mut lot = || rests.iter_mut().map(|rest| rest.next().unwrap_or_default()).collect();
    let lots: Vec<Mutex<SmallVec<[&mut [T]; 2]>>> =
        (0..len.div_ceil(CHUNK)).map(|_| Mutex::new(lot())).collect();
    each(lots.len(), &|part| {
        work(part * CHUNK, &mut lots[part].lock().unwrap_or_else(PoisonError::into_inner));
    });
}

/// What every chunk of a pass needs.
struct Pass<'a, T: Float> {
    chain: &'a Chain<T>,
    shape: &'a [usize],
    operands: &'a [&'a Value<T>],
    /// Whether the first operand stands where the first output will.
    over: bool,
}

/// A block that is computed.
struct Now<'a, 'b, T: Storable> {
    feeds: &'a [Feed<'a, T>],
    /// Its first element in the whole, and its length.
    start: usize,
    len: usize,
    /// The registers, and then the outputs.
    buffers: &'a mut [&'b mut [T]],
}

impl<T: Float> Pass<'_, T> {
    /// The elements from `start` on that stand in `outputs`.
    fn part(&self, start: usize, outputs: &mut [&mut [T]]) {
        let Self { chain, shape, operands, over } = *self;
        let used = |operand: usize| chain.reads[operand];
        let feeds = operands.iter().enumerate().map(|(operand, value)| match operand {
            0 if over => Feed::Over(Vec::new()),
            _ if used(operand) => Feed::new(value, shape, start),
            _ => Feed::Over(Vec::new()),
        });
        let mut feeds: SmallVec<[Feed<'_, T>; 4]> = feeds.collect();
        let mut running: SmallVec<[Option<Running<'_, T>>; 8]> =
            chain.links.iter().map(|link| link.code.formula().map(Running::new)).collect();
        let room = chain.registers + chain.outputs + operands.len();
        let block = match CACHE / (room * size_of::<T>()) {
            BLOCK.. => BLOCK,
            1024.. => 1024,
            _ => 512,
        };
        let len = outputs[0].len();
        T::with_scratch(chain.registers * block + chain.wide, |scratch| {
            let (registers, wide) = scratch.split_at_mut(chain.registers * block);
            let mut at = 0;
            while at < len {
                let n = block.min(len - at);
                if over && used(0) {
                    feeds[0].copy(&outputs[0][at..at + n]);
                }
                feeds.iter_mut().for_each(|feed| feed.advance(n));
                let registers = registers.chunks_mut(block).map(|register| &mut register[..n]);
                let outputs = outputs.iter_mut().map(|output| &mut output[at..at + n]);
                let mut buffers: SmallVec<[&mut [T]; 8]> = registers.chain(outputs).collect();
                let mut now =
                    Now { feeds: &feeds, start: start + at, len: n, buffers: &mut buffers };
                for (link, running) in chain.links.iter().zip(&mut running) {
                    match running {
                        Some(running) => now.formula(chain, link, running, wide),
                        None => now.arithmetic(chain, link),
                    }
                }
                at += n;
            }
        });
    }
}

impl<T: Float> Now<'_, '_, T> {
    fn read(&self, chain: &Chain<T>, source: Source) -> &[T] {
        match source {
            Source::Operand(operand) => self.feeds[operand].block(self.start, self.len),
            Source::Result(result) => match chain.buffer(result) {
                Some(buffer) => &*self.buffers[buffer],
                None => unreachable!("what is read has a place"),
            },
        }
    }

    fn arithmetic(&mut self, chain: &Chain<T>, link: &Link<T>) {
        let Some(buffer) = chain.buffer(link.first) else { return };
        let out = std::mem::take(&mut self.buffers[buffer]);
        // What it is written over stands there already.
        let is_over = |at: usize| match link.reads[at] {
            Source::Operand(_) => false,
            Source::Result(result) => chain.buffer(result) == Some(buffer),
        };
        let read = |at: usize| self.read(chain, link.reads[at]);
        match &link.code {
            Code::Binary(op) => {
                let [f, exchanged] = kernels(*op);
                match (is_over(0), is_over(1)) {
                    (true, _) => f.run(out, read(1)),
                    (_, true) => exchanged.run(out, read(0)),
                    _ => f.run_onto(out, read(0), read(1)),
                }
            }
            Code::Scalar { op, scalar, swapped } => {
                let f = kernels(*op)[usize::from(*swapped)];
                match is_over(0) {
                    true => f.run_scalar(out, *scalar),
                    false => f.run_scalar_onto(out, read(0), *scalar),
                }
            }
            Code::Fill(element) => out.fill(*element),
            Code::Forward(_) | Code::Backward(_) => unreachable!("it has a formula"),
        }
        self.buffers[buffer] = out;
    }

    fn formula(
        &mut self,
        chain: &Chain<T>,
        link: &Link<T>,
        running: &mut Running<'_, T>,
        wide: &mut [T],
    ) {
        let results = link.code.results();
        let reals: SmallVec<[Source; 3]> = link.reads.clone();
        if results == 1 {
            let Some(buffer) = chain.buffer(link.first) else { return };
            let out = std::mem::take(&mut self.buffers[buffer]);
            let reals: SmallVec<[&[T]; 3]> = reals.iter().map(|&x| self.read(chain, x)).collect();
            running.block(self.len, &reals, &[], out);
            drop(reals);
            self.buffers[buffer] = out;
            return;
        }
        // Its results stand in one buffer, in blocks of a length of their own.
        let stride = block_of(results);
        for start in (0..self.len).step_by(stride) {
            let part = start..self.len.min(start + stride);
            let reals: SmallVec<[&[T]; 3]> =
                reals.iter().map(|&x| &self.read(chain, x)[part.clone()]).collect();
            running.block(part.len(), &reals, &[], &mut wide[..results * stride]);
            drop(reals);
            for k in 0..results {
                if let Some(buffer) = chain.buffer(link.first + k) {
                    let from = &wide[k * stride..][..part.len()];
                    self.buffers[buffer][part.clone()].copy_from_slice(from);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Unary;
    use super::*;

    fn wave(shape: &[usize], by: f64) -> Tensor<f64> {
        let n: usize = shape.iter().product();
        let x = Tensor::from((0..n).map(|i| (i as f64 * by).sin()).collect::<Vec<_>>());
        x.reshape(shape)
    }

    #[test]
    fn a_chain_is_its_links_one_by_one() {
        use Source::{Operand, Result};
        for shape in [vec![3, 5], vec![7, 1000], vec![40, 3000], vec![0, 4]] {
            let (x, whole) = (wave(&shape, 0.37), wave(&shape, 0.11));
            let row = Tensor::<f64>::linspace(-1.0, 1.0, shape[1]);
            let column = wave(&[shape[0], 1], 0.7);
            let turned = wave(&[shape[1], shape[0]], 0.3).transpose();
            let mut chain = Chain::new(5);
            let sum = chain.link(Code::Binary(Binary::Add), &[Operand(0), Operand(1)]);
            let tanh = chain.link(Code::Forward(Unary::Tanh.handle()), &[Result(sum)]);
            let times = chain.link(Code::Binary(Binary::Mul), &[Operand(2), Result(tanh)]);
            let less = Code::Scalar { op: Binary::Sub, scalar: 2.0, swapped: true };
            let less = chain.link(less, &[Result(times)]);
            let over = chain.link(Code::Binary(Binary::Div), &[Result(less), Operand(3)]);
            let square = chain.link(Code::Binary(Binary::Mul), &[Result(over), Result(over)]);
            let sub = chain.link(Code::Binary(Binary::Sub), &[Operand(4), Result(square)]);
            chain.finish(&[sub, tanh]);
            let tanh = (&x + &row).tanh();
            let over = (2.0 - &whole * &tanh) / &column;
            let expected = [&turned - &over * &over, tanh];
            let others = [row, whole, column, turned];
            // Held by others, and by nobody else.
            for x in [x.clone(), Tensor::from(x.to_vec()).reshape(shape.as_slice())] {
                let operands = std::iter::once(x).chain(others.iter().cloned()).collect();
                let found = chain.run(&shape, operands, true, SmallVec::from_vec(vec![None, None]));
                for (found, expected) in found.iter().zip(&expected) {
                    assert_eq!(found.to_vec(), expected.to_vec());
                    assert_eq!(found.shape(), shape);
                }
            }
        }
    }

    #[test]
    fn gradients_of_two_operands_are_written_in_one_pass() {
        let shape = [33, 1001];
        let [a, b, dy] = [0.3, 0.5, 0.7].map(|by| wave(&shape, by) + 1.5);
        let mut chain = Chain::new(3);
        let all = [Source::Operand(0), Source::Operand(1), Source::Operand(2)];
        let op = super::super::rules::derived::<f64>(Binary::Pow).expect("its rule is derived");
        let first = chain.link(Code::Backward(op), &all);
        chain.finish(&[first, first + 1]);
        let operands = [&a, &b, &dy].map(Tensor::clone);
        let into = SmallVec::from_vec(vec![None, None]);
        let found = chain.run(&shape, SmallVec::from_iter(operands), false, into);
        let expected = super::super::rules::binary(Binary::Pow, &a, &b, dy, [true; 2]);
        for (found, expected) in found.iter().zip(expected.expect("they fit")) {
            assert_eq!(found.to_vec(), expected.expect("it is wanted").to_vec());
        }
    }
}
