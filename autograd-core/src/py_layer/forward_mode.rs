//! Forward mode through a custom op with `fn jvp`.

use std::cell::{OnceCell, RefCell};

use super::CustomOp;
use super::backward::{GradEntries, GradFor};
use super::call::{Called, Primal};
use super::outputs::{Fallible, OwnError};
use super::saved::{Saved, Unpack};
use super::tuples::each_tuple;
use crate::array::shape::same;
use crate::error::{Error, Result, Source};
use crate::graph::{ElementFunctions, Slots, Tensor};
use crate::ops::Float;

/// A custom op's node in forward mode: the argument of the generated `push`.
#[doc(hidden)]
pub struct RawJvp<'a> {
    pub(super) called: Called<'a>,
    pub(super) saved: RefCell<Unpack<'a>>,
    pub(super) inputs: &'a [Primal],
    pub(super) tangents: RefCell<Slots>,
    pub(super) outputs: RefCell<Slots>,
}

impl RawJvp<'_> {
    pub fn saved<L: CustomOp<K>, K>(&self) -> Result<L::Saved> {
        L::Saved::unpack(&mut self.saved.borrow_mut())
    }

    pub fn primal<I: JvpForm + ?Sized>(&self, group: usize) -> Dual<I> {
        let (first, count) = self.called.group(group);
        let tensors = self.inputs[first..first + count].iter();
        let mut tangents = self.tangents.borrow_mut();
        Dual {
            inputs: tensors.filter_map(|(tensor, _)| I::Of::unwrap(tensor.snapshot())).collect(),
            tangents: tangents[first..first + count]
                .iter_mut()
                .map(|tangent| tangent.take().and_then(I::Of::unwrap))
                .collect(),
            full: OnceCell::new(),
        }
    }

    pub fn give<O: ?Sized, G: TangentFor<O>>(&self, group: usize, tangents: G) -> Result<()> {
        let tangents = match tangents.entries() {
            GradEntries::One(tangent) => Slots::from_elem(tangent, 1),
            GradEntries::List(tangents) => tangents,
        };
        let (first, count) = self.called.group(self.called.info.inputs + group);
        let (op, location) = (self.called.info.name, self.called.location);
        if tangents.len() != count {
            let (expected, found) = (count, tangents.len());
            let output = self.output_name(group, None);
            return Err(Error::TangentCount { op, output, expected, found, location });
        }
        let slot = first - self.called.input_tensors();
        let mut outputs = self.outputs.borrow_mut();
        for (position, tangent) in tangents.into_iter().enumerate() {
            let expected = self.called.shape(first + position);
            let expected = expected.unwrap_or_else(|| self.inputs[0].0.shape());
            if let Some(tangent) = &tangent
                && !same(tangent.shape(), expected)
            {
                let output = self.output_name(group, (count > 1).then_some(position));
                let (expected, found) = (expected.to_vec(), tangent.shape().to_vec());
                return Err(Error::TangentShape { op, output, expected, found, location });
            }
            let len = outputs.len().max(slot + position + 1);
            outputs.resize(len, None);
            outputs[slot + position] = tangent;
        }
        Ok(())
    }

    /// `the output`, or `output 1[0]`.
    fn output_name(&self, group: usize, position: Option<usize>) -> String {
        let only = self.called.outputs() == 1;
        let name = if only { "the output".to_owned() } else { format!("output {group}") };
        position.map_or(name.clone(), |position| format!("{name}[{position}]"))
    }

    /// Takes the tangents that `jvp` returned for all outputs, if the macro could not see the parts.
    pub fn give_all<O, G: TangentsFor<O>>(&self, tangents: G) -> Result<()> {
        tangents.give(self)
    }

    /// Returns the value that `jvp` returned, or its error as an [`Error::User`].
    pub fn user<R: Fallible<Error: OwnError>>(
        &self,
        returned: R,
        source: impl FnOnce(R::Error) -> Source,
    ) -> Result<R::Output> {
        let (op, location) = (self.called.info.name, self.called.location);
        returned.result().map_err(|error| Error::user(op, location, "jvp", error, source))
    }
}

/// The form of an input in forward: `Tensor<T>`, `Option<Tensor<T>>`, or `[Tensor<T>]` for a list.
#[doc(hidden)]
pub trait JvpForm {
    type Of: Float;
}

impl<T: Float> JvpForm for Tensor<T> {
    type Of = T;
}

impl<T: Float> JvpForm for Option<Tensor<T>> {
    type Of = T;
}

impl<T: Float> JvpForm for [Tensor<T>] {
    type Of = T;
}

#[doc(hidden)]
pub struct Dual<I: JvpForm + ?Sized> {
    inputs: Vec<Tensor<I::Of>>,
    tangents: Vec<Option<Tensor<I::Of>>>,
    full: OnceCell<Vec<Tensor<I::Of>>>,
}

