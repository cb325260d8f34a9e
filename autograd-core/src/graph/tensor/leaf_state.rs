//! The state of a tensor beside its value: its gradient, hooks, and why it is outside the graph.

use std::mem::replace;
use std::panic::Location;
use std::sync::atomic::Ordering;
use std::sync::{self, OnceLock, PoisonError, Weak};

use super::super::any::Element;
use super::super::hooks::HookList;
use super::super::lost_gradients::Lost;
use super::super::node_parts::GradHook;
use super::{LeafState, STOP, Tensor};
use crate::array::Value;

impl<T: Element> Tensor<T> {
    pub(crate) fn downgrade(&self) -> WeakTensor<T> {
        WeakTensor(sync::Arc::downgrade(self.leaf()))
    }

    fn leaf(&self) -> &sync::Arc<LeafState<T>> {
        self.inner().leaf.get_or_init(Default::default)
    }

    pub(in crate::graph) fn grad_here(&self) -> Option<Tensor<T>> {
        let leaf = self.inner().leaf.get()?;
        leaf.grad.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace_grad(&self, grad: Option<Tensor<T>>) -> Option<Tensor<T>> {
        if grad.is_none() && self.inner().leaf.get().is_none() {
            return None;
        }
        let mut slot = self.leaf().grad.lock().unwrap_or_else(PoisonError::into_inner);
        replace(&mut *slot, grad)
    }

    /// Changes the kept gradient under its lock, so that no concurrent change is lost.
    pub(crate) fn update_grad(&self, f: impl FnOnce(Option<Tensor<T>>) -> Tensor<T>) {
        let mut slot = self.leaf().grad.lock().unwrap_or_else(PoisonError::into_inner);
        let before = slot.take();
        // Dropping a graph may run user code, so it happens after the lock is released.
        let graph = before.as_ref().filter(|before| !before.stop_gradient()).cloned();
        *slot = Some(f(before));
        drop(slot);
        drop(graph);
    }

    pub(crate) fn leaf_hooks(&self) -> Option<&HookList<GradHook>> {
        self.inner().leaf.get().map(|leaf| &leaf.hooks)
    }

    pub(crate) fn leaf_hooks_or_init(&self) -> &HookList<GradHook> {
        &self.leaf().hooks
    }

    /// Why this tensor is outside the graph, though it was computed from one that wants a gradient.
    pub(crate) fn lost(&self) -> Lost {
        Lost::from_bits(self.inner().gradient.load(Ordering::Relaxed) >> 1)
    }

    /// As [`lost`](Self::lost); `None` if the tensor wants a gradient.
    #[inline]
    pub(crate) fn stopped_by(&self) -> Option<Lost> {
        let gradient = self.inner().gradient.load(Ordering::Relaxed);
        (gradient & STOP != 0).then(|| Lost::from_bits(gradient >> 1))
    }

    /// Stores why a new tensor, which has no other handle, is outside the graph.
    pub(crate) fn with_lost(self, lost: Lost) -> Self {
        if lost != Lost::NONE {
            let gradient = &self.inner().gradient;
            let stop = gradient.load(Ordering::Relaxed) & STOP;
            gradient.store(stop | lost.bits() << 1, Ordering::Relaxed);
        }
        self
    }

    /// Adds the causes of `by`, the tensor that selected this one.
    pub(crate) fn and_lost<U: Element>(self, by: &Tensor<U>) -> Self {
        let lost = self.lost().and(by.lost());
        self.with_lost(lost)
    }

    pub(crate) fn store_lost(&self, lost: Lost) {
        self.change_gradient(|gradient| (gradient & STOP) | lost.bits() << 1);
    }

    fn change_gradient(&self, change: impl Fn(u32) -> u32) -> u32 {
        let relaxed = Ordering::Relaxed;
        let before = self.inner().gradient.fetch_update(relaxed, relaxed, |it| Some(change(it)));
        before.unwrap_or_else(|before| before)
    }

    pub(crate) fn store_stop_gradient(&self, stop: bool, place: &'static Location<'static>) {
        let before = self.change_gradient(|gradient| (gradient & !STOP) | u32::from(stop));
        let lost = self.lost();
        match (before & STOP != 0, stop) {
            (false, true) => self.store_lost(lost.and(Lost::by_cut(place))),
            (true, false) if lost != Lost::NONE => self.store_lost(lost.without_cut()),
            _ => {}
        }
    }
}

pub(crate) struct WeakTensor<T: Element>(Weak<LeafState<T>>);

impl<T: Element> WeakTensor<T> {
    /// If the tensor is alive: a tensor without its data, with the same gradient and hooks.
    pub(crate) fn upgrade(&self) -> Option<Tensor<T>> {
        let leaf = self.0.upgrade()?;
        let mut tensor = Tensor::from_value(Value::scalar(T::ZERO));
        let inner = tensor.inner_mut().unwrap_or_else(|| unreachable!("it was made here"));
        inner.leaf = OnceLock::from(leaf);
        Some(tensor)
    }
}
