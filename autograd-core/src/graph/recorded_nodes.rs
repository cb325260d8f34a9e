//! The nodes that a closure records.

use std::cell::RefCell;
use std::collections::HashSet;
use std::mem::take;

use super::context::Events;
use super::node::{NodeRef, Observer};
use super::observing::{Observing, observer};

/// Nodes by address.
pub(crate) type Nodes = HashSet<*const ()>;

#[derive(Default)]
struct Collector(RefCell<Nodes>);

impl Observer for Collector {
    fn events(&self) -> Events {
        Events::NODES
    }

    fn recorded(&self, node: &mut NodeRef) {
        self.0.borrow_mut().insert(node.address());
    }
}

/// Runs a closure; returns the nodes that it recorded on this thread. Some may be dropped already.
pub(crate) fn collect<R>(f: impl FnOnce() -> R) -> (R, Nodes) {
    let recorded = Observing::start(Collector::default());
    let result = f();
    let nodes = take(&mut *recorded.0.borrow_mut());
    (result, nodes)
}

/// Adds nodes to those of the [`collect`] that runs.
pub(crate) fn adopt(nodes: &Nodes) {
    if let Some(recorded) = observer::<Collector>() {
        recorded.0.borrow_mut().extend(nodes);
    }
}
