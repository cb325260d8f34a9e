//! Hooks: user code that reads or replaces a gradient during a backward.

use std::fmt;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use super::accumulate::{accumulate, own};
use super::anomaly;
use crate::error::{Error, HookResult, Plural, Result};
use crate::graph::{
    AnyTensor, At, Edge, Element, GradHook, HookId, HookList, Node, NodeAction, NodeHook, NodeRef,
    Pull, Sink, Slots, Tensor, for_any,
};
use crate::ops::Float;

/// Removes a hook. Dropping the handle leaves the hook in place. [`Tensor::register_hook`] has an example.
#[must_use = "without the handle the hook cannot be removed; `let _ = ..` says that it stays"]
pub struct HookHandle(Box<dyn Fn() -> bool + Send + Sync>);

// Its only operation is to remove the hook.
impl UnwindSafe for HookHandle {}
impl RefUnwindSafe for HookHandle {}

impl HookHandle {
    /// Removes the hook and what it captured, at once: a running backward does not call it any
    /// more. Returns false if the hook was removed before, or was dropped with its tensor.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// let handle = x.register_hook(|grad| Ok(Some(grad * 10.0)))?;
    /// assert!(handle.remove());
    /// x.square().backward()?;
    /// assert_eq!(x.grad().unwrap().item(), 6.0);
    /// assert!(!handle.remove());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn remove(&self) -> bool {
        (self.0)()
    }
}

/// Runs the hooks before a node's rule. Gradients to keep are added to `retained`.
pub(super) fn run_before(
    node: &Node,
    hooks: impl Iterator<Item = NodeHook>,
    grads: &mut Slots,
    retained: &mut Vec<(AnyTensor, AnyTensor)>,
) -> Result<()> {
    for hook in hooks {
        let site = Site::of(Some(node), "hook", hook.location);
        match &hook.action {
            NodeAction::Output(slot, call) => {
                if let Some(Some(grad)) = grads.get_mut(*slot as usize) {
                    site.run(call, grad, Some(*slot))?;
                }
            }
            NodeAction::Retain(slot, tensor) => {
                if let Some(Some(grad)) = grads.get(*slot as usize)
                    && let Some(tensor) = tensor()
                {
                    retained.push((tensor, own(grad.clone())));
                }
            }
            NodeAction::Before(call) => {
                unshare(grads);
                let returned = call(grads);
                Site { hook: "hook before it", ..site }.replace("output", grads, returned)?;
            }
            NodeAction::After(_) => {}
        }
    }
    Ok(())
}

pub(super) fn run_leaf_hooks(leaf: &AnyTensor, until: HookId, grad: &mut AnyTensor) -> Result<()> {
    let hooks = for_any!(leaf, t => t.leaf_hooks());
    let mut hooks = hooks.into_iter().flat_map(|hooks| hooks.before(until));
    hooks.try_for_each(|hook| Site::of(None, "hook", hook.location).run(&hook.action, grad, None))
}

fn run_after(
    node: &Node,
    hooks: impl Iterator<Item = NodeHook>,
    inputs: &mut [Option<AnyTensor>],
    outputs: &mut [Option<AnyTensor>],
) -> Result<()> {
    for hook in hooks {
        if let NodeAction::After(call) = &hook.action {
            unshare(inputs);
            unshare(outputs);
            let site = Site::of(Some(node), "hook after it", hook.location);
            let returned = call(inputs, outputs);
            site.replace("input", inputs, returned)?;
        }
    }
    Ok(())
}

/// Visits a node, and examines the gradients of its inputs before they are delivered.
#[cold]
pub(super) fn pull_observed(grads: Slots, pull: Pull<'_, '_>, until: HookId) -> Result<()> {
    let (node, edges, sink) = (pull.node, pull.node.edges(), pull.sink);
    let mut outputs = grads.clone();
    let mut held =
        CollectSink { edges, grads: vec![None; edges.len()], wants: &|edge| sink.wants(edge) };
    node.pull(grads, &mut Pull { sink: &mut held, ..pull })?;
    let mut grads = held.grads;
    anomaly::check_gradients(node, &outputs, &grads)?;
    if let Some(hooks) = node.hooks() {
        run_after(node, hooks.before(until), &mut grads, &mut outputs)?;
    }
    let mut grads = edges.iter().zip(grads);
    grads.try_for_each(|(edge, grad)| grad.map_or(Ok(()), |grad| sink.deliver(edge, grad)))
}

/// Computes the gradients of a node's inputs that `wants` holds for, and keeps what the node saved.
pub(crate) fn pull_alone(
    node: &NodeRef,
    grads: Slots,
    create_graph: bool,
    wants: &dyn Fn(&Edge) -> bool,
) -> Result<Vec<Option<AnyTensor>>> {
    let edges = node.edges();
    let mut held = CollectSink { edges, grads: vec![None; edges.len()], wants };
    let (sink, retain, wants_all) = (&mut held, true, false);
    node.pull(grads, &mut Pull { node, retain, create_graph, sink, wants_all })?;
    Ok(held.grads)
}

