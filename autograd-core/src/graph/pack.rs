//! Hooks on what ops save: a scope of this thread in which saved tensors are kept in another form.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::replace;
use std::panic::Location;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::any::{AnyTensor, for_any};
use super::mode::GradMode;
use super::node::{Edge, NodeRef, Pull, Rule, Slots, only};
use super::saved::At;
use super::tensor::Tensor;
use super::watch::Watching;
use crate::array::DType;
use crate::error::{Error, HookResult, Result};

/// Gives the tensor back that was packed.
type Unpack = dyn Fn() -> HookResult<AnyTensor> + Send + Sync;

/// The hooks of one scope.
struct Hooks {
    pack: Box<dyn Fn(&AnyTensor) -> HookResult<Arc<Unpack>>>,
    /// The first error of `pack`.
    failed: RefCell<Option<Error>>,
}

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
    /// The open scopes of this thread, innermost last; without hooks where packing is suspended.
    static SCOPES: RefCell<Vec<(u64, Option<Rc<Hooks>>)>> = const { RefCell::new(Vec::new()) };
}

/// A scope of this thread, until dropped, also by a panic.
struct Scope {
    id: u64,
    // The scope belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

impl Scope {
    fn open(hooks: Option<Rc<Hooks>>) -> Self {
        let id = NEXT.get();
        NEXT.set(id + 1);
        SCOPES.with_borrow_mut(|scopes| scopes.push((id, hooks)));
        Self { id, _not_send: PhantomData }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // What user closures have captured is dropped when the list is free again.
        let _hooks = SCOPES.with_borrow_mut(|scopes| {
            let position = scopes.iter().position(|(id, _)| *id == self.id)?;
            Some(scopes.remove(position))
        });
    }
}

/// Nothing that is recorded on this thread is packed until this is dropped, unless by a scope
/// opened later.
pub(crate) struct Unpacked(#[allow(dead_code, reason = "kept for its drop")] Scope);

impl Unpacked {
    pub(crate) fn start() -> Self {
        Self(Scope::open(None))
    }
}

/// User code runs with recording off and packs nothing.
fn aside<R>(f: impl FnOnce() -> R) -> R {
    let _suspended = Unpacked::start();
    GradMode::of(false, f)
}

/// While it lives, what ops on this thread save is packed. Made by [`saved_tensors_hooks`].
#[must_use = "tensors are packed only while the scope lives: `let _scope = saved_tensors_hooks(..);`"]
pub struct SavedTensorsHooks {
    hooks: Rc<Hooks>,
    _scope: Scope,
    _watching: Watching,
}

impl SavedTensorsHooks {
    /// Runs a closure in this scope.
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }

    /// Whether every tensor could be packed up to now.
    ///
    /// # Errors
    ///
    /// [`Error::SavedTensorHook`] for the first that could not.
    pub fn check(&self) -> Result<()> {
        self.hooks.failed.borrow().clone().map_or(Ok(()), Err)
    }
}

/// Keeps what ops save for backward in another form, on disk, compressed, in lower precision or
/// not at all, until the scope is dropped.
///
/// `pack` is called once with each tensor that an op recorded on this thread saves, a built-in op
/// as well as a layer, while the op is recorded; what it returns is kept in place of the tensor.
/// `unpack` is called when a backward needs the tensor: once, or once in each backward where the
/// graph is retained. A tensor that two ops save is packed twice.
///
/// - **Memory.** The node does not hold the tensor any more, so its buffer is free as soon as
///   nobody else holds it. A leaf that wants a gradient is held by the graph in any case.
/// - **Value.** `pack` sees the tensor as it is then, outside the graph; a later change in place
///   reaches neither the packed value nor backward, and is no error. What `unpack` returns must
///   have the shape and the element type of what was packed, in any memory layout; the numbers are
///   believed. Those of an integer tensor (an index, say) must be the same.
/// - **Second order.** A tensor that comes back has its place in the graph again. Where the backward
///   is recorded inside a scope, what it saves is packed too.
/// - **Nesting.** The innermost scope alone counts, as in PyTorch. Both hooks run with recording
///   off, and what they compute is not packed.
/// - **Threads.** A scope belongs to its thread. `unpack` runs in whichever thread runs backward,
///   also after the scope has ended.
/// - **Errors.** An op that cannot pack goes on; its error stands in place of the value and is
///   returned by a backward that needs it, and at any time by [`SavedTensorsHooks::check`]. An
///   error of `unpack` ends the backward. A panic of `pack` leaves the op's call, which then has
///   recorded nothing; one of `unpack` leaves the backward. No gradient is written, and every tensor
///   stays usable.
///
/// What a rule keeps beside tensors (shapes, positions, one sum for each row) is not packed, nor
/// is what [`checkpoint`](crate::checkpoint) keeps: it packs nothing of its closure unless the
/// closure itself opens a scope, or its backward is recorded in one. While no scope is open, none
/// of this costs anything.
///
/// ```
/// use autograd_core::{AnyTensor, Tensor, saved_tensors_hooks};
///
/// let x = Tensor::from([0.5, 2.0]);
/// x.set_stop_gradient(false);
///
/// // In half the memory.
/// let pack = |saved: &AnyTensor| match saved {
///     AnyTensor::Float64(saved) => Ok(saved.cast::<f32>()),
///     other => Err(format!("no plan for {}", other.dtype()).into()),
/// };
/// let unpack = |packed: &Tensor<f32>| Ok(packed.cast::<f64>().into());
/// let y = saved_tensors_hooks(pack, unpack).run(|| x.square().sum());
///
/// y.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec(), [1.0, 4.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// As a guard: `let _scope = saved_tensors_hooks(pack, unpack);`. The example `saved_on_disk` keeps
/// what is saved in files.
pub fn saved_tensors_hooks<P: Send + Sync + 'static>(
    pack: impl Fn(&AnyTensor) -> HookResult<P> + 'static,
    unpack: impl Fn(&P) -> HookResult<AnyTensor> + Send + Sync + 'static,
) -> SavedTensorsHooks {
    let unpack = Arc::new(unpack);
    let pack = move |tensor: &AnyTensor| {
        let (packed, unpack) = (pack(tensor)?, Arc::clone(&unpack));
        Ok::<Arc<Unpack>, _>(Arc::new(move || unpack(&packed)))
    };
    let hooks = Rc::new(Hooks { pack: Box::new(pack), failed: RefCell::new(None) });
    SavedTensorsHooks {
        _scope: Scope::open(Some(Rc::clone(&hooks))),
        hooks,
        _watching: Watching::start(),
    }
}

