//! Nodes and edges: what backward walks over.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::mem::{forget, replace};
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{self, OnceLock};

use smallvec::SmallVec;
use triomphe::Arc;

use super::any::AnyTensor;
use super::mode::Composite;
use super::parts::{Edge, Edges, Extras, Held, Packed, Role, SavedTensor, State};
use super::spare::Spare;
use crate::array::DType;
use crate::error::Result;

/// The gradients that have reached a node, one place for each of its outputs.
pub(crate) type Slots = SmallVec<[Option<AnyTensor>; 1]>;

/// One recorded op. Nodes come from the memory of earlier ones, which the thread keeps.
pub(crate) struct Node {
    /// Greater than the level of every node an edge leads to: backward goes from high to low.
    pub(crate) level: u32,
    /// Whether one edge leads here and no tensor is an output of this node any more.
    sole: AtomicBool,
    /// Whether a backward took what was saved.
    taken: AtomicBool,
    /// Where the op was called.
    pub(crate) location: &'static Location<'static>,
    pub(super) extras: OnceLock<sync::Arc<Extras>>,
    op: &'static dyn Op,
    /// One for each differentiable input.
    edges: Edges,
    state: State,
}

// With its count of references 136 bytes, which take as much memory as 128.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Node>() <= 128);

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
            op: &Blank,
            edges: Edges::NONE,
            state: State::NOTHING,
        }
    }

    /// Drops all that is held but the memory itself.
    #[inline]
    fn blank_out(&mut self) {
        self.edges = Edges::NONE;
        self.state = State::NOTHING;
        if self.extras.get().is_some() {
            self.extras.take();
        }
    }

    /// The op's name.
    pub(crate) fn name(&self) -> &'static str {
        self.op.name_of(self)
    }

    /// One for each differentiable input.
    #[inline]
    pub(crate) fn edges(&self) -> &[Edge] {
        self.edges.as_slice()
    }

    /// As [`Op::pull`].
    #[inline(always)]
    pub(crate) fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let _composite = pull.create_graph.then(|| Composite::at(self.location));
        self.op.pull(grads, pull)
    }

    /// As [`Op::push`].
    pub(crate) fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let _composite = push.record.then(|| Composite::at(self.location));
        self.op.push(push)
    }

    /// As [`Op::has_jvp`].
    pub(crate) fn has_jvp(&self) -> bool {
        self.op.has_jvp()
    }

    /// What errors call a saved tensor.
    #[cold]
    pub(crate) fn saved_name(&self, role: Role, position: usize) -> String {
        self.op.saved_name(role, position)
    }

    /// What the op noted beside tensors, which stays as long as the node.
    #[inline]
    pub(crate) fn attrs<A: 'static>(&self) -> Option<&A> {
        self.state.attrs()?.downcast_ref()
    }

    /// What was saved: taken or, where `retain` says so, copied; `None` where it was taken before.
    #[inline(always)]
    pub(super) fn entries(&self, retain: bool) -> Option<Held<'_>> {
        if self.taken.load(Ordering::Relaxed) {
            return None;
        }
        if !retain {
            // Two backwards at the same moment may both pass; each is a whole.
            self.taken.store(true, Ordering::Relaxed);
        }
        self.state.entries(retain)
    }

    /// Gives each saved tensor to a hook.
    pub(super) fn pack(
        &mut self,
        pack: impl Fn(&Node, SavedTensor, usize) -> sync::Arc<dyn Packed>,
    ) {
        let mut state = replace(&mut self.state, State::NOTHING);
        state.pack(|saved, position| pack(self, saved, position));
        self.state = state;
    }

    /// Whether nobody looks at the gradients that come here and go on.
    #[inline(always)]
    pub(crate) fn is_unseen(&self) -> bool {
        self.extras.get().is_none() && !is_observed()
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

/// What is the same in all calls of an op.
pub(crate) trait Op: Send + Sync {
    fn name(&self) -> &'static str;
    /// The same where it is known of a call only.
    fn name_of(&self, _node: &Node) -> &'static str {
        self.name()
    }
    /// What errors call an input.
    fn input_name(&self, position: usize) -> String {
        input_name(position)
    }
    /// What errors call a saved tensor, `position` being that among all of them.
    fn saved_name(&self, role: Role, position: usize) -> String {
        match role {
            Role::Input(input) => self.input_name(input.into()),
            role => saved_name(role, position),
        }
    }
    /// Whether a user wrote `push`.
    fn has_jvp(&self) -> bool {
        false
    }
    /// Turns the gradients of the outputs into those of the inputs and hands them on.
    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()>;
    /// Turns the tangents of the inputs into those of the outputs; `None` where the op has no rule
    /// of its own for that, and `pull` is to be transposed.
    fn push(&self, _push: &mut Push<'_>) -> Result<Option<Slots>> {
        Ok(None)
    }
}

/// What errors call a saved tensor that is no input.
fn saved_name(role: Role, position: usize) -> String {
    match role {
        Role::Output(0) | Role::OutputValue(0) => "its output".into(),
        Role::Output(slot) | Role::OutputValue(slot) => format!("output {slot}"),
        _ => format!("saved tensor {}", position + 1),
    }
}

/// What errors call the input of a built-in op.
fn input_name(position: usize) -> String {
    match position {
        0 => "its first input".into(),
        1 => "its second input".into(),
        n => format!("input {n}"),
    }
}

