//! A backward that hands out the gradient of each leaf as soon as it is final, and writes none.

use std::panic::Location;

use smallvec::SmallVec;

use super::accumulate::keep;
use super::accumulate::{accumulate, own};
use super::backward::run;
use super::hooks::run_leaf_hooks;
use super::traversal::{AddressMap, edges_of, topological};
use super::walk::{BackwardOptions, walk};
use crate::error::{Error, HookResult, Result};
use crate::graph::{AnyTensor, Edge, HookId, NodeRef, Sink, Slots};

/// [`backward()`](crate::backward()) that passes the gradient of each leaf to `each` instead of adding it to
/// `.grad`: during the walk, as soon as no further op can contribute to it. So a gradient can be sent to another
/// machine, or used by an optimizer and dropped, while others are still computed.
///
/// `each` gets every leaf that has a gradient once, after the hooks on that leaf. The order depends on the
/// graph alone; gradients have the shapes of their leaves. Tensors with
/// [`retain_grads`](crate::Tensor::retain_grads) keep their gradients, and callbacks of
/// [`after_backward`](crate::after_backward) run, when all is done.
///
/// ```
/// use autograd_core::{BackwardOptions, Tensor, backward_each};
///
/// let layers: Vec<_> = (1..4).map(|i| Tensor::from(f64::from(i))).collect();
/// layers.iter().for_each(|w| w.set_stop_gradient(false));
/// let loss = layers.iter().fold(Tensor::from(1.0), |x, w| (x * w).tanh());
///
/// let mut order = Vec::new();
/// backward_each(&[loss.into()], &[None], BackwardOptions::new(), &mut |leaf, grad| {
///     order.extend(layers.iter().position(|w| w.id() == leaf.id()));
///     assert!(grad.norm() > 0.0);
///     Ok(())
/// })?;
/// // The last layer's gradient is final first.
/// assert_eq!(order, [2, 1, 0]);
/// assert!(layers[0].grad().is_none());
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// As [`backward()`](crate::backward()), and [`Error::Hook`] with what `each` returned. The walk ends there, and
/// what `retain_grads` asks for is not written; gradients that `each` has got before stay with it.
#[track_caller]
pub fn backward_each(
    outputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    options: BackwardOptions,
    each: &mut dyn FnMut(&AnyTensor, AnyTensor) -> HookResult<()>,
) -> Result<()> {
    const OP: &str = "backward_each";
    let registered = Location::caller();
    run(OP, outputs, seeds, options, |until| {
        let leaves = PendingLeaves::behind(&edges_of(outputs));
        let mut sink = EachSink { leaves, last: SmallVec::new(), until, registered, each };
        let retained = walk(OP, outputs, seeds, until, options, &mut sink)?;
        sink.finish()?;
        retained.into_iter().for_each(|(tensor, grad)| keep(&tensor, grad));
        Ok(())
    })
}

/// Returns the leaves that gradients of these outputs can reach, each once: those that want a gradient and that some
/// output was computed from. A parameter that is not among them gets no gradient.
///
/// ```
/// use autograd_core::{Tensor, leaves_of};
///
/// let (used, unused) = (Tensor::from(2.0), Tensor::from(3.0));
/// used.set_stop_gradient(false);
/// unused.set_stop_gradient(false);
/// let loss = used.square() + unused.detach();
/// let leaves = leaves_of(&[loss.into()]);
/// assert_eq!(leaves.len(), 1);
/// assert_eq!(leaves[0].id(), used.id());
/// ```
pub fn leaves_of(outputs: &[AnyTensor]) -> Vec<AnyTensor> {
    let leaves = PendingLeaves::behind(&edges_of(outputs));
    leaves.0.entries.into_iter().map(|(_, pending)| pending.leaf).collect()
}

struct Pending {
    leaf: AnyTensor,
    /// The edges to the leaf from nodes whose rules have not run.
    edges: usize,
    sum: Option<AnyTensor>,
}

/// By the addresses of the leaves.
struct PendingLeaves(AddressMap<Pending, usize>);

impl PendingLeaves {
    fn behind(from: &[Edge]) -> Self {
        let mut leaves = Self(AddressMap::default());
        topological(
            from,
            |_| true,
            |edge| match edge {
                // Its first edge: this one starts at an output if no node that is visited later has it.
                Edge::Leaf(leaf) => drop(leaves.of(leaf)),
                edge => leaf_edges(edge.node()).for_each(|leaf| leaves.of(leaf).edges += 1),
            },
        );
        leaves
    }

    fn of(&mut self, leaf: &AnyTensor) -> &mut Pending {
        let key = leaf.address().addr();
        if self.0.get(&key).is_none() {
            self.0.insert(key, Pending { leaf: leaf.clone(), edges: 0, sum: None });
        }
        self.0.get_mut(&key).unwrap_or_else(|| unreachable!("it was inserted"))
    }
}

fn leaf_edges(node: Option<&NodeRef>) -> impl Iterator<Item = &AnyTensor> {
    node.map_or(&[][..], |node| node.edges()).iter().filter_map(|edge| match edge {
        Edge::Leaf(leaf) => Some(leaf),
        _ => None,
    })
}

struct EachSink<'a> {
    leaves: PendingLeaves,
    /// The leaves behind the edges of the node whose rule ran last.
    last: SmallVec<[AnyTensor; 2]>,
    until: HookId,
    registered: &'static Location<'static>,
    each: &'a mut dyn FnMut(&AnyTensor, AnyTensor) -> HookResult<()>,
}

impl EachSink<'_> {
    /// Counts down the edges of the node whose rule ran last, along which nothing more can come.
    fn settle(&mut self) -> Result<()> {
        for leaf in std::mem::take(&mut self.last) {
            let pending = self.leaves.of(&leaf);
            pending.edges -= 1;
            if pending.edges == 0
                && let Some(grad) = pending.sum.take()
            {
                self.emit(&leaf, grad)?;
            }
        }
        Ok(())
    }

    /// Hands out what is left: the leaves behind nodes that no gradient reached.
    fn finish(mut self) -> Result<()> {
        self.settle()?;
        let left = std::mem::take(&mut self.leaves.0.entries);
        let mut left =
            left.into_iter().filter_map(|(_, Pending { leaf, sum, .. })| Some((leaf, sum?)));
        left.try_for_each(|(leaf, grad)| self.emit(&leaf, grad))
    }

    fn emit(&mut self, leaf: &AnyTensor, mut grad: AnyTensor) -> Result<()> {
        run_leaf_hooks(leaf, self.until, &mut grad)?;
        (self.each)(leaf, own(grad)).map_err(|error| Error::Hook {
            op: "a leaf",
            hook: "callback of backward_each".into(),
            registered: self.registered,
            location: None,
            source: error.into(),
        })
    }
}

impl<'g> Sink<'g> for EachSink<'_> {
    fn wants(&self, edge: &Edge) -> bool {
        !matches!(edge, Edge::None(_))
    }

    fn passes(&mut self, node: &NodeRef, _grads: &Slots) -> Result<bool> {
        self.settle()?;
        self.last.extend(leaf_edges(Some(node)).cloned());
        Ok(true)
    }

    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()> {
        match edge {
            Edge::Leaf(leaf) => accumulate(&mut self.leaves.of(leaf).sum, grad),
            _ => Ok(()),
        }
    }
}