/// Gives what a new node keeps to the hooks in force, if there are any.
pub(super) fn pack_saved(rule: &mut dyn Rule, location: &'static Location<'static>) {
    let hooks = SCOPES.with_borrow(|scopes| scopes.last().and_then(|(_, hooks)| hooks.clone()));
    if let Some(hooks) = hooks {
        let op = rule.name();
        rule.pack(&Packing { hooks: &hooks, op, location });
    }
}

/// The hooks in force, at the op that saves.
pub(crate) struct Packing<'a> {
    hooks: &'a Hooks,
    op: &'static str,
    location: &'static Location<'static>,
}

/// A place where a node keeps a tensor.
pub(crate) trait Slot {
    /// What errors call it.
    fn name(&self) -> String;
    /// The tensor that was saved; nothing stays.
    fn take(&mut self) -> AnyTensor;
    /// Puts one back, of the same shape and element type.
    fn put(&mut self, tensor: AnyTensor);
    /// The tensor as backward gets it.
    fn get(&self, at: &At<'_>) -> Result<AnyTensor>;
}

/// What is done at each place; `None` stands for an optional tensor that is absent.
pub(crate) type Visit<'a> = dyn FnMut(Option<&mut dyn Slot>) -> Result<()> + 'a;

/// Shows the places of the tensors in a node's state, in the same order each time.
type Places<'a, S> = dyn Fn(&mut S, &mut Visit<'_>) -> Result<()> + 'a;
/// The same of a state at hand.
type Each<'a> = dyn FnMut(&mut Visit<'_>) -> Result<()> + 'a;

