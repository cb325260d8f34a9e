//! Chains: operators on each element that only feed each other, in one pass over memory.

use smallvec::{SmallVec, smallvec};

use super::ir::{Graph, Op, OpId, VarId};
use super::kind::Kind;
use super::plan::Mode;
use super::run::{Values, matrices};
use super::task::{Failed, Inputs};
use crate::graph::{AnyTensor, Tensor};
use crate::ops::{Binary, Float, Unary, chain, rules};

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
            Kind::Unary(_) | Kind::Formula { .. } if forward.kind.chains() => {
                let reads = forward.kind.direct()?;
                match (reads.inputs[0], reads.output) {
                    (true, _) => Some(0),
                    (_, true) => Some(1),
                    // As for the sign of what is turned round.
                    _ => None,
                }
            }
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
    mut links: &[Link],
    mut inputs: Inputs,
    mut spare: Option<AnyTensor>,
) -> Result<Values, Failed> {
    let first = links.first().map_or(0, |link| link.op);
    let missing = || Failed::at(first, "an input is missing");
    let mut x = inputs[0].take().ok_or_else(missing)?;
    if let Some(head) = head {
        let right = inputs[1].take().ok_or_else(missing)?;
        match head_with_row(graph, [&x, &right], links, &inputs, &mut spare) {
            Some(done) => (x, links) = (done, &links[1..]),
            None => {
                let product = matrices([&x, &right], [false; 2], spare.take());
                let product = match product {
                    Some(product) => Ok(smallvec![product]),
                    None => graph.ops[head].kind.run(smallvec![x, right]),
                };
                let product = product.map_err(|why| Failed::at(head, why))?.pop();
                x = product.ok_or_else(|| Failed::at(head, "computed nothing"))?;
            }
        }
        if links.is_empty() {
            return Ok(smallvec![x]);
        }
    }
    let x = match x {
        AnyTensor::Float32(x) => typed(x, graph, links, &inputs, spare),
        AnyTensor::Float64(x) => typed(x, graph, links, &inputs, spare),
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

/// A product of matrices with the first link, where that adds a row to it.
fn head_with_row(
    graph: &Graph,
    [a, b]: [&AnyTensor; 2],
    links: &[Link],
    inputs: &[Option<AnyTensor>],
    spare: &mut Option<AnyTensor>,
) -> Option<AnyTensor> {
    let link = links.first()?;
    let Kind::Binary(Binary::Add) = graph.ops[link.op].kind else { return None };
    let row = inputs[link.other?].as_ref()?;
    match (a, b, row) {
        (AnyTensor::Float32(a), AnyTensor::Float32(b), AnyTensor::Float32(row)) => {
            let spare = spare.take().and_then(AnyTensor::downcast);
            rules::product_plus_row(a, b, row, spare).map(AnyTensor::from)
        }
        (AnyTensor::Float64(a), AnyTensor::Float64(b), AnyTensor::Float64(row)) => {
            let spare = spare.take().and_then(AnyTensor::downcast);
            rules::product_plus_row(a, b, row, spare).map(AnyTensor::from)
        }
        _ => None,
    }
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
            Kind::Unary(_) | Kind::Formula { .. } => [other.as_ref(), None],
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
    spare: Option<AnyTensor>,
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
    chain::chain(x, &parts, spare.and_then(AnyTensor::downcast))
        .map(AnyTensor::from)
        .map_err(AnyTensor::from)
}

/// An operator as a link: `Some(None)` for one that changes nothing.
type Part<'a, T> = Option<Option<chain::Link<'a, T>>>;

fn forward_part<'a, T: Float>(
    kind: &Kind,
    other: Option<&'a Tensor<T>>,
    swapped: bool,
) -> Part<'a, T> {
    Some(Some(match kind {
        Kind::Unary(op) => chain::Link::Function(op.handle()),
        Kind::Formula { op, .. } => match (op.typed()?.clone(), other) {
            (op, None) => chain::Link::Function(op),
            (op, Some(other)) => chain::Link::Function2 { op, other, swapped },
        },
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
        Kind::Unary(op) => Some(chain::Link::Gradient { op: op.handle(), saved: other }),
        Kind::Formula { op, .. } => {
            Some(chain::Link::Gradient { op: op.typed()?.clone(), saved: other })
        }
        Kind::Scalar { op: Binary::Add, .. }
        | Kind::Scalar { op: Binary::Sub, swapped: false, .. } => None,
        Kind::Scalar { op: Binary::Sub, swapped: true, .. } => {
            Some(chain::Link::Function(Unary::Neg.handle()))
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::formula::Formula;
    use super::super::ir::{Phase, Place};
    use super::super::plan::Plan;
    use super::super::program::Program;
    use super::super::{Variable, gradients};
    use super::*;
    use crate::array::DType;
    use crate::ops::elementwise::Handle;

    /// A function of the table, as a user's op would be.
    fn formula(program: &Program, op: Unary, x: &Variable) -> Variable {
        let handle: Handle<f64> = op.handle();
        let op = Formula::new(Arc::new(handle));
        let kind = Kind::Formula { name: "theirs", op, outputs: vec![x.form()] };
        let place = Place::Line(std::panic::Location::caller());
        let made = program.graph().push(kind, &[x.id], Phase::Forward, &place).expect("it fits");
        program.variable(made[0])
    }

    #[test]
    fn formulas_are_in_chains_with_their_gradients() {
        let steps = |op: Unary| {
            let program = Program::new();
            let x = program.data("x", [-1, 3], DType::Float64).expect("a new name");
            x.set_stop_gradient(false);
            let y = formula(&program, op, &(&x * 2.0)).exp().expect("floats");
            let dx = gradients(&[&y], &[&x]).expect("a gradient").remove(0).expect("it is wanted");
            let graph = program.graph();
            [Plan::new(&graph, &[y.id], false), Plan::new(&graph, &[dx.id], false)]
                .map(|plan| plan.steps.len())
        };
        // Forward is one pass; for the gradient, what is read again stands by itself, and the first
        // gradient comes from ones.
        assert_eq!(steps(Unary::Tanh)[0], 1);
        assert_eq!(steps(Unary::Tanh)[1], 4);
        assert_eq!(steps(Unary::Sin)[0], 3);
    }
}
