//! What forward saves for backward: packed into one flat list, unpacked into the declared type.

use std::marker::PhantomData;

use super::tuples::each_tuple;
use crate::error::{Error, Result};
use crate::graph::{self, AnyTensor, Element, Role, SavedReader, SavedState, Tensor};

/// A type that a custom op can save: a tensor, `()`, a tuple, an array, a `Vec`, an `Option` of such, or a
/// struct with named fields that derives [`Saved`](derive@crate::Saved).
///
/// ```
/// use autograd_core::prelude::*;
///
/// #[derive(Saved)]
/// struct Parts {
///     y: Tensor<f64>,
///     weights: Vec<Tensor<f64>>,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be saved for backward",
    label = "not made of tensors alone",
    note = "`type Saved` is a `Tensor<T>`, a tuple, an array, a `Vec` or an `Option` of tensors, or a struct with named fields under `#[derive(Saved)]`",
    note = "what is not a tensor goes into `type Attrs`: `ctx.set_attrs(..)` in forward, `ctx.attrs()` in backward"
)]
pub trait Saved: Sized + 'static {
    #[doc(hidden)]
    fn pack(&self, into: &mut Pack<'_>);
    #[doc(hidden)]
    fn unpack(from: &mut Unpack<'_>) -> Result<Self>;
    /// Passes the value to `run`. A single tensor is lent by the node that saved it.
    #[doc(hidden)]
    fn lend(from: &mut Unpack<'_>, run: impl FnOnce(&Self)) -> Result<()> {
        run(&Self::unpack(from)?);
        Ok(())
    }
}

/// An argument of `save_for_backward` for the declared type `S`: references to the tensors, in the same
/// form (a tuple of references for a tuple). Hidden: the docs of each type in a crate of ops would show it.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the saved value is a `{Self}`, but `type Saved` says `{S}`",
    label = "of another type than the declared `{S}`",
    note = "give references in the same form: `&y` for `Tensor<T>`, `(&a, &b)` for a tuple, `Some(&t)` or `None` for an `Option`, `&list` for a `Vec`, `[&a, &b]` for an array; `Tensor` alone is `Tensor<f32>`",
    note = "what is not a tensor goes into `type Attrs`: `ctx.set_attrs(..)` in forward, `ctx.attrs()` in backward"
)]
pub trait IntoSaved<S> {
    fn pack(self, into: &mut Pack<'_>);
}

/// Adds to what a node saves.
#[doc(hidden)]
pub struct Pack<'a>(pub(super) &'a mut SavedState);

// Not inlined, so that a crate of ops does not compile them again.
impl Pack<'_> {
    fn tensor<T: Element>(&mut self, tensor: &Tensor<T>) {
        T::handle(tensor).save(self.0);
    }

    #[inline(never)]
    fn length(&mut self, length: usize) {
        self.0.push(graph::Saved::Length(length));
    }

    #[inline(never)]
    fn option(&mut self, present: bool) {
        self.0.push(if present { graph::Saved::Length(1) } else { graph::Saved::Absent });
    }
}

#[doc(hidden)]
pub struct Unpack<'a>(pub(super) SavedReader<'a>);

/// Entries are read with the types and in the order in which they were written, so this cannot happen.
const OUT_OF_ORDER: &str = "saved state is read as it was written";