/// What a node keeps until a backward takes it.
pub(crate) struct State<S>(Mutex<Held<S>>);

#[derive(Clone)]
#[allow(private_interfaces, reason = "only this file looks inside")]
pub(crate) enum Held<S> {
    As(S),
    /// With the tensors taken out and packed.
    Packed(Box<(S, Vec<Packed>)>),
    /// Nothing yet, or a backward has taken it.
    Nothing,
}

impl<S> Default for State<S> {
    fn default() -> Self {
        Self(Mutex::new(Held::Nothing))
    }
}

impl<S: Clone> State<S> {
    pub(crate) fn new(state: S) -> Self {
        Self(Mutex::new(Held::As(state)))
    }

    #[inline(always)]
    fn lock(&self) -> MutexGuard<'_, Held<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept, before the node is made.
    pub(crate) fn get_or_insert_default(&mut self) -> &mut S
    where
        S: Default,
    {
        let held = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !matches!(held, Held::As(_)) {
            *held = Held::As(S::default());
        }
        match held {
            Held::As(state) => state,
            _ => unreachable!("it was made here"),
        }
    }

    pub(crate) fn clear(&mut self) {
        *self.0.get_mut().unwrap_or_else(PoisonError::into_inner) = Held::Nothing;
    }

    /// What is kept, taken or, where the graph is retained, copied; an error where an earlier
    /// backward took it.
    #[inline]
    pub(crate) fn take(&self, retain: bool, at: &At<'_>, visit: &Places<'_, S>) -> Result<S> {
        match taken(self.lock(), retain) {
            Held::As(state) => Ok(state),
            other => other.restore(at, visit),
        }
    }

    /// The same, to be taken out of its place part by part.
    #[inline]
    pub(crate) fn open(
        &self,
        retain: bool,
        at: &At<'_>,
        visit: &Places<'_, S>,
    ) -> Result<Opened<'_, S>> {
        let held = self.lock();
        match &*held {
            Held::As(_) if !retain => Ok(Opened::Here(held)),
            Held::As(state) => Ok(Opened::Copy(state.clone())),
            _ => taken(held, retain).restore(at, visit).map(Opened::Copy),
        }
    }

    /// Gives the tensors to the hooks in force.
    pub(crate) fn pack(&mut self, packing: &Packing<'_>, visit: &Places<'_, S>) {
        let held = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Held::As(mut state) = replace(held, Held::Nothing) {
            let packed = packing.all(&mut |slots| visit(&mut state, slots));
            *held = Held::Packed(Box::new((state, packed)));
        }
    }

    /// The tensors as backward would get them.
    pub(crate) fn show(
        &self,
        at: &At<'_>,
        visit: &Places<'_, S>,
    ) -> Result<Vec<Option<AnyTensor>>> {
        let mut state = self.take(true, at, visit)?;
        shown(at, &mut |slots| visit(&mut state, slots))
    }
}

/// What is kept, taken or, where the graph is retained, copied. Then the lock is free: what is in another form is
/// restored by hooks.
#[inline(always)]
fn taken<S: Clone>(mut held: MutexGuard<'_, Held<S>>, retain: bool) -> Held<S> {
    if retain { held.clone() } else { replace(&mut *held, Held::Nothing) }
}

/// What a node keeps, while it is taken out; then nothing stays.
pub(crate) enum Opened<'a, S> {
    Here(MutexGuard<'a, Held<S>>),
    /// For a graph that is retained.
    Copy(S),
}

impl<S> Opened<'_, S> {
    pub(crate) fn get(&mut self) -> &mut S {
        match self {
            Self::Here(held) => match &mut **held {
                Held::As(state) => state,
                _ => unreachable!("it was seen to be there"),
            },
            Self::Copy(state) => state,
        }
    }
}

impl<S> Drop for Opened<'_, S> {
    fn drop(&mut self) {
        if let Self::Here(held) = self {
            **held = Held::Nothing;
        }
    }
}

