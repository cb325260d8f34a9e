//! Nodes and edges: what backward walks over.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;

use super::any::{AnyTensor, Element};
use super::lost::Lost;
use super::pack::{Packing, State};
use super::saved::{At, Keeps};
use super::shapes::output_shapes;
use super::tensor::Tensor;
use super::watch;
use crate::error::{Error, HookResult, Result};

/// The gradients that have reached a node, one place for each of its outputs.
pub(crate) type Slots = SmallVec<[Option<AnyTensor>; 1]>;

/// One recorded op. The rule is part of the node's own allocation.
pub(crate) struct Node<R: ?Sized = dyn Rule> {
    /// Greater than the level of every node an edge leads to: backward goes from high to low.
    pub(crate) level: u32,
    /// Whether one edge leads here and no tensor is an output of this node any more.
    sole: AtomicBool,
    /// Where the op was called.
    pub(crate) location: &'static Location<'static>,
    extras: OnceLock<Box<Extras>>,
    pub(crate) rule: R,
}

/// What most nodes never have.
#[derive(Default)]
struct Extras {
    hooks: Mutex<Vec<NodeHook>>,
    /// Outputs that were changed in place, each with its version since.
    changed: Mutex<Vec<(u32, u32)>>,
}

/// What to do when a node is visited.
#[derive(Clone)]
pub(crate) struct NodeHook {
    pub(crate) id: HookId,
    /// Where it was registered.
    pub(crate) location: &'static Location<'static>,
    pub(crate) action: NodeAction,
}

#[derive(Clone)]
pub(crate) enum NodeAction {
    /// Show the gradient of an output, and take another in its place.
    Output(u32, Arc<dyn Fn(&AnyTensor) -> HookResult<Option<AnyTensor>> + Send + Sync>),
    /// Keep the gradient of an output with that output, if it is still alive.
    Retain(u32, Arc<dyn Fn() -> Option<AnyTensor> + Send + Sync>),
    /// Show the gradients of all outputs, and take others in their place.
    Before(Arc<dyn Fn(&[Option<AnyTensor>]) -> HookResult<NewGrads> + Send + Sync>),
    /// Show the gradients of the inputs and of the outputs, and take others for the inputs.
    After(Arc<AfterHook>),
}

/// From the gradients of a node's inputs and outputs.
pub(crate) type AfterHook =
    dyn Fn(&[Option<AnyTensor>], &[Option<AnyTensor>]) -> HookResult<NewGrads> + Send + Sync;

/// Gradients in place of others, if any.
type NewGrads = Option<Vec<Option<AnyTensor>>>;

/// Names a hook among all hooks of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HookId(pub(crate) u64);

impl Node {
    /// Whether a gradient that comes is the only one: its one consumer is the only way here. It
    /// is so for good, unless a recorded backward puts a saved output together again.
    #[inline]
    pub(crate) fn is_sole(&self) -> bool {
        self.sole.load(Ordering::Relaxed)
    }

    /// There is one more way here: another edge, or a tensor that is an output again.
    #[inline]
    pub(super) fn gets_consumer(&self) {
        if self.is_sole() {
            self.sole.store(false, Ordering::Relaxed);
        }
    }

    /// What keeps the gradient of an output is added once.
    pub(crate) fn add_hook(&self, hook: NodeHook) {
        let extras = self.extras.get_or_init(Box::default);
        let mut hooks = extras.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        let keeps = |hook: &NodeHook| match hook.action {
            NodeAction::Retain(slot, _) => Some(slot),
            _ => None,
        };
        let slot = keeps(&hook);
        if slot.is_none() || !hooks.iter().any(|known| keeps(known) == slot) {
            hooks.push(hook);
        }
    }

    /// Whether there was such a hook.
    pub(crate) fn remove_hook(&self, id: HookId) -> bool {
        let Some(extras) = self.extras.get() else { return false };
        let mut hooks = extras.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        let before = hooks.len();
        hooks.retain(|hook| hook.id != id);
        hooks.len() < before
    }

