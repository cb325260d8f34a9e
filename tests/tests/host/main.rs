//! Ops as values: calls by a host that keeps the graph.

mod calls;
mod description;
mod ops;
mod second;
