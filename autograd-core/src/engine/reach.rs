//! What can be reached from a place in the graph: by edges, without any gradient; and which of it lies on the
//! ways to the tensors whose gradients are asked for.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::iter::successors;

use smallvec::SmallVec;

use super::gradient::accumulate;
use crate::error::Result;
use crate::graph::{AnyTensor, Edge, NodeRef, Sink, Slots, To, for_any};

/// Where the gradients of outputs go. It holds the graph for a walk.
pub(super) fn ways_to(outputs: &[AnyTensor]) -> Ways {
    outputs.iter().map(|output| for_any!(output, t => t.edge())).collect()
}

/// One for each output.
pub(super) type Ways = SmallVec<[Edge; 1]>;

/// Addresses are as good as random, so one multiplication hashes them.
type HashAddress = BuildHasherDefault<AddressHasher>;
pub(super) type AddressMap<V, K = *const ()> = HashMap<K, V, HashAddress>;
pub(super) type AddressSet<K = *const ()> = HashSet<K, HashAddress>;

#[derive(Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_usize(b.into()));
    }

    fn write_usize(&mut self, n: usize) {
        // 2^64 divided by the golden ratio; the rotation brings the well-mixed bits down.
        self.0 = (self.0 ^ n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
}

/// Where an edge leads, for comparison.
pub(crate) type Target = (*const (), u32);

pub(crate) fn target(edge: &Edge) -> Option<Target> {
    match edge.to() {
        To::None(_) => None,
        To::Node(node, slot) => Some((node.address(), slot)),
        To::Leaf(leaf) => Some((leaf.address(), 0)),
    }
}

/// The edges that first lead to each node and leaf behind `from`, in topological order: a node comes after
/// all that it was computed from. `enter` is asked for every edge of a node that is entered.
pub(super) fn topological<'g>(
    from: &'g [Edge],
    mut enter: impl FnMut(&'g Edge) -> bool,
) -> Vec<&'g Edge> {
    let mut seen = AddressSet::default();
    let (mut order, mut path) = (Vec::new(), Vec::new());
    let mut edges = from.iter();
    loop {
        if let Some(edge) = edges.next() {
            if enter(edge) && place(edge).is_some_and(|place| seen.insert(place)) {
                let inner = edge.node().map_or(&[][..], |node| node.edges());
                path.push((edge, std::mem::replace(&mut edges, inner.iter())));
            }
            continue;
        }
        let Some((edge, outer)) = path.pop() else { return order };
        order.push(edge);
        edges = outer;
    }
}

/// The node or leaf that an edge leads to.
pub(super) fn place(edge: &Edge) -> Option<*const ()> {
    target(edge).map(|(place, _)| place)
}

/// Shows the nodes behind an edge, the nearest first and each once, as long as `go_on` says so. Returns the
/// shortest way to the last one, if that was said no to: from that node up to the first.
pub(crate) fn walk_down(from: &Edge, mut go_on: impl FnMut(&NodeRef) -> bool) -> Vec<&NodeRef> {
    let mut seen = AddressSet::default();
    // Each node, and the place in this list of the one that led to it.
    let mut nodes: Vec<(&NodeRef, usize)> = from.node().map(|node| (node, 0)).into_iter().collect();
    let mut next = 0;
    while let Some(&(node, _)) = nodes.get(next) {
        if !go_on(node) {
            let up = |&place: &usize| (place > 0).then(|| nodes[place].1);
            return successors(Some(next), up).map(|place| nodes[place].0).collect();
        }
        let below = node.edges().iter().filter_map(Edge::node);
        nodes.extend(below.filter(|below| seen.insert(below.address())).map(|below| (below, next)));
        next += 1;
    }
    Vec::new()
}

/// Whether an edge that `found` holds for can be reached along this one.
pub(crate) fn reaches(from: &Edge, found: impl Fn(&Edge) -> bool) -> bool {
    let mut reached = false;
    topological(std::slice::from_ref(from), |edge| {
        reached = reached || found(edge);
        !reached
    });
    reached
}

/// Takes only the gradients that are asked for.
pub(super) struct Targets {
    /// Nodes and leaves on a path to a target, and those that are one or have one as an output.
    useful: AddressSet,
    /// The position of each answer.
    answers: AddressMap<usize, Target>,
    /// Where gradients stop.
    cut: AddressSet<Target>,
    pub(super) found: Vec<Option<AnyTensor>>,
    /// Which targets an output was computed from.
    pub(super) reached: Vec<bool>,
}

impl Targets {
    /// Which nodes that `within` holds for lie between outputs and inputs, where no gradient goes through
    /// `no_grad_vars`.
    pub(super) fn find(
        outputs: &[AnyTensor],
        inputs: &[AnyTensor],
        no_grad_vars: &[AnyTensor],
        within: impl Fn(&NodeRef) -> bool,
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
        let order =
            topological(&ways, |edge| !targets.is_cut(edge) && edge.node().is_none_or(&within));
        for node in order.iter().filter_map(|edge| edge.node()) {
            if node.edges().iter().any(|edge| targets.wants(edge)) {
                targets.useful.insert(node.address());
            }
        }
        let seen: AddressSet = order.into_iter().filter_map(place).collect();
        for ((place, _), &answer) in &targets.answers {
            targets.reached[answer] = seen.contains(place);
        }
        targets
    }

    fn is_cut(&self, edge: &Edge) -> bool {
        !self.cut.is_empty() && target(edge).is_some_and(|target| self.cut.contains(&target))
    }
}

impl<'g> Sink<'g> for Targets {
    fn wants(&self, edge: &Edge) -> bool {
        place(edge).is_some_and(|place| self.useful.contains(&place)) && !self.is_cut(edge)
    }

    fn passes(&mut self, node: &NodeRef, grads: &Slots) -> bool {
        for (slot, grad) in (0..).zip(grads) {
            if let Some(&answer) = self.answers.get(&(node.address(), slot)) {
                self.found[answer] = grad.clone();
            }
        }
        node.edges().iter().any(|edge| self.wants(edge))
    }

    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()> {
        let answer = target(edge).and_then(|target| self.answers.get(&target));
        answer.map_or(Ok(()), |&answer| accumulate(&mut self.found[answer], grad))
    }
}