impl<S> Held<S> {
    #[cold]
    fn restore(self, at: &At<'_>, visit: &Places<'_, S>) -> Result<S> {
        match self {
            Self::As(state) => Ok(state),
            Self::Nothing => Err(Error::GraphFreed { op: at.op, location: at.location }),
            Self::Packed(packed) => {
                let (mut state, packed) = *packed;
                unpack(packed, at, &mut |slots| visit(&mut state, slots))?;
                Ok(state)
            }
        }
    }
}

/// The tensors as backward would get them.
fn shown(at: &At<'_>, each: &mut Each<'_>) -> Result<Vec<Option<AnyTensor>>> {
    let mut shown = Vec::new();
    each(&mut |slot| {
        shown.push(slot.map(|slot| slot.get(at)).transpose()?);
        Ok(())
    })?;
    Ok(shown)
}

/// Puts the tensors back.
fn unpack(packed: Vec<Packed>, at: &At<'_>, each: &mut Each<'_>) -> Result<()> {
    let mut packed = packed.into_iter();
    each(&mut |slot| {
        let Some(slot) = slot else { return Ok(()) };
        match packed.next() {
            Some(packed) => slot.put(packed.unpack(at)?),
            None => unreachable!("each place is packed"),
        }
        Ok(())
    })
}

/// A saved tensor in the form that a hook gave it.
#[derive(Clone)]
struct Packed {
    /// An error where it could not be packed.
    unpack: Result<Arc<Unpack>>,
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    /// Its place in the graph.
    edge: Edge,
}

impl Packing<'_> {
    /// Takes all tensors out.
    fn all(&self, each: &mut Each<'_>) -> Vec<Packed> {
        let mut packed = Vec::new();
        let done = each(&mut |slot| {
            packed.extend(slot.map(|slot| self.pack(&slot.take(), slot.name())));
            Ok(())
        });
        debug_assert!(done.is_ok(), "errors of packing are kept in place of the tensor");
        packed
    }

    fn pack(&self, tensor: &AnyTensor, name: String) -> Packed {
        let alone = tensor.alias();
        let unpack = aside(|| (self.hooks.pack)(&alone)).map_err(|error| {
            let error = Error::SavedTensorHook {
                op: self.op,
                parameter: name.clone(),
                hook: "pack",
                source: error.into(),
                location: self.location,
            };
            self.hooks.failed.borrow_mut().get_or_insert_with(|| error.clone());
            error
        });
        let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
        Packed { unpack, name, dtype, shape, edge: for_any!(tensor, t => t.edge()) }
    }
}

impl Packed {
    /// The tensor at its place in the graph.
    fn unpack(self, at: &At<'_>) -> Result<AnyTensor> {
        let unpack = self.unpack?;
        let tensor = match aside(|| unpack()) {
            Ok(tensor) => tensor,
            Err(error) => {
                return Err(Error::SavedTensorHook {
                    op: at.op,
                    parameter: self.name,
                    hook: "unpack",
                    source: error.into(),
                    location: at.location,
                });
            }
        };
        if tensor.dtype() != self.dtype || tensor.shape() != self.shape {
            return Err(Error::Unpacked {
                op: at.op,
                parameter: self.name,
                expected: (self.shape, self.dtype),
                found: (tensor.shape().to_vec(), tensor.dtype()),
                location: at.location,
            });
        }
        // A rule may count on row-major data, and the hook may have kept a handle.
        let value: AnyTensor =
            for_any!(&tensor, t => Tensor::new(t.read().contiguous().into_owned()).into());
        let (node, slot) = match self.edge {
            Edge::None(_) => return Ok(value),
            Edge::Node(node, slot) => (node, slot),
            leaf @ Edge::Leaf(_) => (NodeRef::record(Stand([leaf]), at.location), 0),
        };
        Ok(for_any!(value, t => t.attached(node, slot).into()))
    }
}

/// The node of a tensor that stands for a leaf: the gradient goes on to the leaf.
struct Stand([Edge; 1]);

impl Rule for Stand {
    fn name(&self) -> &'static str {
        "unpack"
    }

    fn edges(&self) -> &[Edge] {
        &self.0
    }

    fn pull<'g>(&'g self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        pull.sink.deliver(&self.0[0], only(grads))
    }
}
