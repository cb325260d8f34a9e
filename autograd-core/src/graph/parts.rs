//! What a node is made of: edges to where its inputs came from, what its op saved, and what most nodes never
//! have: hooks, notes of outputs that were changed, a name that nobody else gets when they are gone.

use std::any::Any;
use std::mem::replace;
use std::panic::Location;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use smallvec::SmallVec;

use super::any::{AnyTensor, Element, for_any};
use super::hooks::{Hook, HookId, HookList};
use super::lost::Lost;
use super::node::{Node, NodeRef};
use super::tensor::Tensor;
use crate::array::Value;
use crate::error::{Error, HookResult, Result};

/// Where the gradient of an input goes.
#[derive(Clone)]
pub(crate) enum Edge {
    /// Nowhere: the input wants none.
    None(Absent),
    /// To the first output of the op that produced the input.
    Node(NodeRef),
    /// To another output, by its slot. Ops with several outputs are rare, so it is boxed: an edge has two
    /// words.
    Output(Box<(NodeRef, u32)>),
    /// To the leaf itself.
    Leaf(AnyTensor),
}

/// Where an edge leads.
pub(crate) enum To<'e> {
    None(&'e Absent),
    /// An output of a node, by its slot.
    Node(&'e NodeRef, u32),
    Leaf(&'e AnyTensor),
}

/// What is known of an input that wants no gradient.
#[derive(Clone, Copy)]
pub(crate) struct Absent {
    /// Why it wants none, though it was computed from what does.
    pub(crate) lost: Lost,
    /// The number of its range, where there is an observer; else 0.
    pub(crate) seen: u32,
}

impl Absent {
    /// Nothing is known.
    pub(crate) const UNSEEN: Self = Self { lost: Lost::NONE, seen: 0 };
}

impl Edge {
    /// To output `slot` of a node.
    #[inline]
    pub(crate) fn output(node: NodeRef, slot: u32) -> Self {
        if slot == 0 { Self::Node(node) } else { Self::Output(Box::new((node, slot))) }
    }

    /// Where it leads.
    #[inline]
    pub(crate) fn to(&self) -> To<'_> {
        match self {
            Self::None(absent) => To::None(absent),
            Self::Node(node) => To::Node(node, 0),
            Self::Output(output) => To::Node(&output.0, output.1),
            Self::Leaf(leaf) => To::Leaf(leaf),
        }
    }

    /// The node that it leads to.
    #[inline]
    pub(crate) fn node(&self) -> Option<&NodeRef> {
        match self.to() {
            To::Node(node, _) => Some(node),
            To::None(_) | To::Leaf(_) => None,
        }
    }

    /// The same edge, from one more node.
    pub(crate) fn again(&self) -> Self {
        if let Some(node) = self.node() {
            node.gets_consumer();
        }
        self.clone()
    }

    #[inline]
    pub(super) fn level(&self) -> u32 {
        self.node().map_or(0, |node| node.level + 1)
    }
}

/// The edges of a node. Most have one or two.
pub(crate) enum Edges {
    One(Edge),
    Two([Edge; 2]),
    Many(Box<[Edge]>),
}

impl Edges {
    pub(super) const NONE: Self = Self::One(Edge::None(Absent::UNSEEN));

    /// To where these inputs came from.
    pub(super) fn of<T: Element>(inputs: &[&Tensor<T>]) -> Self {
        match inputs {
            [x] => Self::One(x.edge()),
            [x, y] => Self::Two([x.edge(), y.edge()]),
            _ => Self::Many(inputs.iter().map(|x| x.edge()).collect()),
        }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[Edge] {
        match self {
            Self::One(edge) => slice::from_ref(edge),
            Self::Two(edges) => edges,
            Self::Many(edges) => edges,
        }
    }

    /// The least level of their node.
    #[inline]
    pub(super) fn level(&self) -> u32 {
        match self {
            Self::One(edge) => edge.level(),
            Self::Two([left, right]) => left.level().max(right.level()),
            Self::Many(edges) => edges.iter().map(Edge::level).max().unwrap_or(0),
        }
    }
}

impl FromIterator<Edge> for Edges {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Edge>>(edges: I) -> Self {
        let mut edges = edges.into_iter();
        match (edges.next(), edges.next()) {
            (Some(first), None) => Self::One(first),
            (Some(first), Some(second)) => match edges.next() {
                None => Self::Two([first, second]),
                Some(third) => {
                    Self::Many([first, second, third].into_iter().chain(edges).collect())
                }
            },
            (None, _) => Self::Many(Box::default()),
        }
    }
}

/// What a saved tensor is to the op that saved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Neither an input nor an output.
    Intermediate,
    /// The input with this position, or a part of it.
    Input(u16),
    /// The value of the output with this slot; an error where that was changed in place since.
    Output(u16),
    /// The value that the output with this slot had, whatever became of the output.
    OutputValue(u16),
    /// An output without a gradient.
    Constant,
}

/// One entry of what a node saved.
#[derive(Clone)]
pub(crate) enum Saved {
    Nothing,
    Tensor(SavedTensor),
    /// An optional tensor that is absent.
    Absent,
    /// How many entries follow that belong together.
    Length(usize),
    Number(f64),
    /// Anything else.
    Plain(Plain),
    /// A tensor in the form that a hook gave it.
    Packed(Arc<dyn Packed>),
}

pub(crate) type Plain = Arc<dyn Any + Send + Sync>;

#[derive(Clone)]
pub(crate) struct SavedTensor {
    pub(crate) tensor: AnyTensor,
    /// How often it had been changed in place.
    pub(crate) version: u32,
    pub(crate) role: Role,
}

pub(crate) type Entries = SmallVec<[Saved; 2]>;

impl Saved {
    /// The input with this position.
    #[inline(always)]
    pub(crate) fn input<T: Element>(position: usize, tensor: &Tensor<T>) -> Self {
        let role = Role::Input(u16::try_from(position).unwrap_or(u16::MAX));
        Self::Tensor(SavedTensor {
            tensor: T::wrap(tensor.clone()),
            version: tensor.version(),
            role,
        })
    }

    /// The value of what will be the output with this slot. The output holds the node, so the node must
    /// not hold the output.
    #[inline(always)]
    pub(crate) fn output<T: Element>(slot: usize, output: &Tensor<T>) -> Self {
        match u16::try_from(slot) {
            Ok(slot) => Self::tensor(output.value_alone(), Role::OutputValue(slot)),
            Err(_) => Self::tensor(output.value_alone(), Role::Constant),
        }
    }

    /// The same where the output is not made yet.
    pub(crate) fn output_value<T: Element>(value: Value<T>) -> Self {
        Self::tensor(Tensor::new(value), Role::OutputValue(0))
    }

    /// Something of the size of a tensor that is none to users: freed by backward, and no hook sees it.
    pub(crate) fn plain<P: Send + Sync + 'static>(plain: P) -> Self {
        Self::Plain(Arc::new(plain))
    }

    #[inline(always)]
    fn tensor<T: Element>(tensor: Tensor<T>, role: Role) -> Self {
        Self::Tensor(SavedTensor { tensor: T::wrap(tensor), version: 0, role })
    }

    /// Whether it may stay as long as the node: it holds no buffer.
    #[inline]
    fn is_small(&self) -> bool {
        match self {
            Self::Tensor(saved) => for_any!(&saved.tensor, t => t.is_small()),
            Self::Plain(_) | Self::Packed(_) => false,
            Self::Nothing | Self::Absent | Self::Length(_) | Self::Number(_) => true,
        }
    }
}

