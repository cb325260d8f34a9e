//! Backward: the order of the walk, gradients in transit, and the gradients that leaves keep. Every
//! edge leads to a node of a lower level, so a walk that visits waiting nodes from high level to
//! low visits each once, after all that contribute to it, without a count of dependencies. A node
//! with a single edge to it, and no tensor, is visited as soon as its gradient arrives. Gradients
//! of leaves are held back until the walk is done, so an error or a panic leaves every `.grad`
//! unchanged.

mod accumulate;
mod anomaly;
mod backward;
mod callbacks;
mod checkpoint;
pub(crate) mod draw;
mod each;
mod forward;
mod grad;
mod hooks;
mod methods;
mod parallel;
mod targets;
mod traversal;
mod walk;

pub(crate) use accumulate::{numbers, want_gradient};
pub use anomaly::{AnomalyScope, detect_anomaly};
pub use backward::backward;
pub(crate) use backward::last_idle;
pub use callbacks::{after_backward, as_one_backward};
pub use checkpoint::{checkpoint, is_recomputing};
pub use draw::Graph;
pub use each::{backward_each, leaves_of};
pub(crate) use forward::{has_jvp, tangent};
#[cfg(feature = "static-graph")]
pub(crate) use grad::grad_along;
pub(crate) use grad::grad_any;
pub use grad::{GradOptions, backward_to, grad, grad_with};
#[cfg(feature = "static-graph")]
pub(crate) use hooks::pull_alone;
pub use hooks::{GraphNode, HookHandle};
pub use parallel::{OrderedBackward, backward_parallel};
pub(crate) use traversal::{reaches, target, walk_down};
pub use walk::BackwardOptions;
#[cfg(feature = "static-graph")]
pub(crate) use walk::described;
