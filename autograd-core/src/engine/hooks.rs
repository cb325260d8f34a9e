//! Hooks: user code that sees, or replaces, a gradient on its way.

use std::fmt;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::backward::own;
use crate::error::{Error, HookResult, Plural, Result};
use crate::graph::{
    AnyTensor, At, Element, HookId, LeafHook, Node, NodeAction, NodeHook, NodeRef, Slots, Tensor,
    for_any,
};
use crate::ops::Float;

/// Removes a hook. Dropping it leaves the hook in place.
#[must_use = "without the handle the hook cannot be removed; `let _ = ..` says that it stays"]
pub struct HookHandle(Box<dyn Fn() -> bool + Send + Sync>);

// All that it can do is to remove the hook.
impl UnwindSafe for HookHandle {}
impl RefUnwindSafe for HookHandle {}

impl HookHandle {
    /// Removes the hook; false if it was removed before.
    pub fn remove(&self) -> bool {
        (self.0)()
    }
}

fn next_id() -> HookId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    HookId(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Runs the hooks that come before a node's own rule. Gradients to keep are put into `retained`,
/// where there is such a place.
pub(super) fn run_before(
    node: &Node,
    hooks: &[NodeHook],
    grads: &mut Slots,
    retained: &mut Option<Vec<(AnyTensor, AnyTensor)>>,
) -> Result<()> {
    for hook in hooks {
        match &hook.action {
            NodeAction::Output(slot, call) => {
                let position = *slot as usize;
                let Some(slot) = grads.get_mut(position) else { continue };
                *slot = slot.take().map(AnyTensor::unshared);
                let Some(grad) = slot else { continue };
                let site = Site::of(node, "hook", hook);
                let new = call(grad)
                    .map_err(|error| site.failed(format!("hook on output {position}"), error))?;
                if let Some(new) = new {
                    site.check(&new, grad, || format!("output {position}"))?;
                    *grad = new;
                }
            }
            NodeAction::Retain(slot, tensor) => {
                if let (Some(retained), Some(Some(grad))) =
                    (retained.as_mut(), grads.get(*slot as usize))
                    && let Some(tensor) = tensor()
                {
                    retained.push((tensor, own(grad.clone())));
                }
            }
            NodeAction::Before(call) => {
                unshare(grads);
                let site = Site::of(node, "hook before it", hook);
                let new = call(grads).map_err(|error| site.failed(site.hook.into(), error))?;
                if let Some(new) = new {
                    replace(&site, "output", grads, new)?;
                }
            }
            NodeAction::After(_) => {}
        }
    }
    Ok(())
}

/// Runs the hooks that come after a node's rule, on the gradients of its inputs and outputs.
pub(super) fn run_after(
    node: &Node,
    hooks: &[NodeHook],
    inputs: &mut [Option<AnyTensor>],
    outputs: &mut [Option<AnyTensor>],
) -> Result<()> {
    for hook in hooks {
        if let NodeAction::After(call) = &hook.action {
            unshare(inputs);
            unshare(outputs);
            let site = Site::of(node, "hook after it", hook);
            let new = call(inputs, outputs);
            let new = new.map_err(|error| site.failed(site.hook.into(), error))?;
            if let Some(new) = new {
                replace(&site, "input", inputs, new)?;
            }
        }
    }
    Ok(())
}

pub(super) fn has_after(hooks: &[NodeHook]) -> bool {
    hooks.iter().any(|hook| matches!(hook.action, NodeAction::After(_)))
}

fn unshare(grads: &mut [Option<AnyTensor>]) {
    for grad in grads {
        *grad = grad.take().map(AnyTensor::unshared);
    }
}

/// Puts the gradients that a hook returned in place: one where there was one, and nowhere else.
fn replace(
    site: &Site,
    what: &str,
    grads: &mut [Option<AnyTensor>],
    new: Vec<Option<AnyTensor>>,
) -> Result<()> {
    if new.len() != grads.len() {
        let count = Plural(grads.len(), "gradient", "gradients");
        let expected = format!("{count} (or None in their places)");
        return Err(site.error(format!("its {what}s"), expected, new.len().to_string()));
    }
    for (position, (grad, new)) in grads.iter_mut().zip(new).enumerate() {
        let (Some(old), Some(new)) = (&grad, new) else { continue };
        site.check(&new, old, || format!("{what} {position}"))?;
        *grad = Some(new);
    }
    Ok(())
}

/// Where a hook stands, for its errors.
struct Site {
    op: &'static str,
    hook: &'static str,
    registered: &'static Location<'static>,
    location: Option<&'static Location<'static>>,
}

impl Site {
    fn of(node: &Node, name: &'static str, hook: &NodeHook) -> Self {
        let (op, location) = (node.name(), Some(node.location));
        Self { op, hook: name, registered: hook.location, location }
    }

    /// The hook's own error.
    #[cold]
    fn failed(&self, hook: String, error: Box<dyn std::error::Error + Send + Sync>) -> Error {
        let Self { op, registered, location, .. } = *self;
        Error::Hook { op, hook, registered, location, source: error.into() }
    }

    #[cold]
    fn error(&self, parameter: String, expected: String, found: String) -> Error {
        let Self { op, hook, registered, location } = *self;
        Error::HookGradient { op, hook, registered, parameter, expected, found, location }
    }

    /// A gradient that a hook returned must be like the one it got.
    fn check(
        &self,
        new: &AnyTensor,
        old: &AnyTensor,
        parameter: impl FnOnce() -> String,
    ) -> Result<()> {
        if new.dtype() != old.dtype() {
            let expected = format!("a gradient of element type {}", old.dtype());
            return Err(self.error(parameter(), expected, new.dtype().to_string()));
        }
        if new.shape() != old.shape() {
            let expected = format!("a gradient of shape {:?}", old.shape());
            return Err(self.error(parameter(), expected, format!("shape {:?}", new.shape())));
        }
        Ok(())
    }
}

pub(super) fn run_leaf_hooks(leaf: &AnyTensor, grad: AnyTensor) -> Result<AnyTensor> {
    fn run<T: Element>(leaf: &Tensor<T>, grad: AnyTensor) -> Result<AnyTensor> {
        let hooks = leaf.leaf_hooks();
        if hooks.is_empty() {
            return Ok(grad);
        }
        let mut grad = grad.unshared();
        for hook in hooks {
            let Some(seen) = T::peek(&grad) else {
                unreachable!("a gradient has its leaf's element type");
            };
            let site =
                Site { op: "a leaf", hook: "hook", registered: hook.location, location: None };
            let new = (hook.call)(seen).map_err(|error| site.failed(site.hook.into(), error))?;
            if let Some(new) = new {
                let new = new.into();
                site.check(&new, &grad, || "the leaf".into())?;
                grad = new;
            }
        }
        Ok(grad)
    }
    for_any!(leaf, t => run(t, grad))
}

/// # Hooks
impl<T: Float> Tensor<T> {
    /// Calls `hook` with this tensor's gradient whenever a backward has computed it. `Some` puts
    /// another gradient in its place, for what this tensor was computed from or, on a leaf, for
    /// what is kept. Hooks run in the order of their registration, each with what the one before
    /// it left; one on a leaf sees the sum of one backward, not the total.
    ///
    /// An error from a hook ends the backward and is the source of the [`Error::Hook`] that it
    /// returns; no gradient is written.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(1.0);
    /// x.set_stop_gradient(false);
    /// let h = &x * 2.0;
    /// let handle = h.register_hook(|grad| Ok(Some(grad * 10.0)))?;
    /// h.backward()?;
    /// assert_eq!(x.grad().unwrap().item(), 20.0);
    /// assert!(handle.remove());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] on a tensor that wants no gradient.
    #[track_caller]
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor<T>) -> HookResult<Option<Tensor<T>>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        if self.stop_gradient() {
            let why = "a tensor with stop_gradient gets no gradient to see".into();
            return Err(Error::Unsupported { op: "register_hook", why });
        }
        let (id, location) = (next_id(), Location::caller());
        let Some((node, slot)) = self.producer() else {
            self.add_leaf_hook(LeafHook { id, location, call: Arc::new(hook) });
            let leaf = self.downgrade();
            let remove = move || leaf.upgrade().is_some_and(|leaf| leaf.remove_leaf_hook(id));
            return Ok(HookHandle(Box::new(remove)));
        };
        let call = move |grad: &AnyTensor| match T::peek(grad) {
            Some(grad) => Ok(hook(grad)?.map(AnyTensor::from)),
            None => Ok(None),
        };
        Ok(add(node, id, location, NodeAction::Output(*slot, Arc::new(call))))
    }

    /// Keeps the gradient of the output of an op too, as of a leaf. It takes its place among the
    /// tensor's hooks: it keeps what the hooks before it left. It is written with those of the
    /// leaves when the walk is done, and [`grad`](crate::grad()) leaves it alone. A second call says
    /// nothing new.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] on a tensor that wants no gradient.
    #[track_caller]
    pub fn retain_grads(&self) -> Result<()> {
        if self.stop_gradient() {
            let why = "a tensor with stop_gradient gets no gradient to keep".into();
            return Err(Error::Unsupported { op: "retain_grads", why });
        }
        let Some((node, slot)) = self.producer() else { return Ok(()) };
        let weak = self.downgrade();
        let tensor = move || weak.upgrade().map(AnyTensor::from);
        let action = NodeAction::Retain(*slot, Arc::new(tensor));
        let _ = add(node, next_id(), Location::caller(), action);
        Ok(())
    }
}

