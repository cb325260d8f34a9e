//! The walk of all backwards: from seeds, through waiting nodes with their hooks and rules, from high levels to low.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::accumulate::accumulate;
use super::hooks;
use super::traversal::{HashAddress, edges_of};
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, Composite, Destination, Edge, Element, Events, HookId, NodeRef, Pull, Sink, Slots,
    Tensor, for_any, is_noting, observes,
};
use crate::ops::options;

/// Options of a backward: what it keeps and records.
///
/// ```
/// use autograd_core::{BackwardOptions, Tensor};
///
/// let x = Tensor::from(3.0);
/// x.set_stop_gradient(false);
/// let y = x.square() * &x;
/// y.backward_options(BackwardOptions::new().create_graph(true).retain_graph(true))?;
/// let dx = x.grad().unwrap();
/// x.clear_grad();
/// dx.backward()?;
/// assert_eq!((dx.item(), x.grad().unwrap().item()), (27.0, 18.0));
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct BackwardOptions {
    pub(super) retain_graph: bool,
    pub(super) create_graph: bool,
}

impl BackwardOptions {
    /// Neither retains the graph nor records.
    ///
    /// ```
    /// use autograd_core::{BackwardOptions, Tensor};
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// let y = x.square();
    /// y.backward_options(BackwardOptions::new())?;
    /// assert!(x.grad().unwrap().stop_gradient());
    /// assert!(y.backward().is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    options! {
        /// Keeps saved tensors, so that the same graph can be walked again.
        ///
        /// ```
        /// use autograd_core::{BackwardOptions, Tensor};
        ///
        /// let x = Tensor::from(3.0);
        /// x.set_stop_gradient(false);
        /// let y = x.square();
        /// y.backward_options(BackwardOptions::new().retain_graph(true))?;
        /// y.backward()?;
        /// assert_eq!(x.grad().unwrap().item(), 6.0 + 6.0);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn retain_graph(retain: bool);

        /// Records the backward itself, so that gradients can be differentiated again; retains the
        /// graph. A leaf then keeps a gradient whose graph leads back to the leaf: call
        /// [`Tensor::clear_grad`](crate::Tensor::clear_grad) when done, or neither is ever freed.
        /// [`grad_with`](crate::grad_with) has no such cycle.
        ///
        /// ```
        /// use autograd_core::{BackwardOptions, Tensor};
        ///
        /// let x = Tensor::from(3.0);
        /// x.set_stop_gradient(false);
        /// x.square().backward_options(BackwardOptions::new().create_graph(true))?;
        /// let dx = x.grad().unwrap();
        /// assert!(!dx.stop_gradient());
        /// x.clear_grad();
        /// dx.backward()?;
        /// assert_eq!(x.grad().unwrap().item(), 2.0);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn create_graph(create: bool);
    }
}

/// [`walk_along`] from outputs and their initial gradients.
pub(super) fn walk<S: for<'g> Sink<'g> + ?Sized>(
    op: &'static str,
    outputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    until: HookId,
    options: BackwardOptions,
    sink: &mut S,
) -> Result<Vec<(AnyTensor, AnyTensor)>> {
    let edges = edges_of(outputs);
    // A trace notes the ops of the rules.
    let node = edges.first().and_then(Edge::node).filter(|_| is_noting());
    let _composite = node.map(|node| Composite::named(op, node.location));
    let starts = outputs.iter().zip(&edges).zip(seeds);
    let starts = starts.filter(|((output, _), _)| !output.stop_gradient());
    let starts =
        starts.map(|((output, edge), seed)| Ok((edge, seed_of(op, output, edge, seed.as_ref())?)));
    walk_along(starts, until, options, sink)
}

/// Walks from gradients along edges to what `sink` wants; only hooks before `until` run. Returns the
/// tensors that retain their gradient, with these gradients.
pub(super) fn walk_along<'g, S: Sink<'g> + ?Sized>(
    starts: impl IntoIterator<Item = Result<(&'g Edge, AnyTensor)>>,
    until: HookId,
    options: BackwardOptions,
    sink: &mut S,
) -> Result<Vec<(AnyTensor, AnyTensor)>> {
    let (frontier, retained) = (Frontier::default(), Vec::new());
    let mut walk = Walk { frontier, until, options, retained, sink };
    for start in starts {
        let (edge, grad) = start?;
        walk.deliver(edge, grad)?;
    }
    let (wants_all, BackwardOptions { retain_graph, create_graph }) = (walk.wants_all(), options);
    let retain = retain_graph || create_graph;
    loop {
        let (node, grads) = match walk.frontier.pop_ready() {
            Some((node, grad)) if wants_all && node.is_unobserved() => {
                let pull = &mut Pull { node, retain, create_graph, sink: &mut walk, wants_all };
                node.pull(Slots::from_buf([Some(grad)]), pull)?;
                continue;
            }
            Some((node, grad)) => (node, single_slot(0, grad)),
            None => match walk.frontier.pop_shared() {
                Some(waiting) => waiting,
                None => return Ok(walk.retained),
            },
        };
        walk.visit(node, grads, retain, wants_all)?;
    }
}

struct Walk<'a, 'g, S: ?Sized> {
    frontier: Frontier<'g>,
    /// Hooks from this one on were registered after the walk began, and do not run in it.
    until: HookId,
    options: BackwardOptions,
    retained: Vec<(AnyTensor, AnyTensor)>,
    sink: &'a mut S,
}

impl<'g, S: Sink<'g> + ?Sized> Sink<'g> for Walk<'_, 'g, S> {
    #[inline]
    fn wants(&self, edge: &Edge) -> bool {
        self.sink.wants(edge)
    }

    fn wants_all(&self) -> bool {
        self.sink.wants_all()
    }

    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()> {
        match edge.to() {
            Destination::Node(node, slot) if !self.sink.ends(edge) => match self.sink.wants(edge) {
                true => self.frontier.add(node, slot as usize, grad),
                false => Ok(()),
            },
            _ => self.sink.deliver(edge, grad),
        }
    }
}

