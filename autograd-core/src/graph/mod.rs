//! Tensors and the graph they are recorded in. No derivative is computed here. A [`Tensor`] is one
//! allocation: the value, the node that produced it, and the gradient and hooks of a leaf. A node
//! has edges, saved tensors, and the op that uses both. Edges point from newer nodes to older ones,
//! so the graph has no cycle: an op that saves its own output saves only the value, and backward
//! rebuilds the tensor from it.

mod any;
mod context;
#[cfg(debug_assertions)]
pub(crate) mod hidden;
mod hooks;
mod lost;
mod mode;
mod node;
mod observing;
mod pack;
mod parts;
mod pools;
mod protect;
mod reads;
mod rule;
mod saved;
mod shapes;
mod spare;
mod tensor;
mod unrecorded;
mod view;
mod watch;

pub(crate) use any::for_any;
pub use any::{AnyTensor, Element, Scalar};
pub(crate) use any::{Comparison, ElementFunctions, Handle, OfElements};
pub(crate) use context::{Events, Protected, Protector, observes};
pub(crate) use hooks::{HookId, HookList};
pub(crate) use lost::{Lost, no_derivative};
pub(crate) use mode::{Composite, GradMode, is_suspended, is_turned_off, off_since};
pub use mode::{EnableGrad, NoGrad, enable_grad, is_grad_enabled, no_grad};
pub(crate) use node::{Node, NodeRef, Observer, Op, Pull, Push, Sink, Slots, notify, only};
pub(crate) use observing::{Observing, note_read, observer, update_events};
pub(crate) use pack::Unpacked;
pub use pack::{SavedTensorsHooks, saved_tensors_hooks};
pub(crate) use parts::{
    Absent, At, Destination, Edge, Edges, Entries, GradHook, Key, NodeAction, NodeHook, Plain,
    Role, Saved, SavedTensor, State, Token,
};
pub use pools::empty_buffer_pool;
pub(crate) use protect::{ForwardGuard, protected};
pub(crate) use reads::{Read, ReadWatch};
pub(crate) use rule::{Rule, finish};
pub(crate) use saved::{Reader, SavedReader, typed};
pub(crate) use shapes::{ForwardMode, output_shapes};
pub use tensor::Tensor;
pub(crate) use unrecorded::unrecorded;
pub use view::View;
pub(crate) use watch::{Nodes, Range, adopt, collect, indices};
