//! Layers, named parameters, initial values.
//!
//! A model is a struct of your own with layers, tensors and other fields. `#[derive(Module)]` names
//! its parameters. Its forward pass is a function, which may mix your ops with built-in ones.
//!
//! ```
//! use autograd_core::nn::{Dropout, LayerNorm, Linear, Module};
//! use autograd_core::optim::{Adam, Optimizer};
//! use autograd_core::prelude::*;
//!
//! /// The square of the positive part, with a gradient written by hand.
//! #[py_layer]
//! impl SquaredRelu {
//!     type Saved = Tensor;
//!
//!     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor) -> Tensor {
//!         ctx.save_for_backward(x);
//!         x.relu().square()
//!     }
//!
//!     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor) -> Tensor {
//!         dy * ctx.saved_tensor().relu() * 2.0
//!     }
//! }
//!
//! #[derive(Module)]
//! struct Net {
//!     hidden: Linear,
//!     norm: LayerNorm,
//!     dropout: Dropout,
//!     out: Linear,
//! }
//!
//! impl Net {
//!     fn forward(&self, x: &Tensor) -> Tensor {
//!         let h = SquaredRelu::apply(&self.norm.forward(&self.hidden.forward(x)));
//!         self.out.forward(&self.dropout.forward(&h))
//!     }
//! }
//!
//! let net = Net {
//!     hidden: Linear::new(3, 16),
//!     norm: LayerNorm::new(16),
//!     dropout: Dropout::new(0.1),
//!     out: Linear::new(16, 1),
//! };
//! let mut adam = Optimizer::new(&net, Adam::new(1e-2));
//! let x = Tensor::randn([8, 3]);
//! net.forward(&x).square().mean().backward()?;
//! adam.step()?;
//! adam.clear_grad();
//!
//! // Dropout and batch normalization behave differently in evaluation.
//! net.eval();
//! let saved = net.state_dict();
//! assert!(saved.contains_key("norm.weight"));
//! # Ok::<(), autograd_core::Error>(())
//! ```
//!
//! [`state_dict`](Module::state_dict) and [`load_state_dict`](Module::load_state_dict) save and load a
//! model, in files by [`SafeTensors`](crate::safetensors::SafeTensors). PyTorch's files can be
//! loaded: names, shapes, formulas and initial values of the layers are the same.

mod activation;
mod attention;
pub mod init;
mod layer;
mod layers;
mod module;
mod norm;
pub(crate) mod state;

pub use activation::{
    Dropout, Elu, Flatten, Gelu, LeakyRelu, LogSoftmax, Relu, Sigmoid, Silu, Softmax, Softplus,
    Tanh,
};
pub use attention::{AttentionMask, AttentionMasks, MultiheadAttention};
pub use autograd_macros::Module;
pub use layer::{Layer, Sequential};
pub use layers::{Conv, Conv1d, Conv2d, Embedding, Linear};
pub use module::{Buffer, Mode, Module, Visitor, parameter};
pub use norm::{BatchNorm, BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm, RmsNorm};
pub use state::StateDict;