    /// The hooks as they are now, in the order of their registration; `None` if there never was
    /// one.
    #[inline]
    pub(crate) fn hooks(&self) -> Option<Vec<NodeHook>> {
        let extras = self.extras.get()?;
        Some(extras.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Notes that an output was changed in place. The node cannot ask its output: it does not hold
    /// it.
    pub(super) fn output_changed(&self, slot: u32, version: u32) {
        let extras = self.extras.get_or_init(Box::default);
        let mut changed = extras.changed.lock().unwrap_or_else(PoisonError::into_inner);
        match changed.iter_mut().find(|(changed, _)| *changed == slot) {
            Some((_, known)) => *known = version.max(*known),
            None => changed.push((slot, version)),
        }
    }

    /// How often an output was changed in place since it left the op.
    pub(crate) fn output_version(&self, slot: u32) -> u32 {
        let Some(extras) = self.extras.get() else { return 0 };
        let changed = extras.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.iter().find(|(changed, _)| *changed == slot).map_or(0, |&(_, version)| version)
    }
}

/// What a node does in backward.
pub(crate) trait Rule: Send + Sync {
    /// The op's name.
    fn name(&self) -> &'static str;
    /// One for each differentiable input.
    fn edges(&self) -> &[Edge];
    /// Turns the gradients of the outputs into those of the inputs and hands them on.
    fn pull(&self, pull: &mut Pull<'_>) -> Result<()>;
    /// Turns the tangents of the inputs into those of the outputs; `None` where the op has no rule
    /// of its own for that, and `pull` is to be transposed.
    fn push(&self, _push: &mut Push<'_>) -> Result<Option<Slots>> {
        Ok(None)
    }
    /// Whether a user wrote `push`.
    fn has_jvp(&self) -> bool {
        false
    }
    /// Gives the saved tensors to the hooks in force, once, when the node is new.
    fn pack(&mut self, _packing: &Packing<'_>) {}
    /// The saved tensors as backward would get them; `None` where an optional one is absent.
    fn saved(&self, _at: &At<'_>) -> Result<Vec<Option<AnyTensor>>> {
        Ok(Vec::new())
    }
}

/// Who takes the gradients that a rule computes.
pub(crate) trait Sink {
    /// Whether a gradient along this edge is of use.
    fn wants(&self, edge: &Edge) -> bool;
    /// Sees the gradients at a node before its rule runs, and says whether it shall.
    fn passes(&mut self, _node: &Arc<Node>, _grads: &Slots) -> bool {
        true
    }
    /// Takes a gradient along this edge.
    fn deliver(&mut self, edge: &Edge, grad: AnyTensor) -> Result<()>;
}

/// One visit of a node by a backward.
pub(crate) struct Pull<'a> {
    pub(crate) node: &'a Arc<Node>,
    pub(crate) grads: Slots,
    /// Keep the saved state for another backward.
    pub(crate) retain: bool,
    /// Record what this backward computes.
    pub(crate) create_graph: bool,
    pub(crate) sink: &'a mut dyn Sink,
}

/// One visit of a node in forward mode.
pub(crate) struct Push<'a> {
    pub(crate) node: &'a Arc<Node>,
    /// One for each edge.
    pub(crate) tangents: Slots,
    /// Record what is computed here.
    pub(crate) record: bool,
}

impl Push<'_> {
    /// A copy of the saved state; an error where a backward took it.
    pub(crate) fn state<S: Clone>(&self, state: &Mutex<Option<S>>) -> Result<S> {
        let state = state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        state.ok_or(Error::GraphFreed { op: self.node.rule.name(), location: self.node.location })
    }

    pub(crate) fn at(&self) -> At<'_> {
        At {
            op: self.node.rule.name(),
            location: self.node.location,
            node: self.node,
            create_graph: self.record,
        }
    }
}

impl Pull<'_> {
    /// The saved state, taken or, where the graph is retained, copied; an error where an earlier
    /// backward took it.
    pub(crate) fn state<S: Clone>(&self, state: &Mutex<Option<S>>) -> Result<S> {
        let mut held = state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = if self.retain { held.clone() } else { held.take() };
        state.ok_or(Error::GraphFreed { op: self.node.rule.name(), location: self.node.location })
    }

    pub(crate) fn at(&self) -> At<'_> {
        At {
            op: self.node.rule.name(),
            location: self.node.location,
            node: self.node,
            create_graph: self.create_graph,
        }
    }
}

