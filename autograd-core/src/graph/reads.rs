//! Reads of numbers in a user's backward that is recorded. What is computed from them has no graph, so a second
//! derivative would be wrong without an error.

use std::cell::Cell;
use std::panic::Location;

/// A method that read numbers, and the place of its call.
pub(crate) type Read = (&'static str, &'static Location<'static>);

thread_local! {
    /// Whether a recorded backward runs, and its first read.
    static FIRST: Cell<Option<Option<Read>>> = const { Cell::new(None) };
}

pub(crate) fn note_read(method: &'static str, place: &'static Location<'static>) {
    if let Some(None) = FIRST.get() {
        FIRST.set(Some(Some((method, place))));
    }
}

pub(crate) struct ReadWatch(Option<Option<Read>>);

impl ReadWatch {
    pub(crate) fn start() -> Self {
        Self(FIRST.replace(Some(None)))
    }

    pub(crate) fn end(self) -> Option<Read> {
        FIRST.get().flatten()
    }
}

impl Drop for ReadWatch {
    fn drop(&mut self) {
        FIRST.set(self.0);
    }
}
