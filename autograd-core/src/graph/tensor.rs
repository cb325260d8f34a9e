//! `Tensor`: a shared handle to a value and its place in the graph.

use std::borrow::Cow;
use std::mem::replace;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{self, Mutex, OnceLock, PoisonError, RwLock};

use triomphe::{Arc, UniqueArc};

mod leaf_state;
mod shared;

use super::any::Element;
use super::context::{Events, observes};
use super::hooks::HookList;
use super::mode::is_grad_enabled;
use super::node::{NodeRef, notify, used_after_drop};
use super::node_parts::{Absent, Edge, GradHook, Token};
use crate::array::shape::{axis as check_axis, copied};
use crate::array::{DType, Shape, Value, fits_inline};
use crate::error::Error;

/// An n-dimensional array that can be differentiated. A `Tensor` is a handle: clones are cheap and
/// are the same tensor, with the same gradient. It is `Send` and `Sync`, and `UnwindSafe`: a panic
/// leaves it usable. Its data never changes while it is read: an op that writes in place makes a
/// new buffer if the old one is still read.
///
/// Ops are computed at once, except cheap ones of large tensors (operators with a number, `-x`,
/// [`square`](Tensor::square), [`relu`](Tensor::relu), `maximum` and `minimum` with a number): these are deferred until the result is read, and
/// several run in one pass. Results are bit-identical, and gradients are materialized when backward ends.
///
/// # Methods
///
/// They are under headings, as in this table. [`names`](crate::names) lists all by what they do, with their names in
/// PyTorch and NumPy.
///
/// | heading | methods |
/// |---|---|
/// | create | [`zeros`](Tensor::zeros), [`from_vec`](Tensor::from_vec), [`arange`](Tensor::arange), [`randn`](Tensor::randn), [`one_hot`](Tensor::one_hot) |
/// | shape | [`reshape`](Tensor::reshape), [`permute`](Tensor::permute), [`unsqueeze`](Tensor::unsqueeze), [`concat`](Tensor::concat), [`split`](Tensor::split), [`pad`](Tensor::pad) |
/// | index | [`i`](Tensor::i), [`select`](Tensor::select), [`gather`](Tensor::gather), [`masked_select`](Tensor::masked_select), [`slice_assign`](Tensor::slice_assign) |
/// | reduce | [`sum`](Tensor::sum), [`mean_axes`](Tensor::mean_axes), [`max_with_indices`](Tensor::max_with_indices), [`cumsum`](Tensor::cumsum), [`norm`](Tensor::norm) |
/// | elementwise | operators, [`exp`](Tensor::exp), [`pow`](Tensor::pow), [`clamp`](Tensor::clamp), [`where_else`](Tensor::where_else), [`less`](Tensor::less), [`cast`](Tensor::cast) |
/// | linear algebra | [`matmul`](Tensor::matmul), [`einsum`](Tensor::einsum), [`outer`](Tensor::outer), [`diagonal`](Tensor::diagonal), [`linear`](Tensor::linear) |
/// | losses | [`cross_entropy`](Tensor::cross_entropy), [`mse_loss`](Tensor::mse_loss), [`huber_loss`](Tensor::huber_loss), [`kl_div`](Tensor::kl_div) |
/// | gradients | [`backward`](Tensor::backward), [`grad`](Tensor::grad), [`detach`](Tensor::detach), [`register_hook`](Tensor::register_hook) |
///
/// # Panics and errors
///
/// A method panics at your line if its arguments do not fit. Most have a twin: `try_` before the name, with the
/// same arguments, returns an [`Error`](crate::Error) instead. What a method says of shapes and values holds
/// for its twin.
///
/// ```
/// use autograd_core::Tensor;
///
/// let (x, y) = (Tensor::from([[1.0, 2.0]]), Tensor::from([[3.0, 4.0]]));
/// let error = x.try_matmul(&y).unwrap_err();
/// assert!(error.to_string().starts_with("matmul: "));
/// ```
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
/// Where a change is recorded, as `+=` on the result of an op, `x` becomes the result of another op. A clone from
/// before it then has the new numbers, but the gradient of the old ones: make it a `copy()`.
///
/// An op that only selects or rearranges elements, such as a transpose, uses the memory of `x` until one of
/// the two is changed. An op that changes nothing, such as `x.i(..)`, returns a copy too.
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

// Values, gradients and hooks are behind locks whose poisoning is ignored, and no user code runs while one
// is held. A value that is being changed is replaced when the change is complete.
impl<T: Element> UnwindSafe for Tensor<T> {}
impl<T: Element> RefUnwindSafe for Tensor<T> {}

