//! What can be reached from a place in the graph.

use std::iter::successors;

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
        nodes.extend(below.filter(|below| seen.insert(address(below))).map(|below| (below, next)));
        next += 1;
    }
    Vec::new()
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
