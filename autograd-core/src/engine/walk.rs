//! The walk: nodes from high levels to low, their hooks and rules, and the gradients on their way.

use smallvec::SmallVec;

use super::frontier::{AddressMap, Frontier, Waiting, address};
use super::gradient::accumulate;
use super::options::BackwardOptions;
use super::start::{start, ways_to};
use super::targets::Targets;
use super::{anomaly, hooks};
use crate::error::Result;
use crate::graph::{AnyTensor, Edge, HookId, NodeRef, Nodes, Pull, Sink, Slots, To, is_observed};

/// Up to so many leaves are found by looking at each: a map for them would take longer to make.
const MAX_SCANNED: usize = 8;

/// Tensors, and the gradient of each.
pub(super) type Grads = SmallVec<[(AnyTensor, Option<AnyTensor>); 2]>;

/// The gradients that leaves will get at the end.
#[derive(Default)]
pub(super) struct Leaves {
    pub(super) grads: Grads,
    /// By the addresses of the leaves, where there are many.
    positions: AddressMap<usize, usize>,
}

impl Leaves {
    /// Each leaf and its gradient, in the order in which they were reached.
    pub(super) fn into_grads(self) -> impl Iterator<Item = (AnyTensor, AnyTensor)> {
        self.grads.into_iter().filter_map(|(leaf, grad)| Some((leaf, grad?)))
    }

    pub(super) fn add(&mut self, leaf: &AnyTensor, grad: AnyTensor) -> Result<()> {
        let key = leaf.address().addr();
        let is_leaf = |(other, _): &(AnyTensor, _)| other.address().addr() == key;
        let position = match self.grads.last() {
            Some(last) if is_leaf(last) => Some(self.grads.len() - 1),
            _ if self.grads.len() <= MAX_SCANNED => self.grads.iter().position(is_leaf),
            _ => self.positions.get(&key).copied(),
        };
        match position {
            Some(i) => accumulate(&mut self.grads[i].1, grad)?,
            None => {
                self.grads.push((leaf.clone(), Some(grad)));
                if self.grads.len() > MAX_SCANNED {
                    // At first with all that were scanned so far.
                    let mapped = self.positions.len();
                    for (position, (leaf, _)) in self.grads.iter().enumerate().skip(mapped) {
                        self.positions.insert(leaf.address().addr(), position);
                    }
                }
            }
        }
        Ok(())
    }
}

/// What a walk came to.
pub(super) struct Outcome {
    /// The first hook that was registered after it began, and does not run in it.
    pub(super) until: HookId,
    pub(super) leaves: Leaves,
    /// Tensors on the way that keep their gradient, and those gradients; nobody's in `grad`.
    pub(super) retained: Option<Vec<(AnyTensor, AnyTensor)>>,
    pub(super) targets: Option<Targets>,
}

impl Outcome {
    /// Walks from outputs, which start with the gradients `seeds`.
    pub(super) fn of(
        op: &'static str,
        outputs: &[AnyTensor],
        seeds: &[Option<AnyTensor>],
        targets: Option<Targets>,
        options: BackwardOptions,
    ) -> Result<Self> {
        let retained = targets.is_none().then(Vec::new);
        let leaves = Leaves::default();
        let mut outcome = Self { until: HookId::coming(), leaves, retained, targets };
        let ways = ways_to(outputs);
        let mut pass = Pass { frontier: Frontier::default(), outcome: &mut outcome };
        start(&mut pass, op, (outputs, &ways), seeds)?;
        pass.walk(options)?;
        Ok(outcome)
    }
}

/// One walk.
struct Pass<'a, 'g> {
    frontier: Frontier<'g>,
    outcome: &'a mut Outcome,
}

impl<'g> Sink<'g> for Pass<'_, 'g> {
    #[inline]
    fn wants(&self, edge: &Edge) -> bool {
        match &self.outcome.targets {
            None => !matches!(edge, Edge::None(_)),
            Some(targets) => targets.wants(edge),
        }
    }

    fn wants_all(&self) -> bool {
        self.outcome.targets.is_none()
    }

    #[inline]
    fn passes(&mut self, node: &NodeRef, grads: &Slots) -> bool {
        self.outcome.targets.as_mut().is_none_or(|targets| targets.take(node, grads))
    }

    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()> {
        if !self.wants(edge) {
            return Ok(());
        }
        match edge.to() {
            To::None(_) => Ok(()),
            To::Node(node, slot) => self.frontier.add(node, slot as usize, grad),
            To::Leaf(leaf) => self.outcome.leaves.add(leaf, grad),
        }
    }
}

