//! Reads of numbers in a user's backward that is recorded. What is computed from them has no graph, so a second
//! derivative would be wrong without an error.

use std::cell::Cell;
use std::panic::Location;

use super::context::Events;
use super::node::Observer;
use super::observing::Observing;

/// A method that read numbers, and the place of its call.
pub(crate) type NumberRead = (&'static str, &'static Location<'static>);

/// The first read.
struct FirstRead(Cell<Option<NumberRead>>);

impl Observer for FirstRead {
    fn events(&self) -> Events {
        Events::READS
    }

    fn read(&self, method: &'static str, place: &'static Location<'static>) {
        self.0.set(self.0.get().or(Some((method, place))));
    }
}

pub(crate) struct ReadWatch(Observing<FirstRead>);

impl ReadWatch {
    pub(crate) fn start() -> Self {
        Self(Observing::start(FirstRead(Cell::new(None))))
    }

    pub(crate) fn end(self) -> Option<NumberRead> {
        self.0.0.get()
    }
}
