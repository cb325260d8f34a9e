//! A chain's operators as links of one element type: forward by their kernels, gradients by the
//! formulas that the eager rules are.

use std::collections::HashMap;
use std::fmt;

use smallvec::{SmallVec, smallvec};

use super::super::ir::{Form, Graph, Op, OpId, VarId};
use super::super::kind::Kind;
use super::super::slots::adds_row;
use super::{Chain, Head, Origin, Out, Sum, operand, surely_same};
use crate::array::DType;
use crate::graph::Tensor;
use crate::ops::chain::{self, Code, Source};
use crate::ops::elementwise::Handle;
use crate::ops::{Binary, Float, Unary, rules};

/// The links of a chain, of its element type.
pub(super) enum Lowered {
    Float32(Typed<f32>),
    Float64(Typed<f64>),
}

impl fmt::Debug for Lowered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} links", self.len())
    }
}

impl Lowered {
    fn len(&self) -> usize {
        match self {
            Self::Float32(chain) => chain.links.len(),
            Self::Float64(chain) => chain.links.len(),
        }
    }
}

pub(super) struct Typed<T: Float> {
    links: chain::Chain<T>,
    results: usize,
}

impl<T: Float> Typed<T> {
    /// The results that the pass writes.
    pub(super) fn wanted(&self) -> std::ops::Range<usize> {
        0..self.results
    }

    pub(super) fn run(
        &self,
        shape: &[usize],
        operands: SmallVec<[Tensor<T>; 4]>,
        over: bool,
        into: SmallVec<[rules::Target<T>; 2]>,
    ) -> SmallVec<[Tensor<T>; 2]> {
        if self.results == 0 {
            return SmallVec::new();
        }
        self.links.run(shape, operands, over, into)
    }
}

/// What is to be lowered: a chain's operators and what they read and leave.
pub(super) struct Parts<'a> {
    pub(super) graph: &'a Graph,
    pub(super) head: Option<Head>,
    pub(super) ops: Vec<OpId>,
    pub(super) form: &'a Form,
    /// Inputs and outputs of the step.
    pub(super) inputs: &'a [VarId],
    pub(super) outputs: &'a [VarId],
    pub(super) over: bool,
}

impl Chain {
    pub(super) fn new(parts: Parts<'_>) -> Self {
        match parts.form.dtype {
            DType::Float32 => Self::typed_of(parts, Lowered::Float32),
            _ => Self::typed_of(parts, Lowered::Float64),
        }
    }

    fn typed_of<T: Float>(parts: Parts<'_>, lowered: fn(Typed<T>) -> Lowered) -> Self {
        let Parts { graph, head, ops, inputs, outputs, over, form } = parts;
        let mut chain = Self {
            head,
            ops,
            lowered: None,
            exact: Vec::new(),
            joint: Vec::new(),
            outs: Vec::new(),
            over,
        };
        let first = head.map(|head| (graph.ops[head.row.unwrap_or(head.matmul)].outputs[0], 0));
        let read = inputs.iter().enumerate().skip(head.map_or(0, Head::reads));
        let read = read.map(|(input, &var)| (var, chain.operand(input)));
        let at: HashMap<VarId, Source> =
            first.into_iter().chain(read).map(|(var, at)| (var, Source::Operand(at))).collect();
        let mut lowering = Lowering {
            graph,
            form,
            links: chain::Chain::<T>::new(at.len()),
            at,
            sums: HashMap::new(),
            exact: Vec::new(),
            joint: Vec::new(),
        };
        if chain.ops.iter().any(|&op| lowering.op(&graph.ops[op]).is_none()) {
            // Then they run one by one.
            chain.outs = outputs.iter().map(|_| OUT_OF_NONE).collect();
            return chain;
        }
        let Lowering { mut links, at, mut sums, mut exact, joint, .. } = lowering;
        let mut results: Vec<usize> = Vec::new();
        for output in outputs {
            let from = match at[output] {
                Source::Operand(operand) => Origin::Operand(operand),
                Source::Result(result) => {
                    let known = results.iter().position(|known| *known == result);
                    Origin::Result(known.unwrap_or_else(|| {
                        results.push(result);
                        results.len() - 1
                    }))
                }
            };
            chain.outs.push(Out { from, sum: sums.remove(output) });
        }
        // What is read again must be whole when the chain runs.
        let read = chain.ops.iter().flat_map(|&op| &graph.ops[op].inputs);
        for var in read {
            if let Some(Sum::Like(operand)) = sums.get(var) {
                exact.push(*operand);
            }
            if let Some(at) = outputs.iter().position(|output| output == var)
                && let Some(Sum::Like(operand)) = chain.outs[at].sum
            {
                exact.push(operand);
            }
        }
        exact.sort_unstable();
        exact.dedup();
        links.finish(&results);
        (chain.exact, chain.joint) = (exact, joint);
        chain.lowered = Some(lowered(Typed { links, results: results.len() }));
        chain
    }

