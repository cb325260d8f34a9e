//! Hooks: user code that sees, or replaces, a gradient on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::accumulate;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, HookId, LeafHook, Node, NodeHook, Slots, Tensor, for_any};
use crate::ops::Float;

/// Removes a hook. Dropping it leaves the hook in place.
#[must_use = "without the handle the hook cannot be removed; `let _ = ..` says that it stays"]
pub struct HookHandle(Box<dyn Fn() -> bool + Send + Sync>);

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

#[inline]
pub(super) fn run_node_hooks(node: &Arc<Node>, grads: &mut Slots) -> Result<()> {
    let Some(hooks) = node.hooks() else { return Ok(()) };
    for hook in hooks {
        let Some(slot) = grads.get_mut(hook.slot as usize) else { continue };
        *slot = slot.take().map(AnyTensor::unshared);
        let Some(grad) = slot else { continue };
        if let Some(new) = (hook.call)(grad)? {
            check(new.shape(), grad.shape())?;
            *grad = new;
        }
    }
    Ok(())
}

pub(super) fn run_leaf_hooks(leaf: &AnyTensor, grad: AnyTensor) -> Result<AnyTensor> {
    fn run<T: Element>(leaf: &Tensor<T>, grad: AnyTensor) -> Result<AnyTensor> {
        let hooks = leaf.leaf_hooks();
        if hooks.is_empty() {
            return Ok(grad);
        }
        let Some(grad) = T::unwrap(grad) else {
            unreachable!("a gradient has its leaf's element type");
        };
        let mut grad = grad.unshared();
        for hook in hooks {
            if let Some(new) = (hook.call)(&grad)? {
                check(new.shape(), grad.shape())?;
                grad = new;
            }
        }
        Ok(grad.into())
    }
    for_any!(leaf, t => run(t, grad))
}

fn check(found: &[usize], expected: &[usize]) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Shape {
        op: "hook",
        parameter: "returned gradient".into(),
        expected: format!("of the gradient's shape {expected:?}"),
        found: found.to_vec(),
    })
}

/// # Hooks
impl<T: Float> Tensor<T> {
    /// Calls `hook` with this tensor's gradient whenever a backward has computed it. `Some` puts
    /// another gradient in its place, for what this tensor was computed from or, on a leaf, for
    /// what is kept. Hooks run in the order of their registration, each with what the one before
    /// it left; one on a leaf sees the sum of one backward, not the total.
    ///
    /// An error from a hook ends the backward and is returned from it; no gradient is written.
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
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor<T>) -> Result<Option<Tensor<T>>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        if self.stop_gradient() {
            let why = "a tensor with stop_gradient gets no gradient to see".into();
            return Err(Error::Unsupported { op: "register_hook", why });
        }
        let id = next_id();
        let Some((node, slot)) = self.producer() else {
            self.add_leaf_hook(LeafHook { id, call: Arc::new(hook) });
            let leaf = self.downgrade();
            let remove = move || leaf.upgrade().is_some_and(|leaf| leaf.remove_leaf_hook(id));
            return Ok(HookHandle(Box::new(remove)));
        };
        let call = move |grad: &AnyTensor| match T::peek(grad) {
            Some(grad) => Ok(hook(grad)?.map(AnyTensor::from)),
            None => Ok(None),
        };
        node.add_hook(NodeHook { id, slot: *slot, call: Arc::new(call) });
        let node = Arc::downgrade(node.arc());
        let remove = move || node.upgrade().is_some_and(|node| node.remove_hook(id));
        Ok(HookHandle(Box::new(remove)))
    }

    /// Keeps the gradient of the output of an op too, as of a leaf. It takes its place among the
    /// tensor's hooks: it keeps what the hooks before it left.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] on a tensor that wants no gradient.
    pub fn retain_grads(&self) -> Result<()> {
        if self.producer().is_none() && !self.stop_gradient() {
            return Ok(());
        }
        let weak = self.downgrade();
        let keep = move |grad: &Tensor<T>| {
            if let Some(tensor) = weak.upgrade() {
                accumulate(&tensor, grad.clone());
            }
            Ok(None)
        };
        self.register_hook(keep).map(drop)
    }
}
