//! The refusal of a second derivative.

use std::panic::Location;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::graph::{Edge, Node, NodeRef, Op, Pull, Slots, State, for_any};

/// Behind the gradients of an op that is differentiable once: it refuses. Each of them is an output of its
/// own, as they have shapes and element types of their own.
pub(super) struct Barrier;

impl Barrier {
    pub(super) fn record(
        op: &'static str,
        edges: &[Edge],
        grads: &Slots,
        location: &'static Location<'static>,
    ) -> NodeRef {
        let grads = grads.iter().flatten().map(|grad| for_any!(grad, t => t.edge()));
        let edges = edges.iter().map(Edge::again).chain(grads).collect();
        let state = State::new(Some(Arc::new(op)), &mut []);
        NodeRef::record(&Self, edges, state, location)
    }
}

impl Op for Barrier {
    fn name(&self) -> &'static str {
        "once_differentiable"
    }

    fn name_of(&self, node: &Node) -> &'static str {
        node.attrs().copied().unwrap_or(self.name())
    }

    fn pull<'g>(&self, _: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        Err(Error::Unsupported {
            op: pull.node.name(),
            why:
                "its backward is `once_differentiable`: there is no second derivative through it; \
                  remove that argument of #[py_layer] if backward is made of differentiable ops"
                    .to_owned(),
        })
    }
}
