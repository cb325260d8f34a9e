//! The parts of a node: edges to the producers of its inputs, saved entries, and parts that most nodes lack:
//! hooks, versions of changed outputs, and a token that stays unique when the node is dropped.

use std::any::Any;
use std::mem::{forget, replace};
use std::panic::Location;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use smallvec::SmallVec;

use super::any::{AnyTensor, Element, TensorHandle, for_any};
use super::hooks::{Hook, HookId, HookList};
use super::lost_gradients::Lost;
use super::node::{Node, NodeRef};
use super::tensor::Tensor;
use crate::array::Value;
use crate::error::{Error, HookResult, Result};

#[derive(Clone)]
pub(crate) enum Edge {
    /// None: the input wants no gradient.
    None(Absent),
    /// The first output of the op that produced the input.
    Node(NodeRef),
    /// Another output, by its slot. Boxed, as ops with several outputs are rare: an edge has two words.
    Output(Box<(NodeRef, u32)>),
    Leaf(AnyTensor),
}

pub(crate) enum Destination<'e> {
    None(&'e Absent),
    Node(&'e NodeRef, u32),
    Leaf(&'e AnyTensor),
}

#[derive(Clone, Copy)]
pub(crate) struct Absent {
    /// Why it wants none, though it was computed from a tensor that wants one.
    pub(crate) lost: Lost,
    /// The number of its range if there is an observer, else 0.
    pub(crate) range_id: u32,
}

impl Absent {
    pub(crate) const UNOBSERVED: Self = Self { lost: Lost::NONE, range_id: 0 };
}

impl Edge {
    #[inline]
    pub(crate) fn output(node: NodeRef, slot: u32) -> Self {
        if slot == 0 { Self::Node(node) } else { Self::Output(Box::new((node, slot))) }
    }

    #[inline]
    pub(crate) fn to(&self) -> Destination<'_> {
        match self {
            Self::None(absent) => Destination::None(absent),
            Self::Node(node) => Destination::Node(node, 0),
            Self::Output(output) => Destination::Node(&output.0, output.1),
            Self::Leaf(leaf) => Destination::Leaf(leaf),
        }
    }

    #[inline]
    pub(crate) fn node(&self) -> Option<&NodeRef> {
        match self.to() {
            Destination::Node(node, _) => Some(node),
            Destination::None(_) | Destination::Leaf(_) => None,
        }
    }

    pub(crate) fn share(&self) -> Self {
        if let Some(node) = self.node() {
            node.add_consumer();
        }
        self.clone()
    }

    #[inline(always)]
    pub(super) fn level(&self) -> u32 {
        match self {
            Self::Node(node) => node.level + 1,
            Self::Output(output) => output.0.level + 1,
            Self::None(_) | Self::Leaf(_) => 0,
        }
    }
}

pub(crate) enum Edges {
    One(Edge),
    Two([Edge; 2]),
    Many(Vec<Edge>),
}

impl Edges {
    pub(super) const ONE_ABSENT: Self = Self::One(Edge::None(Absent::UNOBSERVED));
    pub(crate) const EMPTY: Self = Self::Many(Vec::new());

    #[inline]
    pub(crate) fn push(&mut self, edge: Edge) {
        match self {
            // The old value is empty, so it needs no drop.
            Self::Many(edges) if edges.is_empty() => forget(replace(self, Self::One(edge))),
            _ => self.push_further(edge),
        }
    }

    #[inline(never)]
    fn push_further(&mut self, edge: Edge) {
        *self = match replace(self, Self::EMPTY) {
            Self::One(first) => Self::Two([first, edge]),
            Self::Two([first, second]) => Self::Many(vec![first, second, edge]),
            Self::Many(mut edges) => {
                edges.push(edge);
                Self::Many(edges)
            }
        };
    }

    pub(super) fn of<T: Element>(inputs: &[&Tensor<T>]) -> Self {
        inputs.iter().map(|x| TensorHandle::edge(*x)).collect()
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[Edge] {
        match self {
            Self::One(edge) => slice::from_ref(edge),
            Self::Two(edges) => edges,
            Self::Many(edges) => edges,
        }
    }

    /// The lowest level that a node with these edges may have.
    #[inline(always)]
    pub(super) fn level(&self) -> u32 {
        match self {
            // The most frequent case, without a call.
            Self::One(Edge::Node(node)) => node.level + 1,
            Self::One(edge) => edge.level(),
            Self::Two([left, right]) => left.level().max(right.level()),
            Self::Many(edges) => edges.iter().map(Edge::level).max().unwrap_or(0),
        }
    }
}

impl FromIterator<Edge> for Edges {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Edge>>(edges: I) -> Self {
        let mut all = Self::EMPTY;
        edges.into_iter().for_each(|edge| all.push(edge));
        all
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Intermediate,
    /// The input with this position, or a part of it.
    Input(u16),
    /// The value of the output with this slot; an error if the output was changed in place since.
    Output(u16),
    /// The value of the output with this slot; later changes of the output are not errors.
    OutputValue(u16),
    /// An output without a gradient.
    Constant,
}

#[derive(Clone)]
pub(crate) enum Saved {
    Nothing,
    Tensor(SavedTensor),
    Absent,
    /// The number of following entries that belong together.
    Length(usize),
    Number(f64),
    Plain(Plain),
    Packed(Arc<dyn Packed>),
}

pub(crate) type Plain = Arc<dyn Any + Send + Sync>;

#[derive(Clone)]
pub(crate) struct SavedTensor {
    pub(crate) tensor: AnyTensor,
    /// How often the tensor had been changed in place when it was saved; of an output, how often forward changed it
    /// after that.
    pub(crate) version: u32,
    pub(crate) role: Role,
}

pub(crate) type Entries = SmallVec<[Saved; 2]>;

impl Saved {
    /// An entry for the input with this position.
    pub(crate) fn input<T: Element>(position: usize, tensor: &Tensor<T>) -> Self {
        Self::kept(position, tensor.clone())
    }

    /// As [`input`](Self::input), by value: a tensor stays in a register until its entry is written to the node.
    #[inline(always)]
    pub(crate) fn kept<T: Element>(position: usize, tensor: Tensor<T>) -> Self {
        let role = Role::Input(u16::try_from(position).unwrap_or(u16::MAX));
        let version = tensor.version();
        Self::Tensor(SavedTensor { tensor: T::wrap(tensor), version, role })
    }

    /// An entry for the value of a future output. The output holds the node, so the node must not hold it.
    #[inline(always)]
    pub(crate) fn output<T: Element>(slot: usize, output: &Tensor<T>) -> Self {
        match u16::try_from(slot) {
            Ok(slot) => Self::tensor(output.alias(), Role::OutputValue(slot)),
            Err(_) => Self::tensor(output.alias(), Role::Constant),
        }
    }

    /// As [`output`](Self::output) for slot 0, before the output tensor exists.
    pub(crate) fn output_value<T: Element>(value: Value<T>) -> Self {
        Self::tensor(Tensor::from_value(value), Role::OutputValue(0))
    }

    /// Tensor-sized data that is not a tensor to users: backward frees it, and no hook sees it.
    pub(crate) fn plain<P: Send + Sync + 'static>(plain: P) -> Self {
        Self::Plain(Arc::new(plain))
    }

    #[inline(always)]
    fn tensor<T: Element>(tensor: Tensor<T>, role: Role) -> Self {
        Self::Tensor(SavedTensor { tensor: T::wrap(tensor), version: 0, role })
    }

    /// Whether it holds no buffer, so that it may stay as long as the node.
    #[inline(always)]
    fn is_small(&self) -> bool {
        match self {
            Self::Tensor(saved) => for_any!(&saved.tensor, t => t.is_small()),
            Self::Plain(_) | Self::Packed(_) => false,
            Self::Nothing | Self::Absent | Self::Length(_) | Self::Number(_) => true,
        }
    }
}

pub(crate) trait Packed: Send + Sync {
    /// Restores the tensor at its place in the graph.
    fn unpack(&self, at: &At<'_>) -> Result<SavedTensor>;
}

pub(super) enum SavedEntries<'n> {
    Here(&'n [Saved]),
    Taken(Vec<Saved>),
}

/// The saved entries of a node. Two entries without buffers are inline and stay until the node is dropped;
/// backward takes any others.
pub(crate) enum SavedState {
    /// The first may be the attributes.
    Inline([Saved; 2]),
    Heap(Box<Heap>),
}

pub(crate) struct Heap {
    attrs: Option<Plain>,
    entries: Mutex<Option<Vec<Saved>>>,
}

impl SavedState {
    pub(crate) const NOTHING: Self = Self::Inline([Saved::Nothing, Saved::Nothing]);

    pub(crate) fn new(attrs: Option<Plain>, entries: &mut [Saved]) -> Self {
        let fits = entries.len() <= if attrs.is_some() { 1 } else { 2 };
        let is_small = fits && entries.iter().all(Saved::is_small);
        let mut entries = entries.iter_mut().map(|entry| replace(entry, Saved::Nothing));
        if !is_small {
            let entries = Mutex::new(Some(entries.collect()));
            return Self::Heap(Box::new(Heap { attrs, entries }));
        }
        let mut next = || entries.next().unwrap_or(Saved::Nothing);
        Self::Inline(match attrs {
            Some(attrs) => [Saved::Plain(attrs), next()],
            None => [next(), next()],
        })
    }

    /// Adds an entry behind the others. It must not be [`Saved::Nothing`].
    #[inline(always)]
    pub(crate) fn push(&mut self, entry: Saved) {
        let is_small = entry.is_small();
        match self {
            // The old value is empty, so it needs no drop.
            Self::Inline([free @ Saved::Nothing, _] | [_, free @ Saved::Nothing]) if is_small => {
                forget(replace(free, entry));
            }
            _ => self.heap().1.push(entry),
        }
    }

    pub(crate) fn set_attrs(&mut self, attrs: Plain) {
        match self {
            Self::Inline([first, second @ Saved::Nothing]) => {
                *second = replace(first, Saved::Plain(attrs));
            }
            _ => *self.heap().0 = Some(attrs),
        }
    }

    /// Moves the entries to the heap, if they are not there. Returns attributes and entries.
    #[inline(never)]
    fn heap(&mut self) -> (&mut Option<Plain>, &mut Vec<Saved>) {
        if let Self::Inline(_) = self {
            let Self::Inline([first, second]) = replace(self, Self::NOTHING) else {
                unreachable!()
            };
            let (attrs, mut entries) = match first {
                Saved::Plain(attrs) => (Some(attrs), vec![second]),
                first => (None, vec![first, second]),
            };
            while let Some(Saved::Nothing) = entries.last() {
                entries.pop();
            }
            *self = Self::Heap(Box::new(Heap { attrs, entries: Mutex::new(Some(entries)) }));
        }
        let Self::Heap(heap) = self else { unreachable!("the entries were moved there") };
        let Heap { attrs, entries } = &mut **heap;
        let entries = entries.get_mut().unwrap_or_else(PoisonError::into_inner);
        (attrs, entries.get_or_insert_default())
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        match self {
            Self::Inline(entries) => {
                let held = entries.iter_mut().filter(|entry| !matches!(entry, Saved::Nothing));
                held.for_each(|entry| *entry = Saved::Nothing);
            }
            Self::Heap(_) => *self = Self::NOTHING,
        }
    }

    /// The entries, for changes before the node is recorded.
    #[inline]
    pub(crate) fn entries_mut(&mut self) -> &mut [Saved] {
        match self {
            Self::Inline(entries) => entries,
            Self::Heap(_) => self.heap().1,
        }
    }

    /// As [`new`](Self::new) without attributes. `small`: no entry holds a buffer.
    #[inline(always)]
    pub(crate) fn of(entries: [Saved; 2], small: bool) -> Self {
        debug_assert!(!small || entries.iter().all(Saved::is_small));
        if small {
            return Self::Inline(entries);
        }
        Self::Heap(Box::new(Heap { attrs: None, entries: Mutex::new(Some(entries.into())) }))
    }

    #[inline]
    pub(super) fn attrs(&self) -> Option<&Plain> {
        match self {
            Self::Inline([Saved::Plain(attrs), _]) => Some(attrs),
            Self::Inline(_) => None,
            Self::Heap(heap) => heap.attrs.as_ref(),
        }
    }

    #[inline(always)]
    pub(super) fn entries(&self, retain: bool) -> Option<SavedEntries<'_>> {
        match self {
            Self::Inline([Saved::Plain(_), entry]) => {
                Some(SavedEntries::Here(slice::from_ref(entry)))
            }
            Self::Inline(entries) => Some(SavedEntries::Here(entries)),
            Self::Heap(heap) => {
                let mut held = heap.entries.lock().unwrap_or_else(PoisonError::into_inner);
                let entries = if retain { held.clone() } else { held.take() };
                entries.map(SavedEntries::Taken)
            }
        }
    }

    pub(super) fn pack(&mut self, pack: impl Fn(SavedTensor, usize) -> Arc<dyn Packed>) {
        let mut position = 0;
        for entry in self.heap().1 {
            if let Saved::Tensor(_) = entry
                && let Saved::Tensor(saved) = replace(entry, Saved::Nothing)
            {
                *entry = Saved::Packed(pack(saved, position));
                position += 1;
            }
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) node: &'a NodeRef,
    pub(crate) create_graph: bool,
}

impl At<'_> {
    pub(crate) fn op(&self) -> &'static str {
        self.node.name()
    }

    pub(crate) fn location(&self) -> &'static Location<'static> {
        self.node.location
    }

    #[inline]
    pub(crate) fn check_version(
        self,
        saved: u32,
        found: u32,
        parameter: impl FnOnce() -> String,
    ) -> Result<()> {
        match saved == found {
            true => Ok(()),
            false => Err(self.changed(saved, found, parameter())),
        }
    }

    #[cold]
    pub(super) fn changed(self, saved: u32, found: u32, parameter: String) -> Error {
        Error::SavedTensorChanged {
            op: self.op(),
            parameter,
            saved,
            found,
            location: self.location(),
        }
    }

    #[cold]
    pub(crate) fn freed(&self) -> Error {
        Error::GraphFreed { op: self.op(), location: self.location() }
    }
}

#[derive(Default)]
pub(super) struct Extras {
    hooks: HookList<NodeAction>,
    /// The slots of outputs that were changed in place, each with its version.
    changed: Mutex<Vec<(u32, u32)>>,
}

pub(crate) type NodeHook = Hook<NodeAction>;

#[derive(Clone)]
pub(crate) enum NodeAction {
    /// Passes the gradient of an output to a hook, which may replace it.
    Output(u32, GradHook),
    /// Stores the gradient of an output with that output, if it is still alive.
    Retain(u32, Arc<dyn Fn() -> Option<AnyTensor> + Send + Sync>),
    /// Passes the gradients of all outputs to a hook, which may replace them.
    Before(Arc<dyn Fn(&[Option<AnyTensor>]) -> HookResult<NewGrads> + Send + Sync>),
    /// Passes the gradients of inputs and outputs to a hook, which may replace those of the inputs.
    After(Arc<AfterHook>),
}

pub(crate) type GradHook = Arc<dyn Fn(&AnyTensor) -> HookResult<Option<AnyTensor>> + Send + Sync>;

pub(crate) type AfterHook =
    dyn Fn(&[Option<AnyTensor>], &[Option<AnyTensor>]) -> HookResult<NewGrads> + Send + Sync;

type NewGrads = Option<Vec<Option<AnyTensor>>>;

impl Node {
    /// A token that identifies the node, also after the node is dropped and its memory is reused.
    pub(crate) fn token(&self) -> Token {
        Token(Arc::downgrade(self.extras_or_init()))
    }

    /// The [`Token::key`] of its token; `None` if it has none.
    pub(crate) fn key(&self) -> Option<Key> {
        self.extras.get().map(|extras| Arc::as_ptr(extras).cast())
    }

    fn extras_or_init(&self) -> &Arc<Extras> {
        self.extras.get_or_init(Arc::default)
    }

    #[inline]
    pub(crate) fn hooks(&self) -> Option<&HookList<NodeAction>> {
        self.extras.get().map(|extras| &extras.hooks)
    }

    pub(crate) fn hooks_or_init(&self) -> &HookList<NodeAction> {
        &self.extras_or_init().hooks
    }

    pub(crate) fn output_version(&self, slot: u32) -> u32 {
        let Some(extras) = self.extras.get() else { return 0 };
        let changed = extras.changed();
        changed.iter().find(|(changed, _)| *changed == slot).map_or(0, |&(_, version)| version)
    }
}

impl Extras {
    fn changed(&self) -> MutexGuard<'_, Vec<(u32, u32)>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Identifies a node, also among earlier and later nodes in the same memory, as long as its token is kept.
pub(crate) type Key = *const ();

/// A reference to a node that keeps nothing alive.
pub(crate) struct Token(Weak<Extras>);

impl Token {
    pub(crate) fn key(&self) -> Key {
        self.0.as_ptr().cast()
    }

    pub(crate) fn remove_hook(&self, id: HookId) -> bool {
        self.0.upgrade().is_some_and(|extras| extras.hooks.remove(id))
    }

    /// Records that an output was changed in place: the node does not hold it, so it cannot read its version.
    pub(super) fn output_changed(&self, slot: u32, version: u32) {
        let Some(extras) = self.0.upgrade() else { return };
        let mut changed = extras.changed();
        match changed.iter_mut().find(|(changed, _)| *changed == slot) {
            Some((_, known)) => *known = version.max(*known),
            None => changed.push((slot, version)),
        }
    }
}