impl Pass<'_, '_> {
    fn walk(&mut self, options: BackwardOptions) -> Result<()> {
        let retain = options.retain_graph || options.create_graph;
        let mut retained = self.outcome.retained.take();
        let (create_graph, until) = (options.create_graph, self.outcome.until);
        loop {
            let waiting = match self.frontier.pop_ready() {
                Some((node, grad)) if self.outcome.targets.is_none() && node.is_unseen() => {
                    let wants_all = true;
                    let pull = &mut Pull { node, retain, create_graph, sink: self, wants_all };
                    node.pull(Slots::from_buf([Some(grad)]), pull)?;
                    continue;
                }
                Some((node, grad)) => Waiting::of(node, grad),
                None => match self.frontier.pop_shared() {
                    Some(waiting) => waiting,
                    None => break,
                },
            };
            visit(waiting, until, (retain, create_graph), &mut retained, self)?;
        }
        self.outcome.retained = retained;
        Ok(())
    }
}

/// A walk through the nodes in `own` only, from gradients along edges; what leads out of them goes to
/// `outside`.
pub(super) fn walk_within<'g>(
    own: &Nodes,
    starts: impl IntoIterator<Item = (&'g Edge, AnyTensor)>,
    create_graph: bool,
    outside: &mut dyn Sink<'g>,
) -> Result<()> {
    let mut part = Part { frontier: Frontier::default(), own, outside };
    starts.into_iter().try_for_each(|(edge, grad)| part.deliver(edge, grad))?;
    // Hooks that were registered while those nodes were recorded are among them.
    let until = HookId::coming();
    while let Some(waiting) = part.frontier.pop() {
        visit(waiting, until, (create_graph, create_graph), &mut None, &mut part)?;
    }
    Ok(())
}

struct Part<'a, 'g> {
    frontier: Frontier<'g>,
    own: &'a Nodes,
    outside: &'a mut dyn Sink<'g>,
}

impl<'g> Sink<'g> for Part<'_, 'g> {
    fn wants(&self, edge: &Edge) -> bool {
        edge.node().is_some_and(|node| self.own.contains(&address(node)))
            || self.outside.wants(edge)
    }

    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()> {
        match edge.to() {
            To::Node(node, slot) if self.own.contains(&address(node)) => {
                self.frontier.add(node, slot as usize, grad)
            }
            _ => self.outside.deliver(edge, grad),
        }
    }
}

/// One node: its hooks before `until`, and then its rule, which hands on to the sink.
#[inline]
pub(super) fn visit<'g, S: Sink<'g>>(
    mut waiting: Waiting<'g>,
    until: HookId,
    (retain, create_graph): (bool, bool),
    retained: &mut Option<Vec<(AnyTensor, AnyTensor)>>,
    sink: &mut S,
) -> Result<()> {
    let node = waiting.node;
    let hooks = node.hooks();
    if let Some(hooks) = hooks {
        hooks::run_before(node, hooks.before(until), &mut waiting.grads, retained)?;
    }
    if !sink.passes(node, &waiting.grads) {
        return Ok(());
    }
    let wants_all = sink.wants_all();
    let (grads, mut pull) = (waiting.grads, Pull { node, retain, create_graph, sink, wants_all });
    match hooks {
        Some(hooks) if hooks::has_after(hooks) => pull_watched(grads, pull, until),
        _ if is_observed() => pull_watched(grads, pull, until),
        _ => node.pull(grads, &mut pull),
    }
}

/// Visits a node and looks at the gradients of its inputs before they go on.
#[cold]
fn pull_watched(grads: Slots, pull: Pull<'_, '_>, until: HookId) -> Result<()> {
    let node = pull.node;
    let edges = node.edges();
    let mut outputs = grads.clone();
    let mut held = Held { edges, grads: vec![None; edges.len()], sink: pull.sink };
    node.pull(grads, &mut Pull { sink: &mut held, ..pull })?;
    let Held { mut grads, sink, .. } = held;
    anomaly::check_gradients(node, &outputs, &grads)?;
    if let Some(hooks) = node.hooks() {
        hooks::run_after(node, hooks.before(until), &mut grads, &mut outputs)?;
    }
    for (edge, grad) in edges.iter().zip(grads) {
        if let Some(grad) = grad {
            sink.deliver(edge, grad)?;
        }
    }
    Ok(())
}

/// Gradients of a node's inputs that are held back.
pub(super) struct Held<'a, 'g> {
    pub(super) edges: &'g [Edge],
    pub(super) grads: Vec<Option<AnyTensor>>,
    pub(super) sink: &'a mut dyn Sink<'g>,
}

impl<'g> Sink<'g> for Held<'_, 'g> {
    fn wants(&self, edge: &Edge) -> bool {
        self.sink.wants(edge)
    }

    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()> {
        // Rules deliver along their own edges, so the place of one is its position.
        let offset = std::ptr::from_ref(edge).addr().wrapping_sub(self.edges.as_ptr().addr());
        let Some(slot) = self.grads.get_mut(offset / size_of::<Edge>()) else {
            return self.sink.deliver(edge, grad);
        };
        accumulate(slot, grad)
    }
}
