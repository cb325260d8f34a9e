//! Errors of Rust as exceptions of Python.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

use autograd_core::Error;
use autograd_core::host::words;
use pyo3::PyErr;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Runs an op. A panic, which becomes an error, prints nothing.
pub(crate) fn running<R>(run: impl FnOnce() -> R) -> R {
    struct Restored(bool);
    impl Drop for Restored {
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }
    let _restored = Restored(RUNNING.replace(true));
    run()
}

/// Installs a hook that passes panics outside of ops to the one before.
pub(crate) fn silence_panics_of_ops() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !RUNNING.try_with(Cell::get).unwrap_or(false) {
                before(info);
            }
        }));
    });
}

pub(crate) fn raise(error: Error) -> PyErr {
    let text = words(&error);
    match error {
        Error::ElementType { .. } => PyTypeError::new_err(text),
        Error::Panic { .. }
        | Error::Unsupported { .. }
        | Error::Context { .. }
        | Error::SavedIntermediate { .. }
        | Error::GradientMissing { .. }
        | Error::GradientShape { .. }
        | Error::GradientCount { .. } => PyRuntimeError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