impl<I: JvpForm + ?Sized> Dual<I> {
    pub fn input<'s, P: JvpInput<'s, I>>(&'s self) -> P {
        P::input(self)
    }

    pub fn tangent<'s, P: TangentParam<'s, I>>(&'s self) -> P {
        P::tangent(self)
    }

    fn full(&self) -> &[Tensor<I::Of>] {
        self.full.get_or_init(|| {
            let pairs = self.tangents.iter().zip(&self.inputs);
            pairs
                .map(|(tangent, input)| {
                    tangent.clone().unwrap_or_else(|| Tensor::zeros_like(input))
                })
                .collect()
        })
    }
}

#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a parameter of `jvp` of type `{Self}` does not fit its input, which is `{I}`",
    label = "must be the input `{I}`",
    note = "`jvp` gets an input `Tensor<T>` as `&Tensor<T>`, an optional one as `Option<&Tensor<T>>`, and every list as `&[Tensor<T>]`, with the same `T` as in `forward` (`Tensor` alone is `Tensor<f32>`)"
)]
pub trait JvpInput<'s, I: JvpForm + ?Sized>: Sized {
    fn input(from: &'s Dual<I>) -> Self;
}

macro_rules! params {
    ($trait:ident $method:ident: $($input:ty => $param:ty, |$from:ident| $lent:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<'s, T: Float> $trait<'s, $input> for $param {
            fn $method($from: &'s Dual<$input>) -> Self {
                $lent
            }
        }
    )*};
}

params! {
    JvpInput input:
    Tensor<T> => &'s Tensor<T>, |from| &from.inputs[0];
    Option<Tensor<T>> => Option<&'s Tensor<T>>, |from| from.inputs.first();
    [Tensor<T>] => &'s [Tensor<T>], |from| &from.inputs;
}

#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a tangent of type `{Self}` does not fit its input, which is `{I}`",
    label = "must be the tangent of a `{I}`",
    note = "the tangent of an input `Tensor<T>` is `&Tensor<T>` (zeros where none came) or `Option<&Tensor<T>>`, of an optional one `Option<&Tensor<T>>`, of a list `&[Tensor<T>]` or `&[Option<Tensor<T>>]`, with the same `T` (`Tensor` alone is `Tensor<f32>`)"
)]
pub trait TangentParam<'s, I: JvpForm + ?Sized>: Sized {
    fn tangent(from: &'s Dual<I>) -> Self;
}

params! {
    TangentParam tangent:
    Tensor<T> => &'s Tensor<T>, |from| from.tangents[0].as_ref().unwrap_or_else(|| &from.full()[0]);
    Tensor<T> => Option<&'s Tensor<T>>, |from| from.tangents[0].as_ref();
    Option<Tensor<T>> => Option<&'s Tensor<T>>, |from| from.tangents.first().and_then(Option::as_ref);
    [Tensor<T>] => &'s [Tensor<T>], |from| from.full();
    [Tensor<T>] => &'s [Option<Tensor<T>>], |from| &from.tangents;
}

/// A tangent that `jvp` may return for an output of type `O`, a tensor or a list of tensors.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a returned tangent of type `{Self}` does not fit its output, which is `{O}`",
    label = "must be the tangent of a `{O}`",
    note = "the tangent of an output `Tensor<T>` is a `Tensor<T>` or `Option<Tensor<T>>` by value, with the same `T` (`Tensor` alone is `Tensor<f32>`); of a list of tensors it is a `Vec` or an array of as many tensors"
)]
pub trait TangentFor<O: ?Sized> {
    /// One entry for each tensor of the output.
    fn entries(self) -> GradEntries;
}

#[diagnostic::do_not_recommend]
impl<O: ?Sized, G: GradFor<O>> TangentFor<O> for G {
    fn entries(self) -> GradEntries {
        GradFor::entries(self)
    }
}

#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "what `jvp` returns, `{Self}`, is not one tangent for each tensor output",
    label = "must hold the tangents of `{O}`, in this order",
    note = "return a tuple with one tangent for each tensor output, in the order in which `forward` returns them"
)]
pub trait TangentsFor<O> {
    fn give(self, raw: &RawJvp<'_>) -> Result<()>;
}

macro_rules! tangents_tuple {
    () => {};
    ($only:tt) => {};
    ($(($output:ident $tangent:ident $position:tt))*) => {
        #[diagnostic::do_not_recommend]
        impl<$($output, $tangent: TangentFor<$output>),*> TangentsFor<($($output,)*)>
            for ($($tangent,)*)
        {
            fn give(self, raw: &RawJvp<'_>) -> Result<()> {
                $(raw.give($position, self.$position)?;)*
                Ok(())
            }
        }
    };
}

each_tuple! { tangents_tuple }
