//! Whether ops are recorded: a flag of the context, changed for a scope.

use std::marker::PhantomData;
use std::panic::Location;

use super::context::{Recording, mode};

/// The scope of an op made of others, or of a recorded backward. Ops that this library calls inside
/// get the place of the user's call; those that the user's code calls keep their own.
pub(crate) struct Composite {
    place: Option<&'static Location<'static>>,
    name: Option<&'static str>,
}

impl Composite {
    /// The scope of an op that is noted as its parts.
    #[must_use]
    #[track_caller]
    pub(crate) fn here(name: &'static str) -> Self {
        Self::named(name, Location::caller())
    }

    #[must_use]
    pub(crate) fn named(name: &'static str, place: &'static Location<'static>) -> Self {
        let before = Self::at(place);
        if !is_ours(place) {
            mode(|mode| mode.name.set(Some(name)));
        }
        before
    }

    #[must_use]
    pub(crate) fn at(place: &'static Location<'static>) -> Self {
        mode(|mode| {
            let before = Self { place: mode.place.get(), name: mode.name.get() };
            if !is_ours(place) {
                mode.place.set(Some(place));
            }
            before
        })
    }

    /// The name of the op by which user code called an op with this place, unless it called that one itself.
    pub(crate) fn name(place: &'static Location<'static>) -> Option<&'static str> {
        mode(|mode| mode.name.get().filter(|_| mode.place.get() == Some(place)))
    }

    /// The place of an op that was called at `own`.
    #[inline]
    pub(crate) fn place(own: &'static Location<'static>) -> &'static Location<'static> {
        mode(|mode| mode.place.get()).filter(|_| is_ours(own)).unwrap_or(own)
    }
}

fn is_ours(place: &Location<'_>) -> bool {
    let sources = &file!()[..file!().len() - "graph/mode.rs".len()];
    place.file().starts_with(sources)
}

impl Drop for Composite {
    fn drop(&mut self) {
        mode(|mode| {
            mode.place.set(self.place);
            mode.name.set(self.name);
        });
    }
}

/// Whether ops on this thread are recorded for backward now.
///
/// ```
/// use autograd_core::{is_grad_enabled, no_grad};
///
/// assert!(is_grad_enabled());
/// let guard = no_grad();
/// assert!(!is_grad_enabled());
/// drop(guard);
/// assert!(is_grad_enabled());
/// ```
#[inline]
pub fn is_grad_enabled() -> bool {
    recording() == Recording::On
}

/// Whether the library disabled recording: inside an op, in a backward, in the functions of a program, in a custom
/// op's forward under `no_grad`.
pub(crate) fn is_turned_off() -> bool {
    recording() == Recording::Off
}

/// Whether the library turned recording off: in a custom op's function, even under the user's `no_grad`, or in a hook.
pub(crate) fn is_suspended() -> bool {
    matches!(recording(), Recording::Off | Recording::CustomOp)
}

#[inline(always)]
pub(super) fn recording() -> Recording {
    mode(|mode| mode.recording.get())
}

/// Whether an unrecorded op loses a gradient here; not if it is part of a custom op or a backward.
#[inline]
pub(super) fn loses_gradients() -> bool {
    matches!(recording(), Recording::On | Recording::NoGrad)
}

/// A guard that sets the mode. Its drop, also by unwinding, restores the previous mode.
pub(crate) struct GradMode {
    before: Recording,
    _not_send: PhantomData<*const ()>,
}

impl GradMode {
    #[inline]
    pub(crate) fn set(enabled: bool) -> Self {
        Self::change(if enabled { Recording::On } else { Recording::Off })
    }

    /// Sets the mode for a custom op's forward. Under an enclosing `no_grad`, gradients are lost anyway.
    pub(crate) fn custom_op() -> Self {
        Self::change(match recording() {
            Recording::On | Recording::CustomOp => Recording::CustomOp,
            Recording::NoGrad | Recording::Off => Recording::Off,
        })
    }

    fn change(to: Recording) -> Self {
        let before = mode(|mode| {
            #[cfg(debug_assertions)]
            if to == Recording::On {
                mode.was_turned_on.set(true);
            }
            mode.recording.replace(to)
        });
        Self { before, _not_send: PhantomData }
    }

    pub(crate) fn of<R>(enabled: bool, f: impl FnOnce() -> R) -> R {
        let _mode = Self::set(enabled);
        f()
    }
}

impl Drop for GradMode {
    #[inline]
    fn drop(&mut self) {
        mode(|mode| mode.recording.set(self.before));
    }
}

/// A guard that turns off recording for this thread. Created by [`no_grad`].
#[must_use = "recording is off only while the guard lives: `let _guard = no_grad();`"]
pub struct NoGrad {
    _mode: GradMode,
    before: Option<&'static Location<'static>>,
}

impl Drop for NoGrad {
    fn drop(&mut self) {
        mode(|mode| mode.off_since.set(self.before));
    }
}

pub(crate) fn off_since() -> Option<&'static Location<'static>> {
    mode(|mode| mode.off_since.get()).filter(|_| recording() == Recording::NoGrad)
}

impl NoGrad {
    /// Runs a closure in this mode.
    ///
    /// ```
    /// use autograd_core::{Tensor, no_grad};
    ///
    /// let w = Tensor::from(3.0);
    /// w.set_stop_gradient(false);
    /// let doubled = no_grad().run(|| &w * 2.0);
    /// assert!(doubled.stop_gradient());
    /// ```
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }
}

/// A guard that turns on recording for this thread. Created by [`enable_grad`].
#[must_use = "recording is on only while the guard lives: `let _guard = enable_grad();`"]
pub struct EnableGrad(#[allow(dead_code, reason = "kept for its drop")] GradMode);

impl EnableGrad {
    /// Runs a closure in this mode.
    ///
    /// ```
    /// use autograd_core::{Tensor, enable_grad, no_grad};
    ///
    /// let w = Tensor::from(3.0);
    /// w.set_stop_gradient(false);
    /// let doubled = no_grad().run(|| enable_grad().run(|| &w * 2.0));
    /// assert!(!doubled.stop_gradient());
    /// ```
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }
}

/// Turns recording off on this thread until the guard is dropped; scopes nest. A guard restores the mode
/// before it, so drop guards in the reverse order of their creation, as scopes do.
///
/// ```
/// use autograd_core::{Tensor, no_grad};
///
/// let w = Tensor::from(3.0);
/// w.set_stop_gradient(false);
/// let guard = no_grad();
/// assert!((&w * 2.0).stop_gradient());
/// drop(guard);
/// assert!(!(&w * 2.0).stop_gradient());
/// ```
#[doc(alias = "stop_gradient")]
#[track_caller]
pub fn no_grad() -> NoGrad {
    let place = Location::caller();
    let before = mode(|mode| mode.off_since.replace(Some(place)));
    NoGrad { _mode: GradMode::change(Recording::NoGrad), before }
}

/// Turns recording on for this thread until the guard drops, for use in [`no_grad`] or a custom op's forward.
///
/// ```
/// use autograd_core::{Tensor, enable_grad, no_grad};
///
/// let w = Tensor::from(3.0);
/// w.set_stop_gradient(false);
/// let _off = no_grad();
/// let _on = enable_grad();
/// assert!(!(&w * 2.0).stop_gradient());
/// ```
pub fn enable_grad() -> EnableGrad {
    EnableGrad(GradMode::set(true))
}