#[doc(hidden)]
pub struct Inner<T: Element> {
    value: Value<T>,
    producer: Option<(NodeRef, u32)>,
    /// The bit [`STOP`] if gradients stop here; above it a [`Lost`], why the tensor is outside the graph.
    gradient: AtomicU32,
    /// The data once it is shared, for changes in place; `value` is then the first version, or only its shape.
    shared: OnceLock<Arc<Shared<T>>>,
    /// Counted separately: a weak reference to it does not keep the tensor alive.
    leaf: OnceLock<sync::Arc<LeafState<T>>>,
}

const STOP: u32 = 1;

struct Shared<T: Element> {
    value: RwLock<Value<T>>,
    version: AtomicU32,
    /// Whether the tensors that share the data before any change have it as their `value` too.
    starts_as_value: bool,
    /// The node, with the slot, whose output this data was before any change: it may have saved it.
    origin: Option<(Token, u32)>,
}

impl<T: Element> Shared<T> {
    #[cold]
    fn now(&self) -> Value<T> {
        self.value.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_value(&self) -> bool {
        self.starts_as_value && self.version.load(Ordering::Acquire) == 0
    }
}

struct LeafState<T: Element> {
    grad: Mutex<Option<Tensor<T>>>,
    hooks: HookList<GradHook>,
}

impl<T: Element> Default for LeafState<T> {
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
    fn drop(&mut self) {
        if let Some(inner) = self.0.take()
            && let Ok(inner) = Arc::try_unique(inner)
        {
            T::release(inner);
        }
    }
}

/// # Shape and place in the graph
impl<T: Element> Tensor<T> {
    #[inline]
    pub(crate) fn from_value(value: Value<T>) -> Self {
        Self::with_producer(value, None)
    }

    #[inline]
    pub(crate) fn output(value: Value<T>, node: NodeRef) -> Self {
        if observes(Events::OUTPUTS) {
            output_attached(&node, 0, &value);
        }
        Self::with_producer(value, Some((node, 0)))
    }

    fn with_producer(value: Value<T>, producer: Option<(NodeRef, u32)>) -> Self {
        if let Some((node, _)) = &producer {
            node.add_consumer();
        }
        Self::create(|inner| {
            inner.value = value;
            *inner.gradient.get_mut() = u32::from(producer.is_none());
            inner.producer = producer;
        })
    }

    /// A new tensor outside the graph, with any inline value until `fill` has changed it.
    #[inline(always)]
    fn create(fill: impl FnOnce(&mut Inner<T>)) -> Self {
        let mut inner = T::take_cached().unwrap_or_else(Inner::blank);
        *inner.gradient.get_mut() = STOP;
        fill(&mut inner);
        Self(Some(inner.shareable()))
    }

    /// A new tensor of this one's shape, which must be small. `write` leaves its numbers.
    #[inline(always)]
    pub(crate) fn small_like(&self, write: impl FnOnce(&mut T::Inline)) -> Self {
        Self::create(|inner| write(inner.value.reshape_inline(self.shape())))
    }

    /// A separate tensor with the same data, after a `change`, if that is small enough to be inline.
    #[inline(always)]
    pub(crate) fn small_copy(&self, change: impl FnOnce(&mut T::Inline)) -> Option<Self> {
        let mut now = None;
        let numbers = self.small_data(&mut now)?;
        Some(self.small_like(|copy| {
            *copy = *numbers;
            change(copy);
        }))
    }

    #[inline]
    fn inner(&self) -> &Arc<Inner<T>> {
        match &self.0 {
            Some(inner) => inner,
            None => used_after_drop(),
        }
    }

    #[inline]
    fn inner_mut(&mut self) -> Option<&mut Inner<T>> {
        self.0.as_mut().and_then(Arc::get_mut)
    }

    /// The same value as output `slot` of a node, without this handle's gradient and hooks.
    pub(crate) fn attached(mut self, node: NodeRef, slot: u32) -> Self {
        self.attach(node, slot);
        self
    }

    /// Makes this handle output `slot` of a node; other handles do not change.
    pub(crate) fn attach(&mut self, node: NodeRef, slot: u32) {
        if observes(Events::OUTPUTS) {
            output_attached(&node, slot, &self.read());
        }
        match self.inner_mut() {
            Some(inner) if inner.is_bare() => {
                node.add_consumer();
                inner.producer.get_or_insert((node, slot));
                *inner.gradient.get_mut() = 0;
            }
            _ => self.attach_copy(node, slot),
        }
    }

    #[cold]
    fn attach_copy(&mut self, node: NodeRef, slot: u32) {
        *self = Self::with_producer(self.read().into_owned(), Some((node, slot)));
    }

