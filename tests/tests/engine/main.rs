//! Backward, `grad`, forward mode, hooks, and reports about a graph.

mod anomaly;
mod backward;
mod backward_each;
mod explain;
mod faults;
mod forward_mode;
mod functional;
mod gradcheck;
mod gradcheck_sizes;
mod hook_errors;
mod hooks;
mod hooks_and_grad;
mod limits;
mod own_errors;
mod parallel;
mod random_graphs;
mod saved_hooks;
mod solver_figures;
mod solvers;
mod unwind;
mod walk;