struct CollectSink<'a, 'g> {
    edges: &'g [Edge],
    grads: Vec<Option<AnyTensor>>,
    wants: &'a dyn Fn(&Edge) -> bool,
}

impl<'g> Sink<'g> for CollectSink<'_, 'g> {
    fn wants(&self, edge: &Edge) -> bool {
        (self.wants)(edge)
    }

    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()> {
        // Rules deliver along the node's own edges, so the address of an edge gives its position.
        let offset = std::ptr::from_ref(edge).addr() - self.edges.as_ptr().addr();
        accumulate(&mut self.grads[offset / size_of::<Edge>()], grad)
    }
}

pub(super) fn has_after(hooks: &HookList<NodeAction>) -> bool {
    hooks.any(|action| matches!(action, NodeAction::After(_)))
}

fn unshare(grads: &mut [Option<AnyTensor>]) {
    grads.iter_mut().flatten().for_each(AnyTensor::unshare);
}

struct Site {
    op: &'static str,
    hook: &'static str,
    registered: &'static Location<'static>,
    location: Option<&'static Location<'static>>,
}

impl Site {
    fn of(node: Option<&Node>, hook: &'static str, registered: &'static Location<'static>) -> Self {
        let (op, location) =
            node.map_or(("a leaf", None), |node| (node.name(), Some(node.location)));
        Self { op, hook, registered, location }
    }

    fn run(&self, call: &GradHook, grad: &mut AnyTensor, output: Option<u32>) -> Result<()> {
        grad.unshare();
        let new = call(grad).map_err(|error| match output {
            Some(position) => self.failed(format!("hook on output {position}"), error),
            None => self.failed(self.hook.into(), error),
        })?;
        if let Some(new) = new {
            let name = || output.map_or("the leaf".into(), |position| format!("output {position}"));
            self.check(&new, grad, name)?;
            *grad = new.unshared();
        }
        Ok(())
    }

    /// Replaces gradients by those that a hook returned. An absent gradient stays absent.
    fn replace(
        &self,
        what: &str,
        grads: &mut [Option<AnyTensor>],
        returned: HookResult<Option<Vec<Option<AnyTensor>>>>,
    ) -> Result<()> {
        let new = returned.map_err(|error| self.failed(self.hook.into(), error))?;
        let Some(new) = new else { return Ok(()) };
        if new.len() != grads.len() {
            let count = Plural(grads.len(), "gradient", "gradients");
            let expected = format!("{count} (or None in their places)");
            return Err(self.error(format!("its {what}s"), expected, new.len().to_string()));
        }
        for (position, (grad, new)) in grads.iter_mut().zip(new).enumerate() {
            let (Some(old), Some(new)) = (&grad, new) else { continue };
            self.check(&new, old, || format!("{what} {position}"))?;
            *grad = Some(new.unshared());
        }
        Ok(())
    }

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

    fn check(
        &self,
        new: &AnyTensor,
        old: &AnyTensor,
        parameter: impl FnOnce() -> String,
    ) -> Result<()> {
        let (expected, found) = if new.dtype() != old.dtype() {
            (format!("element type {}", old.dtype()), new.dtype().to_string())
        } else if new.shape() != old.shape() {
            (format!("shape {:?}", old.shape()), format!("shape {:?}", new.shape()))
        } else {
            return Ok(());
        };
        Err(self.error(parameter(), format!("a gradient of {expected}"), found))
    }
}