    // Two of the four ways to another tensor with this value; the others are `share` and `take`.

    /// A separate tensor with the same value, outside the graph; later changes in place do not affect it.
    pub(crate) fn alias(&self) -> Self {
        T::alias(self)
    }

    /// As [`alias`](Self::alias), at the same place in the graph. A leaf that wants a gradient is returned itself;
    /// ops that are recorded do not change it.
    pub(crate) fn snapshot(&self) -> Self {
        match self.producer() {
            None if !self.stop_gradient() => self.clone(),
            producer => Self::with_producer(self.read().into_owned(), producer.cloned())
                .with_lost(self.lost()),
        }
    }

    /// The value, moved out of the tensor, if nobody else holds this tensor or shares its data.
    pub(crate) fn take(mut self) -> Result<Value<T>, Self> {
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
        inner.is_unique() && inner.shared.get().is_none() && inner.leaf.get().is_none()
    }

    /// Computes a new tensor in this one's allocation, if nobody else can see it. `run` changes the value
    /// and returns whether it could. The result is outside the graph.
    #[inline]
    pub(crate) fn try_in_place(&mut self, run: impl FnOnce(&mut Value<T>) -> bool) -> bool {
        let Some(inner) = self.inner_mut() else { return false };
        if inner.shared.get().is_some() || inner.leaf.get().is_some() || !run(&mut inner.value) {
            return false;
        }
        // Usually `None`: an edge has taken it.
        if inner.producer.is_some() {
            inner.producer = None;
        }
        *inner.gradient.get_mut() = STOP;
        true
    }

    /// Prepares this tensor to be passed to user code, or to be received from it: neither side sees what the
    /// other writes. A tensor that others hold, or whose data they share, is replaced by a separate one. If
    /// ops are recorded, it keeps its place in the graph.
    #[inline]
    pub(crate) fn unshare(&mut self) {
        let unique = self.inner().is_unique() && self.inner().shared.get().is_none();
        if !unique || !self.stop_gradient() {
            self.unshare_now(unique);
        }
    }

    #[inline(never)]
    fn unshare_now(&mut self, unique: bool) {
        // A trace knows results by their identity, and refuses changes in place.
        if observes(Events::OPS) {
            return;
        }
        if !self.would_record() {
            *self = self.alias();
        } else if !unique {
            *self = self.snapshot();
        }
    }

    /// This tensor, which nobody else holds, with `stop_gradient` false if it can have a gradient.
    pub(crate) fn wanting(mut self) -> Self {
        if let (true, Some(inner)) = (T::DTYPE.is_float(), self.inner_mut()) {
            *inner.gradient.get_mut() = 0;
        }
        self
    }

    /// The value for writing. If others see it, a separate copy replaces this handle first.
    pub(crate) fn value_mut(&mut self) -> &mut Value<T> {
        if self.inner_mut().is_none_or(|inner| !inner.is_plain()) {
            *self = self.alias();
        }
        let inner = self.inner_mut().unwrap_or_else(|| unreachable!("nobody else holds it"));
        &mut inner.value
    }

    /// The value for reading. Takes no lock unless the tensor was changed in place before.
    pub(crate) fn read(&self) -> Cow<'_, Value<T>> {
        match self.inner().shared.get() {
            Some(shared) if !shared.is_value() => Cow::Owned(shared.now()),
            _ => Cow::Borrowed(&self.inner().value),
        }
    }

    /// The value, unless it was changed in place.
    #[inline]
    pub(crate) fn fixed(&self) -> Option<&Value<T>> {
        match self.inner().shared.get() {
            Some(shared) if !shared.is_value() => None,
            _ => Some(&self.inner().value),
        }
    }

    /// The elements of a small tensor: inline or, if it was changed in place, copied to `now`.
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

