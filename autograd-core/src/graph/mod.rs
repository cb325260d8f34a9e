//! Tensors and the graph they are recorded in. No derivative is computed here.
//!
//! A [`Tensor`] is one allocation: value, the node that produced it, and what a leaf keeps. A node
//! is its edges, what was saved, and the op that uses both. Edges point from
//! newer nodes to older ones, so the graph has no cycle: an op that saves its own output keeps the
//! value only, and the tensor is put together again when backward asks for it.

mod any;
mod edge;
mod element_ops;
mod extras;
mod handle;
#[cfg(debug_assertions)]
pub(crate) mod hidden;
mod hooks;
mod lost;
mod mode;
mod node;
mod pack;
mod protect;
mod saved;
mod shapes;
mod spare;
mod tensor;
mod typed;
mod watch;

pub(crate) use any::for_any;
pub use any::{AnyTensor, Element};
pub(crate) use edge::{Absent, Edge, Edges, To};
pub use element_ops::Scalar;
pub(crate) use element_ops::{Comparison, Comparisons, OfElements};
pub(crate) use extras::{Key, NodeAction, NodeHook, Token};
pub(crate) use handle::{Handle, Noted};
pub(crate) use hooks::{HookId, HookList};
pub(crate) use lost::{Lost, no_derivative, unrecorded};
pub use mode::{EnableGrad, NoGrad, enable_grad, is_grad_enabled, no_grad};
pub(crate) use mode::{GradMode, is_turned_off, off_since};
pub(crate) use node::{Node, NodeRef, Op, Pull, Push, Sink, Slots, only};
pub(crate) use pack::Unpacked;
pub use pack::{SavedTensorsHooks, saved_tensors_hooks};
pub(crate) use protect::{ForwardGuard, Protected, protected};
pub(crate) use saved::{
    At, Attr, Elementwise, Entries, Hidden, Plain, PushRule, Reader, Role, Saved, SavedInput,
    SavedOutput, SavedTensor, Saves, State, typed, with_push,
};
pub(crate) use shapes::{ForwardMode, output_shapes};
pub use spare::empty_buffer_pool;
pub(crate) use tensor::Read;
pub use tensor::Tensor;
pub(crate) use typed::{TypedOp, record, record_edges};
#[cfg(feature = "verify")]
pub(crate) use watch::is_on as is_watched;
pub(crate) use watch::{
    Nodes, Observer, Range, Seen, Watching, adopt, beside, collect, is_observed, observe,
};
