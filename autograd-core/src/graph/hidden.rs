//! Tensors that a layer's forward reads from a closure or a field: no type shows that their
//! gradients are lost. Only builds with debug assertions check for them.

use std::cell::RefCell;
use std::panic::Location;

pub(crate) struct Read {
    pub(crate) address: *const (),
    pub(crate) shape: Vec<usize>,
    /// The first op that read the tensor, and the location of that call.
    pub(crate) op: &'static str,
    pub(crate) at: &'static Location<'static>,
}

#[derive(Default)]
struct ReadLog {
    list: Vec<Read>,
    /// Whether forward turned recording on: it then has its own graph, and its reads are not reported.
    records: bool,
}

thread_local! {
    static READS: RefCell<Option<ReadLog>> = const { RefCell::new(None) };
}

fn with(f: impl FnOnce(&mut ReadLog)) {
    READS.with_borrow_mut(|reads| reads.as_mut().map(f));
}

pub(super) fn note(
    address: *const (),
    shape: &[usize],
    op: &'static str,
    at: &'static Location<'static>,
) {
    with(|reads| {
        if !reads.list.iter().any(|known| known.address == address) {
            reads.list.push(Read { address, shape: shape.to_vec(), op, at });
        }
    });
}

pub(super) fn recording() {
    with(|reads| reads.records = true);
}

/// A guard around a layer's forward. Its drop restores the reads of the enclosing layer's forward.
pub(crate) struct ReadGuard(Option<ReadLog>);

impl ReadGuard {
    pub(crate) fn start() -> Self {
        Self(READS.replace(Some(ReadLog::default())))
    }

    pub(crate) fn end(self) -> Vec<Read> {
        let reads = READS.take().unwrap_or_default();
        if reads.records { Vec::new() } else { reads.list }
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        READS.set(self.0.take());
    }
}
