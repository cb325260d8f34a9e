//! Traversal of the graph along edges, and maps by address.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::iter::successors;

use smallvec::SmallVec;

use crate::graph::{AnyTensor, Destination, Edge, NodeRef, for_any};

/// The edges for the gradients of outputs. They keep the graph alive during a walk.
pub(super) fn edges_of(outputs: &[AnyTensor]) -> OutputEdges {
    outputs.iter().map(|output| for_any!(output, t => t.edge())).collect()
}

pub(super) type OutputEdges = SmallVec<[Edge; 1]>;

/// Addresses are as good as random, so one multiplication hashes them.
pub(super) type HashAddress = BuildHasherDefault<AddressHasher>;

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

/// A map by address: a list, with a hash table once it is long.
pub(super) struct AddressMap<V, K = *const ()> {
    pub(super) entries: SmallVec<[(K, V); 4]>,
    /// The positions of entries in the list, if there are more than [`MAX_SCANNED`].
    places: HashMap<K, usize, HashAddress>,
}

const MAX_SCANNED: usize = 8;

pub(super) type AddressSet<K = *const ()> = AddressMap<(), K>;

impl<V, K> Default for AddressMap<V, K> {
    fn default() -> Self {
        Self { entries: SmallVec::new(), places: HashMap::default() }
    }
}

impl<V, K: Copy + Eq + Hash> AddressMap<V, K> {
    fn position(&self, key: &K) -> Option<usize> {
        match self.entries.len() <= MAX_SCANNED {
            true => self.entries.iter().rposition(|(known, _)| known == key),
            false => self.places.get(key).copied(),
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.position(key).map(|at| &self.entries[at].1)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.position(key).map(|at| &mut self.entries[at].1)
    }

    /// Inserts or replaces a value; returns whether the key is new.
    pub(super) fn insert(&mut self, key: K, value: V) -> bool {
        if let Some(before) = self.get_mut(&key) {
            *before = value;
            return false;
        }
        self.entries.push((key, value));
        if self.entries.len() > MAX_SCANNED {
            // The first time these are all entries.
            let new = self.entries.iter().enumerate().skip(self.places.len());
            self.places.extend(new.map(|(at, (key, _))| (*key, at)));
        }
        true
    }
}

pub(crate) type Target = (*const (), u32);

pub(crate) fn target(edge: &Edge) -> Option<Target> {
    match edge.to() {
        Destination::None(_) => None,
        Destination::Node(node, slot) => Some((node.address(), slot)),
        Destination::Leaf(leaf) => Some((leaf.address(), 0)),
    }
}

/// Visits the first edge to each node and leaf behind `from`, in topological order: a node comes after all that
/// it was computed from. `enter` decides which edges of entered nodes to follow. Returns what was visited.
pub(super) fn topological<'g>(
    from: &'g [Edge],
    mut enter: impl FnMut(&'g Edge) -> bool,
    mut visit: impl FnMut(&'g Edge),
) -> AddressSet {
    let mut seen = AddressSet::default();
    let mut path: SmallVec<[_; 4]> = SmallVec::new();
    let mut edges = from.iter();
    loop {
        if let Some(edge) = edges.next() {
            if enter(edge) && target_address(edge).is_some_and(|key| seen.insert(key, ())) {
                let inner = edge.node().map_or(&[][..], |node| node.edges());
                path.push((edge, std::mem::replace(&mut edges, inner.iter())));
            }
            continue;
        }
        let Some((edge, outer)) = path.pop() else { return seen };
        visit(edge);
        edges = outer;
    }
}

pub(super) fn target_address(edge: &Edge) -> Option<*const ()> {
    target(edge).map(|(address, _)| address)
}

/// Calls `descend` with the nodes behind an edge, the nearest first and each once, until it returns false.
/// Returns the shortest path to that last node: from it up to the first; empty if no call returned false.
pub(crate) fn walk_down(from: &Edge, mut descend: impl FnMut(&NodeRef) -> bool) -> Vec<&NodeRef> {
    let mut seen = AddressSet::default();
    // Each node, and the position in this list of the node that led to it.
    let mut nodes: Vec<(&NodeRef, usize)> = from.node().map(|node| (node, 0)).into_iter().collect();
    let mut next = 0;
    while let Some(&(node, _)) = nodes.get(next) {
        if !descend(node) {
            let up = |&place: &usize| (place > 0).then(|| nodes[place].1);
            return successors(Some(next), up).map(|place| nodes[place].0).collect();
        }
        let below = node.edges().iter().filter_map(Edge::node);
        nodes.extend(
            below.filter(|below| seen.insert(below.address(), ())).map(|below| (below, next)),
        );
        next += 1;
    }
    Vec::new()
}

/// Whether an edge that `found` holds for is reachable along this one.
pub(crate) fn reaches(from: &Edge, found: impl Fn(&Edge) -> bool) -> bool {
    let mut reached = false;
    let descend = |edge| {
        reached = reached || found(edge);
        !reached
    };
    topological(std::slice::from_ref(from), descend, |_| {});
    reached
}
