//! What can be reached from a place in the graph.

use std::collections::{HashSet, VecDeque};

use super::frontier::{AddressSet, address};
use crate::graph::{Edge, NodeRef, To};

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
    match edge.to() {
        To::None(_) => None,
        To::Node(node, _) => Some(address(node)),
        To::Leaf(leaf) => Some(leaf.address()),
    }
}

/// Shows the nodes behind an edge, the nearest first, each once and with the one that led to it,
/// as long as `go_on` says so.
pub(crate) fn walk_down(from: &Edge, mut go_on: impl FnMut(&NodeRef, Option<&NodeRef>) -> bool) {
    let Some(first) = from.node() else { return };
    let mut seen = HashSet::from([address(first)]);
    let mut waiting = VecDeque::from([(first, None)]);
    while let Some((node, above)) = waiting.pop_front() {
        if !go_on(node, above) {
            return;
        }
        for below in node.edges().iter().filter_map(Edge::node) {
            if seen.insert(address(below)) {
                waiting.push_back((below, Some(node)));
            }
        }
    }
}

/// Whether an edge that `found` holds for can be reached along this one.
pub(crate) fn reaches(from: &Edge, found: impl Fn(&Edge) -> bool) -> bool {
    reaches_within(from, found, |_| true)
}

/// The same through nodes that `within` holds for.
pub(super) fn reaches_within(
    from: &Edge,
    found: impl Fn(&Edge) -> bool,
    within: impl Fn(&NodeRef) -> bool,
) -> bool {
    let mut reached = false;
    topological(std::slice::from_ref(from), |edge| {
        reached = reached || found(edge);
        !reached && edge.node().is_some_and(&within)
    });
    reached
}
