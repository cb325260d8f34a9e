//! `Tensor`: a shared handle to a value and its place in the graph.

use std::borrow::Cow;
use std::mem::replace;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{self, Mutex, OnceLock, PoisonError, RwLock};

use triomphe::Arc;

mod kept;
mod shared;

use super::any::Element;
use super::hooks::HookList;
use super::mode::is_grad_enabled;
use super::node::{NodeRef, is_watched, show_constant, show_made, taken_out};
use super::parts::{Absent, Edge, GradHook, Token};
use crate::array::shape::copied;
use crate::array::{DType, Shape, Value, fits_inline};

/// An n-dimensional array that can be differentiated.
///
/// A `Tensor` is a handle: clones are cheap and are the same tensor, with the same gradient.
/// It is `Send` and `Sync`, and `UnwindSafe`: a panic leaves it usable. Its data never changes behind a
/// reader's back: an op that writes in place makes a new buffer wherever somebody still reads the old one.
///
/// Ops are computed at once, but for cheap ones of large tensors (operators with a number, `-x`,
/// [`square`](Tensor::square), [`relu`](Tensor::relu)): these are computed when the result is read,
/// several in one pass. Results are the same bits, and gradients are computed when backward ends.
///
/// # Shared data
///
/// A change in place (`+=`, [`set_item`](Tensor::set_item), [`fill`](Tensor::fill),
/// [`copy_from`](Tensor::copy_from), a step of an optimizer) is seen by all tensors with the same data:
///
/// | of `x` | its data | its gradient |
/// |---|---|---|
/// | `x.clone()` | that of `x` | that of `x`: it is the same tensor |
/// | [`x.detach()`](Tensor::detach) | that of `x` | none: it is outside the graph |
/// | [`x.copy()`](Tensor::copy) | its own | flows to `x` |
/// | `x.reshape(..)`, `x.transpose()`, `x.select(..)` and all other ops | their own | flows to `x` |
///
/// What only looks at other elements, as a transpose does, uses the memory of `x` until one of the two is
/// changed. [`contiguous`](Tensor::contiguous) gives `x` itself where its elements lie in order already.
///
/// ```
/// use autograd_core::Tensor;
///
/// let x = Tensor::from(vec![1.0, 2.0]);
/// let (same, detached, copy, view) = (x.clone(), x.detach(), x.copy(), x.reshape([2, 1]));
/// x.fill(7.0)?;
/// assert_eq!((same.to_vec(), detached.to_vec()), (vec![7.0, 7.0], vec![7.0, 7.0]));
/// assert_eq!((copy.to_vec(), view.to_vec()), (vec![1.0, 2.0], vec![1.0, 2.0]));
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Gradients
///
/// `stop_gradient` is true for new tensors, as in Paddle: gradients flow to a tensor only after
/// `set_stop_gradient(false)`.
///
/// ```
/// use autograd_core::Tensor;
///
/// let x = Tensor::from(vec![1.0, 2.0, 3.0]);
/// x.set_stop_gradient(false);
/// let y = (&x * &x).sum();
/// y.backward()?;
/// assert_eq!(x.try_grad()?.to_vec(), [2.0, 4.0, 6.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub struct Tensor<T: Element = f32>(
    // `None` only while it is dropped.
    Option<Arc<Inner<T>>>,
);

// Values, gradients and hooks stand behind locks that a panic does not close, and no user code runs while
// one is held. What is being changed is replaced when it is done.
impl<T: Element> UnwindSafe for Tensor<T> {}
impl<T: Element> RefUnwindSafe for Tensor<T> {}

/// What the handles of a tensor share.
#[doc(hidden)]
pub struct Inner<T: Element> {
    value: Value<T>,
    /// The node this tensor came from, and which of its outputs it is.
    producer: Option<(NodeRef, u32)>,
    /// [`STOP`] where gradients stop here, and above it why it is outside the graph: a [`Lost`].
    gradient: AtomicU32,
    /// Where the data is once it has been changed in place; `value` then gives the shape only.
    shared: OnceLock<Arc<Shared<T>>>,
    /// A reference of its own: what must not keep the tensor alive holds this one weakly.
    kept: OnceLock<sync::Arc<Kept<T>>>,
}