/// Where the gradient of an input goes.
#[derive(Clone)]
pub(crate) enum Edge {
    /// Nowhere: the input wants none.
    None(Absent),
    /// To output `slot` of the op that produced the input.
    Node(NodeRef, u32),
    /// To the leaf itself.
    Leaf(AnyTensor),
}

/// What is known of an input that wants no gradient.
#[derive(Clone, Copy)]
pub(crate) struct Absent {
    /// Why it wants none, though it was computed from what does.
    pub(crate) lost: Lost,
    /// The number of its range, where somebody looks on; else 0.
    pub(crate) seen: u32,
}

impl Edge {
    /// The same edge, from one more node.
    pub(crate) fn again(&self) -> Self {
        if let Self::Node(node, _) = self {
            node.gets_consumer();
        }
        self.clone()
    }

    fn level(&self) -> u32 {
        match self {
            Self::Node(node, _) => node.level + 1,
            Self::None(_) | Self::Leaf(_) => 0,
        }
    }
}

/// A node behind a counted reference whose drop does not recurse: a chain of any length is freed
/// in a loop.
#[derive(Clone)]
pub(crate) struct NodeRef(Option<Arc<Node>>);

impl NodeRef {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self(Some(node))
    }

    /// Records a rule.
    #[inline]
    pub(crate) fn record(rule: impl Rule + 'static, location: &'static Location<'static>) -> Self {
        Self::record_at(Self::level_over(rule.edges()), rule, location)
    }

    /// The level of a node with these edges.
    #[inline]
    pub(crate) fn level_over(edges: &[Edge]) -> u32 {
        edges.iter().map(Edge::level).max().unwrap_or(0)
    }

    /// [`record`](Self::record) of a rule that nothing has looked at: it is built where it stays.
    #[inline(always)]
    pub(crate) fn record_at(
        level: u32,
        rule: impl Rule + 'static,
        location: &'static Location<'static>,
    ) -> Self {
        let mut node: Arc<Node> = Arc::new(Node {
            level,
            sole: AtomicBool::new(false),
            location,
            extras: OnceLock::new(),
            rule,
        });
        if watch::is_on() {
            watch::recorded(&mut node);
        }
        Self(Some(node))
    }

    /// The node of a tensor that gave its place to an edge.
    #[inline]
    pub(super) fn into_edge(self, slot: u32) -> Edge {
        if Arc::strong_count(self.arc()) == 1 {
            self.sole.store(true, Ordering::Relaxed);
        }
        Edge::Node(self, slot)
    }

    #[inline]
    pub(crate) fn arc(&self) -> &Arc<Node> {
        self.0.as_ref().unwrap_or_else(|| unreachable!("only drop takes the node out"))
    }
}

impl std::ops::Deref for NodeRef {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        self.arc()
    }
}

thread_local! {
    static FREEING: Cell<bool> = const { Cell::new(false) };
    /// Nodes whose last reference was dropped while another node was being freed.
    static TO_FREE: RefCell<Vec<Arc<Node>>> = const { RefCell::new(Vec::new()) };
}

impl Drop for NodeRef {
    #[inline]
    fn drop(&mut self) {
        let Some(node) = self.0.take() else { return };
        if Arc::strong_count(&node) == 1 {
            free(node);
        }
    }
}

/// Frees a node that nobody else holds, and those that it held alone.
fn free(node: Arc<Node>) {
    if FREEING.get() {
        // A thread that is ending has no list any more; it frees the node here.
        let mut node = Some(node);
        let _ = TO_FREE.try_with(|list| list.borrow_mut().extend(node.take()));
        return;
    }
    let _freeing = Freeing::start();
    drop(node);
    while let Ok(Some(next)) = TO_FREE.try_with(|list| list.borrow_mut().pop()) {
        drop(next);
    }
}

/// While it lives, nodes that lose their last reference are listed. Ends also where a destructor
/// of user code panics; what is listed then is freed with the next node.
struct Freeing;

impl Freeing {
    fn start() -> Self {
        FREEING.set(true);
        Self
    }
}

impl Drop for Freeing {
    fn drop(&mut self) {
        FREEING.set(false);
    }
}

/// The edges of an op: an array where their number is fixed, a vector for a list of inputs.
pub(crate) trait EdgeList: AsRef<[Edge]> + Send + Sync {
    /// Which inputs want a gradient.
    type Wants;
    /// The gradients, one place for each input.
    type Grads<T: Element>: AsMut<[Option<Tensor<T>>]>;