    /// Whether it is more than one operator's one loop.
    pub(super) fn pays(&self) -> bool {
        self.head.is_some() || self.lowered.as_ref().is_some_and(|lowered| lowered.len() > 1)
    }
}

/// How an output comes about where operators run one by one: that is not asked.
const OUT_OF_NONE: Out = Out { from: Origin::Result(usize::MAX), sum: None };

struct Lowering<'a, T: Float> {
    graph: &'a Graph,
    form: &'a Form,
    links: chain::Chain<T>,
    /// Where each variable stands.
    at: HashMap<VarId, Source>,
    /// How gradients are added up.
    sums: HashMap<VarId, Sum>,
    exact: Vec<usize>,
    joint: Vec<SmallVec<[usize; 2]>>,
}

impl<T: Float> Lowering<'_, T> {
    fn link(&mut self, code: Code<T>, reads: &[Source]) -> Source {
        Source::Result(self.links.link(code, reads))
    }

    fn scalar(&mut self, op: Binary, x: Source, scalar: T, swapped: bool) -> Source {
        self.link(Code::Scalar { op, scalar, swapped }, &[x])
    }

    fn binary(&mut self, op: Binary, a: Source, b: Source) -> Source {
        self.link(Code::Binary(op), &[a, b])
    }

    /// `None` for what has no link.
    fn op(&mut self, op: &Op) -> Option<()> {
        if let Kind::Grad { .. } = op.kind {
            return self.gradient(op);
        }
        let reads: Option<SmallVec<[Source; 3]>> =
            op.inputs.iter().map(|var| self.at.get(var).copied()).collect();
        let reads = reads?;
        // What reads a result of the chain has its shape.
        let operands: Option<SmallVec<[usize; 2]>> = reads.iter().map(|&x| operand(x)).collect();
        self.joint.extend(operands);
        let first = match &op.kind {
            Kind::Unary(op) => self.link(Code::Forward(op.handle()), &reads),
            Kind::Formula { op, .. } => self.link(Code::Forward(op.typed()?.clone()), &reads),
            Kind::Binary(op) => self.binary(*op, reads[0], reads[1]),
            Kind::Scalar { op, scalar, swapped } => {
                self.scalar(*op, reads[0], T::nearest(*scalar), *swapped)
            }
            Kind::Sum => {
                let sum = |sum, &part| self.binary(Binary::Add, sum, part);
                reads[1..].iter().fold(reads[0], sum)
            }
            // As the operator does it.
            Kind::FillLike(value) => {
                let element = if *value == 0.0 { T::ZERO } else { T::ONE };
                self.link(Code::Fill(element), &[])
            }
            _ => return None,
        };
        self.put(&op.outputs, first);
        Some(())
    }

    /// The results of a link from the first one on.
    fn put(&mut self, outputs: &[VarId], first: Source) {
        for (k, &output) in outputs.iter().enumerate() {
            let source = match first {
                Source::Result(result) => Source::Result(result + k),
                operand => operand,
            };
            self.at.insert(output, source);
        }
    }

    fn gradient(&mut self, op: &Op) -> Option<()> {
        let Kind::Grad { of, wants, seeds, .. } = &op.kind else { return None };
        let forward = &self.graph.ops[*of];
        let (n, m) = (forward.inputs.len(), forward.outputs.len());
        let mut dys: SmallVec<[Option<Source>; 2]> = smallvec![None; m];
        for (&slot, var) in seeds.iter().zip(&op.inputs[n + m..]) {
            let dy = *self.at.get(var)?;
            dys[slot] = Some(dy);
            self.exact.extend(operand(dy));
        }
        let dy = dys.iter().flatten().next().copied()?;
        let grads: SmallVec<[Source; 2]> = match &forward.kind {
            Kind::Unary(function) => {
                smallvec![self.backward(function.handle(), forward, &dys, wants)?]
            }
            Kind::Formula { op, .. } => {
                let first = self.backward(op.typed()?.clone(), forward, &dys, wants)?;
                wants.iter().map(|&want| offset(first, want)).collect()
            }
            Kind::Scalar { op, scalar, swapped } => {
                let x = self.at.get(&forward.inputs[0]).copied();
                smallvec![self.of_scalar((*op, T::nearest(*scalar), *swapped), x, dy)?]
            }
            Kind::Binary(function) => self.of_binary(*function, forward, dy, wants)?,
            _ => return None,
        };
        for ((&output, &want), &grad) in op.outputs.iter().zip(wants).zip(&grads) {
            self.at.insert(output, grad);
            if let Kind::Binary(_) = forward.kind
                && let Some(sum) = self.sum(forward, want)
            {
                self.sums.insert(output, sum);
            }
        }
        Some(())
    }

    /// How a gradient of an operand that may be stretched is added up.
    fn sum(&self, forward: &Op, want: usize) -> Option<Sum> {
        let input = forward.inputs[want];
        let form = &self.graph.vars[input].form;
        if surely_same(form, self.form) {
            return None;
        }
        if adds_row(self.graph, forward) {
            return (want == 1).then_some(Sum::Row);
        }
        match self.at.get(&input) {
            // It is the operand of an operator of this chain.
            Some(Source::Result(_)) => None,
            Some(Source::Operand(operand)) => Some(Sum::Like(*operand)),
            None => Some(Sum::Dims(form.dims.clone())),
        }
    }

    /// The derivative of an op of one shape.
    fn backward(
        &mut self,
        op: Handle<T>,
        forward: &Op,
        dys: &[Option<Source>],
        wants: &[usize],
    ) -> Option<Source> {
        let dy = dys.iter().flatten().next().copied()?;
        if forward.inputs.len() > 1 {
            let whole = forward.inputs.iter().filter_map(|input| self.at.get(input).copied());
            self.exact.extend(whole.filter_map(operand));
            debug_assert!(!wants.is_empty(), "a gradient is of something");
        }
        let mut reads: SmallVec<[Source; 4]> = SmallVec::new();
        let info = op.info();
        for &input in info.keeps_reals.iter() {
            reads.push(*self.at.get(&forward.inputs[input])?);
        }
        for &output in info.keeps_outputs.iter() {
            reads.push(*self.at.get(&forward.outputs[output])?);
        }
        self.exact.extend(reads.iter().filter_map(|&read| operand(read)));
        let slots: SmallVec<[usize; 2]> = info.gradients.iter().copied().collect();
        for slot in slots {
            let grad = dys.get(slot).copied().flatten();
            let zeros = || self.link(Code::Fill(T::ZERO), &[]);
            let grad = grad.unwrap_or_else(zeros);
            reads.push(grad);
        }
        debug_assert!(reads.contains(&dy), "a gradient that came is read");
        Some(self.link(Code::Backward(op), &reads))
    }

    /// As `ops::binary` has it.
    fn of_scalar(
        &mut self,
        (op, s, swapped): (Binary, T, bool),
        x: Option<Source>,
        dy: Source,
    ) -> Option<Source> {
        self.exact.extend(x.and_then(operand));
        Some(match (op, swapped) {
            (Binary::Add, _) | (Binary::Sub, false) => dy,
            (Binary::Sub, true) => self.link(Code::Forward(Unary::Neg.handle()), &[dy]),
            (Binary::Mul, _) => self.scalar(op, dy, s, false),
            (Binary::Div, false) => self.scalar(op, dy, s, false),
            (Binary::Div, true) => {
                let part = self.scalar(Binary::Mul, dy, -s, false);
                let part = self.binary(Binary::Div, part, x?);
                self.binary(Binary::Div, part, x?)
            }
            (Binary::Pow, false) if s == T::ZERO => self.scalar(Binary::Mul, dy, T::ZERO, false),
            (Binary::Pow, false) => {
                let power = self.scalar(Binary::Pow, x?, s - T::ONE, false);
                let part = self.binary(Binary::Mul, dy, power);
                self.scalar(Binary::Mul, part, s, false)
            }
            (Binary::Pow, true) => {
                let power = self.scalar(Binary::Pow, x?, s, true);
                let part = self.binary(Binary::Mul, dy, power);
                self.scalar(Binary::Mul, part, num_traits::Float::ln(s), false)
            }
            (Binary::Maximum | Binary::Minimum, _) => {
                self.link(Code::Backward(rules::bound(op, s)), &[x?, dy])
            }
        })
    }

    /// As `ops::binary` has it.
    fn of_binary(
        &mut self,
        op: Binary,
        forward: &Op,
        dy: Source,
        wants: &[usize],
    ) -> Option<SmallVec<[Source; 2]>> {
        let [a, b] = [0, 1].map(|input| self.at.get(&forward.inputs[input]).copied());
        if let Some(derived) = rules::derived::<T>(op)
            && (op, wants) != (Binary::Div, &[0])
        {
            let first = self.backward(derived, forward, &[Some(dy)], wants)?;
            return Some(wants.iter().map(|&want| offset(first, want)).collect());
        }
        let mut grads = SmallVec::new();
        for &want in wants {
            grads.push(match (op, want) {
                (Binary::Mul, 0) => self.binary(op, dy, b?),
                (Binary::Mul, _) => self.binary(op, dy, a?),
                (Binary::Div, _) => self.binary(op, dy, b?),
                (Binary::Sub, 1) => self.link(Code::Forward(Unary::Neg.handle()), &[dy]),
                _ => dy,
            });
        }
        Some(grads)
    }
}

fn offset(first: Source, by: usize) -> Source {
    match first {
        Source::Result(result) => Source::Result(result + by),
        operand => operand,
    }
}
