//! What a backward keeps and records.

/// What a backward keeps and records.
#[derive(Clone, Copy, Debug, Default)]
pub struct BackwardOptions {
    pub(super) retain_graph: bool,
    pub(super) create_graph: bool,
}

impl BackwardOptions {
    /// Neither retains the graph nor records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keep what ops saved, so that the same graph can be walked again.
    pub fn retain_graph(mut self, retain: bool) -> Self {
        self.retain_graph = retain;
        self
    }

    /// Record the backward itself, so that gradients can be differentiated again. Retains the
    /// graph.
    ///
    /// A leaf then keeps a gradient whose graph leads back to the leaf: call
    /// [`Tensor::clear_grad`](crate::Tensor::clear_grad) when done, or neither is ever freed. [`grad_with`](crate::grad_with) has no such cycle.
    pub fn create_graph(mut self, create: bool) -> Self {
        self.create_graph = create;
        self
    }
}
