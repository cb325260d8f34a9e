//! Nodes, the recorded ops that backward walks over.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::mem::{forget, replace};
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{self, OnceLock};

use smallvec::SmallVec;
use triomphe::{Arc, UniqueArc};

use super::any::AnyTensor;
use super::context::{Events, observes};
use super::memory_cache::MemoryCache;
use super::mode::Composite;
use super::node_parts::{
    Edge, Edges, Extras, Packed, Plain, Role, Saved, SavedEntries, SavedState, SavedTensor,
};
use crate::array::DType;
use crate::error::Result;

/// The gradients that have reached a node, one slot for each of its outputs.
pub(crate) type Slots = SmallVec<[Option<AnyTensor>; 1]>;

/// One recorded op. Its memory comes from the thread's cache of dropped nodes.
pub(crate) struct Node {
    /// Greater than the level of every node that an edge leads to: backward visits high levels first.
    pub(crate) level: u32,
    /// Whether exactly one edge leads to this node and no tensor is its output any more.
    single_consumer: AtomicBool,
    taken: AtomicBool,
    pub(crate) location: &'static Location<'static>,
    pub(super) extras: OnceLock<sync::Arc<Extras>>,
    op: &'static dyn Op,
    edges: Edges,
    state: SavedState,
}

// With the reference count 136 bytes, for which the allocator uses as much as for 128.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Node>() <= 128);

impl Node {
    #[track_caller]
    fn blank() -> Self {
        Self {
            level: 0,
            single_consumer: AtomicBool::new(false),
            taken: AtomicBool::new(false),
            location: Location::caller(),
            extras: OnceLock::new(),
            op: &Blank,
            edges: Edges::ONE_ABSENT,
            state: SavedState::NOTHING,
        }
    }

    /// Empties the node. Returns its predecessor in a chain, if only this node referred to it.
    #[inline]
    fn clear(&mut self) -> Option<UniqueArc<Node>> {
        self.state.clear();
        if self.extras.get().is_some() {
            self.extras.take();
        }
        if let Edges::One(Edge::Node(before)) = &mut self.edges
            && before.arc().is_unique()
        {
            return before.0.take().and_then(|before| Arc::try_unique(before).ok());
        }
        self.edges = Edges::ONE_ABSENT;
        None
    }

    pub(crate) fn name(&self) -> &'static str {
        self.op.name_of(self)
    }

    #[inline]
    pub(crate) fn edges(&self) -> &[Edge] {
        self.edges.as_slice()
    }

    #[inline(always)]
    pub(crate) fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let _composite = pull.create_graph.then(|| Composite::at(self.location));
        self.op.pull(grads, pull)
    }

    pub(crate) fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let _composite = push.record.then(|| Composite::at(self.location));
        self.op.push(push)
    }

    pub(crate) fn has_jvp(&self) -> bool {
        self.op.has_jvp()
    }

    #[cold]
    pub(crate) fn saved_name(&self, role: Role, position: usize) -> String {
        self.op.saved_name(role, position)
    }

    /// The op's data beside tensors, kept as long as the node.
    #[inline]
    pub(crate) fn attrs<A: 'static>(&self) -> Option<&A> {
        self.state.attrs()?.downcast_ref()
    }

    /// The saved entries: taken, or copied if `retain`; `None` if they were taken before.
    #[inline(always)]
    pub(super) fn entries(&self, retain: bool) -> Option<SavedEntries<'_>> {
        if self.taken.load(Ordering::Relaxed) {
            return None;
        }
        if !retain {
            // Two concurrent backwards may both pass; each gets all entries or none.
            self.taken.store(true, Ordering::Relaxed);
        }
        self.state.entries(retain)
    }

    pub(crate) fn is_freed(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }

    /// What the node holds beside its edges. The saved entries are taken, as by a backward.
    pub(crate) fn take_record(&self) -> NodeRecord {
        let entries = match self.entries(false) {
            Some(SavedEntries::Here(entries)) => entries.to_vec(),
            Some(SavedEntries::Taken(entries)) => entries,
            None => Vec::new(),
        };
        let attrs = self.state.attrs().cloned();
        NodeRecord { op: self.op, attrs, entries, location: self.location }
    }

    pub(super) fn pack(
        &mut self,
        pack: impl Fn(&Node, SavedTensor, usize) -> sync::Arc<dyn Packed>,
    ) {
        let mut state = replace(&mut self.state, SavedState::NOTHING);
        state.pack(|saved, position| pack(self, saved, position));
        self.state = state;
    }

    #[inline(always)]
    pub(crate) fn is_unobserved(&self) -> bool {
        self.extras.get().is_none() && !observes(Events::VALUES)
    }

    /// Whether the node has a single consumer. Stays so, unless a recorded backward rebuilds a saved output.
    #[inline]
    pub(crate) fn has_single_consumer(&self) -> bool {
        self.single_consumer.load(Ordering::Relaxed)
    }

    /// Notes one more consumer: another edge, or a tensor that is an output again.
    #[inline]
    pub(super) fn add_consumer(&self) {
        if self.has_single_consumer() {
            self.single_consumer.store(false, Ordering::Relaxed);
        }
    }
}