    fn wants(&self, sink: &dyn Sink) -> Self::Wants;
    /// As if all were wanted.
    fn wants_all(&self) -> Self::Wants;
}

impl<const N: usize> EdgeList for [Edge; N] {
    type Wants = [bool; N];
    type Grads<T: Element> = [Option<Tensor<T>>; N];

    #[inline]
    fn wants(&self, sink: &dyn Sink) -> [bool; N] {
        let mut wants = [false; N];
        for (wants, edge) in wants.iter_mut().zip(self) {
            *wants = sink.wants(edge);
        }
        wants
    }

    fn wants_all(&self) -> [bool; N] {
        [true; N]
    }
}

impl EdgeList for Vec<Edge> {
    type Wants = Vec<bool>;
    type Grads<T: Element> = Vec<Option<Tensor<T>>>;

    fn wants(&self, sink: &dyn Sink) -> Vec<bool> {
        self.iter().map(|edge| sink.wants(edge)).collect()
    }

    fn wants_all(&self) -> Vec<bool> {
        vec![true; self.len()]
    }
}

/// The node of a built-in op: inputs with elements `T`, one output with elements `U`.
pub(crate) struct OpNode<T: Element, U: Element, S: Keeps, E: EdgeList> {
    pub(crate) name: &'static str,
    pub(crate) edges: E,
    pub(crate) state: State<S>,
    pub(crate) pull: PullFn<T, U, S, E>,
}

/// From what was kept, the output's gradient and which inputs want one: the inputs' gradients.
pub(crate) type PullFn<T, U, S, E> =
    fn(<S as Keeps>::Kept, Tensor<U>, <E as EdgeList>::Wants) -> Result<<E as EdgeList>::Grads<T>>;

impl<T: Element, U: Element, S: Keeps, E: EdgeList> Rule for OpNode<T, U, S, E> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn edges(&self) -> &[Edge] {
        self.edges.as_ref()
    }

    fn pull(&self, pull: &mut Pull<'_>) -> Result<()> {
        let kept = self.state.take(pull, &S::visit)?.unpack(&pull.at())?;
        let grad = pull.grads[0].take().and_then(U::unwrap);
        let grad = grad.unwrap_or_else(|| unreachable!("a node is visited when its gradient came"));
        let wants = self.edges.wants(pull.sink);
        let mut grads = (self.pull)(kept, grad, wants)?;
        deliver(self.edges.as_ref(), grads.as_mut(), pull.sink)
    }

    fn pack(&mut self, packing: &Packing<'_>) {
        self.state.pack(packing, &S::visit);
    }

    fn saved(&self, at: &At<'_>) -> Result<Vec<Option<AnyTensor>>> {
        self.state.show(at, &S::visit)
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        if S::PUSHES {
            let shapes = output_shapes(push.node);
            let Some(Some((_, shape))) = shapes.and_then(|shapes| shapes.into_iter().next()) else {
                return Ok(None);
            };
            let kept = self.state.copied(&push.at(), &S::visit)?.unpack(&push.at())?;
            let pushed = S::push(kept, &push.tangents, &shape)?;
            return Ok(pushed.map(|tangent| Slots::from_elem(Some(tangent), 1)));
        }
        if !S::ELEMENTWISE {
            return Ok(None);
        }
        let kept = self.state.copied(&push.at(), &S::visit)?.unpack(&push.at())?;
        let Some(tangent) = push.tangents[0].take().and_then(U::unwrap) else { return Ok(None) };
        let mut pushed = (self.pull)(kept, tangent, self.edges.wants_all())?;
        Ok(Some(wrapped(pushed.as_mut())))
    }
}

// One function for all ops on elements of a type.
#[inline]
fn deliver<T: Element>(
    edges: &[Edge],
    grads: &mut [Option<Tensor<T>>],
    sink: &mut dyn Sink,
) -> Result<()> {
    for (edge, grad) in edges.iter().zip(grads) {
        if let Some(grad) = grad.take() {
            sink.deliver(edge, T::wrap(grad))?;
        }
    }
    Ok(())
}

fn wrapped<T: Element>(tangents: &mut [Option<Tensor<T>>]) -> Slots {
    tangents.iter_mut().map(|tangent| tangent.take().map(T::wrap)).collect()
}
