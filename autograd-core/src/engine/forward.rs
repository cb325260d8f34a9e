//! Forward mode: tangents go through a recorded graph, from its inputs to its output.
//!
//! A node with a rule for that is asked: a layer with `fn jvp`, a function of each element, what
//! moves elements, a sum, a product, a checkpoint. For every other node the rule of backward is transposed. It is linear in the
//! gradient it gets, so it is recorded on an arbitrary one; a walk through that record, from the
//! tangents of the inputs to that gradient, gives the tangents of the outputs. So every op has a
//! forward mode that is as right as its backward.

use std::collections::{HashMap, HashSet};

use super::frontier::{Frontier, Target, address, target};
use super::gradient::sum;
use super::reach::{reaches, reaches_within};
use super::walk::{Held, visit};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, Edge, GradMode, HookId, NodeRef, Nodes, Pull, Push, Sink, Slots, Tensor, To, adopt,
    collect, for_any, output_shapes,
};
use crate::ops::Float;

/// What a walk in forward mode came to.
pub(crate) enum Pushed {
    /// The tangent; `None` where it is zero because nothing leads there.
    Tangent(Option<AnyTensor>),
    /// Another thread recorded some of the graph, so shapes in it are not known.
    UnknownShapes,
}

enum Stop {
    UnknownShapes,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The tangent of what this edge leads to, from those at `known` edges. The graph is kept;
/// [`ForwardMode`](crate::graph::ForwardMode) must be on since it was recorded.
pub(crate) fn push(
    to: &Edge,
    known: impl IntoIterator<Item = (Edge, Option<AnyTensor>)>,
    record: bool,
) -> Result<Pushed> {
    let _mode = GradMode::set(record);
    match Walk::new(to, known).run(to, record) {
        Ok(tangent) => Ok(Pushed::Tangent(tangent)),
        Err(Stop::UnknownShapes) => Ok(Pushed::UnknownShapes),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Whether an op with a `jvp` of the user's lies behind this edge.
pub(crate) fn has_jvp(from: &Edge) -> bool {
    reaches(from, |edge| edge.node().is_some_and(|node| node.has_jvp()))
}

struct Walk {
    tangents: HashMap<Target, Option<AnyTensor>>,
    /// How many edges still ask for a tangent; after the last it is freed.
    uses: HashMap<Target, usize>,
    /// In the order in which they are visited.
    nodes: Vec<NodeRef>,
}

impl Walk {
    fn new(to: &Edge, known: impl IntoIterator<Item = (Edge, Option<AnyTensor>)>) -> Self {
        let known = known.into_iter().filter_map(|(edge, tangent)| Some((target(&edge)?, tangent)));
        let tangents: HashMap<_, _> = known.collect();
        let (mut uses, mut nodes) = (HashMap::new(), Vec::new());
        let mut seen = HashSet::new();
        let mut waiting = vec![to.clone()];
        while let Some(edge) = waiting.pop() {
            let Some(target) = target(&edge) else { continue };
            *uses.entry(target).or_default() += 1;
            if let Some(node) = edge.node()
                && !tangents.contains_key(&target)
                && seen.insert(address(node))
            {
                waiting.extend(node.edges().iter().cloned());
                nodes.push(node.clone());
            }
        }
        // Every edge leads to a lower level.
        nodes.sort_by_key(|node| node.level);
        Self { tangents, uses, nodes }
    }

    fn run(mut self, to: &Edge, record: bool) -> Result<Option<AnyTensor>, Stop> {
        for node in std::mem::take(&mut self.nodes) {
            let tangents: Slots = node.edges().iter().map(|edge| self.take(edge)).collect();
            if tangents.iter().all(Option::is_none) {
                continue;
            }
            let pushed = push_node(&node, tangents, record)?;
            for (slot, tangent) in (0..).zip(pushed) {
                let target = (address(&node), slot);
                if self.uses.contains_key(&target) {
                    // A known tangent stays what it is.
                    self.tangents.entry(target).or_insert(tangent);
                }
            }
        }
        Ok(self.take(to))
    }

    fn take(&mut self, edge: &Edge) -> Option<AnyTensor> {
        let target = target(edge)?;
        let left = self.uses.get_mut(&target)?;
        *left -= 1;
        if *left == 0 {
            return self.tangents.remove(&target).flatten();
        }
        self.tangents.get(&target).cloned().flatten()
    }
}

fn push_node(node: &NodeRef, tangents: Slots, record: bool) -> Result<Slots, Stop> {
    let mut push = Push { node, tangents, record };
    match node.push(&mut push)? {
        Some(tangents) => Ok(tangents),
        None => transposed(&push),
    }
}

/// The tangents of a node's outputs by its backward.
fn transposed(push: &Push<'_>) -> Result<Slots, Stop> {
    let node = push.node;
    let shapes = output_shapes(node).ok_or(Stop::UnknownShapes)?;
    let seeds: Slots = shapes
        .iter()
        .map(|shape| match shape {
            Some((DType::Float32, shape)) => Some(seed::<f32>(shape)),
            Some((DType::Float64, shape)) => Some(seed::<f64>(shape)),
            _ => None,
        })
        .collect();
    let edges = node.edges();
    let (pulled, own) = collect(|| {
        let _mode = GradMode::set(true);
        let mut wanted = Wanted::new(edges, &push.tangents);
        let grads = vec![None; edges.len()];
        let mut held = Held { edges, grads, sink: &mut wanted };
        let create_graph = push.record;
        let sink = &mut held;
        let pull = &mut Pull { node, retain: true, create_graph, sink, wants_all: false };
        node.pull(seeds.clone(), pull).map(|()| held.grads)
    });
    if push.record {
        adopt(&own);
    }
    let pulled = pulled?;
    let mut ways = Vec::new();
    let mut back = Back { frontier: Frontier::default(), own, seeds, found: Slots::new() };
    back.found.resize(shapes.len(), None);
    for (grad, tangent) in pulled.into_iter().zip(&push.tangents) {
        let (Some(grad), Some(tangent)) = (grad, tangent) else { continue };
        let edge = for_any!(&grad, t => t.edge());
        if !back.leads_to_seed(&edge) && !is_zero(&grad) {
            return Err(Stop::Failed(Error::Unsupported {
                op: node.name(),
                why: "its backward does not compute with the gradient it gets, so forward mode \
                      cannot go through it; write `fn jvp` in the op, or make backward of \
                      differentiable ops"
                    .into(),
            }));
        }
        ways.push((edge, tangent.clone()));
    }
    for (edge, tangent) in &ways {
        back.deliver(edge, tangent.clone())?;
    }
    let until = HookId::coming();
    while let Some(waiting) = back.frontier.pop() {
        visit(waiting, until, (push.record, push.record), &mut None, &mut back)?;
    }
    Ok(back.found)
}

/// An arbitrary gradient: not 0, for which a derivative that is infinite would give NaN.
fn seed<T: Float>(shape: &[usize]) -> AnyTensor {
    let seed = Tensor::<T>::ones(shape);
    seed.set_stop_gradient(false);
    seed.into()
}

fn is_zero(tensor: &AnyTensor) -> bool {
    match tensor {
        AnyTensor::Float32(t) => t.to_vec().iter().all(|x| *x == 0.0),
        AnyTensor::Float64(t) => t.to_vec().iter().all(|x| *x == 0.0),
        _ => true,
    }
}

/// Wants the gradients of inputs that have a tangent.
struct Wanted {
    targets: HashSet<Target>,
}

impl Wanted {
    fn new(edges: &[Edge], tangents: &Slots) -> Self {
        let edges = edges.iter().zip(tangents).filter(|(_, tangent)| tangent.is_some());
        Self { targets: edges.filter_map(|(edge, _)| target(edge)).collect() }
    }
}

impl<'g> Sink<'g> for Wanted {
    fn wants(&self, edge: &Edge) -> bool {
        target(edge).is_some_and(|target| self.targets.contains(&target))
    }

    fn deliver(&mut self, _: &'g Edge, _: AnyTensor) -> Result<()> {
        Ok(())
    }
}

/// From the tangents of the inputs to the gradient that the pull was recorded on.
struct Back<'g> {
    frontier: Frontier<'g>,
    own: Nodes,
    seeds: Slots,
    found: Slots,
}

impl Back<'_> {
    fn seed(&self, leaf: &AnyTensor) -> Option<usize> {
        let is = |seed: &Option<AnyTensor>| {
            seed.as_ref().is_some_and(|seed| seed.address() == leaf.address())
        };
        self.seeds.iter().position(is)
    }

    /// Whether what this edge leads to was computed from a gradient that the pull got.
    fn leads_to_seed(&self, edge: &Edge) -> bool {
        let is_seed = |edge: &Edge| matches!(edge, Edge::Leaf(leaf) if self.seed(leaf).is_some());
        reaches_within(edge, is_seed, |node| self.own.contains(&address(node)))
    }
}

impl<'g> Sink<'g> for Back<'g> {
    fn wants(&self, edge: &Edge) -> bool {
        match edge.to() {
            To::None(_) => false,
            To::Node(node, _) => self.own.contains(&address(node)),
            To::Leaf(leaf) => self.seed(leaf).is_some(),
        }
    }

    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()> {
        match edge.to() {
            To::Node(node, slot) if self.own.contains(&address(node)) => {
                self.frontier.add(node, slot as usize, grad, sum)
            }
            To::Leaf(leaf) => {
                if let Some(slot) = self.seed(leaf) {
                    self.found[slot] = Some(match self.found[slot].take() {
                        Some(before) => sum(before, grad)?,
                        None => grad,
                    });
                }
                Ok(())
            }
            To::Node(..) | To::None(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::ForwardMode;

    /// Whether the op has a rule of its own.
    fn is_direct(f: impl Fn(&[Tensor<f64>; 2]) -> Tensor<f64>) -> bool {
        let _forward = ForwardMode::start();
        let inputs = [[2, 3], [3, 2]].map(|shape| {
            let x = Tensor::<f64>::ones(shape);
            x.set_stop_gradient(false);
            x
        });
        let y = f(&inputs);
        let Some((node, _)) = y.producer() else { return false };
        let tangents = node.edges().iter().map(|edge| match edge {
            Edge::Leaf(leaf) => Some(leaf.alias()),
            _ => None,
        });
        let tangents: Slots = tangents.collect();
        assert!(tangents.iter().any(Option::is_some));
        let _off = GradMode::set(false);
        node.push(&mut Push { node, tangents, record: false }).unwrap().is_some()
    }

    #[test]
    fn common_ops_are_not_transposed() {
        assert!(is_direct(|[a, _]| a + a) && is_direct(|[a, _]| a - 1.0));
        assert!(is_direct(|[a, _]| a * a) && is_direct(|[a, _]| a / a));
        assert!(is_direct(|[a, b]| a.matmul(b)) && is_direct(|[a, _]| a.linear(a, None)));
        assert!(is_direct(|[a, _]| a.sum()) && is_direct(|[a, _]| a.mean_axes(&[1])));
        assert!(is_direct(|[a, _]| a.reshape([6])) && is_direct(|[a, _]| a.transpose()));
        assert!(is_direct(|[a, _]| a.narrow(0, 1, 1)) && is_direct(|[a, _]| a.flip(0)));
        assert!(is_direct(|[a, _]| Tensor::concat(&[a, &a.detach()], 0)));
        assert!(is_direct(|[a, _]| a.gt_scalar(0.0).where_else(a, a)));
        assert!(is_direct(|[a, _]| a.cumsum(0)) && is_direct(|[a, _]| a.broadcast_to([2, 2, 3])));
        assert!(!is_direct(|[a, _]| a.maximum(a)) && !is_direct(|[a, _]| a.max()));
    }
}
