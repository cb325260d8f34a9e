//! What a layer's forward reads though its signature does not show it: a closure's tensor, a field
//! of a struct. Its gradient would be lost, and no type tells. Watched for in builds with debug
//! assertions only.

use std::cell::RefCell;
use std::panic::Location;

/// A tensor that wants a gradient and was read unrecorded.
pub(crate) struct Read {
    pub(crate) address: *const (),
    pub(crate) shape: Vec<usize>,
    /// The op that read it first, and where that was called.
    pub(crate) op: &'static str,
    pub(crate) at: &'static Location<'static>,
}

#[derive(Default)]
struct Reads {
    list: Vec<Read>,
    /// Forward records a graph of its own, so what it reads is its own business.
    records: bool,
}

thread_local! {
    /// Of the forward that runs.
    static READS: RefCell<Option<Reads>> = const { RefCell::new(None) };
}

fn with(f: impl FnOnce(&mut Reads)) {
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

/// Recording was enabled.
pub(super) fn recording() {
    with(|reads| reads.records = true);
}

/// Forward runs until this is dropped; then that of the layer around runs on.
pub(crate) struct Watch(Option<Reads>);

impl Watch {
    pub(crate) fn start() -> Self {
        Self(READS.replace(Some(Reads::default())))
    }

    /// What forward has read.
    pub(crate) fn end(self) -> Vec<Read> {
        let reads = READS.take().unwrap_or_default();
        if reads.records { Vec::new() } else { reads.list }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        READS.set(self.0.take());
    }
}
