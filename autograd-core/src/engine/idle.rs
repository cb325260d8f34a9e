//! What is remembered of a backward that had nothing to do, for whoever misses a gradient after it.

use std::cell::Cell;
use std::panic::Location;

use crate::graph::{AnyTensor, Lost, for_any};

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
pub(crate) fn last() -> Option<Idle> {
    LAST.get()
}