/// A saved tensor in the form that a hook gave it.
pub(crate) trait Packed: Send + Sync {
    /// The tensor at its place in the graph.
    fn unpack(&self, at: &At<'_>) -> Result<SavedTensor>;
}

/// Entries that a visit reads.
pub(super) enum Held<'n> {
    /// In the node.
    Here(&'n [Saved]),
    Taken(Vec<Saved>),
}

/// What a node saved. Two entries that hold no buffer stand in the node and stay until it goes; others are
/// taken by backward.
pub(crate) enum State {
    /// Attributes may be the first of them.
    Inline([Saved; 2]),
    Heap(Box<Heap>),
}

pub(crate) struct Heap {
    /// What stays until the node goes.
    attrs: Option<Plain>,
    entries: Mutex<Option<Vec<Saved>>>,
}

impl State {
    pub(crate) const NOTHING: Self = Self::Inline([Saved::Nothing, Saved::Nothing]);

    /// Takes the entries; `attrs` stay as long as the node.
    #[inline]
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

    /// The same without attributes, `small` where no entry holds a buffer.
    #[inline(always)]
    pub(crate) fn of(entries: [Saved; 2], small: bool) -> Self {
        debug_assert!(!small || entries.iter().all(Saved::is_small));
        if small {
            return Self::Inline(entries);
        }
        Self::Heap(Box::new(Heap { attrs: None, entries: Mutex::new(Some(entries.into())) }))
    }

    /// What stays as long as the node.
    #[inline]
    pub(super) fn attrs(&self) -> Option<&Plain> {
        match self {
            Self::Inline([Saved::Plain(attrs), _]) => Some(attrs),
            Self::Inline(_) => None,
            Self::Heap(heap) => heap.attrs.as_ref(),
        }
    }

    /// The entries, taken or, where `retain` says so, copied; `None` where they were taken before.
    #[inline(always)]
    pub(super) fn entries(&self, retain: bool) -> Option<Held<'_>> {
        match self {
            Self::Inline([Saved::Plain(_), entry]) => Some(Held::Here(slice::from_ref(entry))),
            Self::Inline(entries) => Some(Held::Here(entries)),
            Self::Heap(heap) => {
                let mut held = heap.entries.lock().unwrap_or_else(PoisonError::into_inner);
                let entries = if retain { held.clone() } else { held.take() };
                entries.map(Held::Taken)
            }
        }
    }