/// The op of memory that is no node.
struct Blank;

impl Op for Blank {
    fn name(&self) -> &'static str {
        ""
    }

    fn pull<'g>(&self, _: Slots, _: &mut Pull<'_, 'g>) -> Result<()> {
        Ok(())
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
    /// Whether a walk ends at this edge, and does not visit the node behind it.
    fn ends(&self, _edge: &Edge) -> bool {
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

impl Pull<'_, '_> {
    /// Whether a gradient along this edge is of use.
    #[inline]
    pub(crate) fn wants(&self, edge: &Edge) -> bool {
        !matches!(edge, Edge::None(_)) && (self.wants_all || self.sink.wants(edge))
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

/// What is called while ops are recorded in a scope that observes them.
pub(super) struct Observers {
    /// A node was recorded.
    pub(super) recorded: Option<fn(&mut NodeRef)>,
    /// A value became output `slot` of a node. A value that others share is not shown.
    pub(super) made: Option<fn(&NodeRef, u32, (DType, &[usize]), Option<&dyn Any>)>,
    /// An input wants no gradient; the number under which it was shown.
    pub(super) constant: Option<fn(&dyn Any) -> u32>,
}

type Watched = Vec<&'static Observers>;

thread_local! {
    /// The scopes of this thread that observe, by what they call.
    static WATCHED: RefCell<Watched> = const { RefCell::new(Watched::new()) };
    /// How many they are.
    static WATCHING: Cell<usize> = const { Cell::new(0) };
    /// Whether one of them sees outputs and gradients.
    static OBSERVED: Cell<bool> = const { Cell::new(false) };
}

/// Observes until dropped, also by a panic.
pub(crate) struct Watching(&'static Observers);

impl Watching {
    pub(super) fn start(observers: &'static Observers) -> Self {
        WATCHED.with_borrow_mut(|watched| watched.push(observers));
        WATCHING.set(WATCHING.get() + 1);
        Self(observers)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        WATCHING.set(WATCHING.get() - 1);
        WATCHED.with_borrow_mut(|watched| {
            let last = watched.iter().rposition(|known| ptr::eq(*known, self.0));
            last.map(|last| watched.remove(last))
        });
    }
}

/// Whether a scope of this thread observes what is recorded.
#[inline(always)]
pub(crate) fn is_watched() -> bool {
    WATCHING.get() != 0
}

/// Whether somebody sees the outputs of nodes, and gradients.
#[inline]
pub(crate) fn is_observed() -> bool {
    is_watched() && OBSERVED.get()
}

pub(super) fn set_observed(observed: bool) {
    OBSERVED.set(observed);
}

/// Calls what this thread's scopes have for an event, each once.
#[cold]
fn each_observer<F: Copy>(of: impl Fn(&'static Observers) -> Option<F>, mut call: impl FnMut(F)) {
    let watched = WATCHED.with_borrow(Watched::clone);
    for (at, observers) in watched.iter().enumerate() {
        let again = watched[..at].iter().any(|before| ptr::eq(*before, *observers));
        if let Some(f) = of(observers).filter(|_| !again) {
            call(f);
        }
    }
}

/// Shows a value that becomes an output of a node.
pub(super) fn show_made(
    node: &NodeRef,
    slot: u32,
    form: (DType, &[usize]),
    value: Option<&dyn Any>,
) {
    each_observer(|observers| observers.made, |made| made(node, slot, form, value));
}

/// Shows an input that wants no gradient; 0 if nobody sees it.
pub(super) fn show_constant(value: &dyn Any) -> u32 {
    let mut number = 0;
    each_observer(|observers| observers.constant, |constant| number = constant(value));
    number
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
    /// Records a call of an op.
    // Not a call: what is recorded would be moved twice.
    #[inline(always)]
    pub(crate) fn record(
        op: &'static dyn Op,
        edges: Edges,
        state: State,
        location: &'static Location<'static>,
    ) -> Self {
        let mut node = Self(Some(Spare::take(&SPARES).unwrap_or_else(new_node)));
        if let Some(content) = node.alone() {
            *content.sole.get_mut() = false;
            *content.taken.get_mut() = false;
            content.location = Composite::place(location);
            content.op = op;
            // What stood there is nothing, so nothing is dropped.
            forget(replace(&mut content.edges, edges));
            forget(replace(&mut content.state, state));
            content.level = content.edges.level();
        }
        if is_watched() {
            each_observer(|observers| observers.recorded, |recorded| recorded(&mut node));
        }
        node
    }

    /// The node of a tensor that gave its place to an edge.
    #[inline(always)]
    pub(super) fn into_edge(self, slot: u32) -> Edge {
        if self.arc().is_unique() {
            self.sole.store(true, Ordering::Relaxed);
        }
        Edge::output(self, slot)
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

    /// Identity, as long as it lives: [`Node::token`] is for longer.
    #[inline]
    pub(crate) fn address(&self) -> *const () {
        Arc::as_ptr(self.arc()).cast()
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
    static SPARES: Spare<Node> = const { Spare::new() };
    static TO_FREE: ToFree = const {
        ToFree { freeing: Cell::new(false), last: Cell::new(None), others: RefCell::new(Vec::new()) }
    };
}

/// Gives back what this thread keeps of nodes that are gone.
pub(super) fn empty_nodes() {
    SPARES.with(Spare::empty);
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
    Spare::give(&SPARES, node, KEPT);
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
