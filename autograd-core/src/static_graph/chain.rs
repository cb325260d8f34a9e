//! Chains: operators on each element that only feed each other, in one pass over memory.

use smallvec::{SmallVec, smallvec};

use super::ir::{Graph, Op, OpId, VarId};
use super::kind::Kind;
use super::plan::Mode;
use super::run::Values;
use super::task::{Failed, Inputs};
use crate::graph::{AnyTensor, Tensor};
use crate::ops::{Binary, Float, Unary, chain};

/// An operator of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) op: OpId,
    /// The step's input that it reads beside what comes through the chain.
    pub(super) other: Option<usize>,
    /// Whether what comes through the chain stands on the right.
    pub(super) swapped: bool,
}

/// How an operator can be part of a chain: positions among its inputs.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    /// What goes through the chain.
    pub(super) main: usize,
    pub(super) other: Option<usize>,
}

impl Turn {
    /// Of two inputs that could go through the chain, one that is in a chain already is preferred.
    pub(super) fn of(
        graph: &Graph,
        op: &Op,
        mode: &Mode,
        goes_on: impl Fn(VarId) -> bool,
    ) -> Option<Self> {
        match (&op.kind, mode) {
            (Kind::Grad { of, wants, .. }, Mode::Direct { deferred: false }) => {
                Self::of_gradient(graph, op, &graph.ops[*of], wants)
            }
            (kind, Mode::Plain) if kind.chains() => {
                let form = &graph.vars[op.outputs[0]].form;
                let candidates =
                    || (0..op.inputs.len()).filter(|&at| graph.vars[op.inputs[at]].form == *form);
                let main =
                    candidates().find(|&at| goes_on(op.inputs[at])).or(candidates().next())?;
                Some(Self { main, other: (op.inputs.len() > 1).then_some(1 - main) })
            }
            _ => None,
        }
    }

