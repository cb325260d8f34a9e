//! Every op of the public API: against figures of NumPy and PyTorch, and against finite differences
//! on random tensors.

mod golden;
mod numbers;
mod properties;
mod public;
mod random;
mod run;
