//! The tensors whose gradients are wanted, and the nodes on paths to them.

use super::accumulate::{accumulate, own};
use super::traversal::{
    AddressMap, AddressSet, Target, edges_of, target, target_address, topological,
};
use crate::error::Result;
use crate::graph::{AnyTensor, Edge, NodeRef, Sink, Slots};

pub(super) struct Targets {
    /// Nodes and leaves that are on a path to a target, are one, or have one as an output.
    useful: AddressSet,
    answers: AddressMap<usize, Target>,
    cut: AddressSet<Target>,
    /// The nodes and leaves behind the outputs, as far as gradients may flow.
    visited: AddressSet,
    pub(super) found: Vec<Option<AnyTensor>>,
}

impl Targets {
    /// Finds the nodes between the edges `from` and `to` that `within` holds for, cut at `no_grad_vars`.
    pub(super) fn find(
        from: &[Edge],
        to: &[Edge],
        no_grad_vars: &[AnyTensor],
        within: impl Fn(&NodeRef) -> bool,
    ) -> Self {
        let (mut cut, mut useful) = (AddressSet::default(), AddressSet::default());
        for target in edges_of(no_grad_vars).iter().filter_map(target) {
            cut.insert(target, ());
        }
        let mut answers = AddressMap::default();
        for (answer, edge) in to.iter().enumerate().filter(|(_, edge)| !is_in(&cut, edge)) {
            if let Some(target) = target(edge) {
                answers.insert(target, answer);
                useful.insert(target.0, ());
            }
        }
        let enter = |edge: &Edge| !is_in(&cut, edge) && edge.node().is_none_or(&within);
        let visited = topological(from, enter, |edge| {
            if let Some(node) = edge.node()
                && node.edges().iter().any(|edge| leads(edge, &useful, &cut))
            {
                useful.insert(node.address(), ());
            }
        });
        Self { useful, answers, cut, visited, found: vec![None; to.len()] }
    }

    pub(super) fn reaches(&self, to: &Edge) -> bool {
        target(to).is_some_and(|target| {
            self.answers.get(&target).and(self.visited.get(&target.0)).is_some()
        })
    }

    /// The gradients to keep: two inputs may have the same tensor, which may also be a seed or saved.
    pub(super) fn into_found(self) -> Vec<Option<AnyTensor>> {
        self.found.into_iter().map(|grad| grad.map(own)).collect()
    }
}

fn is_in(set: &AddressSet<Target>, edge: &Edge) -> bool {
    target(edge).is_some_and(|target| set.get(&target).is_some())
}

fn leads(edge: &Edge, useful: &AddressSet, cut: &AddressSet<Target>) -> bool {
    target_address(edge).is_some_and(|key| useful.get(&key).is_some()) && !is_in(cut, edge)
}

impl<'g> Sink<'g> for Targets {
    fn wants(&self, edge: &Edge) -> bool {
        leads(edge, &self.useful, &self.cut)
    }

    fn ends(&self, edge: &Edge) -> bool {
        edge.node().is_some_and(|node| node.edges().is_empty())
    }

    fn passes(&mut self, node: &NodeRef, grads: &Slots) -> Result<bool> {
        for (slot, grad) in (0..).zip(grads) {
            if let Some(&answer) = self.answers.get(&(node.address(), slot)) {
                self.found[answer] = grad.clone();
            }
        }
        Ok(node.edges().iter().any(|edge| self.wants(edge)))
    }

    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()> {
        let answer = target(edge).and_then(|target| self.answers.get(&target));
        answer.map_or(Ok(()), |&answer| accumulate(&mut self.found[answer], grad))
    }
}