fn add(
    node: &NodeRef,
    id: HookId,
    location: &'static Location<'static>,
    action: NodeAction,
) -> HookHandle {
    node.add_hook(NodeHook { id, location, action });
    let node = node.token();
    HookHandle(Box::new(move || node.remove_hook(id)))
}

/// The recorded op that a tensor came from; see [`Tensor::graph_node`]. It keeps that op, and all
/// that it was computed from, alive.
#[doc(alias = "grad_fn")]
#[derive(Clone)]
pub struct GraphNode(pub(crate) NodeRef);

impl GraphNode {
    /// The op's name.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Where the op was called.
    pub fn location(&self) -> &'static Location<'static> {
        self.0.location
    }

    /// What the op saved for backward, as backward would get it: the tensors of
    /// `save_for_backward` in their order, or those that a built-in op's rule needs. `None` stands
    /// where an optional tensor was not saved; an op that saved nothing has none.
    ///
    /// Inputs and outputs have their places in the graph. What a pack hook took is unpacked for
    /// this call.
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// let y = x.square();
    /// let node = y.graph_node().unwrap();
    /// assert!(matches!(&node.saved_tensors()?[..], [Some(AnyTensor::Float64(s))] if s.item() == 3.0));
    /// y.backward()?;
    /// assert!(node.saved_tensors().is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::GraphFreed`] when a backward has taken them, [`Error::SavedTensorChanged`] for one
    /// that was changed in place since, and what an unpack hook returns.
    #[doc(alias = "saved_tensor")]
    pub fn saved_tensors(&self) -> Result<Vec<Option<AnyTensor>>> {
        let node = &self.0;
        let (op, location) = (self.name(), self.location());
        node.saved(&At { op, location, node, create_graph: true })
    }

