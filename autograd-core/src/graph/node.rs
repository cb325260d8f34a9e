//! Nodes and edges: what backward walks over.

use std::cell::{Cell, RefCell};
use std::mem::replace;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{self, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;
use triomphe::Arc;

use super::any::{AnyTensor, Element};
use super::extras::Extras;
use super::lost::Lost;
use super::pack::{Packing, State};
use super::saved::{At, Keeps, typed};
use super::shapes::output_shapes;
use super::small::Small;
use super::tensor::Tensor;
use super::watch;
use crate::error::{Error, Result};

/// The gradients that have reached a node, one place for each of its outputs.
pub(crate) type Slots = SmallVec<[Option<AnyTensor>; 1]>;

/// One recorded op. Nodes come from the memory of earlier ones, which the thread keeps.
// With its count of references 128 bytes. Free ones of up to 120 glibc's allocator hands out in groups of
// seven, each from its end: a long chain that is built again then lies back and forth in memory, and takes
// twice as long.
#[repr(align(16))]
pub(crate) struct Node {
    /// Greater than the level of every node an edge leads to: backward goes from high to low.
    pub(crate) level: u32,
    /// Whether one edge leads here and no tensor is an output of this node any more.
    sole: AtomicBool,
    /// Whether a backward took what a [`Small`] keeps.
    pub(super) taken: AtomicBool,
    /// Where the op was called.
    pub(crate) location: &'static Location<'static>,
    pub(super) extras: OnceLock<sync::Arc<Extras>>,
    work: Work,
}

/// What a node does in backward.
enum Work {
    /// It stands here, and so do its edges and what it keeps.
    Small(Small),
    Rule(Box<dyn Rule>),
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Node>() <= 112);

impl Node {
    /// The memory of one that is to be written.
    #[track_caller]
    fn blank() -> Self {
        Self {
            level: 0,
            sole: AtomicBool::new(false),
            taken: AtomicBool::new(false),
            location: Location::caller(),
            extras: OnceLock::new(),
            work: Work::Small(Small::BLANK),
        }
    }

    /// Drops all that is held but the memory itself.
    #[inline]
    fn blank_out(&mut self) {
        match &mut self.work {
            Work::Small(small) => small.blank_out(),
            work => {
                if let Work::Rule(rule) = replace(work, Work::Small(Small::BLANK)) {
                    rule.leave();
                }
            }
        }
        if self.extras.get().is_some() {
            self.extras.take();
        }
    }

    /// The op's name.
    pub(crate) fn name(&self) -> &'static str {
        match &self.work {
            Work::Small(small) => small.op.name(),
            Work::Rule(rule) => rule.name(),
        }
    }

    /// As [`Rule::edges`].
    pub(crate) fn edges(&self) -> &[Edge] {
        match &self.work {
            Work::Small(small) => small.edges(),
            Work::Rule(rule) => rule.edges(),
        }
    }

    /// As [`Rule::pull`].
    #[inline(always)]
    pub(crate) fn pull<'g>(&'g self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        match &self.work {
            Work::Small(small) => small.pull(&self.taken, only(grads), pull),
            Work::Rule(rule) => rule.pull(grads, pull),
        }
    }

    /// The same of one with one output.
    #[inline(always)]
    pub(crate) fn pull_only<'g>(&'g self, grad: AnyTensor, pull: &mut Pull<'_, 'g>) -> Result<()> {
        match &self.work {
            Work::Small(small) => small.pull(&self.taken, grad, pull),
            Work::Rule(rule) => rule.pull(Slots::from_buf([Some(grad)]), pull),
        }
    }

    /// Whether nobody looks at the gradients that come here and go on.
    #[inline(always)]
    pub(crate) fn is_unseen(&self) -> bool {
        self.extras.get().is_none() && !watch::is_observed()
    }

    /// As [`Rule::push`].
    pub(crate) fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        match &self.work {
            // Forward mode observes, and then there are none.
            Work::Small(_) => Ok(None),
            Work::Rule(rule) => rule.push(push),
        }
    }

    /// As [`Rule::has_jvp`].
    pub(crate) fn has_jvp(&self) -> bool {
        match &self.work {
            Work::Small(small) => small.op.has_jvp(),
            Work::Rule(rule) => rule.has_jvp(),
        }
    }

    /// What can give the saved tensors away, where nobody else has the node.
    pub(super) fn rule_mut(&mut self) -> Option<&mut dyn Rule> {
        match &mut self.work {
            Work::Small(_) => None,
            Work::Rule(rule) => Some(&mut **rule),
        }
    }

    /// A small op, where nobody else has the node.
    #[inline(always)]
    fn small_mut(&mut self) -> Option<&mut Small> {
        match &mut self.work {
            Work::Small(small) => Some(small),
            Work::Rule(_) => None,
        }
    }

    /// As [`Rule::saved`].
    pub(crate) fn saved(&self, at: &At<'_>) -> Result<Vec<Option<AnyTensor>>> {
        match &self.work {
            Work::Small(small) => small.saved(&self.taken, at),
            Work::Rule(rule) => rule.saved(at),
        }
    }

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
}

