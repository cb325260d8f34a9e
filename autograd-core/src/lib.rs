//! Differentiable ops in Rust.
//!
//! [`macro@py_layer`] turns an impl block with `forward` and `backward` into a typed op, and checks at
//! compile time what can be known then: the number of gradients that backward takes and returns, their
//! element types, what is saved and when. Ops run on an eager autograd engine over [`ndarray`].
//!
//! ```
//! use autograd_core::prelude::*;
//!
//! /// Hyperbolic tangent with a hand-written gradient.
//! #[py_layer]
//! impl CusTanh {
//!     type Saved = Tensor<f64>;
//!
//!     pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
//!         let y = x.tanh();
//!         ctx.save_for_backward(&y);
//!         y
//!     }
//!
//!     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
//!         let y = ctx.saved_tensor();
//!         dy * (1.0 - y.square())
//!     }
//! }
//!
//! let x = Tensor::from(vec![0.0, 0.5]);
//! x.set_stop_gradient(false);
//! CusTanh::apply(&x).sum().backward()?;
//! assert_eq!(x.try_grad()?.at(&[0]), 1.0);
//! # Ok::<(), autograd_core::Error>(())
//! ```
//!
//! # Debug builds
//!
//! An unoptimised build is many times slower. Add this to your workspace's `Cargo.toml`:
//!
//! ```toml
//! [profile.dev.package]
//! autograd-core = { opt-level = 2, debug = false }
//! autograd-kernels = { opt-level = 2, debug = false }
//! ```
//!
//! `debug = false` makes the first build shorter; backtraces then have no lines inside the library, but keep those of
//! your code.
//!
//! Formulas (`#[py_layer(elementwise)]`, [`scalar_op!`], [`fuse()`]) are compiled in your own crate:
//! unoptimised, they are slower still. Set `opt-level = 2` for a crate with formulas, too: by
//! `[profile.dev.package.NAME]`, or by `[profile.dev]` for the whole workspace.
//!
//! # Where to look
//!
//! | to | see |
//! |---|---|
//! | write an op | [`macro@py_layer`], [`ForwardContext`], [`BackwardContext`], [`JvpContext`] |
//! | make tensors and compute with them | [`Tensor`] |
//! | compute gradients | [`Tensor::backward`], [`grad`], [`backward()`] |
//! | train on several threads with bit-identical results | [`backward_parallel`], [`OrderedBackward`] |
//! | get each gradient while the backward still runs | [`backward_each`] |
//! | differentiate gradients again | [`GradOptions::create_graph`] |
//! | differentiate a closure | [`vjp`], [`jvp`], [`jacobian`], [`hessian`], [`hvp`] |
//! | differentiate a fixed point, a root, or the solution of a differential equation | [`solvers`] |
//! | turn recording off | [`no_grad`], [`Tensor::detach`], [`Tensor::set_stop_gradient`] |
//! | read or change gradients during backward | [`Tensor::register_hook`], [`GraphNode`] |
//! | recompute in backward instead of keeping | [`checkpoint`] |
//! | keep saved tensors on disk or in lower precision | [`saved_tensors_hooks`] |
//! | find the first NaN or infinity | [`detect_anomaly`] |
//! | know why a gradient is absent, or see the graph | [`Tensor::try_grad`], [`explain()`], [`Graph`] |
//! | check a gradient by finite differences | [`gradcheck()`] |
//! | verify the backwards of ops while a program trains | the feature `verify`: `verify_layers`, `AUTOGRAD_VERIFY=1` |
//! | build a model of layers, and name its parameters | [`nn`], [`nn::Module`] |
//! | train | [`optim`], [`optim::schedule`] |
//! | take batches of data, in random order, prepared on another thread | [`data::DataLoader`] |
//! | use more or fewer threads, and keep them ready while training | [`set_num_threads`], [`with_num_threads`], [`with_threads_awake`] |
//! | save and load; stop a training and resume it exactly | [`safetensors`], [`npy`] |
//! | repeat a run's random numbers | [`seed`], [`rng_state`] |
//! | see more or fewer digits and elements of a tensor | [`PrintOptions`] |
//! | call an op from another language | [`host`] |
//! | know what went wrong | [`Error`] |
//!
//! # Features
//!
//! | feature | default | brings |
//! |---|---|---|
//! | `nn` | yes | [`nn`], [`optim`] and [`data`] |
//! | `static-graph` | yes | [`static_graph`], and `nn` |
//! | `linalg` | no | [`linalg`]: linear systems, factorizations, eigenvalues; compiles nalgebra |
//! | `npy` | no | [`npy`]: NumPy's files; compiles zip and a parser, needs a C compiler |
//! | `safetensors` | no | [`safetensors`], and files of programs; compiles serde |
//! | `verify` | no | `verify_layers`, `AUTOGRAD_VERIFY=1` |
//!
//! A crate that only defines ops turns the default features off and compiles faster:
//! `autograd-core = { version = "0.1", default-features = false }`. State dicts need no `safetensors`.
//!
//! # Rules that hold everywhere
//!
//! - `stop_gradient` is true for new tensors; `set_stop_gradient(false)` asks for a gradient.
//! - An op panics at the caller's line if shapes or values do not fit; most have a `try_` twin that
//!   returns [`Result`].
//! - After an error or a panic, also in user code, every tensor is usable and no gradient is half
//!   written; [`catch_unwind`](std::panic::catch_unwind) accepts tensors, modules and programs.
//! - Results do not depend on the number of threads, but may differ in the last bit between CPUs
//!   with and without fused multiply-add. Separate backwards at the same time add to a shared leaf
//!   as they end; [`backward_parallel`] and [`OrderedBackward`] add in a fixed order.
//! - Integer and bool tensors never have a gradient.

