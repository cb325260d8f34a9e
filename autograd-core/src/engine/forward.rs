//! Forward mode: tangents propagate through a recorded graph, from its inputs to its output. Some nodes have
//! a rule for tangents: a custom op with `fn jvp`, an elementwise function, an op that moves elements, a sum, a
//! product, a checkpoint. For every other node the rule of backward is transposed: it is linear in its
//! gradient, so it is recorded on an arbitrary one; a walk through that record, from the inputs' tangents to
//! that gradient, computes those of the outputs.

use std::collections::{HashMap, HashSet};
use std::slice;

use super::accumulate::numbers;
use super::grad::grad_any;
use super::hooks::pull_alone;
use super::targets::Targets;
use super::traversal::{Target, edges_of, reaches, target, topological};
use super::walk::{BackwardOptions, walk};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, Edge, GradMode, HookId, NodeRef, Push, Sink, Slots, Tensor, adopt, collect, for_any,
    for_float, output_shapes,
};
use crate::ops::Float;

pub(super) enum Stop {
    /// Another thread recorded a part of the graph, so shapes in it are not known.
    UnknownShapes,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Returns the tangent of an output from those of inputs, if there are any; `None` if it is zero because none
/// is behind it. A graph of which another thread recorded a part is differentiated by two backwards.
pub(crate) fn tangent(
    y: &AnyTensor,
    inputs: &[AnyTensor],
    tangents: &[Option<AnyTensor>],
    record: bool,
) -> Result<Option<AnyTensor>> {
    let known = edges_of(inputs).into_iter().zip(tangents.iter().cloned());
    match push(&edges_of(slice::from_ref(y))[0], known.filter(|(_, own)| own.is_some()), record) {
        Ok(tangent) => return Ok(tangent),
        Err(Stop::Failed(error)) => return Err(error),
        Err(Stop::UnknownShapes) => {}
    }
    // The product with a cotangent is linear in the cotangent, and its transpose gives the tangent.
    let cotangent = for_float!(y, y => seed_like(y), _ => return Ok(None));
    let options = BackwardOptions::new().retain_graph(true).create_graph(true);
    let grads = grad_any(slice::from_ref(y), inputs, &[Some(cotangent.clone())], options)?;
    let pairs = grads.into_iter().zip(tangents.iter().cloned());
    let found = transpose(pairs, &[cotangent], |_| true, record)?;
    let found = found.ok_or_else(|| Error::Unsupported {
        op: "jvp",
        why: "the backward of an op in the function does not compute with the gradient it \
              gets, so forward mode cannot go through that op; write `fn jvp` in it, make its \
              backward of differentiable ops, or call it on the thread that calls `jvp` to \
              learn its name"
            .into(),
    })?;
    Ok(found.into_iter().next().flatten())
}

/// Returns the tangent of what this edge leads to, from those at `known` edges; `None` if none of them is
/// behind it. The graph is kept; [`ForwardMode`](crate::graph::ForwardMode) must be on since it was recorded.
pub(super) fn push(
    to: &Edge,
    known: impl IntoIterator<Item = (Edge, Option<AnyTensor>)>,
    record: bool,
) -> Result<Option<AnyTensor>, Stop> {
    let _mode = GradMode::set(record);
    let known = known.into_iter().filter_map(|(edge, tangent)| Some((target(&edge)?, tangent)));
    let mut tangents = Tangents { known: known.collect(), uses: HashMap::new() };
    let mut nodes = Vec::new();
    let enter = |edge| {
        let Some(target) = target(edge) else { return false };
        *tangents.uses.entry(target).or_default() += 1;
        !tangents.known.contains_key(&target)
    };
    topological(slice::from_ref(to), enter, |edge| nodes.extend(edge.node()));
    for node in nodes {
        let inputs: Slots = node.edges().iter().map(|edge| tangents.take(edge)).collect();
        if inputs.iter().any(Option::is_some) {
            let mut push = Push { node, tangents: inputs, record };
            let outputs = node.push(&mut push)?.map_or_else(|| transposed(&push), Ok)?;
            tangents.put(node, outputs);
        }
    }
    Ok(tangents.take(to))
}

pub(crate) fn has_jvp(from: &Edge) -> bool {
    reaches(from, |edge| edge.node().is_some_and(|node| node.has_jvp()))
}

struct Tangents {
    known: HashMap<Target, Option<AnyTensor>>,
    /// The number of edges that still need a tangent; it is freed after the last.
    uses: HashMap<Target, usize>,
}

impl Tangents {
    fn put(&mut self, node: &NodeRef, outputs: Slots) {
        for (slot, tangent) in (0..).zip(outputs) {
            let target = (node.address(), slot);
            if self.uses.contains_key(&target) {
                self.known.entry(target).or_insert(tangent);
            }
        }
    }