/// # Hooks
impl<T: Float> Tensor<T> {
    /// Calls `hook` with this tensor's gradient whenever a backward has computed it. `Some` replaces the
    /// gradient that flows on or, on a leaf, is kept. Hooks run in the order of their registration, each on the
    /// result of the one before it; one on a leaf receives the sum of one backward, not the total. A hook may
    /// write into its gradient: backward goes on with the changed numbers, and nobody else sees them.
    ///
    /// An error from a hook ends the backward and is the source of the [`Error::Hook`] that it returns; no
    /// gradient is written. A hook that is removed during a backward does not run any more; an added one runs
    /// from the next backward on. The same holds for the hooks of a [`GraphNode`].
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
    /// # What a hook keeps alive
    ///
    /// A hook lives as long as its tensor; on the output of an op, as long as that op is part of a graph. One
    /// that captures its own tensor, or one computed from it, keeps the graph alive, and its memory is never
    /// freed. Capture [`detach`](Tensor::detach) instead, or remove the hook.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// x.set_stop_gradient(false);
    /// let data = x.detach();
    /// let handle = x.register_hook(move |grad| Ok(Some(grad * &data)))?;
    /// // With `x.clone()` in place of `x.detach()` the hook would still be there.
    /// drop(x);
    /// assert!(!handle.remove());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// Hooks run with recording off, unless the backward is recorded: a backward inside of one needs
    /// [`enable_grad`](crate::enable_grad).
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
        let location = Location::caller();
        let hook: GradHook = Arc::new(move |grad| match T::peek(grad) {
            Some(grad) => Ok(hook(grad)?.map(AnyTensor::from)),
            None => Ok(None),
        });
        if let Some((node, slot)) = self.producer() {
            return Ok(add(node, location, NodeAction::Output(*slot, hook)));
        }
        let id = self.leaf_hooks_or_init().add(hook, location);
        let leaf = self.downgrade();
        Ok(HookHandle(Box::new(move || {
            let leaf = leaf.upgrade();
            leaf.is_some_and(|leaf| leaf.leaf_hooks().is_some_and(|hooks| hooks.remove(id)))
        })))
    }

    /// Keeps the gradient of the output of an op too, as for a leaf: the result of the hooks that are
    /// registered before. It is written with the gradients of the leaves when the walk is done;
    /// [`grad`](crate::grad()) does not write it. A second call has no effect.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// let h = x.square();
    /// h.retain_grads()?;
    /// (&h * 5.0).backward()?;
    /// assert_eq!(h.grad().unwrap().item(), 5.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
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
        let keeps = |action: &NodeAction| matches!(action, NodeAction::Retain(of, _) if of == slot);
        let weak = self.downgrade();
        let tensor = move || weak.upgrade().map(AnyTensor::from);
        let action = NodeAction::Retain(*slot, Arc::new(tensor));
        node.hooks_or_init().add_once(action, Location::caller(), keeps);
        Ok(())
    }
}

fn add(node: &NodeRef, location: &'static Location<'static>, action: NodeAction) -> HookHandle {
    let id = node.hooks_or_init().add(action, location);
    let node = node.token();
    HookHandle(Box::new(move || node.remove_hook(id)))
}

/// The recorded op that produced a tensor; see [`Tensor::graph_node`]. Keeps its graph alive.
#[doc(alias = "grad_fn")]
#[derive(Clone)]
pub struct GraphNode(pub(crate) NodeRef);

impl GraphNode {
    /// The op's name.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// assert_eq!(x.square().graph_node().unwrap().name(), "square");
    /// ```
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Where the op was called.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// let (y, line) = (x.square(), line!());
    /// let place = y.graph_node().unwrap().location();
    /// assert_eq!((place.file(), place.line()), (file!(), line));
    /// ```
    pub fn location(&self) -> &'static Location<'static> {
        self.0.location
    }

    /// Returns the tensors that the op saved, unpacked, with their places in the graph: those of
    /// `save_for_backward` in order, or those of a built-in op's rule; `None` for one that was not saved.
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
    /// [`Error::GraphFreed`] if a backward has taken them, [`Error::SavedTensorChanged`] for a tensor
    /// that was changed in place since, and the error of an unpack hook.
    #[doc(alias = "saved_tensor")]
    pub fn saved_tensors(&self) -> Result<Vec<Option<AnyTensor>>> {
        let node = &self.0;
        At { node, create_graph: true }.saved()
    }

    /// Calls `hook` before the op's rule runs, with the gradients of the op's outputs; `None` is an absent
    /// gradient, and stays absent. `Some` replaces them by as many, of the same shapes and types.
    ///
    /// Hooks on the op and on its outputs run in the order of their registration. The hook lives as long as the
    /// op is part of a graph, and must not capture this `GraphNode`, or a tensor computed from an output of the
    /// op. For this and for errors see [`Tensor::register_hook`].
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// let y = x.square();
    /// let node = y.graph_node().unwrap();
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
        add(&self.0, Location::caller(), NodeAction::Before(Arc::new(hook)))
    }

    /// Calls `hook` after the op's rule, with the gradients of its inputs and outputs; `None` if absent or not
    /// needed. `Some` replaces those of the inputs; for the rest see [`GraphNode::register_before`].
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
        add(&self.0, Location::caller(), NodeAction::After(Arc::new(hook)))
    }
}

impl fmt::Debug for GraphNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name(), self.location())
    }
}

/// # The recorded op
impl<T: Element> Tensor<T> {
    /// The recorded op that produced this tensor; `None` for a leaf.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// assert_eq!(x.exp().graph_node().unwrap().name(), "exp");
    /// assert!(x.graph_node().is_none());
    /// ```
    #[doc(alias = "grad_fn")]
    pub fn graph_node(&self) -> Option<GraphNode> {
        self.producer().map(|(node, _)| GraphNode(node.clone()))
    }
}
