//! Functions of each element that read each other's results, in one pass over memory: each block
//! goes through all of them while it is in the first cache, and every result that is asked for is
//! written, or added up. The kernels are those of the ops, so the figures are too.
//!
//! Blocks are of any element types: a mask is a block of bools, an integer one of integers. Formulas
//! and arithmetic have loops for the instruction set that there is, and the rest simple ones, which
//! the compiler makes vectors of; so a chain adds little to what is compiled.

mod blocks;
mod kernels;
mod pass;
#[cfg(test)]
mod tests;

use std::any::Any;

use smallvec::SmallVec;

use crate::array::DType;
use crate::formula::{Formula, block_of};
use crate::ops::elementwise::Handle;
use crate::ops::{Binary, Float};
use blocks::for_dtype;
pub(crate) use kernels::Test;

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

/// The formula of an op.
pub(crate) enum Of<T: Float> {
    /// The results of an op.
    Forward(Handle<T>),
    /// The gradients of an op's differentiable inputs, from what its compiled backward gets.
    Backward(Handle<T>),
}

impl<T: Float> Of<T> {
    fn results(&self) -> usize {
        match self {
            Self::Forward(op) => op.info().outputs,
            Self::Backward(op) => op.info().differentiable.iter().filter(|wants| **wants).count(),
        }
    }

    fn formula(&self) -> &dyn Formula<T> {
        match self {
            Self::Forward(op) => op.forward(),
            Self::Backward(op) => match op.compiled_backward() {
                Some(formula) => formula,
                None => unreachable!("a link is made of what is compiled"),
            },
        }
    }
}

/// One function of a chain.
pub(crate) enum Code {
    /// Of the numbers that the formula reads, and then of the masks.
    Float32(Of<f32>),
    Float64(Of<f64>),
    /// Of two operands.
    Binary(Binary),
    /// With a number on the right, or on the left where `swapped`.
    Scalar {
        op: Binary,
        scalar: f64,
        swapped: bool,
    },
    /// Ones everywhere, or zeros.
    Fill(DType, bool),
    /// Of two operands.
    Compare(Test),
    /// By a mask, one of two.
    Where,
    Cast(DType),
}

/// A float type whose formulas are links.
pub(crate) trait Linked: Float {
    fn code(of: Of<Self>) -> Code;
}

impl Linked for f32 {
    fn code(of: Of<Self>) -> Code {
        Code::Float32(of)
    }
}

impl Linked for f64 {
    fn code(of: Of<Self>) -> Code {
        Code::Float64(of)
    }
}

impl Code {
    fn results(&self) -> usize {
        match self {
            Self::Float32(of) => of.results(),
            Self::Float64(of) => of.results(),
            _ => 1,
        }
    }

    /// Whether it can be written over what it reads.
    fn is_arithmetic(&self) -> bool {
        matches!(self, Self::Binary(_) | Self::Scalar { .. })
    }
}

struct Link {
    code: Code,
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

/// A result that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) result: usize,
    /// Whether it may be wanted in a smaller shape, added up as the pass of its link alone would.
    pub(crate) sums: bool,
}

/// See the [module](self).
pub(crate) struct Chain {
    links: Vec<Link>,
    operands: Vec<DType>,
    /// Which of them links read.
    reads: Vec<bool>,
    /// Of each result.
    results: Vec<(DType, Place)>,
    registers: Vec<DType>,
    asked: SmallVec<[Ask; 2]>,
    /// Room for the results of formulas that have several, of float32 and of float64.
    wide: [usize; 2],
    /// Elements a block.
    block: usize,
}

/// A link that panicked.
pub(crate) struct Panicked {
    pub(crate) link: usize,
    pub(crate) panic: Box<dyn Any + Send>,
}

impl Chain {
    /// Of operands of these types, without links yet.
    pub(crate) fn new(operands: Vec<DType>) -> Self {
        Self {
            links: Vec::new(),
            reads: vec![false; operands.len()],
            operands,
            results: Vec::new(),
            registers: Vec::new(),
            asked: SmallVec::new(),
            wide: [0; 2],
            block: BLOCK,
        }
    }

    pub(crate) fn dtype(&self, source: Source) -> DType {
        match source {
            Source::Operand(operand) => self.operands[operand],
            Source::Result(result) => self.results[result].0,
        }
    }