#![cfg_attr(docsrs, feature(doc_cfg))]
// The docs are built with all features.
#![cfg_attr(
    not(all(
        feature = "linalg",
        feature = "nn",
        feature = "npy",
        feature = "static-graph",
        feature = "safetensors"
    )),
    allow(rustdoc::broken_intra_doc_links)
)]

// The macro's expansions name this crate, also in its own tests.
extern crate self as autograd_core;

mod array;
#[cfg(feature = "nn")]
#[cfg_attr(docsrs, doc(cfg(feature = "nn")))]
pub mod data;
mod engine;
mod error;
mod explain;
#[cfg(any(feature = "npy", feature = "safetensors"))]
mod file;
mod formula;
mod functional;
mod gradcheck;
mod graph;
pub mod host;
#[cfg(feature = "linalg")]
#[cfg_attr(docsrs, doc(cfg(feature = "linalg")))]
pub mod linalg;
#[cfg(doc)]
pub mod names;
#[cfg(feature = "nn")]
#[cfg_attr(docsrs, doc(cfg(feature = "nn")))]
pub mod nn;
#[cfg(feature = "npy")]
#[cfg_attr(docsrs, doc(cfg(feature = "npy")))]
pub mod npy;
#[cfg_attr(
    not(feature = "static-graph"),
    allow(dead_code, reason = "entries of ops have what only programs read")
)]
mod ops;
#[cfg(feature = "nn")]
#[cfg_attr(docsrs, doc(cfg(feature = "nn")))]
pub mod optim;
mod options;
mod print;
#[doc(hidden)]
pub mod private;
#[doc(hidden)]
pub use private as path_of_autograd_core;
mod py_layer;
mod random;
#[cfg(feature = "safetensors")]
#[cfg_attr(docsrs, doc(cfg(feature = "safetensors")))]
pub mod safetensors;
pub mod solvers;
#[cfg(feature = "static-graph")]
#[cfg_attr(docsrs, doc(cfg(feature = "static-graph")))]
pub mod static_graph;

/// The shapes of an op's tensors, as `#[py_layer(shapes(..))]` says them.
///
/// ```
/// use autograd_core::prelude::*;
///
/// #[py_layer(no_grad, shapes(x: [n, m] -> [m, n]))]
/// impl Transposed {
///     fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         x.t()
///     }
/// }
///
/// // The shape of the output for an input whose first length is not known.
/// let output = Transposed::SHAPES.infer(&[vec![vec![None, Some(3)]]], &[]);
/// assert_eq!(output, Ok(vec![Some(vec![Some(3), None])]));
/// ```
pub mod shapes {
    pub use crate::py_layer::shapes::{Axis, Dims, Form, Length, Shapes, TensorShape};
}

pub use array::{
    DType, IntoAxes, IntoDims, IntoShape, buffer_pool_bytes, num_threads, set_buffer_pool_limit,
    set_num_threads, with_num_threads, with_threads_awake,
};
pub use engine::{
    AnomalyScope, BackwardOptions, GradOptions, Graph, GraphNode, HookHandle, OrderedBackward,
    after_backward, as_one_backward, backward, backward_each, backward_parallel, backward_to,
    checkpoint, detect_anomaly, grad, grad_with, is_recomputing, leaves_of,
};
pub use error::{CustomError, Error, HookResult, Result};
pub use explain::{Explanation, GradientStatus, explain};
#[doc(hidden)]
pub use formula::{Exponent, WholeTensor};
pub use formula::{Lane, Mask, PlainNumber, Real, Traced};
pub use functional::{hessian, hvp, jacobian, jvp, vjp};
pub use gradcheck::{gradcheck, gradcheck_any, gradgradcheck, gradgradcheck_any, jvpcheck};
#[doc(hidden)]
pub use graph::ViewOperand;
pub use graph::{
    AnyTensor, Element, EnableGrad, NoGrad, SavedTensorsHooks, Tensor, TensorId, View,
    empty_buffer_pool, enable_grad, is_grad_enabled, no_grad, saved_tensors_hooks,
};
pub use ops::elementwise::{MaskElement, fuse, try_fuse};
pub use ops::{
    Conv1dOptions, Conv2dOptions, CrossEntropyOptions, Ellipsis, Float, HasMean, IndexReduction,
    IntoIndex, IntoIndexItem, IntoPair, LossReduction, NewAxis, Numeric, Operand, Padding,
    PoolOptions, Scalar, Step, TensorList,
};
pub use print::{Notation, PrintOptions, print_options, set_print_options};
pub use random::{Generator, rng_state, seed, set_rng_state};

pub use autograd_macros::{Saved, scalar_op};
pub use py_layer::{
    Attrs, BackwardContext, ForwardContext, IntoSaved, JvpContext, Saved, py_layer,
};
#[cfg(feature = "verify")]
#[cfg_attr(docsrs, doc(cfg(feature = "verify")))]
pub use py_layer::{VerifyScope, verify_layers};

/// The imports for a program with its own ops: `use autograd_core::prelude::*;`.
pub mod prelude {
    pub use crate::{
        AnyTensor, BackwardContext, Element, Float, ForwardContext, JvpContext, Lane, Mask,
        Numeric, Real, Saved, Tensor, enable_grad, no_grad, py_layer, scalar_op,
    };
}
