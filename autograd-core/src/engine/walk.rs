//! The walk: nodes from high levels to low, their hooks and rules, and the gradients on their way.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use super::backward::BackwardOptions;
use super::frontier::{AddressHasher, Frontier, Waiting, address};
use super::targets::Targets;
use super::{anomaly, hooks};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Edge, Node, NodeHook, Pull, Sink, Slots, Tensor, is_observed};

/// Up to so many leaves are found by looking at each: a map for them would take longer to make.
const FEW: usize = 8;

/// The gradients that leaves will get at the end.
#[derive(Default)]
pub(super) struct Leaves {
    pub(super) grads: Vec<(AnyTensor, AnyTensor)>,
    /// By the addresses of the leaves, where there are many.
    positions: HashMap<usize, usize, BuildHasherDefault<AddressHasher>>,
}

impl Leaves {
    pub(super) fn add(&mut self, leaf: &AnyTensor, grad: AnyTensor) -> Result<()> {
        let key = leaf.address().addr();
        let is_leaf = |(other, _): &(AnyTensor, AnyTensor)| other.address().addr() == key;
        let position = match self.grads.last() {
            Some(last) if is_leaf(last) => Some(self.grads.len() - 1),
            _ if self.grads.len() <= FEW => self.grads.iter().position(is_leaf),
            _ => self.positions.get(&key).copied(),
        };
        match position {
            Some(i) => {
                let (_, slot) = &mut self.grads[i];
                let before = std::mem::replace(slot, AnyTensor::Bool(Tensor::default()));
                *slot = sum(before, grad)?;
            }
            None => {
                self.grads.push((leaf.clone(), grad));
                // The map begins with those that were few.
                let new = match self.grads.len() {
                    0..=FEW => self.grads.len(),
                    n if n == FEW + 1 => 0,
                    n => n - 1,
                };
                for (position, (leaf, _)) in self.grads.iter().enumerate().skip(new) {
                    self.positions.insert(leaf.address().addr(), position);
                }
            }
        }
        Ok(())
    }
}

/// One walk and what it came to.
pub(super) struct Pass {
    frontier: Frontier,
    pub(super) leaves: Leaves,
    /// Tensors on the way that keep their gradient, and those gradients; nobody's in `grad`.
    pub(super) retained: Option<Vec<(AnyTensor, AnyTensor)>>,
    pub(super) targets: Option<Targets>,
}

impl Sink for Pass {
    #[inline]
    fn wants(&self, edge: &Edge) -> bool {
        match (edge, &self.targets) {
            (Edge::None(_), _) => false,
            (_, None) => true,
            (Edge::Node(node, _), Some(targets)) => targets.useful.contains(&address(node.arc())),
            (Edge::Leaf(leaf), Some(targets)) => targets.leaves.contains_key(&leaf.address()),
        }
    }

    fn passes(&mut self, node: &Arc<Node>, grads: &Slots) -> bool {
        self.targets.as_mut().is_none_or(|targets| targets.take(node, grads))
    }

    fn deliver(&mut self, edge: &Edge, grad: AnyTensor) -> Result<()> {
        if !self.wants(edge) {
            return Ok(());
        }
        match edge {
            Edge::None(_) => Ok(()),
            Edge::Node(node, slot) => self.frontier.add(node.arc(), *slot as usize, grad, sum),
            Edge::Leaf(leaf) => self.leaves.add(leaf, grad),
        }
    }
}

/// The sum of two gradients, in the first one's buffer where nobody else holds it.
pub(super) fn sum(a: AnyTensor, b: AnyTensor) -> Result<AnyTensor> {
    match (a, b) {
        (AnyTensor::Float32(a), AnyTensor::Float32(b)) => Ok((a + b).into()),
        (AnyTensor::Float64(a), AnyTensor::Float64(b)) => Ok((a + b).into()),
        (a, b) => Err(Error::ElementType {
            op: "backward",
            parameter: "a gradient".into(),
            expected: a.dtype(),
            found: b.dtype(),
        }),
    }
}

impl Pass {
    pub(super) fn new(targets: Option<Targets>) -> Self {
        let retained = targets.is_none().then(Vec::new);
        Self { frontier: Frontier::default(), leaves: Leaves::default(), retained, targets }
    }

    pub(super) fn walk(&mut self, options: BackwardOptions) -> Result<()> {
        let retain = options.retain_graph || options.create_graph;
        let mut retained = self.retained.take();
        while let Some(waiting) = self.frontier.pop() {
            visit(waiting, retain, options.create_graph, &mut retained, self)?;
        }
        self.retained = retained;
        Ok(())
    }
}

/// One node: hooks, and then its rule, which hands on to the sink.
#[inline]
pub(super) fn visit<S: Sink>(
    mut waiting: Waiting,
    retain: bool,
    create_graph: bool,
    retained: &mut Option<Vec<(AnyTensor, AnyTensor)>>,
    sink: &mut S,
) -> Result<()> {
    let node = waiting.node;
    let hooks = node.hooks();
    if let Some(hooks) = &hooks {
        hooks::run_before(&node, hooks, &mut waiting.grads, retained)?;
    }
    if !sink.passes(&node, &waiting.grads) {
        return Ok(());
    }
    let mut pull = Pull { node: &node, grads: waiting.grads, retain, create_graph, sink };
    match hooks {
        Some(hooks) if hooks::has_after(&hooks) => pull_watched(pull, &hooks),
        _ if is_observed() => pull_watched(pull, &[]),
        _ => node.rule.pull(&mut pull),
    }
}

/// Visits a node and looks at the gradients of its inputs before they go on.
#[cold]
fn pull_watched(pull: Pull<'_>, hooks: &[NodeHook]) -> Result<()> {
    let node = pull.node;
    let edges = node.rule.edges();
    let mut outputs = pull.grads.clone();
    let mut held = Held { edges, grads: vec![None; edges.len()], sink: pull.sink };
    node.rule.pull(&mut Pull { sink: &mut held, ..pull })?;
    let Held { mut grads, sink, .. } = held;
    anomaly::check_gradients(node, &outputs, &grads)?;
    hooks::run_after(node, hooks, &mut grads, &mut outputs)?;
    for (edge, grad) in edges.iter().zip(grads) {
        if let Some(grad) = grad {
            sink.deliver(edge, grad)?;
        }
    }
    Ok(())
}

/// Gradients of a node's inputs that are held back.
pub(super) struct Held<'a> {
    pub(super) edges: &'a [Edge],
    pub(super) grads: Vec<Option<AnyTensor>>,
    pub(super) sink: &'a mut dyn Sink,
}

impl Sink for Held<'_> {
    fn wants(&self, edge: &Edge) -> bool {
        self.sink.wants(edge)
    }

    fn deliver(&mut self, edge: &Edge, grad: AnyTensor) -> Result<()> {
        // Rules deliver along their own edges, so the place of one is its position.
        let offset = std::ptr::from_ref(edge).addr().wrapping_sub(self.edges.as_ptr().addr());
        let Some(slot) = self.grads.get_mut(offset / size_of::<Edge>()) else {
            return self.sink.deliver(edge, grad);
        };
        *slot = Some(match slot.take() {
            Some(before) => sum(before, grad)?,
            None => grad,
        });
        Ok(())
    }
}