/// A node without its edges, for a call whose record is kept elsewhere.
#[derive(Clone)]
pub(crate) struct NodeRecord {
    pub(crate) op: &'static dyn Op,
    pub(crate) attrs: Option<Plain>,
    pub(crate) entries: Vec<Saved>,
    pub(crate) location: &'static Location<'static>,
}

pub(crate) trait Op: Send + Sync {
    fn name(&self) -> &'static str;
    /// The name of a call, for ops whose calls have different names.
    fn name_of(&self, _node: &Node) -> &'static str {
        self.name()
    }
    fn input_name(&self, position: usize) -> String {
        input_name(position)
    }
    /// The name of a saved tensor in errors; `position` counts all saved tensors.
    fn saved_name(&self, role: Role, position: usize) -> String {
        match role {
            Role::Input(input) => self.input_name(input.into()),
            role => saved_name(role, position),
        }
    }
    /// Whether a user wrote the rule of `push`.
    fn has_jvp(&self) -> bool {
        false
    }
    /// Computes the gradients of the inputs from those of the outputs and delivers them.
    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()>;
    /// Computes the outputs' tangents from those of the inputs; `None` without a rule: `pull` is transposed.
    fn push(&self, _push: &mut Push<'_>) -> Result<Option<Slots>> {
        Ok(None)
    }
}

fn saved_name(role: Role, position: usize) -> String {
    match role {
        Role::Output(0) | Role::OutputValue(0) => "its output".into(),
        Role::Output(slot) | Role::OutputValue(slot) => format!("output {slot}"),
        _ => format!("saved tensor {position}"),
    }
}

fn input_name(position: usize) -> String {
    match position {
        0 => "its first input".into(),
        1 => "its second input".into(),
        n => format!("input {n}"),
    }
}

struct Blank;

impl Op for Blank {
    fn name(&self) -> &'static str {
        ""
    }

    fn pull<'g>(&self, _: Slots, _: &mut Pull<'_, 'g>) -> Result<()> {
        Ok(())
    }
}

/// Receives the gradients that a rule computes. The graph lives for `'g`: a walk counts no references.
pub(crate) trait Sink<'g> {
    fn wants(&self, edge: &Edge) -> bool;
    /// Whether gradients along all edges but [`Edge::None`] are needed. `passes` is then not called at each node.
    fn wants_all(&self) -> bool {
        false
    }
    /// Whether a walk ends at this edge, and does not visit the node behind it.
    fn ends(&self, _edge: &Edge) -> bool {
        false
    }
    /// Receives the gradients at a node before its rule runs; returns whether the rule is to run.
    fn passes(&mut self, _node: &NodeRef, _grads: &Slots) -> Result<bool> {
        Ok(true)
    }
    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()>;
}

pub(crate) struct Pull<'a, 'g> {
    pub(crate) node: &'g NodeRef,
    pub(crate) retain: bool,
    pub(crate) create_graph: bool,
    pub(crate) sink: &'a mut dyn Sink<'g>,
    pub(crate) wants_all: bool,
}

pub(crate) struct Push<'a> {
    pub(crate) node: &'a NodeRef,
    /// One for each edge.
    pub(crate) tangents: Slots,
    pub(crate) record: bool,
}

impl Pull<'_, '_> {
    #[inline]
    pub(crate) fn wants(&self, edge: &Edge) -> bool {
        !matches!(edge, Edge::None(_)) && (self.wants_all || self.sink.wants(edge))
    }
}

