//! Gradients of some tensors only: which nodes lie on the ways to them.

use super::frontier::{AddressMap, AddressSet, Target, address, target};
use super::reach::{place, topological};
use super::start::ways_to;
use crate::graph::{AnyTensor, Edge, NodeRef, Slots, for_any};

/// Only these gradients are asked for, by `grad`.
pub(super) struct Targets {
    /// Nodes and leaves on a path to a target, and those that are one or have one as an output.
    useful: AddressSet,
    /// The position of each answer.
    pub(super) answers: AddressMap<usize, Target>,
    /// Where gradients stop.
    cut: AddressSet<Target>,
    pub(super) found: Vec<Option<AnyTensor>>,
    /// Which targets an output was computed from.
    pub(super) reached: Vec<bool>,
}

impl Targets {
    /// Which nodes lie between outputs and inputs, where no gradient goes through `no_grad_vars`.
    pub(super) fn find(
        outputs: &[AnyTensor],
        inputs: &[AnyTensor],
        no_grad_vars: &[AnyTensor],
    ) -> Self {
        let edge = |tensor: &AnyTensor| for_any!(tensor, t => t.edge());
        let cut = no_grad_vars.iter().filter_map(|tensor| target(&edge(tensor)));
        let mut targets = Self {
            useful: AddressSet::default(),
            answers: AddressMap::default(),
            cut: cut.collect(),
            found: vec![None; inputs.len()],
            reached: vec![false; inputs.len()],
        };
        for (answer, input) in inputs.iter().enumerate() {
            let edge = edge(input);
            if let Some(target) = target(&edge).filter(|_| !targets.is_cut(&edge)) {
                targets.answers.insert(target, answer);
                targets.useful.extend(place(&edge));
            }
        }
        let ways = ways_to(outputs);
        let order = topological(&ways, |edge| !targets.is_cut(edge));
        for node in order.iter().filter_map(|edge| edge.node()) {
            if node.edges().iter().any(|edge| targets.wants(edge)) {
                targets.useful.insert(address(node));
            }
        }
        let seen: AddressSet = order.into_iter().filter_map(place).collect();
        for ((place, _), &answer) in &targets.answers {
            targets.reached[answer] = seen.contains(place);
        }
        targets
    }

    /// Whether a gradient along this edge leads to a target.
    pub(super) fn wants(&self, edge: &Edge) -> bool {
        place(edge).is_some_and(|place| self.useful.contains(&place)) && !self.is_cut(edge)
    }

    fn is_cut(&self, edge: &Edge) -> bool {
        !self.cut.is_empty() && target(edge).is_some_and(|target| self.cut.contains(&target))
    }

    /// Takes the gradients that are asked for at this node; whether any lies behind it.
    pub(super) fn take(&mut self, node: &NodeRef, grads: &Slots) -> bool {
        for (slot, grad) in (0..).zip(grads) {
            if let Some(&answer) = self.answers.get(&(address(node), slot)) {
                self.found[answer] = grad.clone();
            }
        }
        node.edges().iter().any(|edge| self.wants(edge))
    }
}
