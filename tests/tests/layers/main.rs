//! `#[py_layer]`: calls, contexts, gradients, and what a custom op may do with tensors.

mod absent_gradients;
mod hidden_tensors;
mod identity_and_in_place;
mod in_place;
mod lending;
mod own_errors;
mod py_layer;
mod refusals;
mod scalars;
mod shapes;
mod shapes_python;
mod shapes_walk;
mod small;
