//! Chains: operators on each element that read each other's results, in one pass over memory.

mod join;
mod lower;
mod plain;
#[cfg(test)]
mod tests;

use smallvec::SmallVec;

pub(super) use join::steps;
use lower::Lowered;

use super::ir::{Dims, Form, Graph, OpId, VarId};
use super::run::{Values, matrices, sum_of_rows};
use super::task::{Failed, Inputs};
use crate::array::Shape;
use crate::array::shape::broadcast;
use crate::graph::{AnyTensor, Tensor};
use crate::ops::chain::Source;
use crate::ops::{Float, rules};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Chain {
    /// The product of matrices over which it runs.
    pub(super) head: Option<Head>,
    /// In an order in which they could run one by one.
    pub(super) ops: Vec<OpId>,
    /// None where the operators can only run one by one.
    lowered: Option<Lowered>,
    /// Operands that must have the shape of the whole, as the forms say without what is free.
    exact: Vec<usize>,
    /// Operands that must have it when they are stretched to each other.
    joint: Vec<SmallVec<[usize; 2]>>,
    /// For each output of the step, how it comes about.
    pub(super) outs: Vec<Out>,
    /// Whether the first output may be written over the first input.
    pub(super) over: bool,
}

/// A product of matrices, to which a row may be added while its sums are in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) matmul: OpId,
    pub(super) row: Option<OpId>,
}

impl Head {
    /// How many of the step's inputs it reads.
    fn reads(self) -> usize {
        2 + usize::from(self.row.is_some())
    }
}

/// How an output of a chain comes about.
#[derive(Clone, Debug)]
pub(super) struct Out {
    pub(super) from: Origin,
    /// It is added up to this shape, as what it is a gradient of may have been stretched.
    pub(super) sum: Option<Sum>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is an operand of the chain.
    Operand(usize),
    /// It is one of the results that the pass writes.
    Result(usize),
}

/// The shape to which a gradient is added up.
#[derive(Clone, Debug)]
pub(super) enum Sum {
    /// That of a row, from a matrix.
    Row,
    Dims(Dims),
    /// That of an operand.
    Like(usize),
}

impl Chain {
    /// The operand that an input of the step is.
    fn operand(&self, input: usize) -> usize {
        self.head.map_or(input, |head| input + 1 - head.reads())
    }

    /// Its operators' names, the head's first.
    pub(super) fn names(&self, graph: &Graph) -> String {
        let head = self.head.iter().flat_map(|head| [Some(head.matmul), head.row]).flatten();
        let ops = head.chain(self.ops.iter().copied());
        ops.map(|op| graph.ops[op].kind.stem()).collect::<Vec<_>>().join(" + ")
    }

    /// One pass, or one operator after the other where shapes do not fit that.
    pub(super) fn run(
        &self,
        graph: &Graph,
        (inputs, outputs): (&[VarId], &[VarId]),
        mut given: Inputs,
        mut spares: SmallVec<[Option<AnyTensor>; 2]>,
    ) -> Result<Values, Failed> {
        // What a head computes is written where the first result of the pass will be.
        let first = self.outs.iter().position(|out| out.from == Origin::Result(0));
        let at = self.outs.iter().position(|out| out.from == Origin::Operand(0)).or(first);
        let mut operands: Values = SmallVec::new();
        if let Some(head) = self.head {
            let spare = at.and_then(|at| spares[at].take());
            operands.push(head.run(graph, &given, spare)?);
        }
        let read = given.iter_mut().skip(self.head.map_or(0, Head::reads));
        for operand in read {
            let missing = || Failed::at(self.ops[0], "an input is missing");
            operands.push(operand.take().ok_or_else(missing)?);
        }
        let shape = self.shape(&operands);
        let done = match (&self.lowered, shape) {
            (Some(Lowered::Float32(chain)), Some(shape)) => {
                self.typed(chain, &shape, operands, spares)
            }
            (Some(Lowered::Float64(chain)), Some(shape)) => {
                self.typed(chain, &shape, operands, spares)
            }
            _ => Err(operands),
        };
        match done {
            Ok(done) => Ok(done),
            Err(operands) => plain::run(self, graph, inputs, outputs, operands),
        }
    }

    /// The shape of the whole; none where an operator would have another one.
    fn shape(&self, operands: &[AnyTensor]) -> Option<Shape> {
        let mut shape = Shape::new();
        for operand in operands {
            if operand.shape() != shape.as_slice() {
                shape = broadcast("chain", &shape, operand.shape()).ok()?;
            }
        }
        let is_whole = |operand: &usize| operands[*operand].shape() == shape.as_slice();
        let join = |of: &SmallVec<[usize; 2]>| {
            of.iter().any(is_whole) || {
                let shapes = of.iter().map(|&operand| operands[operand].shape());
                let joined = shapes.map(Shape::from_slice).reduce(|a, b| {
                    // All of them can be stretched to the whole, so also to each other.
                    broadcast("chain", &a, &b).unwrap_or_default()
                });
                joined.is_some_and(|joined| joined == shape)
            }
        };
        (self.exact.iter().all(is_whole) && self.joint.iter().all(join)).then_some(shape)
    }

