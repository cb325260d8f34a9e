//! A chain's operators as links: forward by their kernels, gradients by the formulas that the eager
//! rules are.

use std::collections::HashMap;

use smallvec::{SmallVec, smallvec};

use super::super::chain_kernels::{self, Ask, Code, Linked, Of, Source, Test};
use super::super::formula::Formula;
use super::super::ir::{Dims, Graph, Op, OpId, VarId};
use super::super::kind::Kind;
use super::super::slots::adds_row;
use super::{Chain, Drawn, Head, Lowered, Origin, Out, Sum, operand, surely_same};
use crate::array::DType;
use crate::ops::elementwise::Handle;
use crate::ops::{Binary, Numeric, Unary, rules};

/// What is to be lowered: a chain's operators and what they read and leave.
pub(super) struct Parts<'a> {
    pub(super) graph: &'a Graph,
    pub(super) head: Option<Head>,
    pub(super) ops: Vec<OpId>,
    pub(super) dims: &'a Dims,
    /// Inputs and outputs of the step.
    pub(super) inputs: &'a [VarId],
    pub(super) outputs: &'a [VarId],
    pub(super) over: bool,
}

impl Chain {
    pub(super) fn new(parts: Parts<'_>) -> Self {
        let Parts { graph, head, ops, inputs, outputs, over, dims } = parts;
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
        let operands: Vec<(VarId, usize)> = first.into_iter().chain(read).collect();
        let dtype = |var: VarId| graph.vars[var].form.dtype;
        let mut dtypes: Vec<DType> = operands.iter().map(|(var, _)| dtype(*var)).collect();
        let mut at: HashMap<VarId, Source> =
            operands.into_iter().map(|(var, at)| (var, Source::Operand(at))).collect();
        let (given, mut drawn) = (dtypes.len(), Vec::new());
        for &op in &chain.ops {
            let Op { kind: kind @ Kind::Dropout { p, .. }, outputs, .. } = &graph.ops[op] else {
                continue;
            };
            if kind.draws() {
                let dtype = dtype(outputs[0]);
                // Where it goes to no gradient, the mask has no name of its own.
                at.insert(*outputs.last().unwrap_or(&outputs[0]), Source::Operand(dtypes.len()));
                dtypes.push(dtype);
                drawn.push(Drawn { dtype, p: *p });
            }
        }
        let mut lowering = Lowering {
            graph,
            dims,
            links: chain_kernels::Chain::new(dtypes),
            at,
            sums: HashMap::new(),
            exact: Vec::new(),
            joint: Vec::new(),
            ops: Vec::new(),
        };
        for &op in &chain.ops {
            if lowering.op(&graph.ops[op]).is_none() {
                // Then they run one by one.
                chain.outs = outputs.iter().map(|_| OUT_OF_NONE).collect();
                return chain;
            }
            lowering.ops.resize(lowering.links.len(), op);
        }
        let Lowering { mut links, at, mut sums, mut exact, joint, ops, .. } = lowering;
        // What is read again must be whole when the chain runs.
        let read = chain.ops.iter().flat_map(|&op| &graph.ops[op].inputs);
        exact.extend(read.filter_map(|var| sums.get(var)?.like()));
        exact.sort_unstable();
        exact.dedup();
        // What is drawn is drawn in this shape.
        exact.retain(|operand| *operand < given);
        let mut asked: Vec<Ask> = Vec::new();
        for output in outputs {
            let is_whole = |sum: &Sum| sum.like().is_some_and(|operand| exact.contains(&operand));
            let sum = sums.remove(output).filter(|sum| !is_whole(sum));
            let from = match at[output] {
                Source::Operand(operand) => Origin::Operand(operand),
                Source::Result(result) => {
                    let ask = Ask { result, sums: matches!(sum, Some(Sum::InPass(_))) };
                    let known = asked.iter().position(|known| *known == ask && !ask.sums);
                    Origin::Result(known.unwrap_or_else(|| {
                        asked.push(ask);
                        asked.len() - 1
                    }))
                }
            };
            chain.outs.push(Out { from, sum });
        }
        links.finish(&asked);
        chain.over = chain.over
            && asked.first().is_none_or(|ask| {
                let [operand, result] = [Source::Operand(0), Source::Result(ask.result)];
                !ask.sums && links.dtype(operand) == links.dtype(result)
            });
        (chain.exact, chain.joint) = (exact, joint);
        let find = |result: usize, fits: fn(&Option<Sum>) -> bool| {
            let of = |out: &Out| out.from == Origin::Result(result) && fits(&out.sum);
            chain.outs.iter().position(of)
        };
        let places = (0..asked.len()).map(|result| find(result, Option::is_none)).collect();
        let passes = |sum: &Option<Sum>| matches!(sum, Some(Sum::InPass(_)));
        let sums = (0..asked.len()).map(|result| find(result, passes)).collect();
        chain.lowered = Some(Lowered { links, ops, drawn, places, sums });
        chain
    }

