//! Tensors that a custom op's forward reads from a closure or a field: no type shows that their
//! gradients are lost. Only builds with debug assertions check for them.

use std::cell::RefCell;
use std::panic::Location;

use super::context::{Events, mode};
use super::node::Observer;
use super::observing::Observing;

pub(crate) struct TensorRead {
    pub(crate) address: *const (),
    pub(crate) shape: Vec<usize>,
    /// The first op that read the tensor, and the location of that call.
    pub(crate) op: &'static str,
    pub(crate) at: &'static Location<'static>,
}

/// The reads of a custom op's forward.
#[derive(Default)]
struct ReadLog(RefCell<Vec<TensorRead>>);

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
        let mut list = self.0.borrow_mut();
        if !list.iter().any(|known| known.address == address) {
            list.push(TensorRead { address, shape: shape.to_vec(), op, at });
        }
    }
}

/// A guard around a custom op's forward.
pub(crate) struct ReadGuard {
    log: Observing<ReadLog>,
    was_turned_on: bool,
}

impl ReadGuard {
    pub(crate) fn start() -> Self {
        let was_turned_on = mode(|mode| mode.was_turned_on.replace(false));
        Self { log: Observing::start(ReadLog::default()), was_turned_on }
    }

    /// The reads; none if forward turned recording on: it then has its own graph.
    pub(crate) fn end(self) -> Vec<TensorRead> {
        if mode(|mode| mode.was_turned_on.get()) { Vec::new() } else { self.log.0.take() }
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        mode(|mode| mode.was_turned_on.set(self.was_turned_on));
    }
}