#[inline(always)]
pub(crate) fn only(grads: Slots) -> AnyTensor {
    match grads.into_inner() {
        Ok([Some(grad)]) => grad,
        Ok([None]) => missing_gradient(),
        // The gradients that a hook returned may be on the heap.
        Err(grads) => grads.into_iter().next().flatten().unwrap_or_else(|| missing_gradient()),
    }
}

#[cold]
fn missing_gradient() -> ! {
    unreachable!("a node is visited when its gradient came")
}

/// Sees what happens on a thread while its [`Observing`](super::Observing) lives. Of several observers of one type, only the
/// innermost does.
pub(crate) trait Observer: Any {
    /// The events that it sees now.
    fn events(&self) -> Events;
    /// [`Events::NODES`].
    fn recorded(&self, _node: &mut NodeRef) {}
    /// [`Events::OUTPUTS`]: a value became output `slot` of a node; without the value if others share it.
    fn output(
        &self,
        _node: &NodeRef,
        _slot: u32,
        _form: (DType, &[usize]),
        _value: Option<&dyn Any>,
    ) {
    }
    /// [`Events::VALUES`]: an input of the next node that wants no gradient; returns a number for its edge.
    fn constant(&self, _value: &dyn Any) -> u32 {
        0
    }
    /// [`Events::VALUES`]: an input, with its name, to which a new node has no edge.
    fn untracked(&self, _node: &NodeRef, _name: String, _input: &AnyTensor) {}
    /// [`Events::READS`]: the method that read numbers.
    fn read(&self, _method: &'static str, _place: &'static Location<'static>) {}
    /// [`Events::UNRECORDED`]: the tensor, by address and shape, and the op.
    #[cfg(debug_assertions)]
    fn unrecorded(
        &self,
        _input: (*const (), &[usize]),
        _op: &'static str,
        _place: &'static Location<'static>,
    ) {
    }
}

thread_local! {
    /// The innermost is last.
    pub(super) static OBSERVERS: RefCell<Vec<Rc<dyn Observer>>> = const { RefCell::new(Vec::new()) };
}

/// Passes an event to the innermost observer of each type that sees it.
#[cold]
pub(crate) fn notify(event: Events, mut call: impl FnMut(&dyn Observer)) {
    let observers = OBSERVERS.try_with(|observers| observers.borrow().clone()).unwrap_or_default();
    let mut seen: Vec<TypeId> = Vec::new();
    for observer in observers.iter().rev() {
        let kind = (&**observer as &dyn Any).type_id();
        if !seen.contains(&kind) {
            seen.push(kind);
            if observer.events().contains(event) {
                call(&**observer);
            }
        }
    }
}

/// A counted reference to a node, whose drop does not recurse: a chain of any length is freed in a loop.
#[derive(Clone)]
pub(crate) struct NodeRef(Option<Arc<Node>>);

// The saved state is behind locks whose poisoning is ignored. A backward that panics leaves a node with
// its saved state, or as one whose graph was freed.
impl UnwindSafe for NodeRef {}
impl RefUnwindSafe for NodeRef {}

impl NodeRef {
    // Inlined, and in two steps: edges and a state that pass through memory are loaded in wider parts than they
    // were stored in, and the processor waits for that.
    #[inline(always)]
    pub(crate) fn record(
        op: &'static dyn Op,
        edges: Edges,
        state: SavedState,
        location: &'static Location<'static>,
    ) -> Self {
        Self::with_edges(op, location, || edges).saving(state)
    }

    /// A node that saves nothing yet: [`saving`](Self::saving) completes it.
    #[inline(always)]
    pub(crate) fn with_edges(
        op: &'static dyn Op,
        location: &'static Location<'static>,
        edges: impl FnOnce() -> Edges,
    ) -> Self {
        let mut node = MemoryCache::take(&CACHE).unwrap_or_else(new_node);
        *node.single_consumer.get_mut() = false;
        *node.taken.get_mut() = false;
        node.location = Composite::place(location);
        node.op = op;
        // The old value is empty, so it needs no drop.
        forget(replace(&mut node.edges, edges()));
        node.level = node.edges.level();
        Self(Some(node.shareable()))
    }

