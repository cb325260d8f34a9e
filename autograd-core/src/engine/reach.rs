//! What can be reached from a place in the graph.

use std::collections::{HashSet, VecDeque};

use super::frontier::address;
use crate::graph::{Edge, NodeRef};

/// Shows the nodes behind an edge, the nearest first, each once and with the one that led to it,
/// as long as `go_on` says so.
pub(crate) fn walk_down(from: &Edge, mut go_on: impl FnMut(&NodeRef, Option<&NodeRef>) -> bool) {
    let Some(first) = from.node() else { return };
    let mut seen = HashSet::from([address(first)]);
    let mut waiting = VecDeque::from([(first.clone(), None)]);
    while let Some((node, above)) = waiting.pop_front() {
        if !go_on(&node, above.as_ref()) {
            return;
        }
        for edge in node.edges() {
            if let Some(below) = edge.node()
                && seen.insert(address(below))
            {
                waiting.push_back((below.clone(), Some(node.clone())));
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
    let mut seen = HashSet::new();
    let mut waiting = vec![from.clone()];
    while let Some(edge) = waiting.pop() {
        if found(&edge) {
            return true;
        }
        if let Some(node) = edge.node()
            && within(node)
            && seen.insert(address(node))
        {
            waiting.extend(node.edges().iter().cloned());
        }
    }
    false
}
