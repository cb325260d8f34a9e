//! Tensors and the graph they are recorded in. No derivative is computed here. A [`Tensor`] is one
//! allocation: the value, and the node that produced it; gradient and hooks have one of their own. A node
//! has edges, saved tensors, and the op that uses both. Edges point from newer nodes to older ones,
//! so the graph has no cycle: an op that saves its own output saves only the value, and backward
//! rebuilds the tensor from it.

mod any;
mod backward_reads;
mod context;
#[cfg(debug_assertions)]
pub(crate) mod forward_reads;
mod hooks;
mod lost_gradients;
mod memory_cache;
mod mode;
mod node;
mod node_parts;
mod observing;
mod output_shapes;
mod pack;
mod pools;
mod protect;
mod range;
mod recorded_nodes;
mod rule;
mod saved_reader;
mod tensor;
mod view;

pub use any::{AnyTensor, Element, ElementFunctions, Scalar, TensorId};
pub(crate) use any::{OfElements, TensorHandle};
pub(crate) use any::{for_any, for_float};
pub(crate) use backward_reads::{NumberRead, ReadWatch};
pub(crate) use context::{Events, Protected, Protector, is_noting, observes};
pub(crate) use hooks::{HookId, HookList};
pub(crate) use lost_gradients::{Lost, no_derivative};
pub(crate) use mode::{Composite, GradMode, is_suspended, is_turned_off, off_since};
pub use mode::{EnableGrad, NoGrad, enable_grad, is_grad_enabled, no_grad};
pub(crate) use node::{
    Node, NodeRecord, NodeRef, Observer, Op, Pull, Push, Sink, Slots, notify, only,
};
pub(crate) use node_parts::{
    Absent, At, Destination, Edge, Edges, Entries, GradHook, Key, NodeAction, NodeHook, Plain,
    Role, Saved, SavedState, Token,
};
pub(crate) use observing::{Observing, note_read, observer, update_events};
pub(crate) use output_shapes::{ForwardMode, output_shapes};
pub(crate) use pack::Unpacked;
pub use pack::{SavedTensorsHooks, saved_tensors_hooks};
pub use pools::empty_buffer_pool;
pub(crate) use protect::{ForwardGuard, protect_inputs};
pub(crate) use range::{Range, indices};
pub(crate) use recorded_nodes::{Nodes, adopt, collect};
pub(crate) use rule::{Rule, finish, unrecorded};
pub(crate) use saved_reader::{SavedReader, typed};
pub use tensor::Tensor;
pub use view::{View, ViewOperand};
