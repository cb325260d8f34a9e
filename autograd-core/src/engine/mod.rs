//! Backward: the order of the walk, the gradients on their way, what leaves keep at the end.
//!
//! Every edge leads to a node of a lower level, so visiting waiting nodes from high to low visits
//! each once, after all that contribute to it: no count of dependencies, no second walk. A node that
//! only one edge leads to, and no tensor, is visited as soon as its gradient comes. What leaves get
//! is held back until the walk is done, so an error or a panic in the middle leaves every `.grad` as
//! it was.
//!
//! `backward` and `grad` are what is called, by `tensor` too. `start` checks the outputs and gives
//! them their first gradients, `targets` says which nodes lie on the ways to the tensors that are
//! asked for, `idle` remembers a backward that had none, `walk` visits the nodes that wait in the `frontier`, and `hooks` runs hooks. `reach`
//! follows edges without any gradient.

mod after;
mod anomaly;
mod backward;
mod checkpoint;
pub(crate) mod draw;
mod forward;
mod frontier;
mod grad;
mod gradient;
mod hooks;
pub(crate) mod idle;
mod options;
mod ordered;
mod parallel;
mod reach;
mod start;
mod targets;
mod tensor;
mod walk;

pub use after::after_backward;
pub use anomaly::{AnomalyScope, detect_anomaly};
pub use backward::{backward, backward_to};
pub use checkpoint::{checkpoint, is_recomputing};
pub use draw::Graph;
pub(crate) use forward::{Stop, has_jvp, push};
pub(crate) use grad::grad_any;
pub use grad::{GradOptions, grad, grad_with};
pub use hooks::{GraphNode, HookHandle};
pub use options::BackwardOptions;
pub use ordered::OrderedBackward;
pub use parallel::backward_parallel;
pub(crate) use reach::{reaches, walk_down};