    /// Whether both are handles of one tensor, as clones are: they share one gradient, and one value also
    /// after a change in place. [`detach`](Tensor::detach) and [`copy`](Tensor::copy) return another tensor.
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
    #[doc(alias = "size")]
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.inner().value.shape()
    }

    pub(crate) fn shape_owned(&self) -> Shape {
        copied(self.shape())
    }

    /// Length of an axis; a negative one counts from the end.
    ///
    /// ```
    /// assert_eq!(autograd_core::Tensor::<f32>::zeros([2, 3]).dim(-1), 3);
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such axis.
    #[doc(alias = "size")]
    #[track_caller]
    pub fn dim(&self, axis: isize) -> usize {
        match check_axis("dim", axis, self.ndim()) {
            Ok(axis) => self.shape()[axis],
            Err(error) => panic!("{}", Error::from(error)),
        }
    }

    /// Number of axes.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from([[1.0, 2.0]]).ndim(), 2);
    /// ```
    #[doc(alias = "rank")]
    #[doc(alias = "ndimension")]
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// Number of elements.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from([[1.0, 2.0]]).len(), 2);
    /// ```
    #[doc(alias = "numel")]
    #[inline]
    pub fn len(&self) -> usize {
        self.inner().value.len()
    }

    /// Whether there are no elements (an axis has length 0).
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert!(Tensor::<f64>::zeros([2, 0]).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element type.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from([1.0_f32]).dtype(), autograd_core::DType::Float32);
    /// ```
    pub fn dtype(&self) -> DType {
        T::DTYPE
    }

    /// Whether gradients stop at this tensor. True for new tensors; false for results computed from a
    /// tensor that wants a gradient.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([1.0]);
    /// assert!(x.stop_gradient());
    /// x.set_stop_gradient(false);
    /// assert!(!x.exp().stop_gradient());
    /// ```
    #[doc(alias = "requires_grad")]
    #[inline]
    pub fn stop_gradient(&self) -> bool {
        self.inner().gradient.load(Ordering::Relaxed) & STOP != 0
    }

    /// Whether no recorded op produced this tensor, so that gradients end, and are kept, here.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([1.0]);
    /// x.set_stop_gradient(false);
    /// assert!(x.is_leaf() && !x.exp().is_leaf());
    /// ```
    pub fn is_leaf(&self) -> bool {
        self.inner().producer.is_none() || self.stop_gradient()
    }

    #[inline]
    pub(crate) fn producer(&self) -> Option<&(NodeRef, u32)> {
        self.inner().producer.as_ref().filter(|_| !self.stop_gradient())
    }

    /// The node that produced this tensor, also if the graph was cut here later.
    pub(crate) fn origin(&self) -> Option<&NodeRef> {
        self.inner().producer.as_ref().map(|(node, _)| node)
    }

    /// Whether an op on this tensor would be recorded now.
    #[inline]
    pub(crate) fn would_record(&self) -> bool {
        // Known when compiling: the rules of element types without gradients are left out.
        T::DTYPE.is_float() && !self.stop_gradient() && is_grad_enabled()
    }

    // Inlined, as is `take_edge`: a call would store the result in words, and the caller would load it whole
    // at once, a load that must wait for the stores.
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

    #[inline]
    pub(crate) fn absent(&self) -> Absent {
        let range_id = if observes(Events::VALUES) { self.note_constant() } else { 0 };
        Absent { lost: self.lost(), range_id }
    }

    #[cold]
    fn note_constant(&self) -> u32 {
        let (value, mut range_id) = (self.read(), 0);
        notify(Events::VALUES, |observer| range_id = observer.constant(&*value));
        range_id
    }

    /// The [`edge`](Self::edge) of a consumed tensor, which hands over its node if nobody else can see it.
    #[inline(always)]
    pub(crate) fn take_edge(&mut self) -> Edge {
        if !self.stop_gradient()
            && let Some(inner) = self.inner_mut()
            && inner.shared.get().is_none()
            && inner.leaf.get().is_none()
            && let Some((node, slot)) = inner.producer.take()
        {
            return node.into_edge(slot);
        }
        self.edge()
    }
}

impl<T: Element> Inner<T> {
    #[cold]
    fn blank() -> UniqueArc<Self> {
        UniqueArc::new(Self {
            value: Value::scalar(T::ZERO),
            producer: None,
            gradient: AtomicU32::new(STOP),
            shared: OnceLock::new(),
            leaf: OnceLock::new(),
        })
    }

    #[inline]
    pub(super) fn empty(&mut self) {
        if self.producer.is_some() {
            self.producer = None;
        }
        if self.shared.get().is_some() {
            self.shared.take();
        }
        if self.leaf.get().is_some() {
            self.leaf.take();
        }
        self.value.empty();
    }

    /// Whether it is only a value: no data shared with others, no gradient, no hook, no producer.
    #[inline]
    fn is_bare(&self) -> bool {
        self.producer.is_none() && self.shared.get().is_none() && self.leaf.get().is_none()
    }

    /// As [`is_bare`](Self::is_bare), and it wants no gradient.
    #[inline]
    fn is_plain(&mut self) -> bool {
        self.is_bare() && *self.gradient.get_mut() & STOP != 0
    }
}

#[cold]
fn output_attached<T: Element>(node: &NodeRef, slot: u32, value: &Value<T>) {
    let form = (T::DTYPE, value.shape());
    notify(Events::OUTPUTS, |observer| observer.output(node, slot, form, Some(value)));
}
