//! Whether this thread's ops are noted for a trace.

use crate::graph::{Events, observes};

/// The payload of a panic that ends a traced closure; the trace reports it.
pub(crate) struct Refused(pub(crate) String);

#[inline(always)]
pub(crate) fn is_noting() -> bool {
    cfg!(feature = "static-graph") && observes(Events::OPS)
}
