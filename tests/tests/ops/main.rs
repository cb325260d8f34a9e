//! Every op of the public API: against results of NumPy and PyTorch, and against finite differences
//! on random tensors.

mod along;
mod convolutions;
mod draws;
mod edges;
mod golden;
mod gradients;
mod integers;
mod making;
mod names;
mod numbers;
mod operands;
mod panics;
mod pools;
mod print;
mod properties;
mod random;
mod row_kernels;
mod run;
mod small;
mod threads;
mod traced;
mod try_forms;
mod view;