    #[inline(always)]
    pub(crate) fn saving(mut self, state: SavedState) -> Self {
        // As above.
        forget(replace(self.state(), state));
        self.recorded()
    }

    /// What the node saves, until it is [`recorded`](Self::recorded).
    #[inline]
    pub(crate) fn state(&mut self) -> &mut SavedState {
        &mut self.unshared().state
    }

    /// Completes the node, which then can have consumers.
    #[inline(always)]
    pub(crate) fn recorded(mut self) -> Self {
        if observes(Events::NODES) {
            notify(Events::NODES, |observer| observer.recorded(&mut self));
        }
        self
    }

    #[inline(always)]
    pub(super) fn into_edge(self, slot: u32) -> Edge {
        if self.arc().is_unique() {
            self.single_consumer.store(true, Ordering::Relaxed);
        }
        Edge::output(self, slot)
    }

    #[inline]
    fn arc(&self) -> &Arc<Node> {
        match &self.0 {
            Some(node) => node,
            None => used_after_drop(),
        }
    }

    pub(super) fn get_mut(&mut self) -> Option<&mut Node> {
        self.0.as_mut().and_then(Arc::get_mut)
    }

    /// The node, to which nobody else may refer yet.
    #[inline]
    fn unshared(&mut self) -> &mut Node {
        match self.get_mut() {
            Some(node) => node,
            None => used_after_drop(),
        }
    }

    /// Identifies the node while it lives; [`Node::token`] does so for longer.
    #[inline]
    pub(crate) fn address(&self) -> *const () {
        Arc::as_ptr(self.arc()).cast()
    }
}

#[cold]
fn new_node() -> UniqueArc<Node> {
    UniqueArc::new(Node::blank())
}

/// Only `drop` empties a reference. This aborts instead of unwinding: otherwise callers would need code to
/// clean up between two uses, and could not keep values in registers.
#[cold]
pub(super) extern "C" fn used_after_drop() -> ! {
    unreachable!("a reference is used after it was dropped")
}

impl std::ops::Deref for NodeRef {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        self.arc()
    }
}

/// The most empty nodes that a thread caches: 17 MiB. A freed chain is reused in the order of its allocation.
const MAX_CACHED_NODES: usize = 1 << 17;

thread_local! {
    static CACHE: MemoryCache<Node> = const { MemoryCache::new() };
    static TO_FREE: ToFree = const {
        ToFree { freeing: Cell::new(false), last: Cell::new(None), others: RefCell::new(Vec::new()) }
    };
}

pub(super) fn empty_nodes() {
    CACHE.with(MemoryCache::empty);
}

impl Drop for NodeRef {
    #[inline]
    fn drop(&mut self) {
        if let Some(node) = self.0.take()
            && let Ok(node) = Arc::try_unique(node)
        {
            free(node);
        }
    }
}

/// Frees a node that has no other reference, and the nodes that only it referred to.
fn free(node: UniqueArc<Node>) {
    let mut node = Some(node);
    // A thread that is ending has no list: the node, and the nodes behind it, are then dropped here.
    let _ = TO_FREE.try_with(|list| {
        if list.freeing.get() {
            list.add(node.take());
            return;
        }
        let _freeing = Freeing::start(list);
        while let Some(next) = node.take().or_else(|| list.next()) {
            node = give_back(next);
        }
    });
}

#[inline]
fn give_back(mut node: UniqueArc<Node>) -> Option<UniqueArc<Node>> {
    let before = node.clear();
    MemoryCache::give(&CACHE, node, MAX_CACHED_NODES);
    before
}

/// Nodes whose last reference was dropped while another node was being freed. A chain has one at a time.
struct ToFree {
    freeing: Cell<bool>,
    last: Cell<Option<UniqueArc<Node>>>,
    others: RefCell<Vec<UniqueArc<Node>>>,
}

impl ToFree {
    #[inline]
    fn add(&self, node: Option<UniqueArc<Node>>) {
        if let Some(before) = self.last.replace(node) {
            self.others.borrow_mut().push(before);
        }
    }

    #[inline]
    fn next(&self) -> Option<UniqueArc<Node>> {
        self.last.take().or_else(|| self.others.borrow_mut().pop())
    }
}

/// While it lives, nodes without references are listed; after a panic they are freed with the next node.
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
