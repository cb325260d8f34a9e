//! Errors and panics of a call, in words for people who do not see its Rust.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};

/// Runs user code; a panic becomes an error with its message. Every tensor stays usable.
pub(super) fn caught<R>(
    op: &'static str,
    function: &str,
    run: impl FnOnce() -> Result<R>,
) -> Result<R> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let why = match message(&*panic) {
            Some(message) => format!("{function} panicked: {message}"),
            None => format!("{function} panicked"),
        };
        Err(Error::Panic { op, why })
    })
}

fn message(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
}

/// The text of an error without the lines of Rust where ops were called.
///
/// ```
/// use autograd_core::Error;
/// use autograd_core::host::words;
///
/// let error = Error::custom("Gate (called at src/lib.rs:7:3): forward failed: `by` is negative");
/// assert_eq!(words(&error), "Gate: forward failed: `by` is negative");
/// ```
#[must_use]
pub fn words(error: &Error) -> String {
    const CALLED: &str = " (called at ";
    let text = error.to_string();
    let mut parts = text.split(CALLED);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |words, part| match part.split_once(')') {
        Some((_, rest)) => words + rest,
        None => words + CALLED + part,
    })
}
