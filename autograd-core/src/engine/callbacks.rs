//! Callbacks after a backward.

use std::cell::{Cell, RefCell};
use std::panic::Location;

use crate::error::{Error, HookResult, Result};

type Callback = (Box<dyn FnOnce() -> HookResult<()>>, &'static Location<'static>);

thread_local! {
    static RUNNING: Cell<u32> = const { Cell::new(0) };
    static WAITING: RefCell<Vec<Callback>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` once, when a whole backward of this thread has written its gradients: the outermost one that
/// is running (if called from a hook or an op's backward), else the next one.
///
/// Several callbacks run in the order of their registration. An error is the source of the
/// [`Error::Hook`] that the backward returns; its gradients stay written, and later callbacks are dropped
/// uncalled. If the backward itself fails or panics, all callbacks are dropped. [`grad`](crate::grad())
/// writes no gradients and runs no callbacks.
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

/// Runs `f`, all backwards of which are one for [`after_backward`]: its callbacks run when `f` has returned `Ok`,
/// and are dropped after an error or a panic. For a step that is made of several backwards, or that changes the
/// gradients of one before anybody may see them.
///
/// ```
/// use std::cell::Cell;
/// use std::rc::Rc;
///
/// use autograd_core::{Tensor, after_backward, as_one_backward};
///
/// let x = Tensor::from(3.0);
/// x.set_stop_gradient(false);
/// let seen = Rc::new(Cell::new(0.0));
/// let (leaf, inside) = (x.clone(), Rc::clone(&seen));
/// after_backward(move || {
///     inside.set(leaf.grad().map_or(0.0, |grad| grad.item()));
///     Ok(())
/// });
/// as_one_backward(|| {
///     x.square().backward()?;
///     x.square().backward()
/// })?;
/// assert_eq!(seen.get(), 12.0);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// That of `f`, or of a callback.
pub fn as_one_backward<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    let running = Running::start();
    let result = f()?;
    running.finish().map(|()| result)
}

pub(super) struct Running;

impl Running {
    pub(super) fn start() -> Self {
        RUNNING.set(RUNNING.get() + 1);
        Self
    }

    pub(super) fn finish(self) -> Result<()> {
        if RUNNING.get() > 1 {
            return Ok(());
        }
        // Callbacks that a callback adds wait for the next backward, so all are taken first.
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
            // Callbacks are left only after a failure.
            drop(WAITING.take());
        }
    }
}
