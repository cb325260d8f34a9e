//! Learning: update rules for parameters, schedules of step sizes, and limits on gradients.
//!
//! An [`Optimizer`] takes the parameters of a [`Module`](crate::nn::Module) and a rule: [`Sgd`], [`Adam`],
//! [`AdamW`] or [`RmsProp`], with PyTorch's formulas, or one of yours ([`Rule`]).
//!
//! ```
//! use autograd_core::Tensor;
//! use autograd_core::nn::parameter;
//! use autograd_core::optim::{Optimizer, Sgd};
//!
//! // The least square of x² - 2 is at the root of 2.
//! let x = parameter(Tensor::from(1.0));
//! let mut sgd = Optimizer::new(&x, Sgd::new(0.05));
//! for _ in 0..50 {
//!     (x.square() - 2.0).square().backward()?;
//!     sgd.step()?;
//!     sgd.clear_grad();
//! }
//! assert!((x.item() - 2.0_f64.sqrt()).abs() < 1e-9);
//! # Ok::<(), autograd_core::Error>(())
//! ```
//!
//! # Groups
//!
//! Parameters are selected by name to get a rule of their own:
//!
//! ```
//! use autograd_core::nn::Linear;
//! use autograd_core::optim::{AdamW, Optimizer};
//!
//! let model = [Linear::<f32>::new(4, 8), Linear::new(8, 2)];
//! let rule = AdamW::new(1e-3).weight_decay(0.1);
//! let adam = Optimizer::new(&model, rule)
//!     .group(|name| name.ends_with("bias"), rule.weight_decay(0.0))
//!     .group(|name| name.starts_with("1."), rule.learning_rate(1e-2));
//! assert_eq!(adam.rules().len(), 3);
//! ```
//!
//! # Schedules
//!
//! The step sizes come from a schedule of [`schedule`], or from a formula of yours:
//!
//! ```
//! use autograd_core::optim::schedule::{Cosine, Schedule};
//! # use autograd_core::Tensor;
//! # use autograd_core::nn::parameter;
//! # use autograd_core::optim::{Optimizer, Sgd};
//! # let mut optimizer = Optimizer::new(&parameter(Tensor::from(1.0)), Sgd::new(0.1));
//!
//! // 10 steps up to 0.1, then down to 0 along a half-wave of the cosine.
//! let schedule = Cosine::new(0.1, 0.0, 90).warm_up(10);
//! for step in 0..100 {
//!     optimizer.set_learning_rate(schedule.at(step));
//!     // forward, backward, step, clear_grad ..
//! }
//! ```
//!
//! # Gradient accumulation
//!
//! Gradients accumulate until they are cleared, so several small batches can make one step: each loss is
//! weighted by its part of the whole. The result is the gradient of a large batch, without its memory.
//!
//! ```
//! # use autograd_core::Tensor;
//! # use autograd_core::nn::Linear;
//! # use autograd_core::optim::{Optimizer, Sgd};
//! # let model = Linear::<f64>::new(3, 1);
//! # let mut optimizer = Optimizer::new(&model, Sgd::new(0.1));
//! # let batch = Tensor::randn([8, 3]);
//! # model.forward(&batch).square().mean().backward()?;
//! # let whole = model.weight.grad().unwrap();
//! # optimizer.clear_grad();
//! let parts = batch.split(4, 0);
//! for part in &parts {
//!     let loss = model.forward(part).square().mean() / parts.len() as f64;
//!     loss.backward()?;
//! }
//! # assert!((model.weight.grad().unwrap() - whole).abs().max().item() < 1e-12);
//! optimizer.step()?;
//! optimizer.clear_grad();
//! # Ok::<(), autograd_core::Error>(())
//! ```
//!
//! # Saving and resuming
//!
//! The state of a rule has names too, and is saved beside the model:
//!
//! ```
//! use autograd_core::Tensor;
//! use autograd_core::nn::{Linear, Module};
//! use autograd_core::optim::{Adam, Optimizer};
//!
//! let model = Linear::<f32>::new(3, 1);
//! let mut adam = Optimizer::new(&model, Adam::new(1e-3));
//! model.forward(&Tensor::ones([1, 3])).sum().backward()?;
//! adam.step()?;
//!
//! let (weights, moments) = (model.state_dict(), adam.state_dict());
//! assert!(moments.contains_key("weight.exp_avg"));
//!
//! model.load_state_dict(&weights)?;
//! adam.load_state_dict(&moments)?;
//! # Ok::<(), autograd_core::Error>(())
//! ```
//!
//! With the feature `safetensors`, both are saved in one file by
//! [`insert_under`](crate::safetensors::SafeTensors::insert_under).

mod built_in;
mod clip;
mod optimizer;
mod rule;
pub mod schedule;

pub use built_in::{Adam, AdamW, RmsProp, Sgd};
pub use clip::{clip_grad_norm, clip_grad_value};
pub use optimizer::Optimizer;
#[cfg(feature = "static-graph")]
pub(crate) use rule::{Erased, Listed};
pub use rule::{Lazy, Rule, Step};

use crate::error::{Error, Result};

/// The range of an option, in words and as a test.
type Range = (&'static str, fn(f64) -> bool);

const NOT_NEGATIVE: Range = ("0 or more, and finite", |x| x >= 0.0 && x.is_finite());
const FINITE: Range = ("finite", f64::is_finite);

fn check(
    op: &'static str,
    option: &'static str,
    (expected, holds): Range,
    found: f64,
) -> Result<()> {
    if holds(found) { Ok(()) } else { Err(Error::value(op, option, expected, found)) }
}
