//! Who looks on while ops are recorded: nobody, unless a scope on this thread asked for it. Then
//! one test of a flag is all that it costs.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;

use super::node::Node;

thread_local! {
    /// How many scopes of this thread look on.
    static ON: Cell<u32> = const { Cell::new(0) };
    static MADE: RefCell<Vec<Nodes>> = const { RefCell::new(Vec::new()) };
}

/// Nodes by their address.
pub(crate) type Nodes = HashSet<*const ()>;

/// Whether anybody looks on.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    ON.get() != 0
}

/// Looks on until dropped, also by a panic.
pub(crate) struct Watching;

impl Watching {
    pub(crate) fn start() -> Self {
        ON.set(ON.get() + 1);
        Self
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        ON.set(ON.get() - 1);
    }
}

/// A node was recorded.
#[cold]
pub(crate) fn recorded(node: &Arc<Node>) {
    MADE.with_borrow_mut(|made| {
        if let Some(nodes) = made.last_mut() {
            nodes.insert(Arc::as_ptr(node).cast());
        }
    });
}

/// Runs a closure, and says which nodes were recorded by it on this thread. Some of them may be
/// gone already.
pub(crate) fn collect<R>(f: impl FnOnce() -> R) -> (R, Nodes) {
    struct Layer;
    impl Drop for Layer {
        fn drop(&mut self) {
            MADE.with_borrow_mut(Vec::pop);
        }
    }
    let _watching = Watching::start();
    MADE.with_borrow_mut(|made| made.push(Nodes::new()));
    let layer = Layer;
    let result = f();
    let nodes = MADE.with_borrow_mut(|made| made.last_mut().map(std::mem::take));
    drop(layer);
    (result, nodes.unwrap_or_default())
}