    /// Whether it is more than one operator's one loop.
    pub(super) fn pays(&self) -> bool {
        self.head.is_some() || self.lowered.as_ref().is_some_and(|lowered| lowered.links.len() > 1)
    }
}

/// How an output comes about where operators run one by one: that is not asked.
const OUT_OF_NONE: Out = Out { from: Origin::Result(usize::MAX), sum: None };

/// Where a gradient stands, in the shape of the whole.
#[derive(Clone, Copy)]
struct Gradient {
    source: Source,
    /// Whether the pass adds it up where it is to be smaller, or that is done after it.
    in_pass: bool,
}

impl Gradient {
    fn of(source: Source) -> Self {
        Self { source, in_pass: false }
    }
}

struct Lowering<'a> {
    graph: &'a Graph,
    dims: &'a Dims,
    links: chain_kernels::Chain,
    /// Where each variable stands.
    at: HashMap<VarId, Source>,
    /// How gradients are added up.
    sums: HashMap<VarId, Sum>,
    exact: Vec<usize>,
    joint: Vec<SmallVec<[usize; 2]>>,
    /// The operator of each link.
    ops: Vec<OpId>,
}

/// Runs an expression with the name of a float type; `None` for another.
macro_rules! for_float {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::Float32 => {
                type $t = f32;
                $body
            }
            DType::Float64 => {
                type $t = f64;
                $body
            }
            _ => None,
        }
    };
}

