//! Ops as values: calls by a host that keeps the graph.

mod calls;
mod description;
mod foreign;
mod ops;
mod second;
