//! One proof for each tensor type that an op names, and placeholders where the proof fails.
//!
//! Generated code works through [`Known`]: for a float tensor of this library the inherent methods are
//! found, with all their bounds; for any other type the methods of [`Unknown`], which accept anything and
//! never run. So another type with the name `Tensor` is reported once, by [`float_tensor`].

use std::marker::PhantomData;

use super::apply::{Forward, finish_fallible};
use super::backward::{GradFor, Gradient, RawBackward};
use super::forward_mode::{Dual, JvpForm, RawJvp, TangentFor};
#[cfg(feature = "verify")]
use super::inputs::Again;
use super::inputs::{DifferentiableInput, InputTensors, TensorInput};
use super::outputs::{Fallible, TensorOutput, Visitor, stand_in};
use crate::error::Result;
use crate::graph::{Element, Tensor};
use crate::ops::Float;

#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no gradient: it is not a tensor of `f32` or `f64` of this library",
    label = "expected autograd_core's `Tensor<f32>` or `Tensor<f64>`",
    note = "an integer or bool tensor is never differentiated: write `#[stop_gradient]` before such an input, and return nothing for it from `backward`; write such an output as `Tensor<i64>`, `Tensor<bool>` and so on, not by another name",
    note = "if another type is called `Tensor` too, import it under another name: `use other::Tensor as OtherTensor`",
    note = "in a generic op the element type is bound by `T: Float`"
)]
pub trait FloatTensor {}

#[diagnostic::do_not_recommend]
impl<T: Float> FloatTensor for Tensor<T> {}

#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor of this library",
    label = "expected autograd_core's `Tensor<T>`",
    note = "if another type is called `Tensor` too, import it under another name: `use other::Tensor as OtherTensor`",
    note = "in a generic op the element type is bound by `T: Float`, or by `T: Element` where nothing is differentiated"
)]
pub trait AnyElementTensor {}

#[diagnostic::do_not_recommend]
impl<T: Element> AnyElementTensor for Tensor<T> {}

/// A list of tensors: the standard library's `Vec`, not another type of that name.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the `Vec` of the standard library",
    label = "expected `Vec<Tensor<T>>`",
    note = "if another type is called `Vec` too, import it under another name, or write `std::vec::Vec` here"
)]
pub trait List {}

#[diagnostic::do_not_recommend]
impl<T> List for Vec<T> {}

/// The proof for an output that is a `Vec`.
pub fn list<L: List>() {}

/// The proof for tensors with a gradient.
pub fn float_tensor<T: FloatTensor + ?Sized>() {}

/// The proof for tensors behind `#[stop_gradient]`.
pub fn any_tensor<T: AnyElementTensor + ?Sized>() {}

/// Has methods with the bounds of a tensor type, or without bounds if the type is not a tensor.
#[doc(hidden)]
pub struct Known<T: ?Sized>(PhantomData<fn() -> *const T>);

impl<T: Element> Known<Tensor<T>> {
    #[inline]
    pub fn constant<I: TensorInput>(input: &I) -> InputTensors<'_> {
        input.tensors()
    }
}

#[cfg(feature = "verify")]
impl<T: Element> Known<Tensor<T>> {
    /// A tensor input of a repeated call.
    pub fn again_one(again: &Again, group: usize) -> Tensor<T> {
        Self::again_optional(again, group).unwrap_or_else(|| unreachable!("an input is a tensor"))
    }

    pub fn again_optional(again: &Again, group: usize) -> Option<Tensor<T>> {
        Self::again_list(again, group).pop()
    }

    pub fn again_list(again: &Again, group: usize) -> Vec<Tensor<T>> {
        let tensors = again.0.get(group).into_iter().flatten();
        tensors.filter_map(|tensor| tensor.downcast_ref()).cloned().collect()
    }
}

impl<T: Float> Known<Tensor<T>> {
    #[inline]
    pub fn input<I: DifferentiableInput>(input: &I) -> InputTensors<'_> {
        input.tensors()
    }

    #[inline]
    pub fn give<I: ?Sized, G: GradFor<I>>(raw: &RawBackward<'_>, group: usize, grad: G) {
        raw.give(group, grad);
    }

    #[inline]
    pub fn primal<I: JvpForm + ?Sized>(raw: &RawJvp<'_>, group: usize) -> Dual<I> {
        raw.primal(group)
    }

    #[inline]
    pub fn give_tangent<O: ?Sized, G: TangentFor<O>>(
        raw: &RawJvp<'_>,
        group: usize,
        tangent: G,
    ) -> Result<()> {
        raw.give(group, tangent)
    }
}

impl<O: TensorOutput> Known<O> {
    #[inline]
    pub fn output<'o>(visitor: &mut Visitor<'o>, output: &'o mut O) {
        output.visit(visitor);
    }

    #[inline]
    pub fn gradient<'r>(raw: &'r RawBackward<'_>, group: usize) -> Gradient<'r, O> {
        raw.gradient(group)
    }

    pub fn finish(forward: &mut Forward<'_>, mut output: O) -> Result<O> {
        forward.finish(&mut output)?;
        Ok(output)
    }

    pub fn finish_fallible<R: Fallible<Output = O>>(
        forward: &mut Forward<'_>,
        returned: R,
    ) -> Result<R> {
        finish_fallible(forward, returned, O::visit)
    }
}

/// The methods of every other type: they have no bounds, and never run.
#[doc(hidden)]
pub trait Unknown {
    fn constant<I>(_: &I) -> InputTensors<'_> {
        stand_in()
    }
    fn input<I>(_: &I) -> InputTensors<'_> {
        stand_in()
    }
    fn output<O>(_: &mut Visitor<'_>, _: &mut O) {
        stand_in()
    }
    fn gradient(_: &RawBackward<'_>, _: usize) -> AnyGradient {
        stand_in()
    }
    fn give<I: ?Sized, G>(_: &RawBackward<'_>, _: usize, _: G) {
        stand_in()
    }
    fn finish<O>(_: &mut Forward<'_>, _: O) -> Result<O> {
        stand_in()
    }
    fn finish_fallible<R>(_: &mut Forward<'_>, _: R) -> Result<R> {
        stand_in()
    }
    fn primal<I: ?Sized>(_: &RawJvp<'_>, _: usize) -> AnyDual {
        stand_in()
    }
    fn give_tangent<O: ?Sized, G>(_: &RawJvp<'_>, _: usize, _: G) -> Result<()> {
        stand_in()
    }
    #[cfg(feature = "verify")]
    fn again_one<P>(_: &Again, _: usize) -> P {
        stand_in()
    }
    #[cfg(feature = "verify")]
    fn again_optional<P>(_: &Again, _: usize) -> Option<P> {
        stand_in()
    }
    #[cfg(feature = "verify")]
    fn again_list<P>(_: &Again, _: usize) -> Vec<P> {
        stand_in()
    }
}

impl<T: ?Sized> Unknown for Known<T> {}

#[doc(hidden)]
pub struct AnyGradient;

impl AnyGradient {
    pub fn lend<P>(&self) -> P {
        stand_in()
    }
}

#[doc(hidden)]
pub struct AnyDual;

impl AnyDual {
    pub fn input<P>(&self) -> P {
        stand_in()
    }

    pub fn tangent<P>(&self) -> P {
        stand_in()
    }
}