impl Unpack<'_> {
    fn tensor<T: Element>(&mut self) -> Result<Tensor<T>> {
        Ok(T::unwrap(self.any()?).unwrap_or_else(|| unreachable!("{OUT_OF_ORDER}")))
    }

    /// The first entry, if it is a tensor that backward gets as it is.
    fn first(&self) -> Result<Option<&AnyTensor>> {
        if self.0.at.create_graph { Ok(None) } else { self.0.peek_any(0) }
    }

    fn any(&mut self) -> Result<AnyTensor> {
        let Some((tensor, role)) = self.0.any()? else { unreachable!("{OUT_OF_ORDER}") };
        let at = self.0.at;
        match role {
            _ if !at.create_graph => Ok(tensor),
            // In a recorded backward such a tensor may be changed in place, so it must not be the caller's.
            Role::Input(_) if !tensor.stop_gradient() => Ok(tensor.snapshot()),
            // An intermediate may take part in a recorded backward only if its own gradient is known.
            Role::Intermediate if tensor.dtype().is_float() && tensor.stop_gradient() => {
                Err(Error::SavedIntermediate {
                    op: at.op(),
                    parameter: at.node.saved_name(role, self.0.position() - 1),
                    location: at.location(),
                })
            }
            _ => Ok(tensor),
        }
    }

    fn length(&mut self) -> usize {
        match self.0.entry() {
            graph::Saved::Length(length) => length,
            graph::Saved::Absent => 0,
            _ => unreachable!("{OUT_OF_ORDER}"),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> Saved for Tensor<T> {
    fn pack(&self, into: &mut Pack<'_>) {
        into.tensor(self);
    }
    fn unpack(from: &mut Unpack<'_>) -> Result<Self> {
        from.tensor()
    }
    fn lend(from: &mut Unpack<'_>, run: impl FnOnce(&Self)) -> Result<()> {
        match from.first()?.and_then(T::peek) {
            Some(tensor) => run(tensor),
            None => run(&from.tensor()?),
        }
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl<S: Saved> Saved for Vec<S> {
    fn pack(&self, into: &mut Pack<'_>) {
        into.length(self.len());
        self.iter().for_each(|saved| saved.pack(into));
    }
    fn unpack(from: &mut Unpack<'_>) -> Result<Self> {
        (0..from.length()).map(|_| S::unpack(from)).collect()
    }
}

#[diagnostic::do_not_recommend]
impl<S: Saved> Saved for Option<S> {
    fn pack(&self, into: &mut Pack<'_>) {
        into.option(self.is_some());
        self.iter().for_each(|saved| saved.pack(into));
    }
    fn unpack(from: &mut Unpack<'_>) -> Result<Self> {
        (from.length() == 1).then(|| S::unpack(from)).transpose()
    }
}

#[diagnostic::do_not_recommend]
impl<S: Saved, const N: usize> Saved for [S; N] {
    fn pack(&self, into: &mut Pack<'_>) {
        self.iter().for_each(|saved| saved.pack(into));
    }
    fn unpack(from: &mut Unpack<'_>) -> Result<Self> {
        let mut broken = None;
        let saved = [(); N].map(|()| match &broken {
            None => S::unpack(from).map_err(|error| broken = Some(error)).ok(),
            Some(_) => None,
        });
        match broken {
            None => Ok(saved.map(|saved| saved.unwrap_or_else(|| unreachable!("{OUT_OF_ORDER}")))),
            Some(error) => Err(error),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> IntoSaved<Tensor<T>> for &Tensor<T> {
    fn pack(self, into: &mut Pack<'_>) {
        into.tensor(self);
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> IntoSaved<Tensor<T>> for Tensor<T> {
    fn pack(self, into: &mut Pack<'_>) {
        into.tensor(&self);
    }
}

// The only form for an optional tensor, so that the type of `None` alone can be inferred.
#[diagnostic::do_not_recommend]
impl<T: Element> IntoSaved<Option<Tensor<T>>> for Option<&Tensor<T>> {
    fn pack(self, into: &mut Pack<'_>) {
        into.option(self.is_some());
        self.into_iter().for_each(|tensor| into.tensor(tensor));
    }
}

macro_rules! saved_lists {
    ($([$($generics:tt)*] $list:ty => $saved:ty $(, $length:ident)?;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Element, $($generics)*> IntoSaved<$saved> for $list {
            fn pack(self, into: &mut Pack<'_>) {
                $(into.$length(self.len());)?
                self.iter().for_each(|tensor| into.tensor(tensor));
            }
        }
    )*};
}

saved_lists! {
    [] &[Tensor<T>] => Vec<Tensor<T>>, length;
    [] &[&Tensor<T>] => Vec<Tensor<T>>, length;
    [] &Vec<Tensor<T>> => Vec<Tensor<T>>, length;
    [] &Vec<&Tensor<T>> => Vec<Tensor<T>>, length;
    [] Vec<Tensor<T>> => Vec<Tensor<T>>, length;
    [] Vec<&Tensor<T>> => Vec<Tensor<T>>, length;
    [const N: usize] &[Tensor<T>; N] => Vec<Tensor<T>>, length;
    [const N: usize] &[&Tensor<T>; N] => Vec<Tensor<T>>, length;
    [const N: usize] [&Tensor<T>; N] => Vec<Tensor<T>>, length;
    [const N: usize] [Tensor<T>; N] => Vec<Tensor<T>>, length;
    [const N: usize] [&Tensor<T>; N] => [Tensor<T>; N];
    [const N: usize] [Tensor<T>; N] => [Tensor<T>; N];
    [const N: usize] &[Tensor<T>; N] => [Tensor<T>; N];
    [const N: usize] &[&Tensor<T>; N] => [Tensor<T>; N];
}

macro_rules! saved_tuple {
    ($(($name:ident $given:ident $position:tt))*) => {
        #[diagnostic::do_not_recommend]
        impl<$($name: Saved),*> Saved for ($($name,)*) {
            fn pack(&self, _into: &mut Pack<'_>) {
                $(Saved::pack(&self.$position, _into);)*
            }
            fn unpack(_from: &mut Unpack<'_>) -> Result<Self> {
                Ok(($($name::unpack(_from)?,)*))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($name, $given: IntoSaved<$name>),*> IntoSaved<($($name,)*)> for ($($given,)*) {
            fn pack(self, _into: &mut Pack<'_>) {
                $(self.$position.pack(_into);)*
            }
        }
    };
}

each_tuple! { saved_tuple }

/// A probe: the constant of types that can be saved is inherent, and shadows that of the trait.
#[doc(hidden)]
pub struct CanSave<S>(PhantomData<S>);

impl<S: Saved> CanSave<S> {
    pub const ANSWER: bool = true;
}

#[doc(hidden)]
pub trait CannotSave {
    const ANSWER: bool = false;
}

impl<S> CannotSave for CanSave<S> {}

#[doc(hidden)]
pub struct Chosen<const CAN_SAVE: bool>;

#[doc(hidden)]
pub trait Choose<S> {
    type Checked;
}

impl<S> Choose<S> for Chosen<true> {
    type Checked = S;
}

impl<S> Choose<S> for Chosen<false> {
    type Checked = Unsavable;
}

/// Accepts any argument, so that a type that cannot be saved is reported once, where declared.
#[doc(hidden)]
pub struct Unsavable;

#[diagnostic::do_not_recommend]
impl<V> IntoSaved<Unsavable> for V {
    fn pack(self, _: &mut Pack<'_>) {}
}
