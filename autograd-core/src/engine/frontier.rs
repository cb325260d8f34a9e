//! The nodes that gradients have reached and that have not been visited.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use smallvec::SmallVec;

use crate::error::Result;
use crate::graph::{AnyTensor, Edge, NodeRef, Slots, To};

/// Up to so many waiting nodes are found by looking at each; a chain has one, a residual net two.
const MAX_SCANNED: usize = 12;

/// A node and the gradients that wait for it.
pub(crate) struct Waiting<'g> {
    pub(crate) node: &'g NodeRef,
    pub(crate) grads: Slots,
    arrival: u64,
}

impl<'g> Waiting<'g> {
    /// One with the gradient of its first output.
    #[inline]
    pub(crate) fn of(node: &'g NodeRef, grad: AnyTensor) -> Self {
        Self { node, grads: alone(0, grad), arrival: 0 }
    }
}

/// Waiting nodes: those that wait for nothing more, the last one first, and then by level, highest
/// first; among equals the one that was reached first.
#[derive(Default)]
pub(crate) struct Frontier<'g> {
    /// With the gradient of their first output, which is all that can come: their one consumer is
    /// done. Visited at once, they do not pile up, however wide the graph is.
    ready: Vec<(&'g NodeRef, AnyTensor)>,
    /// The one that waits while no other does, with the gradient of its first output: as in a chain. Nothing
    /// is in the lists below then.
    lone: Option<(&'g NodeRef, AnyTensor)>,
    list: SmallVec<[Waiting<'g>; 2]>,
    /// By level: a wide graph has many nodes of one level.
    many: BTreeMap<u32, Row<'g>>,
    /// Level, and place among those that ever waited in its row.
    keys: AddressMap<(u32, usize)>,
    arrivals: u64,
}

/// Waiting nodes of one level, in the order of their arrival.
#[derive(Default)]
struct Row<'g> {
    waiting: VecDeque<Waiting<'g>>,
    /// How many have left.
    gone: usize,
}

impl<'g> Frontier<'g> {
    /// Adds a gradient to what waits at output `slot` of a node.
    #[inline]
    pub(crate) fn add(
        &mut self,
        node: &'g NodeRef,
        slot: usize,
        grad: AnyTensor,
        sum: impl FnOnce(AnyTensor, AnyTensor) -> Result<AnyTensor>,
    ) -> Result<()> {
        if slot == 0 && node.is_sole() {
            self.ready.push((node, grad));
            return Ok(());
        }
        if self.lone.is_none() && self.list.is_empty() && self.many.is_empty() {
            if slot == 0 {
                self.lone = Some((node, grad));
                return Ok(());
            }
            self.list.push(Waiting { node, grads: alone(slot, grad), arrival: self.arrivals });
            self.arrivals += 1;
            return Ok(());
        }
        self.add_shared(node, slot, grad, sum)
    }

    #[inline(never)]
    fn add_shared(
        &mut self,
        node: &'g NodeRef,
        slot: usize,
        grad: AnyTensor,
        sum: impl FnOnce(AnyTensor, AnyTensor) -> Result<AnyTensor>,
    ) -> Result<()> {
        if let Some((node, grad)) = self.lone.take() {
            self.insert(node, 0, grad);
        }
        let slots = match self.list.iter().position(|w| address(w.node) == address(node)) {
            Some(position) => &mut self.list[position].grads,
            None if self.keys.is_empty() => {
                self.insert(node, slot, grad);
                return Ok(());
            }
            None => match self.keys.get(&address(node)) {
                Some(&(level, place)) => match self.many.get_mut(&level) {
                    Some(row) => &mut row.waiting[place - row.gone].grads,
                    None => unreachable!("keys name what waits"),
                },
                None => {
                    self.insert(node, slot, grad);
                    return Ok(());
                }
            },
        };
        if slots.len() <= slot {
            slots.resize(slot + 1, None);
        }
        slots[slot] = Some(match slots[slot].take() {
            Some(before) => sum(before, grad)?,
            None => grad,
        });
        Ok(())
    }

    fn insert(&mut self, node: &'g NodeRef, slot: usize, grad: AnyTensor) {
        let waiting = Waiting { node, grads: alone(slot, grad), arrival: self.arrivals };
        self.arrivals += 1;
        if self.list.len() < MAX_SCANNED {
            self.list.push(waiting);
        } else {
            let row = self.many.entry(node.level).or_default();
            self.keys.insert(address(node), (node.level, row.gone + row.waiting.len()));
            row.waiting.push_back(waiting);
        }
    }

    /// The next node to visit: every node that can still reach it with a gradient is done.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Waiting<'g>> {
        match self.pop_ready() {
            Some((node, grad)) => Some(Waiting::of(node, grad)),
            None => self.pop_shared(),
        }
    }

    /// The next one, if its only gradient is that of its first output.
    #[inline(always)]
    pub(crate) fn pop_ready(&mut self) -> Option<(&'g NodeRef, AnyTensor)> {
        self.ready.pop().or_else(|| self.lone.take())
    }

    /// The next one where none is ready.
    #[inline]
    pub(crate) fn pop_shared(&mut self) -> Option<Waiting<'g>> {
        if self.list.len() <= 1 && self.many.is_empty() {
            return self.list.pop();
        }
        self.pop_first()
    }

    #[inline(never)]
    fn pop_first(&mut self) -> Option<Waiting<'g>> {
        let rank = |w: &Waiting<'_>| (std::cmp::Reverse(w.node.level), w.arrival);
        let best = (0..self.list.len()).min_by_key(|&i| rank(&self.list[i]));
        let last = self.many.last_key_value();
        let first_of_many = last.and_then(|(_, row)| row.waiting.front()).map(rank);
        match (best, first_of_many) {
            (Some(i), Some(key)) if key < rank(&self.list[i]) => self.pop_many(),
            (Some(i), _) => Some(self.list.swap_remove(i)),
            (None, _) => self.pop_many(),
        }
    }

    fn pop_many(&mut self) -> Option<Waiting<'g>> {
        let mut last = self.many.last_entry()?;
        let row = last.get_mut();
        let waiting = row.waiting.pop_front()?;
        row.gone += 1;
        if row.waiting.is_empty() {
            last.remove();
        }
        self.keys.remove(&address(waiting.node));
        Some(waiting)
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

pub(crate) fn address(node: &NodeRef) -> *const () {
    node.address()
}

/// A map by address: addresses are as good as random, so one multiplication hashes them.
pub(crate) type AddressMap<V> = HashMap<*const (), V, BuildHasherDefault<AddressHasher>>;

#[derive(Default)]
pub(crate) struct AddressHasher(u64);

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
