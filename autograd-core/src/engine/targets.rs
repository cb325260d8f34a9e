//! Gradients of some tensors only: which nodes lie on the ways to them.

use std::collections::HashSet;

use super::frontier::{AddressMap, AddressSet, Target, address, target};
use super::reach::{place, topological};
use super::start::ways_to;
use crate::graph::{AnyTensor, Edge, NodeRef, Slots, To, for_any};

/// Only these gradients are asked for, by `grad`.
pub(super) struct Targets {
    /// Nodes on a path to a target, and those whose outputs are targets.
    pub(super) useful: AddressSet,
    /// Targets that are outputs of ops: position of the answer by node and output.
    outputs: Vec<(*const (), usize, usize)>,
    /// Targets that are leaves.
    pub(super) leaves: AddressMap<usize>,
    /// Where gradients stop.
    cut: HashSet<Target>,
    pub(super) found: Vec<Option<AnyTensor>>,
    /// Which targets an output was computed from.
    pub(super) reached: Vec<bool>,
}

impl Targets {
    /// Whether a gradient along this edge leads to a target.
    pub(super) fn wants(&self, edge: &Edge) -> bool {
        let leads = match edge.to() {
            To::None(_) => false,
            To::Node(node, _) => self.useful.contains(&address(node)),
            To::Leaf(leaf) => self.leaves.contains_key(&leaf.address()),
        };
        leads && !self.is_cut(edge)
    }

    fn is_cut(&self, edge: &Edge) -> bool {
        !self.cut.is_empty() && target(edge).is_some_and(|target| self.cut.contains(&target))
    }

    /// Notes that an output was computed from this leaf.
    fn reach(&mut self, leaf: &AnyTensor) {
        if let Some(&answer) = self.leaves.get(&leaf.address()) {
            self.reached[answer] = true;
        }
    }

    /// Takes the gradients that are asked for at this node; whether any lies behind it.
    pub(super) fn take(&mut self, node: &NodeRef, grads: &Slots) -> bool {
        for &(target, slot, answer) in &self.outputs {
            if target == address(node) {
                self.found[answer] = grads.get(slot).cloned().flatten();
            }
        }
        node.edges().iter().any(|edge| self.wants(edge))
    }
}

/// Which nodes lie between outputs and inputs, where no gradient goes through `no_grad_vars`.
pub(super) fn find_targets(
    outputs: &[AnyTensor],
    inputs: &[AnyTensor],
    no_grad_vars: &[AnyTensor],
) -> Targets {
    let edge = |tensor: &AnyTensor| for_any!(tensor, t => t.edge());
    let mut targets = Targets {
        useful: AddressSet::default(),
        outputs: Vec::new(),
        leaves: AddressMap::default(),
        cut: no_grad_vars.iter().filter_map(|tensor| target(&edge(tensor))).collect(),
        found: vec![None; inputs.len()],
        reached: vec![false; inputs.len()],
    };
    for (answer, input) in inputs.iter().enumerate() {
        let edge = edge(input);
        if targets.is_cut(&edge) {
            continue;
        }
        match edge.to() {
            To::None(_) => {}
            To::Node(node, slot) => {
                let key = address(node);
                targets.outputs.push((key, slot as usize, answer));
                targets.useful.insert(key);
            }
            To::Leaf(leaf) => {
                targets.leaves.insert(leaf.address(), answer);
            }
        }
    }
    let ways = ways_to(outputs);
    let order = topological(&ways, |edge| !targets.is_cut(edge));
    for edge in &order {
        match edge.to() {
            To::None(_) => {}
            To::Leaf(leaf) => targets.reach(leaf),
            To::Node(node, _) => {
                if node.edges().iter().any(|edge| targets.wants(edge)) {
                    targets.useful.insert(address(node));
                }
            }
        }
    }
    if !targets.outputs.is_empty() {
        let seen: AddressSet = order.into_iter().filter_map(place).collect();
        for &(node, _, answer) in &targets.outputs {
            targets.reached[answer] = seen.contains(&node);
        }
    }
    targets
}