    fn typed<T: Float>(
        &self,
        chain: &lower::Typed<T>,
        shape: &[usize],
        operands: Values,
        mut spares: SmallVec<[Option<AnyTensor>; 2]>,
    ) -> Result<Values, Values> {
        if operands.iter().any(|operand| operand.downcast_ref::<T>().is_none()) {
            return Err(operands);
        }
        let like = |out: &Out| match out.sum {
            Some(Sum::Like(operand)) => Some(Shape::from_slice(operands[operand].shape())),
            _ => None,
        };
        let likes: SmallVec<[Option<Shape>; 2]> = self.outs.iter().map(like).collect();
        // What is handed on as it is is no place to write to.
        let alias = |out: &Out| match out.from {
            Origin::Operand(operand) => operands[operand].downcast_ref::<T>().cloned(),
            Origin::Result(_) => None,
        };
        let aliases: SmallVec<[Option<Tensor<T>>; 2]> = self.outs.iter().map(alias).collect();
        let into = chain.wanted().map(|result| {
            let whole = |out: &Out| out.from == Origin::Result(result) && out.sum.is_none();
            let at = self.outs.iter().position(whole)?;
            spares[at].take().and_then(AnyTensor::downcast)
        });
        let into = into.collect();
        let operands = operands.into_iter().filter_map(AnyTensor::downcast).collect();
        let over = self.over || self.head.is_some();
        let results = chain.run(shape, operands, over, into);
        let outs = self.outs.iter().zip(likes).zip(aliases).zip(&mut spares);
        let outs = outs.map(|(((out, like), alias), spare)| {
            let whole = match (out.from, alias) {
                (Origin::Result(result), _) => results[result].clone(),
                (Origin::Operand(_), alias) => {
                    alias.unwrap_or_else(|| unreachable!("all operands are of one type"))
                }
            };
            match (&out.sum, like) {
                (None, _) => T::wrap(whole),
                (Some(Sum::Row), _) => {
                    let spare = spare.take();
                    // Both are of a float type.
                    sum_of_rows(&T::wrap(whole.clone()), spare).unwrap_or_else(|_| T::wrap(whole))
                }
                (Some(_), Some(like)) => T::wrap(whole.sum_to(&like)),
                (Some(Sum::Dims(dims)), None) => {
                    let dims: Shape = dims.iter().flatten().copied().collect();
                    T::wrap(whole.sum_to(&dims))
                }
                (Some(Sum::Like(_)), None) => unreachable!("its shape was noted"),
            }
        });
        Ok(outs.collect())
    }
}

impl Head {
    fn run(
        self,
        graph: &Graph,
        inputs: &[Option<AnyTensor>],
        spare: Option<AnyTensor>,
    ) -> Result<AnyTensor, Failed> {
        let missing = || Failed::at(self.matmul, "an input is missing");
        let read = |at: usize| inputs.get(at).and_then(Option::as_ref).ok_or_else(missing);
        let (a, b) = (read(0)?, read(1)?);
        let mut spare = spare;
        if self.row.is_some()
            && let Some(done) = plus_row([a, b, read(2)?], &mut spare)
        {
            return Ok(done);
        }
        let run = |op: OpId, operands: Values| {
            let done = graph.ops[op].kind.run(operands).map_err(|why| Failed::at(op, why))?.pop();
            done.ok_or_else(|| Failed::at(op, "computed nothing"))
        };
        let product = match matrices([a, b], [false; 2], spare) {
            Some(product) => product,
            None => run(self.matmul, SmallVec::from_iter([a.clone(), b.clone()]))?,
        };
        match self.row {
            Some(row) => run(row, SmallVec::from_iter([product, read(2)?.clone()])),
            None => Ok(product),
        }
    }
}

/// A product of matrices with a row added to it.
fn plus_row(operands: [&AnyTensor; 3], spare: &mut Option<AnyTensor>) -> Option<AnyTensor> {
    match operands {
        [AnyTensor::Float32(a), AnyTensor::Float32(b), AnyTensor::Float32(row)] => {
            let spare = spare.take().and_then(AnyTensor::downcast);
            rules::product_plus_row(a, b, row, spare).map(AnyTensor::from)
        }
        [AnyTensor::Float64(a), AnyTensor::Float64(b), AnyTensor::Float64(row)] => {
            let spare = spare.take().and_then(AnyTensor::downcast);
            rules::product_plus_row(a, b, row, spare).map(AnyTensor::from)
        }
        _ => None,
    }
}

/// Whether two variables have one shape whatever is fed.
fn surely_same(a: &Form, b: &Form) -> bool {
    a == b && !a.dims.contains(&None)
}

/// A place of a chain's value.
fn operand(source: Source) -> Option<usize> {
    match source {
        Source::Operand(operand) => Some(operand),
        Source::Result(_) => None,
    }
}