impl<'g, S: Sink<'g> + ?Sized> Walk<'_, 'g, S> {
    #[inline]
    fn visit(
        &mut self,
        node: &'g NodeRef,
        mut grads: Slots,
        retain: bool,
        wants_all: bool,
    ) -> Result<()> {
        let (hooks, until) = (node.hooks(), self.until);
        if let Some(hooks) = hooks {
            hooks::run_before(node, hooks.before(until), &mut grads, &mut self.retained)?;
        }
        if !self.sink.passes(node, &grads)? {
            return Ok(());
        }
        let create_graph = self.options.create_graph;
        let mut pull = Pull { node, retain, create_graph, sink: self, wants_all };
        match hooks {
            Some(hooks) if hooks::has_after(hooks) => hooks::pull_observed(grads, pull, until),
            _ if observes(Events::VALUES) => hooks::pull_observed(grads, pull, until),
            _ => node.pull(grads, &mut pull),
        }
    }
}

/// The waiting nodes. Those that expect no further gradient come first, newest first; then the others
/// from high level to low, and within a level in the order in which they were reached.
#[derive(Default)]
struct Frontier<'g> {
    /// Nodes that expect no further gradient, as their only consumer is done, with the gradient of their
    /// first output. Visited at once, they do not accumulate, however wide the graph is.
    ready: Vec<(&'g NodeRef, AnyTensor)>,
    /// The waiting node if there is only one, as in a chain, with the gradient of its first output.
    lone: Option<(&'g NodeRef, AnyTensor)>,
    /// The gradients of the other waiting nodes, by address.
    waiting: HashMap<*const (), Slots, HashAddress>,
    /// All nodes that ever waited, in the order of arrival, and level and position of those that wait now.
    reached: Vec<&'g NodeRef>,
    queue: BinaryHeap<(u32, Reverse<usize>)>,
}

impl<'g> Frontier<'g> {
    #[inline]
    fn add(&mut self, node: &'g NodeRef, slot: usize, grad: AnyTensor) -> Result<()> {
        if slot == 0 && node.has_single_consumer() {
            self.ready.push((node, grad));
            return Ok(());
        }
        if slot == 0 && self.lone.is_none() && self.queue.is_empty() {
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
        let Some(grads) = self.waiting.get_mut(&node.address()) else {
            self.insert(node, slot, grad);
            return Ok(());
        };
        if grads.len() <= slot {
            grads.resize(slot + 1, None);
        }
        accumulate(&mut grads[slot], grad)
    }

    fn insert(&mut self, node: &'g NodeRef, slot: usize, grad: AnyTensor) {
        self.waiting.insert(node.address(), single_slot(slot, grad));
        self.queue.push((node.level, Reverse(self.reached.len())));
        self.reached.push(node);
    }

    // When a node is popped, every node that could still deliver a gradient to it is done.

    #[inline(always)]
    fn pop_ready(&mut self) -> Option<(&'g NodeRef, AnyTensor)> {
        self.ready.pop().or_else(|| self.lone.take())
    }

    #[inline(never)]
    fn pop_shared(&mut self) -> Option<(&'g NodeRef, Slots)> {
        let (_, Reverse(place)) = self.queue.pop()?;
        let node = self.reached[place];
        Some((node, self.waiting.remove(&node.address())?))
    }
}

#[inline(always)]
fn single_slot(slot: usize, grad: AnyTensor) -> Slots {
    if slot == 0 {
        return Slots::from_buf([Some(grad)]);
    }
    let mut grads = Slots::from_elem(None, slot);
    grads.push(Some(grad));
    grads
}

fn seed_of(
    op: &'static str,
    output: &AnyTensor,
    edge: &Edge,
    seed: Option<&AnyTensor>,
) -> Result<AnyTensor> {
    let shape = output.shape();
    match seed {
        Some(seed) if seed.dtype() != output.dtype() => Err(Error::ElementType {
            op,
            parameter: "seed".into(),
            expected: output.dtype(),
            found: seed.dtype(),
        }),
        Some(seed) if seed.shape() != shape => {
            let (expected, found) = (shape.to_vec(), seed.shape().to_vec());
            Err(Error::SeedShape { op, output: described(edge), expected, found })
        }
        Some(seed) => Ok(seed.clone()),
        None if shape.iter().product::<usize>() == 1 => {
            Ok(for_any!(output, t => first_gradient(t)))
        }
        None => {
            // `op` is the function that was called.
            let with = match op {
                "backward" => Some("backward_with"),
                "grad" => Some("GradOptions::seeds"),
                _ => None,
            };
            Err(Error::SeedMissing { op, output: described(edge), found: shape.to_vec(), with })
        }
    }
}

/// The gradient of an output by itself.
fn first_gradient<T: Element>(output: &Tensor<T>) -> AnyTensor {
    Tensor::<T>::ones_like(output).into()
}

/// Describes an output by its op: `the output of mul (called at src/main.rs:7:13)`.
pub(crate) fn described(edge: &Edge) -> String {
    match edge.node() {
        Some(node) => format!("the output of {} (called at {})", node.name(), node.location),
        None => "a leaf tensor".into(),
    }
}