/// What a node does in backward.
pub(crate) trait Rule: Send + Sync {
    /// The op's name.
    fn name(&self) -> &'static str;
    /// One for each differentiable input.
    fn edges(&self) -> &[Edge];
    /// Turns the gradients of the outputs into those of the inputs and hands them on.
    fn pull<'g>(&'g self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()>;
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
    /// Its node is gone.
    fn leave(self: Box<Self>) {}
    /// The saved tensors as backward would get them; `None` where an optional one is absent.
    fn saved(&self, _at: &At<'_>) -> Result<Vec<Option<AnyTensor>>> {
        Ok(Vec::new())
    }
}

/// Who takes the gradients that a rule computes, in a graph that stays for `'g`: a walk counts no
/// references to its nodes.
pub(crate) trait Sink<'g> {
    /// Whether a gradient along this edge is of use.
    fn wants(&self, edge: &Edge) -> bool;
    /// Whether one along any edge is that leads somewhere.
    fn wants_all(&self) -> bool {
        false
    }
    /// Sees the gradients at a node before its rule runs, and says whether it shall.
    fn passes(&mut self, _node: &NodeRef, _grads: &Slots) -> bool {
        true
    }
    /// Takes a gradient along this edge.
    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()>;
}

/// One visit of a node by a backward.
pub(crate) struct Pull<'a, 'g> {
    pub(crate) node: &'g NodeRef,
    /// Keep the saved state for another backward.
    pub(crate) retain: bool,
    /// Record what this backward computes.
    pub(crate) create_graph: bool,
    pub(crate) sink: &'a mut dyn Sink<'g>,
    /// Of the sink: [`Sink::wants_all`].
    pub(crate) wants_all: bool,
}

/// One visit of a node in forward mode.
pub(crate) struct Push<'a> {
    pub(crate) node: &'a NodeRef,
    /// One for each edge.
    pub(crate) tangents: Slots,
    /// Record what is computed here.
    pub(crate) record: bool,
}

impl Push<'_> {
    /// A copy of the saved state; an error where a backward took it.
    pub(crate) fn state<S: Clone>(&self, state: &Mutex<Option<S>>) -> Result<S> {
        let state = state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        state.ok_or(Error::GraphFreed { op: self.node.name(), location: self.node.location })
    }

    pub(crate) fn at(&self) -> At<'_> {
        At {
            op: self.node.name(),
            location: self.node.location,
            node: self.node,
            create_graph: self.record,
        }
    }
}

impl Pull<'_, '_> {
    /// Whether a gradient along this edge is of use.
    #[inline]
    pub(crate) fn wants(&self, edge: &Edge) -> bool {
        !matches!(edge, Edge::None(_)) && (self.wants_all || self.sink.wants(edge))
    }

    /// The saved state, taken or, where the graph is retained, copied; an error where an earlier
    /// backward took it.
    pub(crate) fn state<S: Clone>(&self, state: &Mutex<Option<S>>) -> Result<S> {
        let mut held = state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = if self.retain { held.clone() } else { held.take() };
        state.ok_or(Error::GraphFreed { op: self.node.name(), location: self.node.location })
    }

    pub(crate) fn at(&self) -> At<'_> {
        At {
            op: self.node.name(),
            location: self.node.location,
            node: self.node,
            create_graph: self.create_graph,
        }
    }
}

/// The gradient of the only output of a node.
#[inline(always)]
pub(crate) fn only(grads: Slots) -> AnyTensor {
    match grads.into_inner() {
        Ok([Some(grad)]) => grad,
        Ok([None]) => never_came(),
        // What a hook gave may lie elsewhere.
        Err(grads) => grads.into_iter().next().flatten().unwrap_or_else(|| never_came()),
    }
}

