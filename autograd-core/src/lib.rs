//! Differentiable ops in Rust: an eager autograd engine over [`ndarray`], and [`macro@py_layer`],
//! which turns an impl block with `forward` and `backward` into a typed op.

// The macro's expansions name this crate; so they do in its own tests.
extern crate self as autograd_core;

mod array;
mod engine;
mod error;
mod graph;
mod ops;
mod print;
#[doc(hidden)]
pub mod private;
mod py_layer;
mod random;

pub use array::pool::{buffer_pool_bytes, empty_buffer_pool, set_buffer_pool_limit};
pub use array::{DType, IntoShape};
pub use engine::{
    BackwardOptions, GradOptions, HookHandle, backward, grad, grad_with,
};
pub use error::{Error, Result};
pub use graph::{
    AnyTensor, Element, EnableGrad, NoGrad, Tensor, enable_grad, is_grad_enabled, no_grad,
};
pub use ops::{Float, IntoElement, Numeric, Operand};
pub use random::{Generator, seed};