    /// Of the gradient of a function of each element, through which the gradient of its output
    /// goes.
    fn of_gradient(graph: &Graph, op: &Op, forward: &Op, wants: &[usize]) -> Option<Self> {
        let main = op.inputs.len() - 1;
        let &[input] = wants else { return None };
        let other = match &forward.kind {
            Kind::Unary(Unary::Neg) => None,
            Kind::Unary(unary) => match unary.reads() {
                _ if !unary.chains() => return None,
                (true, _) => Some(0),
                (_, true) => Some(1),
                _ => return None,
            },
            Kind::Scalar { op: Binary::Add | Binary::Sub | Binary::Mul, .. }
            | Kind::Scalar { op: Binary::Div, swapped: false, .. } => None,
            // Where an axis is free, an operand might be stretched along it.
            Kind::Binary(binary) => {
                let form = &graph.vars[forward.outputs[0]].form;
                let same = |var: &VarId| graph.vars[*var].form == *form;
                if form.dims.contains(&None) || !forward.inputs.iter().all(same) {
                    return None;
                }
                match (binary, input) {
                    (Binary::Add, _) => None,
                    (Binary::Mul, _) | (Binary::Div, 0) => Some(1 - input),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(Self { main, other })
    }
}

/// One pass, or one operator after the other where shapes do not fit that.
pub(super) fn run_chain(
    graph: &Graph,
    head: Option<OpId>,
    links: &[Link],
    mut inputs: Inputs,
) -> Result<Values, Failed> {
    let first = links.first().map_or(0, |link| link.op);
    let missing = || Failed::at(first, "an input is missing");
    let mut x = inputs[0].take().ok_or_else(missing)?;
    if let Some(head) = head {
        let right = inputs[1].take().ok_or_else(missing)?;
        let product = graph.ops[head].kind.run(smallvec![x, right]);
        let product = product.map_err(|why| Failed::at(head, why))?.pop();
        x = product.ok_or_else(|| Failed::at(head, "computed nothing"))?;
    }
    let x = match x {
        AnyTensor::Float32(x) => typed(x, graph, links, &inputs),
        AnyTensor::Float64(x) => typed(x, graph, links, &inputs),
        other => Err(other),
    };
    let mut x = match x {
        Ok(done) => return Ok(smallvec![done]),
        Err(x) => x,
    };
    for link in links {
        let other = link.other.and_then(|at| inputs[at].clone());
        let computed = one(graph, &graph.ops[link.op].kind, x, other, link.swapped);
        x = computed.map_err(|why| Failed::at(link.op, why))?;
    }
    Ok(smallvec![x])
}

/// One operator of a chain by itself.
fn one(
    graph: &Graph,
    kind: &Kind,
    x: AnyTensor,
    other: Option<AnyTensor>,
    swapped: bool,
) -> Result<AnyTensor, String> {
    if let Kind::Grad { of, wants, .. } = kind {
        let forward = &graph.ops[*of].kind;
        let shape = x.clone();
        // What a rule does not read it asks the shape of.
        let inputs = match wants[..] {
            [0] => [Some(&shape), other.as_ref().or(Some(&shape))],
            _ => [other.as_ref().or(Some(&shape)), Some(&shape)],
        };
        let inputs = match forward {
            Kind::Unary(_) => [other.as_ref(), None],
            _ => inputs,
        };
        let wanted = [wants.contains(&0), wants.contains(&1)];
        let grads = forward.pull(inputs, other.as_ref(), x, wanted)?;
        return grads.into_iter().flatten().next().ok_or("its rule gave no gradient".to_owned());
    }
    let operands: Values = match (other, swapped) {
        (None, _) => smallvec![x],
        (Some(other), false) => smallvec![x, other],
        (Some(other), true) => smallvec![other, x],
    };
    kind.run(operands)?.pop().ok_or_else(|| "computed nothing".to_owned())
}

fn typed<T: Float>(
    x: Tensor<T>,
    graph: &Graph,
    links: &[Link],
    inputs: &[Option<AnyTensor>],
) -> Result<AnyTensor, AnyTensor> {
    let mut parts = SmallVec::<[_; 4]>::new();
    for link in links {
        let other = link.other.and_then(|at| inputs[at].as_ref()?.downcast_ref::<T>());
        let kind = &graph.ops[link.op].kind;
        let part = match kind {
            Kind::Grad { of, .. } => gradient_part(&graph.ops[*of].kind, other),
            kind => forward_part(kind, other, link.swapped),
        };
        match part {
            Some(part) => parts.extend(part),
            None => return Err(x.into()),
        }
    }
    chain::chain(x, &parts).map(AnyTensor::from).map_err(AnyTensor::from)
}

/// An operator as a link: `Some(None)` for one that changes nothing.
type Part<'a, T> = Option<Option<chain::Link<'a, T>>>;

fn forward_part<'a, T: Float>(
    kind: &Kind,
    other: Option<&'a Tensor<T>>,
    swapped: bool,
) -> Part<'a, T> {
    Some(Some(match kind {
        Kind::Unary(op) => chain::Link::Unary(*op),
        Kind::Scalar { op, scalar, swapped } => {
            chain::Link::Scalar { op: *op, scalar: T::nearest(*scalar), swapped: *swapped }
        }
        Kind::Binary(op) => chain::Link::With { op: *op, other: other?, swapped },
        _ => return None,
    }))
}

/// The derivative of an operator, which the gradient of its output goes through.
fn gradient_part<'a, T: Float>(forward: &Kind, other: Option<&'a Tensor<T>>) -> Part<'a, T> {
    let scaled =
        |op, scalar: f64| chain::Link::Scalar { op, scalar: T::nearest(scalar), swapped: false };
    Some(match forward {
        Kind::Unary(Unary::Neg) => Some(chain::Link::Unary(Unary::Neg)),
        Kind::Unary(op) => Some(chain::Link::Gradient { op: *op, saved: other? }),
        Kind::Scalar { op: Binary::Add, .. }
        | Kind::Scalar { op: Binary::Sub, swapped: false, .. } => None,
        Kind::Scalar { op: Binary::Sub, swapped: true, .. } => Some(chain::Link::Unary(Unary::Neg)),
        Kind::Scalar { op: op @ (Binary::Mul | Binary::Div), scalar, .. } => {
            Some(scaled(*op, *scalar))
        }
        Kind::Binary(Binary::Add) => None,
        Kind::Binary(op @ (Binary::Mul | Binary::Div)) => {
            Some(chain::Link::With { op: *op, other: other?, swapped: false })
        }
        _ => return None,
    })
}