impl Lowering<'_> {
    fn link(&mut self, code: Code, reads: &[Source]) -> Source {
        Source::Result(self.links.link(code, reads))
    }

    fn scalar(&mut self, op: Binary, x: Source, scalar: f64, swapped: bool) -> Source {
        self.link(Code::Scalar { op, scalar, swapped }, &[x])
    }

    fn binary(&mut self, op: Binary, a: Source, b: Source) -> Source {
        self.link(Code::Binary(op), &[a, b])
    }

    fn unary(&mut self, op: Unary, x: Source) -> Option<Source> {
        for_float!(self.links.dtype(x), T => Some(self.link(T::code(Of::Forward(op.handle())), &[x])))
    }

    /// What dropout makes of a number and its mask, forward and backward.
    fn dropped(&mut self, x: Source, mask: Source) -> Option<Source> {
        for_float!(self.links.dtype(x), T => {
            Some(self.link(T::code(Of::Forward(rules::dropped_op())), &[x, mask]))
        })
    }

    /// `None` for what has no link.
    fn op(&mut self, op: &Op) -> Option<()> {
        if let Kind::Grad { .. } = op.kind {
            return self.gradient(op);
        }
        let reads: Option<SmallVec<[Source; 3]>> =
            op.inputs.iter().map(|var| self.at.get(var).copied()).collect();
        let mut reads = reads?;
        // What reads a result of the chain has its shape.
        let operands: Option<SmallVec<[usize; 2]>> = reads.iter().map(|&x| operand(x)).collect();
        self.joint.extend(operands);
        let dtype = self.links.dtype(*reads.first()?);
        let first = match &op.kind {
            Kind::Unary(op) => self.unary(*op, reads[0])?,
            Kind::Formula { op, .. } => {
                // The numbers first, as the formula has them.
                let links = &self.links;
                reads.sort_by_key(|read| links.dtype(*read) == DType::Bool);
                let dtype = self.links.dtype(reads[0]);
                for_float!(dtype, T => {
                    Some(self.link(T::code(Of::Forward(op.typed::<T>()?.clone())), &reads))
                })?
            }
            Kind::Binary(op) => self.binary(*op, reads[0], reads[1]),
            Kind::Scalar { op, scalar, swapped } => self.scalar(*op, reads[0], *scalar, *swapped),
            Kind::Sum => {
                let sum = |sum, &part| self.binary(Binary::Add, sum, part);
                reads[1..].iter().fold(reads[0], sum)
            }
            // As the operator does it.
            Kind::FillLike(value) => self.link(Code::Fill(dtype, *value != 0.0), &[]),
            Kind::Compare(name) => {
                let (test, exchanged) = test(name);
                if exchanged {
                    reads.reverse();
                }
                self.link(Code::Compare(test), &reads)
            }
            Kind::Where => self.link(Code::Where, &reads),
            kind @ Kind::Dropout { .. } if kind.draws() => {
                // Without a name, it stands where the result will.
                let mask = *self.at.get(op.outputs.last()?)?;
                let y = self.dropped(reads[0], mask)?;
                self.at.insert(op.outputs[0], y);
                return Some(());
            }
            Kind::Dropout { .. } => reads[0],
            Kind::Cast(to) if *to == dtype => reads[0],
            Kind::Cast(to) => self.link(Code::Cast(*to), &reads),
            _ => return None,
        };
        self.put(&op.outputs, first);
        Some(())
    }

    /// The results of a link from the first one on.
    fn put(&mut self, outputs: &[VarId], first: Source) {
        for (k, &output) in outputs.iter().enumerate() {
            self.at.insert(output, offset(first, k));
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
        let dtype = self.links.dtype(dy);
        let grads: SmallVec<[Gradient; 2]> = match &forward.kind {
            Kind::Unary(function) => for_float!(dtype, T => {
                self.backward::<T>(function.handle(), forward, &dys, &[0])
            })?,
            Kind::Formula { op, .. } => {
                for_float!(dtype, T => self.of_formula::<T>(op, forward, &dys, wants))?
            }
            Kind::Scalar { op, scalar, swapped } => {
                let x = self.at.get(&forward.inputs[0]).copied();
                let grad = for_float!(dtype, T => {
                    self.of_scalar::<T>((*op, T::nearest(*scalar), *swapped), x, dy)
                });
                smallvec![Gradient::of(grad?)]
            }
            Kind::Binary(function) => {
                for_float!(dtype, T => self.of_binary::<T>(*function, forward, dy, wants))?
            }
            Kind::Where => {
                let mask = *self.at.get(&forward.inputs[0])?;
                let zero = self.link(Code::Fill(dtype, false), &[]);
                let chosen = |&want: &usize| {
                    let reads = if want == 1 { [mask, dy, zero] } else { [mask, zero, dy] };
                    Gradient::of(self.link(Code::Where, &reads))
                };
                wants.iter().map(chosen).collect()
            }
            kind @ Kind::Dropout { .. } if kind.draws() => {
                let mask = *self.at.get(forward.outputs.last()?)?;
                self.exact.extend(operand(mask));
                smallvec![Gradient::of(self.dropped(dy, mask)?)]
            }
            Kind::Dropout { .. } => smallvec![Gradient::of(dy)],
            Kind::Cast(_) => {
                let from = self.graph.vars[op.outputs[0]].form.dtype;
                let cast = if from == dtype { dy } else { self.link(Code::Cast(from), &[dy]) };
                smallvec![Gradient::of(cast)]
            }
            _ => return None,
        };
        for ((&output, &want), &grad) in op.outputs.iter().zip(wants).zip(&grads) {
            self.at.insert(output, grad.source);
            if n > 1
                && let Some(sum) = self.sum(forward, want)
            {
                let sum = if grad.in_pass { Sum::InPass(Box::new(sum)) } else { sum };
                self.sums.insert(output, sum);
            }
        }
        Some(())
    }

    /// How a gradient of an operand that may be stretched is added up.
    fn sum(&self, forward: &Op, want: usize) -> Option<Sum> {
        let input = forward.inputs[want];
        let dims = &self.graph.vars[input].form.dims;
        if surely_same(dims, self.dims) {
            return None;
        }
        if adds_row(self.graph, forward) {
            return (want == 1).then_some(Sum::Row);
        }
        match self.at.get(&input) {
            // It is the operand of an operator of this chain.
            Some(Source::Result(_)) => None,
            Some(Source::Operand(operand)) => Some(Sum::Like(*operand)),
            None => Some(Sum::Dims(dims.clone())),
        }
    }

    /// The gradients of an op, of those inputs that are wanted among the differentiable ones.
    fn backward<T: Linked>(
        &mut self,
        op: Handle<T>,
        forward: &Op,
        dys: &[Option<Source>],
        wants: &[usize],
    ) -> Option<SmallVec<[Gradient; 2]>> {
        let is_mask = |var: &VarId| self.graph.vars[*var].form.dtype == DType::Bool;
        let (masks, numbers): (Vec<VarId>, Vec<VarId>) =
            forward.inputs.iter().partition(|var| is_mask(var));
        let info = op.info();
        let kept = info.keeps_reals.iter().map(|&input| numbers[input]);
        let kept = kept.chain(info.keeps_outputs.iter().map(|&output| forward.outputs[output]));
        let kept: Option<SmallVec<[Source; 4]>> =
            kept.map(|var| self.at.get(&var).copied()).collect();
        let mut reads = kept?;
        // Inputs beside others may be stretched.
        let whole = if forward.inputs.len() > 1 { info.keeps_reals.len() } else { 0 };
        self.exact.extend(reads[whole..].iter().filter_map(|&read| operand(read)));
        let slots: SmallVec<[usize; 2]> = info.gradients.iter().copied().collect();
        let kept = info.keeps_masks.iter().map(|&mask| masks[mask]);
        let kept: Option<SmallVec<[Source; 2]>> =
            kept.map(|var| self.at.get(&var).copied()).collect();
        let inputs = info.differentiable.iter().filter(|has| **has).count();
        let grads = reads.len();
        for slot in slots {
            let grad = dys.get(slot).copied().flatten();
            let zeros = || self.link(Code::Fill(T::DTYPE, false), &[]);
            reads.push(grad.unwrap_or_else(zeros));
        }
        // What is the gradient of an output and nothing else is handed on.
        let handed = |want: usize| Some(reads[grads + (*op.handed().get(want)?)?]);
        let handed: SmallVec<[Option<Source>; 2]> =
            wants.iter().map(|&want| handed(want)).collect();
        reads.extend(kept?);
        let left = |want: usize| {
            let at = wants.iter().position(|other| *other == want);
            at.is_some_and(|at| handed[at].is_none())
        };
        let left: SmallVec<[bool; 4]> = (0..inputs).map(left).collect();
        let place = |want: usize| left[..want].iter().filter(|left| **left).count();
        let is_compiled = op.compiled_backward().is_some();
        let first = match (left.contains(&true), is_compiled) {
            (false, _) => Source::Result(usize::MAX),
            (true, true) => self.link(T::code(Of::Backward(op)), &reads),
            (true, false) => self.link(T::code(Of::Forward(op.backward_alone(&left))), &reads),
        };
        let grad = |(&want, handed): (&usize, &Option<Source>)| match handed {
            Some(source) => Gradient::of(*source),
            None if is_compiled => Gradient { source: offset(first, want), in_pass: true },
            None => Gradient { source: offset(first, place(want)), in_pass: true },
        };
        Some(wants.iter().zip(&handed).map(grad).collect())
    }

    fn of_formula<T: Linked>(
        &mut self,
        op: &Formula,
        forward: &Op,
        dys: &[Option<Source>],
        wants: &[usize],
    ) -> Option<SmallVec<[Gradient; 2]>> {
        let op = op.typed::<T>()?;
        // Gradients are counted through the inputs that have one.
        let is_mask = |var: &VarId| self.graph.vars[*var].form.dtype == DType::Bool;
        let gradient = |want: &usize| {
            let number = forward.inputs[..*want].iter().filter(|var| !is_mask(var)).count();
            let differentiable = &op.info().differentiable;
            differentiable[number]
                .then(|| differentiable[..number].iter().filter(|has| **has).count())
        };
        let wants: Option<SmallVec<[usize; 4]>> = wants.iter().map(gradient).collect();
        self.backward(op.clone(), forward, dys, &wants?)
    }

    /// As `ops::binary` has it.
    fn of_scalar<T: Linked>(
        &mut self,
        (op, s, swapped): (Binary, T, bool),
        x: Option<Source>,
        dy: Source,
    ) -> Option<Source> {
        self.exact.extend(x.and_then(operand));
        let number = s.into_f64();
        Some(match (op, swapped) {
            (Binary::Add, _) | (Binary::Sub, false) => dy,
            (Binary::Sub, true) => self.unary(Unary::Neg, dy)?,
            (Binary::Mul, _) => self.scalar(op, dy, number, false),
            (Binary::Div, false) => self.scalar(op, dy, number, false),
            (Binary::Div, true) => {
                let part = self.scalar(Binary::Mul, dy, -number, false);
                let part = self.binary(Binary::Div, part, x?);
                self.binary(Binary::Div, part, x?)
            }
            (Binary::Pow, false) if s == T::ZERO => self.scalar(Binary::Mul, dy, 0.0, false),
            (Binary::Pow, false) => {
                let power = self.scalar(Binary::Pow, x?, (s - T::ONE).into_f64(), false);
                let part = self.binary(Binary::Mul, dy, power);
                self.scalar(Binary::Mul, part, number, false)
            }
            (Binary::Pow, true) => {
                let power = self.scalar(Binary::Pow, x?, number, true);
                let part = self.binary(Binary::Mul, dy, power);
                self.scalar(Binary::Mul, part, num_traits::Float::ln(s).into_f64(), false)
            }
            (Binary::Maximum | Binary::Minimum, _) => {
                self.link(T::code(Of::Backward(rules::bound(op, s))), &[x?, dy])
            }
        })
    }

    /// As `ops::binary` has it.
    fn of_binary<T: Linked>(
        &mut self,
        op: Binary,
        forward: &Op,
        dy: Source,
        wants: &[usize],
    ) -> Option<SmallVec<[Gradient; 2]>> {
        if let Some(derived) = rules::derived::<T>(op)
            && is_derived(op, wants)
        {
            return self.backward(derived, forward, &[Some(dy)], wants);
        }
        let [a, b] = [0, 1].map(|input| self.at.get(&forward.inputs[input]).copied());
        let mut grads = SmallVec::new();
        for &want in wants {
            grads.push(Gradient::of(match (op, want) {
                (Binary::Mul, 0) => self.binary(op, dy, b?),
                (Binary::Mul, _) => self.binary(op, dy, a?),
                (Binary::Div, _) => self.binary(op, dy, b?),
                (Binary::Sub, 1) => self.unary(Unary::Neg, dy)?,
                _ => dy,
            }));
        }
        Some(grads)
    }
}

/// Whether gradients of a function of two come from its derived rule.
fn is_derived(op: Binary, wants: &[usize]) -> bool {
    match op {
        Binary::Add | Binary::Sub | Binary::Mul => false,
        Binary::Div => wants != [0],
        Binary::Pow | Binary::Maximum | Binary::Minimum => true,
    }
}

/// A comparison, and whether its operands are exchanged.
fn test(name: &str) -> (Test, bool) {
    match name {
        "equal" => (Test::Equal, false),
        "not_equal" => (Test::NotEqual, false),
        "greater" => (Test::Greater, false),
        "greater_equal" => (Test::GreaterEqual, false),
        "less" => (Test::Greater, true),
        _ => (Test::GreaterEqual, true),
    }
}

fn offset(first: Source, by: usize) -> Source {
    match first {
        Source::Result(result) => Source::Result(result + by),
        operand => operand,
    }
}
