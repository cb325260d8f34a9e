//! Tensors and the graph they are recorded in. No derivative is computed here.
//!
//! A [`Tensor`] is one allocation: value, the node that produced it, and what a leaf keeps. A node
//! is its edges, its saved state and the pullback that uses them: in its own memory where the op is a
//! small one, behind a pointer else. Edges point from
//! newer nodes to older ones, so the graph has no cycle: an op that saves its own output keeps the
//! value only, and the tensor is put together again when backward asks for it.

mod any;
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
mod small;
mod spare;
mod tensor;
mod watch;

pub(crate) use any::for_any;
pub use any::{AnyTensor, Element};
pub(crate) use extras::{Key, NodeAction, NodeHook, Token};
pub(crate) use handle::{Begun, Handle, Noted};
pub(crate) use hooks::{HookId, HookList};
pub(crate) use lost::{Lost, no_derivative, unrecorded};
pub use mode::{EnableGrad, NoGrad, enable_grad, is_grad_enabled, no_grad};
pub(crate) use mode::{GradMode, is_turned_off, off_since};
pub(crate) use node::{
    Absent, Blank, Edge, Node, NodeRef, OpNode, Pull, Push, Rule, Sink, Slots, only,
};
pub(crate) use pack::{Opened, Packing, Slot, State, Unpacked, Visit};
pub use pack::{SavedTensorsHooks, saved_tensors_hooks};
pub(crate) use protect::{ForwardGuard, Protected, protected};
pub(crate) use saved::{
    At, Elementwise, Keep, KeepOutput, Keeps, KeptOutput, Plain, PushRule, typed, with_push,
};
pub(crate) use shapes::{ForwardMode, output_shapes};
pub(crate) use small::{Keepable, Kept, Mark, Marks, Maybe, Small, SmallCall, SmallOp};
pub use spare::empty_buffer_pool;
pub use tensor::Tensor;
pub(crate) use tensor::{Read, op_node, record, record_edges};
pub(crate) use watch::is_on as is_watched;
pub(crate) use watch::{
    Nodes, Observer, Range, Seen, Watching, adopt, beside, collect, is_observed, observe,
};
