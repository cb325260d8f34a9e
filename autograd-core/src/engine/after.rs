//! What is called after a backward, and what is remembered of one that had nothing to do.

use std::cell::{Cell, RefCell};
use std::panic::Location;

use crate::error::{Error, HookResult, Result};
use crate::graph::{AnyTensor, Lost, for_any};

/// What is called, and where it was given.
type Callback = (Box<dyn FnOnce() -> HookResult<()>>, &'static Location<'static>);

thread_local! {
    /// How many backwards of this thread run, one inside the other.
    static RUNNING: Cell<u32> = const { Cell::new(0) };
    static WAITING: RefCell<Vec<Callback>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` once, when a whole backward of this thread has written its gradients: the outermost
/// of those that run now (from a hook or an op's backward), or else the next one.
///
/// Several are called in the order in which they were given. An error is the source of
/// the [`Error::Hook`] which that backward returns, and its gradients stay written; what comes after it is dropped uncalled, as all is where
/// the backward itself fails or panics. [`grad`](crate::grad()) writes no gradients and calls
/// nothing.
///
/// ```
/// use std::cell::Cell;
/// use std::rc::Rc;
///
/// use autograd_core::{Tensor, after_backward};
///
/// let x = Tensor::from(3.0);
/// x.set_stop_gradient(false);
/// let seen = Rc::new(Cell::new(0.0));
/// let (leaf, inside) = (x.clone(), Rc::clone(&seen));
/// after_backward(move || {
///     inside.set(leaf.grad().map_or(0.0, |grad| grad.item()));
///     Ok(())
/// });
/// x.square().backward()?;
/// assert_eq!(seen.get(), 6.0);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[track_caller]
pub fn after_backward(f: impl FnOnce() -> HookResult<()> + 'static) {
    let location = Location::caller();
    WAITING.with_borrow_mut(|waiting| waiting.push((Box::new(f), location)));
}

/// A backward that runs.
pub(super) struct Running;

impl Running {
    pub(super) fn start() -> Self {
        RUNNING.set(RUNNING.get() + 1);
        Self
    }

    /// All gradients are written.
    pub(super) fn finish(self) -> Result<()> {
        if RUNNING.get() > 1 {
            return Ok(());
        }
        // What a callback adds waits for the next backward, so these are taken at once.
        let callbacks = WAITING.take();
        drop(self);
        callbacks.into_iter().try_for_each(|(call, registered)| {
            call().map_err(|error| Error::Hook {
                op: "backward",
                hook: "call after it".into(),
                registered,
                location: None,
                source: error.into(),
            })
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let running = RUNNING.get() - 1;
        RUNNING.set(running);
        if running == 0 {
            // Only after a failure is there anything left.
            drop(WAITING.take());
        }
    }
}

/// An output of it. No tensor is kept alive.
#[derive(Clone, Copy)]
pub(crate) struct Idle {
    /// The op that it came from, and where that was called.
    pub(crate) origin: Option<(&'static str, &'static Location<'static>)>,
    pub(crate) lost: Lost,
}

thread_local! {
    static LAST: Cell<Option<Idle>> = const { Cell::new(None) };
}

/// Notes a backward that starts: whether no output of it wants a gradient.
#[inline]
pub(super) fn note(outputs: &[AnyTensor]) {
    if outputs.iter().all(AnyTensor::stop_gradient) {
        note_idle(outputs);
    } else if LAST.get().is_some() {
        LAST.set(None);
    }
}

#[cold]
fn note_idle(outputs: &[AnyTensor]) {
    LAST.set(outputs.first().map(|output| {
        for_any!(output, t => Idle {
            origin: t.origin().map(|node| (node.name(), node.location)),
            lost: t.lost(),
        })
    }));
}

/// If the last backward of this thread had nothing to do.
pub(crate) fn last_idle() -> Option<Idle> {
    LAST.get()
}