#[cold]
fn never_came() -> ! {
    unreachable!("a node is visited when its gradient came")
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
    /// The number of its range, where there is an observer; else 0.
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

// What a rule keeps stands behind locks that a panic does not close. A backward that panics leaves a node
// with what it kept, or as one whose graph was freed.
impl UnwindSafe for NodeRef {}
impl RefUnwindSafe for NodeRef {}

impl NodeRef {
    /// Records a rule.
    pub(crate) fn record(rule: impl Rule + 'static, location: &'static Location<'static>) -> Self {
        Self::record_boxed(Box::new(rule), location)
    }

    /// The same of one that stands by itself already.
    pub(crate) fn record_boxed(rule: Box<dyn Rule>, location: &'static Location<'static>) -> Self {
        let level = rule.edges().iter().map(Edge::level).max().unwrap_or(0);
        let mut blank = Blank::new(level, location);
        blank.content().work = Work::Rule(rule);
        let mut node = blank.done();
        if watch::is_on() {
            watch::recorded(&mut node);
        }
        node
    }

    /// The node of a tensor that gave its place to an edge.
    #[inline(always)]
    pub(super) fn into_edge(self, slot: u32) -> Edge {
        if self.arc().is_unique() {
            self.sole.store(true, Ordering::Relaxed);
        }
        Edge::Node(self, slot)
    }

    #[inline]
    fn arc(&self) -> &Arc<Node> {
        match &self.0 {
            Some(node) => node,
            None => taken_out(),
        }
    }

    /// The node, if nobody else holds it.
    pub(super) fn alone(&mut self) -> Option<&mut Node> {
        self.0.as_mut().and_then(Arc::get_mut)
    }

    /// A small op that is still being recorded: nobody else has the node.
    #[inline(always)]
    pub(crate) fn small_mut(&mut self) -> Option<&mut Small> {
        self.alone()?.small_mut()
    }

    /// Identity, as long as it lives: [`Node::token`] is for longer.
    #[inline]
    pub(crate) fn address(&self) -> *const () {
        Arc::as_ptr(self.arc()).cast()
    }
}

/// A node that is being recorded: what it does is written where it stays.
pub(crate) struct Blank(Arc<Node>);

impl Blank {
    #[inline(always)]
    pub(crate) fn new(level: u32, location: &'static Location<'static>) -> Self {
        let spare = SPARES.try_with(|spares| spares.borrow_mut().pop()).ok().flatten();
        let mut blank = Self(spare.unwrap_or_else(new_node));
        let node = blank.content();
        node.level = level;
        *node.sole.get_mut() = false;
        *node.taken.get_mut() = false;
        node.location = location;
        blank
    }

    #[inline(always)]
    fn content(&mut self) -> &mut Node {
        match Arc::get_mut(&mut self.0) {
            Some(node) => node,
            None => taken_out(),
        }
    }

    /// Where a small op is described.
    #[inline(always)]
    pub(crate) fn small(&mut self) -> &mut Small {
        match self.content().small_mut() {
            Some(small) => small,
            None => taken_out(),
        }
    }

    /// The level, where the edges tell it.
    #[inline(always)]
    pub(crate) fn raise(&mut self, level: u32) {
        self.content().level = level;
    }

    #[inline(always)]
    pub(crate) fn done(self) -> NodeRef {
        NodeRef(Some(self.0))
    }
}

#[cold]
fn new_node() -> Arc<Node> {
    Arc::new(Node::blank())
}

/// Only what drops a reference takes it out. Not a panic that may be caught: code between two uses would
/// have to be ready to free what it holds, and could not keep that in registers.
#[cold]
pub(super) extern "C" fn taken_out() -> ! {
    unreachable!("a reference is used after it was dropped")
}

impl std::ops::Deref for NodeRef {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        self.arc()
    }
}

/// How many nodes without content a thread keeps: 17 MiB. They are used again in the order in which they lie.
const KEPT: usize = 1 << 17;

thread_local! {
    static SPARES: RefCell<Vec<Arc<Node>>> = const { RefCell::new(Vec::new()) };
    static TO_FREE: ToFree = const {
        ToFree { freeing: Cell::new(false), last: Cell::new(None), others: RefCell::new(Vec::new()) }
    };
}

/// Gives back what this thread keeps of nodes that are gone.
pub(super) fn empty_nodes() {
    SPARES.take();
}

