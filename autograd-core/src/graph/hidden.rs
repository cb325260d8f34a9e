//! Tensors that a layer's forward reads from a closure or a field: no type shows that their
//! gradients are lost. Only builds with debug assertions check for them.

use std::cell::{Cell, RefCell};
use std::panic::Location;

use super::context::{Events, Observer, Observing, observer};

pub(crate) struct Read {
    pub(crate) address: *const (),
    pub(crate) shape: Vec<usize>,
    /// The first op that read the tensor, and the location of that call.
    pub(crate) op: &'static str,
    pub(crate) at: &'static Location<'static>,
}

/// The reads of a layer's forward.
#[derive(Default)]
struct ReadLog {
    list: RefCell<Vec<Read>>,
    /// Whether forward turned recording on: it then has its own graph, and its reads are not reported.
    records: Cell<bool>,
}

impl Observer for ReadLog {
    fn events(&self) -> Events {
        Events::UNRECORDED
    }

    fn unrecorded(
        &self,
        (address, shape): (*const (), &[usize]),
        op: &'static str,
        at: &'static Location<'static>,
    ) {
        let mut list = self.list.borrow_mut();
        if !list.iter().any(|known| known.address == address) {
            list.push(Read { address, shape: shape.to_vec(), op, at });
        }
    }
}

pub(super) fn recording() {
    if let Some(log) = observer::<ReadLog>() {
        log.records.set(true);
    }
}

/// A guard around a layer's forward.
pub(crate) struct ReadGuard(Observing<ReadLog>);

impl ReadGuard {
    pub(crate) fn start() -> Self {
        Self(Observing::start(ReadLog::default()))
    }

    pub(crate) fn end(self) -> Vec<Read> {
        if self.0.records.get() { Vec::new() } else { self.0.list.take() }
    }
}
