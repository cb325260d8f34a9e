//! Ops as values, for programs of other languages: `#[py_layer(export)]` makes an op a [`DynOp`].
//!
//! A host has its own graph. It calls [`forward`](trait@DynOp#method.forward), stores what that returned in a node
//! of its own, and calls [`Kept::backward`] when gradients come. The crate `autograd-python` does so for NumPy, JAX,
//! PyTorch and Paddle.
//!
//! ```
//! use autograd_core::host::{Arg, Origin};
//! use autograd_core::prelude::*;
//!
//! /// Hyperbolic tangent.
//! #[py_layer(export)]
//! impl CusTanh {
//!     type Saved = Tensor<f64>;
//!     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
//!         let y = x.tanh();
//!         ctx.save_for_backward(&y);
//!         y
//!     }
//!     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
//!         dy * (1.0 - ctx.saved_tensor().square())
//!     }
//! }
//!
//! let op = CusTanh::EXPORT;
//! assert_eq!((op.description().name, op.description().docs), ("CusTanh", "Hyperbolic tangent."));
//! let (outputs, kept) = op.forward(&[Arg::One(Tensor::from([0.0]).into())], &[])?;
//! assert_eq!(kept.tensors()[0].0, Origin::Output(0));
//! let grads = kept.backward(&[Some(Tensor::from([3.0]).into())], &[])?;
//! assert_eq!(format!("{:?}", grads[0].as_ref().unwrap()), "Tensor(shape=[1], dtype=float64, stop_gradient=true,\n[3.])");
//! # assert_eq!(outputs.len(), 1);
//! # Ok::<(), autograd_core::Error>(())
//! ```

mod args;
mod caught;
mod description;
mod foreign;
mod formula;
mod kept;

pub use args::{Arg, Call, PlainArg};
pub use caught::words;
pub use description::{Description, Form, Output, Parameter};
pub use foreign::Memory;
pub use formula::{FormulaText, Library};
pub use kept::{Kept, Origin, Second};

use crate::array::DType;
use crate::error::{Error, Result, Source};
use crate::graph::{AnyTensor, Element, GradMode, Tensor};
use args::prepared;
use caught::caught;
#[doc(hidden)]
pub use formula::FormulaOp;

/// An op that a host calls: the value `Op::EXPORT` of an op under `#[py_layer(export)]`. The [module](self) has an
/// example.
pub trait DynOp: Send + Sync {
    /// The op's name, parameters and outputs.
    ///
    /// ```
    /// use autograd_core::prelude::*;
    ///
    /// /// The square of each element.
    /// #[py_layer(elementwise, export)]
    /// impl Square {
    ///     fn forward(x: Real) -> Real {
    ///         x * x
    ///     }
    /// }
    ///
    /// let of = Square::EXPORT.description();
    /// assert_eq!((of.name, of.docs), ("Square", "The square of each element."));
    /// assert_eq!(of.parameters[0].name, "x");
    /// ```
    fn description(&self) -> &'static Description;

    /// Calls the op's `try_apply`.
    #[doc(hidden)]
    fn run(&self, call: &Call<'_>) -> Result<Vec<AnyTensor>>;

    /// The formula with these plain parameters; `None` for an op that is none.
    #[doc(hidden)]
    fn formula_op(&self, _: &Call<'_>) -> Result<Option<FormulaOp>> {
        Ok(None)
    }
}

impl std::fmt::Debug for dyn DynOp + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DynOp").field(&self.description().name).finish()
    }
}

impl dyn DynOp + '_ {
    /// Runs forward. Returns the tensors of all outputs, and what the call keeps for its backward.
    ///
    /// `needs` says for each tensor among the arguments, list by list, whether it wants a gradient; a tensor beyond
    /// its end does, if its parameter is differentiable. If no tensor wants one, nothing is kept. The arguments are
    /// not changed, and the outputs share no memory that is written later.
    ///
    /// # Errors
    ///
    /// If the arguments do not fit the parameters, if forward returns an error, and if it panics. The text is that
    /// of [`words`].
    pub fn forward(&self, args: &[Arg], needs: &[bool]) -> Result<(Vec<AnyTensor>, Kept)> {
        let of = self.description();
        let (args, inputs) = prepared(of, args, needs)?;
        let records = of.has_backward && inputs.iter().any(|input| !input.stop_gradient());
        caught(of.name, "forward", || {
            let call = Call { of, args: &args };
            let outputs = GradMode::of(records, || self.run(&call))?;
            Kept::of_call(of.name, &inputs, outputs)
        })
    }

    /// The formula as functions of a Python library, if the op is one whose outputs are not reduced. `plain` are the
    /// plain arguments, in their order.
    ///
    /// ```
    /// use autograd_core::host::{Arg, Library, Origin};
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer(elementwise, export)]
    /// impl Scale {
    ///     fn forward(x: Real, by: f64) -> Real {
    ///         x * by
    ///     }
    /// }
    ///
    /// let formula = Scale::EXPORT.formula(&[Arg::Float(2.0)], Library::Torch)?.expect("an op of elements");
    /// assert!(formula.python.contains("def forward(a0):"));
    /// assert_eq!((&formula.reads[..], &formula.differentiable[..]), (&[Origin::Input(0)][..], &[0][..]));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the plain arguments do not fit the parameters.
    pub fn formula(&self, plain: &[Arg], library: Library) -> Result<Option<FormulaText>> {
        let of = self.description();
        let mut plain = plain.iter().cloned();
        let args = of.parameters.iter().map(|parameter| match parameter.form {
            Form::Plain => plain.next().unwrap_or(Arg::Omitted),
            _ => Arg::Absent,
        });
        let args: Vec<Arg> = args.collect();
        let op = self.formula_op(&Call { of, args: &args })?;
        let tensors = of.parameters.iter().filter(|parameter| parameter.form != Form::Plain);
        let masks: Vec<bool> = tensors.map(|of| of.elements == [DType::Bool]).collect();
        Ok(op.and_then(|op| op.text(&masks, library)))
    }
}

/// An output whose tensors lose their element types.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "an exported op cannot return `{Self}`",
    label = "not a tensor",
    note = "the outputs of an op under `#[py_layer(export)]` are `Tensor<T>`, `Vec<Tensor<T>>` and `[Tensor<T>; N]`; return a number as a tensor of one element"
)]
pub trait HostOutput {
    fn give(self, to: &mut Vec<AnyTensor>);
}

#[diagnostic::do_not_recommend]
impl<T: Element> HostOutput for Tensor<T> {
    fn give(self, to: &mut Vec<AnyTensor>) {
        to.push(self.into());
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> HostOutput for Vec<Tensor<T>> {
    fn give(self, to: &mut Vec<AnyTensor>) {
        to.extend(self.into_iter().map(AnyTensor::from));
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, const N: usize> HostOutput for [Tensor<T>; N] {
    fn give(self, to: &mut Vec<AnyTensor>) {
        to.extend(self.into_iter().map(AnyTensor::from));
    }
}

/// The outputs of a forward that may fail.
#[doc(hidden)]
#[track_caller]
pub fn returned<O, E: std::fmt::Display + 'static>(
    op: &'static str,
    result: Result<O, E>,
    source: impl FnOnce(E) -> Source,
) -> Result<O> {
    let place = std::panic::Location::caller();
    result.map_err(|error| Error::user(op, place, "forward", error, source))
}