impl Drop for NodeRef {
    #[inline]
    fn drop(&mut self) {
        match self.0.take() {
            Some(node) if node.is_unique() => free(node),
            _ => {}
        }
    }
}

/// Frees a node that nobody else holds, and those that it held alone.
fn free(node: Arc<Node>) {
    let mut node = Some(node);
    // A thread that is ending has no list any more; it frees the node, and what that holds, here.
    let _ = TO_FREE.try_with(|list| {
        if list.freeing.get() {
            list.add(node.take());
            return;
        }
        let _freeing = Freeing::start(list);
        while let Some(next) = node.take().or_else(|| list.next()) {
            give_back(next);
        }
    });
}

#[inline]
fn give_back(mut node: Arc<Node>) {
    let Some(content) = Arc::get_mut(&mut node) else { return };
    content.blank_out();
    let _ = SPARES.try_with(|spares| {
        let mut spares = spares.borrow_mut();
        if spares.len() < KEPT {
            spares.push(node);
        }
    });
}

/// Nodes whose last reference was dropped while another node was being freed. A chain has one.
struct ToFree {
    freeing: Cell<bool>,
    last: Cell<Option<Arc<Node>>>,
    others: RefCell<Vec<Arc<Node>>>,
}

impl ToFree {
    #[inline]
    fn add(&self, node: Option<Arc<Node>>) {
        if let Some(before) = self.last.replace(node) {
            self.others.borrow_mut().push(before);
        }
    }

    #[inline]
    fn next(&self) -> Option<Arc<Node>> {
        self.last.take().or_else(|| self.others.borrow_mut().pop())
    }
}

/// While it lives, nodes that lose their last reference are listed. Ends also where a destructor
/// of user code panics; what is listed then is freed with the next node.
struct Freeing<'a>(&'a ToFree);

impl<'a> Freeing<'a> {
    fn start(list: &'a ToFree) -> Self {
        list.freeing.set(true);
        Self(list)
    }
}

impl Drop for Freeing<'_> {
    fn drop(&mut self) {
        self.0.freeing.set(false);
    }
}

/// The edges of an op: an array where their number is fixed, a vector for a list of inputs.
pub(crate) trait EdgeList: AsRef<[Edge]> + Send + Sync {
    /// Which inputs want a gradient.
    type Wants;
    /// The gradients, one place for each input.
    type Grads<T: Element>: AsMut<[Option<Tensor<T>>]>;

    fn wants(&self, pull: &Pull<'_, '_>) -> Self::Wants;
    /// As if all were wanted.
    fn wants_all(&self) -> Self::Wants;
}

impl<const N: usize> EdgeList for [Edge; N] {
    type Wants = [bool; N];
    type Grads<T: Element> = [Option<Tensor<T>>; N];

    #[inline]
    fn wants(&self, pull: &Pull<'_, '_>) -> [bool; N] {
        let mut wants = [false; N];
        for (wants, edge) in wants.iter_mut().zip(self) {
            *wants = pull.wants(edge);
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

    fn wants(&self, pull: &Pull<'_, '_>) -> Vec<bool> {
        self.iter().map(|edge| pull.wants(edge)).collect()
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

    fn pull<'g>(&'g self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let kept = self.state.take(pull.retain, &pull.at(), &S::visit)?.unpack(&pull.at())?;
        let grad = typed(only(grads));
        let wants = self.edges.wants(pull);
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
            let state = self.state.take(true, &push.at(), &S::visit)?;
            let pushed = state.tangent(&push.at(), &push.tangents, &shape)?;
            return Ok(pushed.map(|tangent| Slots::from_elem(Some(tangent), 1)));
        }
        if !S::ELEMENTWISE {
            return Ok(None);
        }
        let kept = self.state.take(true, &push.at(), &S::visit)?.unpack(&push.at())?;
        let Some(tangent) = push.tangents[0].take().and_then(U::unwrap) else { return Ok(None) };
        let mut pushed = (self.pull)(kept, tangent, self.edges.wants_all())?;
        Ok(Some(wrapped(pushed.as_mut())))
    }
}

// One function for all ops on elements of a type.
#[inline]
pub(crate) fn deliver<'g, T: Element>(
    edges: &'g [Edge],
    grads: &mut [Option<Tensor<T>>],
    sink: &mut dyn Sink<'g>,
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