    /// Adds a link; its results are those from the one that is returned on.
    pub(crate) fn link(&mut self, code: Code, reads: &[Source]) -> usize {
        let (first, results) = (self.results.len(), code.results());
        for read in reads {
            if let Source::Operand(operand) = *read {
                self.reads[operand] = true;
            }
        }
        let dtype = match &code {
            Code::Float32(_) => DType::Float32,
            Code::Float64(_) => DType::Float64,
            Code::Binary(_) | Code::Scalar { .. } => self.dtype(reads[0]),
            Code::Where => self.dtype(reads[1]),
            Code::Compare(_) => DType::Bool,
            Code::Fill(dtype, _) | Code::Cast(dtype) => *dtype,
        };
        self.results.extend(std::iter::repeat_n((dtype, Place::Nowhere), results));
        self.links.push(Link { code, reads: SmallVec::from_slice(reads), first });
        first
    }

    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// How many results are asked for.
    pub(crate) fn asked(&self) -> usize {
        self.asked.len()
    }

    /// Says which results are asked for, each once, and finds a place for each of them.
    pub(crate) fn finish(&mut self, asked: &[Ask]) {
        let mut last = vec![None; self.results.len()];
        for (at, link) in self.links.iter().enumerate() {
            for read in &link.reads {
                if let Source::Result(result) = *read {
                    last[result] = Some(at);
                }
            }
        }
        self.asked = SmallVec::from_slice(asked);
        for (k, ask) in asked.iter().enumerate() {
            // What is added up stays in a register of its own until the end.
            last[ask.result] = Some(self.links.len());
            if !ask.sums {
                self.results[ask.result].1 = Place::Output(k);
            }
        }
        self.coalesce(&last);
        let mut free: Vec<usize> = Vec::new();
        for (at, link) in self.links.iter().enumerate() {
            let mut dies: SmallVec<[usize; 3]> = SmallVec::new();
            for read in &link.reads {
                if let Source::Result(result) = *read
                    && let Place::Register(register) = self.results[result].1
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
            for ((dtype, place), last) in self.results[own.clone()].iter_mut().zip(&last[own]) {
                if *place != Place::Nowhere || last.is_none() {
                    continue;
                }
                if over.is_some() {
                    taken = over;
                }
                let fits = |register: &usize| self.registers[*register] == *dtype;
                let known = free.iter().rposition(fits).filter(|_| over.is_none());
                let register = over.or(known.map(|at| free.swap_remove(at))).unwrap_or_else(|| {
                    self.registers.push(*dtype);
                    self.registers.len() - 1
                });
                *place = Place::Register(register);
            }
            free.extend(dies.into_iter().filter(|register| taken != Some(*register)));
        }
        for link in self.links.iter().filter(|link| link.code.results() > 1) {
            let results = link.code.results();
            let wide = &mut self.wide[usize::from(matches!(link.code, Code::Float64(_)))];
            *wide = (*wide).max(results * block_of(results));
        }
        self.block = self.block_len();
    }

    /// What is written over its last reader's result, and that is asked for, stands there already:
    /// nothing is copied.
    fn coalesce(&mut self, last: &[Option<usize>]) {
        for (at, link) in self.links.iter().enumerate().rev() {
            let output = match self.results[link.first].1 {
                output @ Place::Output(_) if link.code.is_arithmetic() => output,
                _ => continue,
            };
            if let [a, b] = link.reads[..]
                && a == b
            {
                continue;
            }
            let dies = link.reads.iter().find_map(|read| match *read {
                Source::Result(result) => (last[result] == Some(at)
                    && self.results[result].1 == Place::Nowhere)
                    .then_some(result),
                Source::Operand(_) => None,
            });
            if let Some(result) = dies {
                self.results[result].1 = output;
            }
        }
    }

    /// How many elements a block has.
    fn block_len(&self) -> usize {
        let size = |dtype: DType| for_dtype!(dtype, T => size_of::<T>());
        let registers = self.registers.iter().map(|dtype| size(*dtype));
        let outputs = self.asked.iter().map(|ask| size(self.results[ask.result].0));
        let operands = self.operands.iter().map(|dtype| size(*dtype));
        let room: usize = registers.chain(outputs).chain(operands).sum();
        let block = match CACHE / room.max(1) {
            BLOCK.. => BLOCK,
            1024.. => 1024,
            _ => 512,
        };
        // What is added up is added up in these blocks.
        let summed = self.asked.iter().filter(|ask| ask.sums);
        summed.map(|ask| self.block_of(ask.result)).fold(block, usize::max)
    }

    /// The link that a result is of.
    fn link_of(&self, result: usize) -> usize {
        self.links.partition_point(|link| link.first <= result) - 1
    }

    /// In blocks of so many elements the pass of its link alone adds a result up.
    fn block_of(&self, result: usize) -> usize {
        block_of(self.links[self.link_of(result)].code.results())
    }

    /// Which of the buffers, registers and then outputs, a result is in.
    fn buffer(&self, result: usize) -> Option<usize> {
        match self.results[result].1 {
            Place::Nowhere => None,
            Place::Register(register) => Some(register),
            Place::Output(output) => Some(self.registers.len() + output),
        }
    }
}