    fn take(&mut self, edge: &Edge) -> Option<AnyTensor> {
        let target = target(edge)?;
        let left = self.uses.get_mut(&target)?;
        *left -= 1;
        if *left == 0 {
            return self.known.remove(&target).flatten();
        }
        self.known.get(&target).cloned().flatten()
    }
}

fn transposed(push: &Push<'_>) -> Result<Slots, Stop> {
    let node = push.node;
    let shapes = output_shapes(node).ok_or(Stop::UnknownShapes)?;
    let seeds: Vec<Option<AnyTensor>> = shapes
        .iter()
        .map(|shape| match shape {
            Some((DType::Float32, shape)) => Some(seed::<f32>(shape)),
            Some((DType::Float64, shape)) => Some(seed::<f64>(shape)),
            _ => None,
        })
        .collect();
    let moving = node.edges().iter().zip(&push.tangents).filter(|(_, tangent)| tangent.is_some());
    let moving: HashSet<Target> = moving.filter_map(|(edge, _)| target(edge)).collect();
    let wants = &|edge: &Edge| target(edge).is_some_and(|target| moving.contains(&target));
    let pull = || pull_alone(node, seeds.clone().into(), push.record, wants);
    let (pulled, own) = collect(|| GradMode::of(true, pull));
    if push.record {
        adopt(&own);
    }
    let pairs = pulled?.into_iter().zip(push.tangents.iter().cloned());
    let starts: Vec<AnyTensor> = seeds.iter().flatten().cloned().collect();
    let is_own = |node: &NodeRef| own.contains(&node.address());
    let found = transpose(pairs, &starts, is_own, push.record)?;
    let found = found.ok_or_else(|| Error::Unsupported {
        op: node.name(),
        why: "its backward does not compute with the gradient it gets, so forward mode \
              cannot go through it; write `fn jvp` in the op, or make backward of \
              differentiable ops"
            .into(),
    })?;
    let mut found = found.into_iter();
    Ok(seeds.into_iter().map(|seed| seed.and_then(|_| found.next().flatten())).collect())
}

/// Returns the tangents of outputs. `pairs` are the inputs' gradients and tangents; nodes that satisfy `own`
/// recorded these gradients on arbitrary `seeds`. `None` if one that is not zero does not depend on a seed.
fn transpose(
    pairs: impl Iterator<Item = (Option<AnyTensor>, Option<AnyTensor>)>,
    seeds: &[AnyTensor],
    own: impl Fn(&NodeRef) -> bool,
    record: bool,
) -> Result<Option<Vec<Option<AnyTensor>>>> {
    let (grads, along): (Vec<AnyTensor>, Vec<_>) =
        pairs.filter_map(|(grad, tangent)| Some((grad?, Some(tangent?)))).unzip();
    let mut targets = Targets::find(&edges_of(&grads), &edges_of(seeds), &[], own);
    let is_zero = |grad: &AnyTensor| numbers(grad).iter().all(|x| *x == 0.0);
    if grads.iter().any(|grad| !targets.wants(&for_any!(grad, t => t.edge())) && !is_zero(grad)) {
        return Ok(None);
    }
    let options = BackwardOptions::new().create_graph(record);
    let sink: &mut dyn for<'g> Sink<'g> = &mut targets;
    walk("jvp", &grads, &along, HookId::next_id(), options, sink)?;
    Ok(Some(targets.found))
}

/// An arbitrary gradient. It is not 0, which gives NaN if a derivative is infinite.
fn seed<T: Float>(shape: &[usize]) -> AnyTensor {
    let seed = Tensor::<T>::ones(shape);
    seed.set_stop_gradient(false);
    seed.into()
}

fn seed_like<T: Float>(y: &Tensor<T>) -> AnyTensor {
    seed::<T>(y.shape())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::ForwardMode;

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
        assert!(is_direct(|[a, _]| a.sum()) && is_direct(|[a, _]| a.mean_axes([1])));
        assert!(is_direct(|[a, _]| a.reshape([6])) && is_direct(|[a, _]| a.transpose()));
        assert!(is_direct(|[a, _]| a.narrow(0, 1, 1)) && is_direct(|[a, _]| a.flip(0)));
        assert!(is_direct(|[a, _]| Tensor::concat(&[a, &a.detach()], 0)));
        assert!(is_direct(|[a, _]| a.gt_scalar(0.0).where_else(a, a)));
        assert!(is_direct(|[a, _]| a.cumsum(0)) && is_direct(|[a, _]| a.broadcast_to([2, 2, 3])));
        assert!(is_direct(|[a, _]| a.maximum(a)) && is_direct(|[a, _]| a.pow(a)));
        assert!(!is_direct(|[a, _]| a.max()));
    }
}