/// The bit for `stop_gradient`.
const STOP: u32 = 1;

/// Data that is changed in place, and seen by all tensors that share it.
struct Shared<T: Element> {
    value: RwLock<Value<T>>,
    version: AtomicU32,
    /// The node whose output this was before any change: it may have saved it.
    origin: Option<(Token, u32)>,
}

impl<T: Element> Shared<T> {
    /// The value as it is now.
    #[cold]
    fn now(&self) -> Value<T> {
        self.value.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What backward leaves with a tensor.
struct Kept<T: Element> {
    grad: Mutex<Option<Tensor<T>>>,
    hooks: HookList<GradHook>,
}

impl<T: Element> Default for Kept<T> {
    fn default() -> Self {
        Self { grad: Mutex::new(None), hooks: HookList::default() }
    }
}

impl<T: Element> Clone for Tensor<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Element> Drop for Tensor<T> {
    #[inline]
    fn drop(&mut self) {
        match self.0.take() {
            Some(inner) if inner.is_unique() => T::release(inner),
            _ => {}
        }
    }
}

impl<T: Element> Tensor<T> {
    /// Outside the graph.
    #[inline]
    pub(crate) fn new(value: Value<T>) -> Self {
        Self::with_producer(value, None)
    }

    /// The only output of a node, or outside the graph.
    #[inline]
    pub(crate) fn output(value: Value<T>, node: Option<NodeRef>) -> Self {
        if let Some(node) = &node
            && is_watched()
        {
            made(node, 0, &value);
        }
        Self::with_producer(value, node.map(|node| (node, 0)))
    }

    #[inline]
    fn with_producer(value: Value<T>, producer: Option<(NodeRef, u32)>) -> Self {
        if let Some((node, _)) = &producer {
            node.gets_consumer();
        }
        let mut spare = T::take_spare();
        if let Some(inner) = spare.as_mut().and_then(Arc::get_mut) {
            inner.value = value;
            *inner.gradient.get_mut() = u32::from(producer.is_none());
            inner.producer = producer;
            return Self(spare);
        }
        Self(Some(Arc::new(Inner {
            value,
            gradient: AtomicU32::new(u32::from(producer.is_none())),
            producer,
            shared: OnceLock::new(),
            kept: OnceLock::new(),
        })))
    }

    /// A tensor of its own with the same data, if that is small enough to stand inline: as good as
    /// a temporary that nobody else can see.
    #[inline]
    pub(crate) fn small_copy(&self) -> Option<Self> {
        let Some(value) = self.fixed() else {
            let numbers = self.small_data_now()?;
            return Some(Self::new(Value::of_inline(self.shape_owned(), numbers)));
        };
        if !value.is_inline() {
            return None;
        }
        let mut spare = T::take_spare();
        if let Some(inner) = spare.as_mut().and_then(Arc::get_mut) {
            inner.value.copy_from(value);
            *inner.gradient.get_mut() = STOP;
            return Some(Self(spare));
        }
        Some(Self::new(value.clone()))
    }

    /// A new small tensor of this shape; its elements are unspecified.
    #[inline]
    pub(crate) fn small_like(&self) -> Self {
        let mut spare = T::take_spare();
        if let Some(inner) = spare.as_mut().and_then(Arc::get_mut) {
            inner.value.shape_inline(self.shape());
            *inner.gradient.get_mut() = STOP;
            return Self(spare);
        }
        Self::new(Value::of_inline(self.shape_owned(), T::INLINE))
    }

    #[inline]
    fn inner(&self) -> &Arc<Inner<T>> {
        match &self.0 {
            Some(inner) => inner,
            None => taken_out(),
        }
    }

    /// The tensor itself, if nobody else holds it.
    #[inline]
    fn inner_mut(&mut self) -> Option<&mut Inner<T>> {
        self.0.as_mut().and_then(Arc::get_mut)
    }

    /// The same value as output `slot` of a node; no copy of this handle's own state.
    pub(crate) fn attached(mut self, node: NodeRef, slot: u32) -> Self {
        self.attach(node, slot);
        self
    }

    /// Makes this handle the output `slot` of a node; other handles keep what they are.
    #[inline]
    pub(crate) fn attach(&mut self, node: NodeRef, slot: u32) {
        if is_watched() {
            made(&node, slot, &self.read());
        }
        if let Some(inner) = self.inner_mut()
            && inner.is_bare()
        {
            node.gets_consumer();
            inner.producer = Some((node, slot));
            *inner.gradient.get_mut() = 0;
            return;
        }
        *self = Self::with_producer(self.read().into_owned(), Some((node, slot)));
    }

    /// The same value as a tensor of its own, outside the graph; later changes in place do not
    /// reach it.
    #[inline]
    pub(crate) fn alias(&self) -> Self {
        T::alias(self)
    }

    #[inline]
    pub(super) fn alias_here(&self) -> Self {
        let value = || Self::new(self.read().into_owned());
        self.small_copy().unwrap_or_else(value).with_lost(self.lost())
    }

    /// The value, if nobody else holds this tensor: then its buffer may be written. Otherwise the
    /// tensor comes back.
    pub(crate) fn try_into_value(mut self) -> Result<Value<T>, Self> {
        match self.inner_mut() {
            Some(inner) if inner.shared.get().is_none() => {
                let empty = Value::scalar(T::ZERO);
                Ok(replace(&mut inner.value, empty))
            }
            _ => Err(self),
        }
    }

    /// Whether this is a temporary: nobody else holds it or sees its data.
    #[inline]
    pub(crate) fn is_temporary(&self) -> bool {
        let inner = self.inner();
        inner.is_unique() && inner.shared.get().is_none() && inner.kept.get().is_none()
    }

    /// This tensor as a new one outside the graph, if nobody else can see it and it is no output.
    pub(crate) fn try_alone(mut self) -> Result<Self, Self> {
        if !self.is_temporary() || self.producer().is_some() {
            return Err(self);
        }
        match self.inner_mut() {
            Some(inner) => {
                *inner.gradient.get_mut() = STOP;
                Ok(self)
            }
            None => Err(self),
        }
    }

    /// Computes a new tensor in this one's own allocation, if nobody else can see it: `run` changes
    /// the value and says whether it could. The result is outside the graph.
    #[inline]
    pub(crate) fn try_in_place(&mut self, run: impl FnOnce(&mut Value<T>) -> bool) -> bool {
        let Some(inner) = self.inner_mut() else { return false };
        if inner.shared.get().is_some() || inner.kept.get().is_some() || !run(&mut inner.value) {
            return false;
        }
        // Most gave it to an edge.
        if inner.producer.is_some() {
            inner.producer = None;
        }
        *inner.gradient.get_mut() = STOP;
        true
    }

    /// Writes over the numbers of a temporary that stand inline. The result is outside the graph.
    #[inline(always)]
    pub(crate) fn rewritten(mut self, run: impl FnOnce(&mut T::Inline)) -> Self {
        self.try_in_place(|value| value.inline_mut().map(|(numbers, _)| run(numbers)).is_some());
        self
    }

    /// What a node may hold of an output: a tensor of its own with the same value.
    #[inline]
    pub(crate) fn value_alone(&self) -> Self {
        self.small_copy().unwrap_or_else(|| Self::new(self.read().into_owned()))
    }

    /// Makes this a tensor to lend to user code, or to take from it: what one side writes the other one
    /// does not see. One that others hold, or whose data they see, is replaced by one of its own. Where
    /// ops are recorded it keeps its place in the graph.
    #[inline]
    pub(crate) fn unshare(&mut self) {
        let alone = self.inner().is_unique() && self.inner().shared.get().is_none();
        if !alone || !self.stop_gradient() {
            self.unshare_now(alone);
        }
    }

    #[inline(never)]
    fn unshare_now(&mut self, alone: bool) {
        if !self.is_recorded() {
            *self = self.alias();
        } else if !alone {
            *self = self.lent();
        }
    }

    /// The same at the same place in the graph: what is written through it nobody else sees. A leaf that
    /// wants a gradient is lent itself, and a change in place is refused.
    pub(crate) fn lent(&self) -> Self {
        match self.producer() {
            None if !self.stop_gradient() => self.clone(),
            _ => self.snapshot(),
        }
    }

    /// What a node keeps of an output that wants a gradient: the value, and that it wants one.
    pub(crate) fn kept_output(&self) -> Self {
        let mut kept = self.alias_here();
        if let (true, Some(inner)) = (T::DTYPE.is_float(), kept.inner_mut()) {
            *inner.gradient.get_mut() &= !STOP;
        }
        kept
    }

    /// This tensor as it is now, at the same place in the graph; later changes in place do not
    /// reach it.
    pub(crate) fn snapshot(&self) -> Self {
        Self::with_producer(self.read().into_owned(), self.producer().cloned())
            .with_lost(self.lost())
    }

    /// The value to change, seen by nobody else: what others hold of it stays as it is.
    pub(crate) fn value_mut(&mut self) -> &mut Value<T> {
        if self.inner_mut().is_none_or(|inner| !inner.is_plain()) {
            *self = self.alias();
        }
        let inner = self.inner_mut().unwrap_or_else(|| unreachable!("nobody else holds it"));
        &mut inner.value
    }

    /// The value to read. Takes no lock unless the tensor was changed in place before.
    #[inline]
    pub(crate) fn read(&self) -> Cow<'_, Value<T>> {
        match self.inner().shared.get() {
            None => Cow::Borrowed(&self.inner().value),
            Some(shared) => Cow::Owned(shared.now()),
        }
    }

    /// The value, if it was never changed in place.
    #[inline]
    pub(crate) fn fixed(&self) -> Option<&Value<T>> {
        match self.inner().shared.get() {
            None => Some(&self.inner().value),
            Some(_) => None,
        }
    }

    /// Its elements, if it is small: inline ones, or those of a tensor that changes in place as they are `now`.
    #[inline(always)]
    pub(crate) fn small_data<'a>(
        &'a self,
        now: &'a mut Option<T::Inline>,
    ) -> Option<&'a T::Inline> {
        match self.fixed() {
            Some(value) => value.inline(),
            None => Some(now.insert(self.small_data_now()?)),
        }
    }

    /// Whether [`small_data`](Self::small_data) has them.
    #[inline(always)]
    pub(crate) fn is_small(&self) -> bool {
        match self.fixed() {
            Some(value) => value.is_inline(),
            None => fits_inline::<T>(self.len()),
        }
    }

    #[inline(never)]
    fn small_data_now(&self) -> Option<T::Inline> {
        let shared = self.inner().shared.get()?;
        shared.value.read().unwrap_or_else(PoisonError::into_inner).inline().copied()
    }

    /// Identity: clones of one tensor have the same address.
    #[inline]
    pub(crate) fn address(&self) -> *const () {
        Arc::as_ptr(self.inner()).cast()
    }

    /// Whether both are handles of one tensor, as clones are: with one gradient, and one value also
    /// after a change in place. What [`detach`](Tensor::detach) and [`copy`](Tensor::copy) return is
    /// another tensor.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(1.0);
    /// assert!(x.is_same(&x.clone()) && !x.is_same(&x.detach()));
    /// ```
    #[doc(alias = "is")]
    #[doc(alias = "ptr_eq")]
    pub fn is_same(&self, other: &Tensor<T>) -> bool {
        self.address() == other.address()
    }

    /// The tensor itself, behind any number of references.
    #[doc(hidden)]
    pub fn this(&self) -> &Self {
        self
    }

    /// Lengths of the axes; `[]` for a scalar.
    ///
    /// ```
    /// assert_eq!(autograd_core::Tensor::<f32>::zeros([2, 3]).shape(), [2, 3]);
    /// ```
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.inner().value.shape()
    }

    pub(crate) fn shape_owned(&self) -> Shape {
        copied(self.shape())
    }

    /// Number of axes.
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// Number of elements.
    #[doc(alias = "numel")]
    #[inline]
    pub fn len(&self) -> usize {
        self.inner().value.len()
    }

    /// Whether there are no elements (an axis has length 0).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        T::DTYPE
    }

    /// Whether gradients stop at this tensor. True for new tensors; false for what was computed
    /// from a tensor that wants a gradient.
    #[doc(alias = "requires_grad")]
    #[inline]
    pub fn stop_gradient(&self) -> bool {
        self.inner().gradient.load(Ordering::Relaxed) & STOP != 0
    }

    /// Whether no recorded op produced this tensor: gradients end, and are kept, here.
    pub fn is_leaf(&self) -> bool {
        self.inner().producer.is_none() || self.stop_gradient()
    }

    #[inline]
    pub(crate) fn producer(&self) -> Option<&(NodeRef, u32)> {
        self.inner().producer.as_ref().filter(|_| !self.stop_gradient())
    }

    /// Where this tensor came from, also where the graph was cut there later.
    pub(crate) fn origin(&self) -> Option<&NodeRef> {
        self.inner().producer.as_ref().map(|(node, _)| node)
    }

    /// Whether an op on this tensor is recorded now.
    #[inline]
    pub(crate) fn is_recorded(&self) -> bool {
        // Known when compiling: rules of other elements, which have no gradient, are left out.
        T::DTYPE.is_float() && !self.stop_gradient() && is_grad_enabled()
    }

    /// Where this tensor's gradient goes.
    // Not a call, as what follows: its result is written in words, and would be read as a whole at once, for
    // which the processor waits.
    #[inline(always)]
    pub(crate) fn edge(&self) -> Edge {
        if self.stop_gradient() {
            return Edge::None(self.absent());
        }
        match &self.inner().producer {
            Some((node, slot)) => Edge::output(node.clone(), *slot),
            None => Edge::Leaf(T::wrap(self.clone())),
        }
    }

    /// Where the gradient of an input goes that wants none: nowhere.
    #[inline]
    pub(crate) fn absent(&self) -> Absent {
        let seen = match is_watched() {
            true => show_constant(&*self.read()),
            false => 0,
        };
        Absent { lost: self.lost(), seen }
    }

    /// [`edge`](Self::edge) of a tensor that an op consumes: what nobody else can see gives its own
    /// reference to the node.
    #[inline(always)]
    pub(crate) fn take_edge(&mut self) -> Edge {
        if !self.stop_gradient()
            && let Some(inner) = self.inner_mut()
            && inner.shared.get().is_none()
            && inner.kept.get().is_none()
            && let Some((node, slot)) = inner.producer.take()
        {
            return node.into_edge(slot);
        }
        self.edge()
    }
}

impl<T: Element> Inner<T> {
    /// Frees all that is held but the memory itself, for the next tensor.
    #[inline]
    pub(super) fn empty(&mut self) {
        self.producer = None;
        // Most have neither.
        if self.shared.get().is_some() {
            self.shared.take();
        }
        if self.kept.get().is_some() {
            self.kept.take();
        }
        self.value.empty();
    }

    /// Nothing but a value: no data shared with others, no gradient, no hook, no producer.
    #[inline]
    fn is_bare(&self) -> bool {
        self.producer.is_none() && self.shared.get().is_none() && self.kept.get().is_none()
    }

    /// The same, and no gradient is wanted.
    #[inline]
    fn is_plain(&mut self) -> bool {
        self.is_bare() && *self.gradient.get_mut() & STOP != 0
    }
}

/// Shows a value that becomes an output of a node to who observes.
fn made<T: Element>(node: &NodeRef, slot: u32, value: &Value<T>) {
    show_made(node, slot, (T::DTYPE, value.shape()), Some(value));
}
