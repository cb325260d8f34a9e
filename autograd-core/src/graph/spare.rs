//! Memory of tensors that are gone, for the next ones of the same thread: a small tensor is then
//! made in place, without a call of the allocator.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread::LocalKey;

use super::any::Element;
use super::tensor::Inner;

/// How many a thread keeps of each element type; 200 bytes each.
const KEPT: usize = 1024;

/// Tensors without content that nobody else holds.
#[doc(hidden)]
pub struct Spare<T: Element>(Vec<Arc<Inner<T>>>);

/// The spares of one thread.
pub(super) type Spares<T> = LocalKey<RefCell<Spare<T>>>;

impl<T: Element> Spare<T> {
    pub(super) const fn new() -> RefCell<Self> {
        RefCell::new(Self(Vec::new()))
    }
}

/// Memory for a tensor, if there is some.
#[inline]
pub(super) fn take<T: Element>() -> Option<Arc<Inner<T>>> {
    // A thread that is ending has no spares any more.
    T::spares().try_with(|spares| spares.borrow_mut().0.pop()).ok().flatten()
}

/// A handle goes; the last one leaves its memory.
pub(super) fn release<T: Element>(mut inner: Arc<Inner<T>>) {
    if Arc::strong_count(&inner) > 1 {
        return;
    }
    let Some(content) = Arc::get_mut(&mut inner) else { return };
    content.empty();
    let _ = T::spares().try_with(|spares| {
        let list = &mut spares.borrow_mut().0;
        if list.len() < KEPT {
            list.push(inner);
        }
    });
}