    /// Gives each tensor to a hook, before others see the node.
    pub(super) fn pack(&mut self, pack: impl Fn(SavedTensor, usize) -> Arc<dyn Packed>) {
        let old = replace(self, Self::NOTHING);
        let (attrs, mut entries) = match old {
            Self::Inline([Saved::Plain(attrs), entry]) => {
                (Some(attrs), Entries::from_iter([entry]))
            }
            Self::Inline(entries) => (None, entries.into()),
            Self::Heap(heap) => {
                let entries = heap.entries.into_inner().unwrap_or_else(PoisonError::into_inner);
                (heap.attrs, entries.unwrap_or_default().into())
            }
        };
        let mut position = 0;
        for entry in &mut entries {
            if let Saved::Tensor(_) = entry
                && let Saved::Tensor(saved) = replace(entry, Saved::Nothing)
            {
                *entry = Saved::Packed(pack(saved, position));
                position += 1;
            }
        }
        *self = Self::new(attrs, &mut entries);
    }
}

/// Where something saved is read.
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

    /// An error if a saved tensor was changed in place since.
    #[inline]
    pub(crate) fn check_version(
        self,
        saved: u32,
        found: u32,
        parameter: impl FnOnce() -> String,
    ) -> Result<()> {
        if saved == found {
            return Ok(());
        }
        self.changed(saved, found, parameter())
    }

    #[cold]
    fn changed(self, saved: u32, found: u32, parameter: String) -> Result<()> {
        Err(Error::SavedTensorChanged {
            op: self.op(),
            parameter,
            saved,
            found,
            location: self.location(),
        })
    }

    #[cold]
    pub(crate) fn freed(&self) -> Error {
        Error::GraphFreed { op: self.op(), location: self.location() }
    }
}

/// What most nodes never have.
#[derive(Default)]
pub(super) struct Extras {
    hooks: HookList<NodeAction>,
    /// Outputs that were changed in place, each with its version since.
    changed: Mutex<Vec<(u32, u32)>>,
}

/// What to do when a node is visited.
pub(crate) type NodeHook = Hook<NodeAction>;

#[derive(Clone)]
pub(crate) enum NodeAction {
    /// Show the gradient of an output, and take another in its place.
    Output(u32, GradHook),
    /// Keep the gradient of an output with that output, if it is still alive.
    Retain(u32, Arc<dyn Fn() -> Option<AnyTensor> + Send + Sync>),
    /// Show the gradients of all outputs, and take others in their place.
    Before(Arc<dyn Fn(&[Option<AnyTensor>]) -> HookResult<NewGrads> + Send + Sync>),
    /// Show the gradients of the inputs and of the outputs, and take others for the inputs.
    After(Arc<AfterHook>),
}

/// From the gradient of an output or a leaf.
pub(crate) type GradHook = Arc<dyn Fn(&AnyTensor) -> HookResult<Option<AnyTensor>> + Send + Sync>;

/// From the gradients of a node's inputs and outputs.
pub(crate) type AfterHook =
    dyn Fn(&[Option<AnyTensor>], &[Option<AnyTensor>]) -> HookResult<NewGrads> + Send + Sync;

/// Gradients in place of others, if any.
type NewGrads = Option<Vec<Option<AnyTensor>>>;

impl Node {
    /// Stands for the node, also when that is gone and its memory is another one's.
    pub(crate) fn token(&self) -> Token {
        Token(Arc::downgrade(self.made_extras()))
    }

    /// The [`Token::key`] of its token; `None` if it has none.
    pub(crate) fn key(&self) -> Option<Key> {
        self.extras.get().map(|extras| Arc::as_ptr(extras).cast())
    }

    fn made_extras(&self) -> &Arc<Extras> {
        self.extras.get_or_init(Arc::default)
    }

    /// Its hooks; `None` if there never was one.
    #[inline]
    pub(crate) fn hooks(&self) -> Option<&HookList<NodeAction>> {
        self.extras.get().map(|extras| &extras.hooks)
    }

    /// The same, where one is to be added.
    pub(crate) fn made_hooks(&self) -> &HookList<NodeAction> {
        &self.made_extras().hooks
    }

    /// How often an output was changed in place since it left the op.
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

/// Tells a node from all others, those before and after it in the same memory too, as long as its token
/// is kept.
pub(crate) type Key = *const ();

/// A node, of which this keeps nothing alive.
pub(crate) struct Token(Weak<Extras>);

impl Token {
    pub(crate) fn key(&self) -> Key {
        self.0.as_ptr().cast()
    }

    /// Whether there was such a hook.
    pub(crate) fn remove_hook(&self, id: HookId) -> bool {
        self.0.upgrade().is_some_and(|extras| extras.hooks.remove(id))
    }

    /// Notes that an output was changed in place. The node cannot ask its output: it does not hold
    /// it.
    pub(super) fn output_changed(&self, slot: u32, version: u32) {
        let Some(extras) = self.0.upgrade() else { return };
        let mut changed = extras.changed();
        match changed.iter_mut().find(|(changed, _)| *changed == slot) {
            Some((_, known)) => *known = version.max(*known),
            None => changed.push((slot, version)),
        }
    }
}
