//! Chains: operators on each element that read each other's results, in one pass over memory.
//!
//! Every operator that computes each element of its results from one element of each operand can be in
//! one: functions, arithmetic, comparisons, choices by a mask, conversions, dropout, users' formulas,
//! the sums where gradients meet, and the gradients of all these, of any element types side by side.
//! Not in chains is what leaves a record since its gradient is differentiated again, and user code.

mod join;
mod lower;
mod plain;
#[cfg(test)]
mod tests;

use std::fmt;

use smallvec::SmallVec;

use super::chain_kernels::{self, Panicked, Source};
use super::ir::{Dims, Graph, OpId, VarId};
use super::run::{Values, matrices, sum_of_rows};
use super::task::{Failed, Inputs, panic_message};
use crate::array::shape::broadcast;
use crate::array::{DType, Shape};
use crate::graph::AnyTensor;
use crate::ops::rules;
pub(super) use join::steps;

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

/// The links of a chain.
struct Lowered {
    links: chain_kernels::Chain,
    /// The operator of each.
    ops: Vec<OpId>,
    /// Operands that are drawn when the chain runs, after those that are given: the masks of
    /// dropout, in the order of the operators.
    drawn: Vec<Drawn>,
    /// For each result: the output that is written in its place, and the one that is added up.
    places: Vec<Option<usize>>,
    sums: Vec<Option<usize>>,
}

#[derive(Clone, Copy, Debug)]
struct Drawn {
    dtype: DType,
    p: f64,
}

impl Drawn {
    fn mask(self, shape: &[usize]) -> AnyTensor {
        match self.dtype {
            DType::Float64 => rules::dropout_mask::<f64>(shape, self.p).into(),
            _ => rules::dropout_mask::<f32>(shape, self.p).into(),
        }
    }
}

impl fmt::Debug for Lowered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} links", self.links.len())
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
    /// In the pass, as the formula that it comes from adds up.
    InPass(Box<Sum>),
}

impl Sum {
    /// The operand whose shape it is.
    fn like(&self) -> Option<usize> {
        match self {
            Self::Like(operand) => Some(*operand),
            Self::InPass(sum) => sum.like(),
            Self::Row | Self::Dims(_) => None,
        }
    }

    fn shape(&self, operands: &[AnyTensor]) -> Option<Shape> {
        match self {
            Self::Like(operand) => Some(Shape::from_slice(operands[*operand].shape())),
            Self::Dims(dims) => Some(dims.iter().flatten().copied().collect()),
            Self::InPass(sum) => sum.shape(operands),
            Self::Row => None,
        }
    }
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
        match (&self.lowered, self.shape(&operands)) {
            (Some(lowered), Some(shape)) => match self.pass(lowered, &shape, operands, spares) {
                Ok(done) => Ok(done?),
                Err(operands) => plain::run(self, graph, inputs, outputs, operands),
            },
            _ => plain::run(self, graph, inputs, outputs, operands),
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

    /// All links in one pass; the operands again where these shapes are not for that.
    fn pass(
        &self,
        lowered: &Lowered,
        shape: &[usize],
        mut operands: Values,
        mut spares: SmallVec<[Option<AnyTensor>; 2]>,
    ) -> Result<Result<Values, Failed>, Values> {
        let links = &lowered.links;
        let dtypes = operands.iter().map(AnyTensor::dtype).enumerate();
        let mut fit = dtypes.map(|(at, dtype)| links.dtype(Source::Operand(at)) == dtype);
        let shapes: SmallVec<[Option<Shape>; 2]> =
            self.outs.iter().map(|out| out.sum.as_ref()?.shape(&operands)).collect();
        // In what shape each result leaves the pass, and where it is written.
        let target = |at: &Option<usize>| shapes[(*at)?].clone();
        let targets: SmallVec<[Option<Shape>; 2]> = lowered.sums.iter().map(target).collect();
        let place = |at: &Option<usize>| spares[(*at)?].take();
        let into: SmallVec<[Option<AnyTensor>; 2]> = lowered.places.iter().map(place).collect();
        let (true, Some(chunk)) = (fit.all(|fits| fits), links.chunk(shape, &targets)) else {
            return Err(operands);
        };
        // From here on nothing runs one by one, which would draw again.
        operands.extend(lowered.drawn.iter().map(|drawn| drawn.mask(shape)));
        // What is handed on as it is is no place to write to.
        let alias = |out: &Out| match out.from {
            Origin::Operand(operand) => Some(operands[operand].clone()),
            Origin::Result(_) => None,
        };
        let aliases: SmallVec<[Option<AnyTensor>; 2]> = self.outs.iter().map(alias).collect();
        let over = self.over || self.head.is_some();
        let results = match links.asked() {
            0 => SmallVec::new(),
            _ => match links.run((shape, chunk), operands, over, into, &targets) {
                Ok(results) => results,
                Err(Panicked { link, panic }) => {
                    return Ok(Err(Failed::at(lowered.ops[link], panic_message(&*panic))));
                }
            },
        };
        let outs = self.outs.iter().zip(shapes).zip(aliases).zip(&mut spares);
        let outs = outs.map(|(((out, shape), alias), spare)| {
            let whole = match (out.from, alias) {
                (Origin::Result(result), _) => results[result].clone(),
                (Origin::Operand(_), Some(alias)) => alias,
                (Origin::Operand(_), None) => unreachable!("it was noted"),
            };
            match (&out.sum, shape) {
                (Some(Sum::Row), _) => sum_of_rows(&whole, spare.take()).unwrap_or(whole),
                (Some(Sum::Like(_) | Sum::Dims(_)), Some(shape)) => summed(whole, &shape),
                _ => whole,
            }
        });
        Ok(Ok(outs.collect()))
    }
}

/// A gradient, added up to a shape.
fn summed(gradient: AnyTensor, shape: &[usize]) -> AnyTensor {
    match gradient {
        AnyTensor::Float32(gradient) => gradient.sum_to(shape).into(),
        AnyTensor::Float64(gradient) => gradient.sum_to(shape).into(),
        other => other,
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
fn surely_same(a: &Dims, b: &Dims) -> bool {
    a == b && !a.contains(&None)
}

/// A place of a chain's value.
fn operand(source: Source) -> Option<usize> {
    match source {
        Source::Operand(operand) => Some(operand),
        Source::Result(_) => None,
    }
}