    /// Calls `hook` before the op's rule runs, with the gradients of the op's outputs; `None`
    /// stands where none came. `Some` puts others in their places: as many, of the same shapes and
    /// element types. A place without a gradient stays without one.
    ///
    /// Hooks on the op and on its outputs ([`Tensor::register_hook`]) run in one order, that of
    /// their registration. An error ends the backward and is the source of the [`Error::Hook`] that
    /// it returns; no gradient is written.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// let y = x.square();
    /// let node = y.graph_node().unwrap();
    /// assert_eq!(node.name(), "square");
    /// let _ = node.register_before(|_| Ok(Some(vec![Some(Tensor::from(10.0).into())])));
    /// y.backward()?;
    /// assert_eq!(x.grad().unwrap().item(), 60.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[track_caller]
    pub fn register_before(
        &self,
        hook: impl Fn(&[Option<AnyTensor>]) -> HookResult<Option<Vec<Option<AnyTensor>>>>
        + Send
        + Sync
        + 'static,
    ) -> HookHandle {
        add(&self.0, next_id(), Location::caller(), NodeAction::Before(Arc::new(hook)))
    }

    /// Calls `hook` when the op's rule has run, before its results go on, with the gradients of
    /// the op's inputs and of its outputs. An input that wants no gradient, or whose gradient is
    /// not asked for, has `None`. `Some` puts others in the places of the inputs' gradients, as in
    /// [`GraphNode::register_before`].
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// let y = &x * 2.0;
    /// let node = y.graph_node().unwrap();
    /// let _ = node.register_after(|inputs, outputs| {
    ///     let [Some(AnyTensor::Float64(dx))] = inputs else { return Ok(None) };
    ///     assert_eq!(outputs.len(), 1);
    ///     Ok(Some(vec![Some((dx * 10.0).into())]))
    /// });
    /// y.backward()?;
    /// assert_eq!(x.grad().unwrap().item(), 20.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[track_caller]
    pub fn register_after(
        &self,
        hook: impl Fn(
            &[Option<AnyTensor>],
            &[Option<AnyTensor>],
        ) -> HookResult<Option<Vec<Option<AnyTensor>>>>
        + Send
        + Sync
        + 'static,
    ) -> HookHandle {
        add(&self.0, next_id(), Location::caller(), NodeAction::After(Arc::new(hook)))
    }
}

impl fmt::Debug for GraphNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name(), self.location())
    }
}

impl<T: Element> Tensor<T> {
    /// The recorded op that this tensor came from; `None` for a leaf.
    #[doc(alias = "grad_fn")]
    pub fn graph_node(&self) -> Option<GraphNode> {
        self.producer().map(|(node, _)| GraphNode(node.clone()))
    }
}
