//! Data that is changed in place.

use std::panic::Location;
use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};

use triomphe::Arc;

use super::super::any::Element;
use super::super::context::{Events, observes};
use super::super::lost_gradients::Lost;
use super::super::node::{NodeRef, notify};
use super::super::protect;
use super::super::view::View;
use super::{Shared, Tensor};
use crate::array::Value;
use crate::error::Result;

impl<T: Element> Tensor<T> {
    #[inline]
    pub(crate) fn version(&self) -> u32 {
        self.inner().shared.get().map_or(0, |shared| shared.version.load(Ordering::Acquire))
    }

    fn shared(&self) -> &Arc<Shared<T>> {
        self.inner().shared.get_or_init(|| {
            let producer = self.inner().producer.as_ref();
            let shared = Arc::new(Shared {
                value: RwLock::new(self.inner().value.clone()),
                version: AtomicU32::new(0),
                starts_as_value: true,
                origin: producer.map(|(node, slot)| (node.token(), *slot)),
            });
            protect::shares(self.address(), Arc::as_ptr(&shared).cast());
            shared
        })
    }

    /// How often the data was changed in place, and its address if other tensors may share it, else null.
    #[inline]
    pub(in crate::graph) fn shared_state(&self) -> (u32, *const ()) {
        match self.inner().shared.get() {
            Some(shared) => (shared.version.load(Ordering::Acquire), Arc::as_ptr(shared).cast()),
            None => (0, null()),
        }
    }

    /// Returns an error if a custom op's forward must not change this data. `op` names what would change it.
    pub(crate) fn check_write(&self, op: &'static str) -> Result<()> {
        protect::check_write(self.address(), self.shared_state().1, op)
    }

    /// Changes the data of this tensor and of all that share it, after
    /// [`check_write`](Self::check_write). `f` must keep the shape and must not run user code.
    pub(crate) fn write(&self, op: &'static str, f: impl FnOnce(&mut Value<T>)) -> Result<()> {
        self.check_write(op)?;
        let shared = self.shared();
        let mut value = shared.value.write().unwrap_or_else(PoisonError::into_inner);
        f(&mut value);
        debug_assert_eq!(value.shape(), self.shape());
        let version = shared.version.fetch_add(1, Ordering::Release) + 1;
        drop(value);
        if let Some((node, slot)) = &shared.origin {
            node.output_changed(*slot, version);
        }
        Ok(())
    }

    /// A separate tensor with this one's data, also after later changes in place.
    pub(crate) fn share(&self, producer: Option<(NodeRef, u32)>) -> Self {
        if let Some((node, slot)) = &producer
            && observes(Events::OUTPUTS)
        {
            let form = (T::DTYPE, self.shape());
            notify(Events::OUTPUTS, |observer| observer.output(node, *slot, form, None));
        }
        let shared = self.shared();
        let value = match shared.is_value() {
            true => self.inner().value.clone(),
            false => shape_alone(self.shape()),
        };
        Self::with_producer(value, producer).with_shared(Arc::clone(shared))
    }

    fn with_shared(mut self, shared: Arc<Shared<T>>) -> Self {
        let inner = self.inner_mut().unwrap_or_else(|| unreachable!("it was made here"));
        inner.shared = OnceLock::from(shared);
        self
    }

    /// A separate tensor with this value, for changes in place: no other tensor but `self` has its buffer.
    #[cfg(feature = "nn")]
    pub(crate) fn own(&self) -> Self {
        let shared = Arc::new(Shared {
            value: RwLock::new(self.read().into_owned()),
            version: AtomicU32::new(0),
            starts_as_value: false,
            origin: None,
        });
        Self::from_value(shape_alone(self.shape())).with_shared(shared)
    }

    pub(crate) fn view_here(&self) -> View<'_, T> {
        if let Some(value) = self.fixed() {
            return View::borrowed(value.view());
        }
        View::held(self.shared().value.write().unwrap_or_else(PoisonError::into_inner).lend())
    }

    pub(crate) fn detached_at(&self, place: &'static Location<'static>) -> Self {
        let lost = self.stopped_by().unwrap_or_else(|| Lost::by_detach(place));
        self.share(None).with_lost(lost)
    }
}

fn shape_alone<T: Element>(shape: &[usize]) -> Value<T> {
    Value::scalar(T::ZERO).broadcast_to(shape)
}
