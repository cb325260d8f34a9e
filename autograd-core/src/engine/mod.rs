//! Backward: the order of the walk, the gradients on their way, what leaves keep at the end.
//!
//! Every edge leads to a node of a lower level, so visiting waiting nodes from high to low visits
//! each once, after all that contribute to it: no count of dependencies, no second walk. A node that
//! only one edge leads to, and no tensor, is visited as soon as its gradient comes. What leaves get
//! is held back until the walk is done, so an error or a panic in the middle leaves every `.grad` as
//! it was.
//!
//! `backward` is what `tensor` calls: it checks the outputs, gives them their first gradients, visits the nodes
//! that wait and runs their hooks (`hooks`). `reach` follows edges without any gradient, and says which nodes
//! lie on the ways to the tensors that `grad` asks for. `commit` writes what a walk has found.

mod after;
mod anomaly;
mod backward;
mod checkpoint;
mod commit;
pub(crate) mod draw;
mod forward;
mod grad;
mod gradient;
mod hooks;
mod parallel;
mod reach;
mod tensor;

pub use after::after_backward;
pub(crate) use after::last_idle;
pub use anomaly::{AnomalyScope, detect_anomaly};
#[cfg(feature = "static-graph")]
pub(crate) use backward::described;
pub use backward::{BackwardOptions, backward};
pub use checkpoint::{checkpoint, is_recomputing};
pub use draw::Graph;
pub(crate) use forward::{Stop, has_jvp, push, transpose};
#[cfg(feature = "static-graph")]
pub(crate) use grad::grad_along;
pub(crate) use grad::grad_any;
pub use grad::{GradOptions, backward_to, grad, grad_with};
pub(crate) use gradient::for_float;
#[cfg(feature = "static-graph")]
pub(crate) use hooks::pull_alone;
pub use hooks::{GraphNode, HookHandle};
pub use parallel::{OrderedBackward, backward_parallel};
pub(crate) use reach::{reaches, target, walk_down};
