//! The nodes that gradients have reached and that have not been visited.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use smallvec::SmallVec;

use super::gradient::accumulate;
use crate::error::Result;
use crate::graph::{AnyTensor, Edge, NodeRef, Slots, To};

/// Up to so many waiting nodes are found by looking at each; a chain has one, a residual net two.
const MAX_SCANNED: usize = 12;

/// A node and the gradients that wait for it.
pub(super) struct Waiting<'g> {
    pub(super) node: &'g NodeRef,
    pub(super) grads: Slots,
    arrival: u64,
}

/// Nodes are visited from high level to low; among equals the one that was reached first.
type Rank = (Reverse<u32>, u64);

impl<'g> Waiting<'g> {
    /// One with the gradient of its first output.
    #[inline]
    pub(super) fn of(node: &'g NodeRef, grad: AnyTensor) -> Self {
        Self { node, grads: alone(0, grad), arrival: 0 }
    }

    fn rank(&self) -> Rank {
        (Reverse(self.node.level), self.arrival)
    }
}

/// Waiting nodes: those that wait for nothing more, the last one first, and then by their rank.
#[derive(Default)]
pub(super) struct Frontier<'g> {
    /// With the gradient of their first output, which is all that can come: their one consumer is
    /// done. Visited at once, they do not pile up, however wide the graph is.
    ready: Vec<(&'g NodeRef, AnyTensor)>,
    /// The one that waits while no other does, with the gradient of its first output: as in a chain.
    lone: Option<(&'g NodeRef, AnyTensor)>,
    list: SmallVec<[Waiting<'g>; 2]>,
    /// Those for which the list has no place.
    many: BTreeMap<Rank, Waiting<'g>>,
    ranks: AddressMap<Rank>,
    arrivals: u64,
}

impl<'g> Frontier<'g> {
    /// Adds a gradient to what waits at output `slot` of a node.
    #[inline]
    pub(super) fn add(&mut self, node: &'g NodeRef, slot: usize, grad: AnyTensor) -> Result<()> {
        if slot == 0 && node.is_sole() {
            self.ready.push((node, grad));
            return Ok(());
        }
        if slot == 0 && self.lone.is_none() && self.list.is_empty() && self.many.is_empty() {
            self.lone = Some((node, grad));
            return Ok(());
        }
        self.add_shared(node, slot, grad)
    }

    #[inline(never)]
    fn add_shared(&mut self, node: &'g NodeRef, slot: usize, grad: AnyTensor) -> Result<()> {
        if let Some((node, grad)) = self.lone.take() {
            self.insert(node, 0, grad);
        }
        match self.waiting(node) {
            Some(waiting) => {
                let grads = &mut waiting.grads;
                if grads.len() <= slot {
                    grads.resize(slot + 1, None);
                }
                accumulate(&mut grads[slot], grad)
            }
            None => {
                self.insert(node, slot, grad);
                Ok(())
            }
        }
    }

    fn waiting(&mut self, node: &NodeRef) -> Option<&mut Waiting<'g>> {
        match self.list.iter().position(|w| address(w.node) == address(node)) {
            Some(position) => self.list.get_mut(position),
            None if self.many.is_empty() => None,
            None => self.many.get_mut(self.ranks.get(&address(node))?),
        }
    }

    fn insert(&mut self, node: &'g NodeRef, slot: usize, grad: AnyTensor) {
        let waiting = Waiting { node, grads: alone(slot, grad), arrival: self.arrivals };
        self.arrivals += 1;
        if self.list.len() < MAX_SCANNED {
            self.list.push(waiting);
        } else {
            self.ranks.insert(address(node), waiting.rank());
            self.many.insert(waiting.rank(), waiting);
        }
    }

    /// The next node to visit: every node that can still reach it with a gradient is done.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Waiting<'g>> {
        match self.pop_ready() {
            Some((node, grad)) => Some(Waiting::of(node, grad)),
            None => self.pop_shared(),
        }
    }

    /// The next one, if its only gradient is that of its first output.
    #[inline(always)]
    pub(super) fn pop_ready(&mut self) -> Option<(&'g NodeRef, AnyTensor)> {
        self.ready.pop().or_else(|| self.lone.take())
    }

    /// The next one where none is ready.
    #[inline]
    pub(super) fn pop_shared(&mut self) -> Option<Waiting<'g>> {
        if self.list.len() <= 1 && self.many.is_empty() {
            return self.list.pop();
        }
        self.pop_first()
    }

    #[inline(never)]
    fn pop_first(&mut self) -> Option<Waiting<'g>> {
        let best = (0..self.list.len()).min_by_key(|&i| self.list[i].rank());
        let first = self.many.first_key_value().map(|(&rank, _)| rank);
        match best {
            Some(i) if first.is_none_or(|rank| self.list[i].rank() < rank) => {
                Some(self.list.swap_remove(i))
            }
            _ => {
                let (_, waiting) = self.many.pop_first()?;
                self.ranks.remove(&address(waiting.node));
                Some(waiting)
            }
        }
    }
}

/// The only gradient of a node so far.
#[inline(always)]
fn alone(slot: usize, grad: AnyTensor) -> Slots {
    if slot == 0 {
        return Slots::from_buf([Some(grad)]);
    }
    let mut grads = Slots::from_elem(None, slot);
    grads.push(Some(grad));
    grads
}

pub(super) fn address(node: &NodeRef) -> *const () {
    node.address()
}

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
pub(super) type Target = (*const (), u32);

pub(super) fn target(edge: &Edge) -> Option<Target> {
    match edge.to() {
        To::None(_) => None,
        To::Node(node, slot) => Some((address(node), slot)),
        To::Leaf(leaf) => Some((leaf.address(), 0)),
    }
}
