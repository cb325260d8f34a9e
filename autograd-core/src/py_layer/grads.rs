//! Gradients at the border of user code: backward's parameters, and what it returns.

use std::cell::OnceCell;
use std::fmt::Display;

use smallvec::SmallVec;

use super::call::Layout;
use super::node::RawBackward;
use super::outputs::TensorOutput;
use super::proof::Fallible;
use crate::array::{Shape, Value};
use crate::graph::{AnyTensor, Tensor};
use crate::ops::Float;

/// The gradients of one output, as they came.
#[doc(hidden)]
pub struct Gradient<'a, O: TensorOutput> {
    held: O::Held,
    full: OnceCell<O::Full>,
    layout: &'a Layout,
    first: usize,
    count: usize,
}

impl<'a, O: TensorOutput> Gradient<'a, O> {
    pub(super) fn new(held: O::Held, layout: &'a Layout, first: usize, count: usize) -> Self {
        Self { held, full: OnceCell::new(), layout, first, count }
    }

    /// As backward's parameter has it.
    pub fn lend<'s, P: GradParam<'s, O>>(&'s self) -> P {
        P::lend(self)
    }

    fn zeros<T: Float>(&self, position: usize) -> Tensor<T> {
        let shape = Shape::from_slice(self.layout.shape(self.first + position));
        Tensor::new(Value::full(shape, T::ZERO))
    }
}

/// A gradient parameter of backward for an output of type `O`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a gradient parameter of type `{Self}` does not fit its output, which is `{O}`",
    label = "must be the gradient of a `{O}`",
    note = "the gradient of an output `Tensor<T>` is `&Tensor<T>` (zeros where none came) or `Option<&Tensor<T>>`, with the same `T` (`Tensor` alone is `Tensor<f32>`); of a `Vec` or an array of tensors it is `&[Tensor<T>]` or `&[Option<Tensor<T>>]`"
)]
pub trait GradParam<'s, O: TensorOutput>: Sized {
    /// Lent by the caller for the time of the call.
    fn lend(from: &'s Gradient<'_, O>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<'s, T: Float> GradParam<'s, Tensor<T>> for &'s Tensor<T> {
    fn lend(from: &'s Gradient<'_, Tensor<T>>) -> Self {
        match &from.held {
            Some(grad) => grad,
            None => from.full.get_or_init(|| from.zeros(0)),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<'s, T: Float> GradParam<'s, Tensor<T>> for Option<&'s Tensor<T>> {
    fn lend(from: &'s Gradient<'_, Tensor<T>>) -> Self {
        from.held.as_ref()
    }
}

type Grads<T> = Vec<Option<Tensor<T>>>;

fn fill<'s, O, T: Float>(from: &'s Gradient<'_, O>) -> &'s [Tensor<T>]
where
    O: TensorOutput<Held = Grads<T>, Full = Vec<Tensor<T>>>,
{
    from.full.get_or_init(|| {
        let zeros = |position| from.zeros(position);
        let grads = from.held.iter().enumerate();
        let full: Vec<_> =
            grads.map(|(i, grad)| grad.clone().unwrap_or_else(|| zeros(i))).collect();
        debug_assert_eq!(full.len(), from.count);
        full
    })
}

macro_rules! list_params {
    ($([$($generics:tt)*] $output:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<'s, T: Float, $($generics)*> GradParam<'s, $output> for &'s [Tensor<T>] {
            fn lend(from: &'s Gradient<'_, $output>) -> Self {
                fill(from)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<'s, T: Float, $($generics)*> GradParam<'s, $output> for &'s [Option<Tensor<T>>] {
            fn lend(from: &'s Gradient<'_, $output>) -> Self {
                &from.held
            }
        }
    )*};
}

list_params! {
    [] Vec<Tensor<T>>;
    [const N: usize] [Tensor<T>; N];
}

/// What backward returned for one input.
pub(super) type GradList = SmallVec<[Option<AnyTensor>; 1]>;

/// A gradient that backward may return for an input of type `I` (`Tensor<T>`, or `[Tensor<T>]`
/// for a list of tensors).
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a returned gradient of type `{Self}` does not fit its input, which is `{I}`",
    label = "must be the gradient of a `{I}`",
    note = "the gradient of an input `Tensor<T>` is a `Tensor<T>` or `Option<Tensor<T>>` by value, with the same `T` (`Tensor` alone is `Tensor<f32>`); of a list of tensors it is a `Vec` or an array of them; a `Result` around them is written by this name, not by an alias"
)]
pub trait GradFor<I: ?Sized> {
    /// One entry for each tensor of the input.
    fn list(self) -> GradEntries;
}

/// The same for the input that has this name, to tell it in errors.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the gradient of `{Name}` is given as `{Self}`, but the input `{Name}` is `{I}`",
    label = "a gradient of another type than its input",
    note = "the gradient of an input `Tensor<T>` is a `Tensor<T>` or `Option<Tensor<T>>` by value, with the same `T` (`Tensor` alone is `Tensor<f32>`); of a list of tensors it is a `Vec` or an array of them"
)]
pub trait NamedGrad<Name, I: ?Sized>: GradFor<I> {}

#[diagnostic::do_not_recommend]
impl<Name, I: ?Sized, G: GradFor<I>> NamedGrad<Name, I> for G {}

/// Entries of an input, erased.
#[doc(hidden)]
pub struct GradEntries(Entries);

impl GradEntries {
    pub(super) fn into_list(self) -> GradList {
        match self.0 {
            Entries::One(grad) => GradList::from_elem(grad, 1),
            Entries::List(grads) => grads,
        }
    }
}

enum Entries {
    /// For a parameter that is one tensor, or an option of one.
    One(Option<AnyTensor>),
    List(GradList),
}

#[diagnostic::do_not_recommend]
impl<T: Float> GradFor<Tensor<T>> for Tensor<T> {
    fn list(self) -> GradEntries {
        GradEntries(Entries::One(Some(T::wrap(self))))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Float> GradFor<Tensor<T>> for Option<Tensor<T>> {
    fn list(self) -> GradEntries {
        GradEntries(Entries::One(self.map(T::wrap)))
    }
}

macro_rules! list_grads {
    ($([$($generics:tt)*] $list:ty, $each:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Float, $($generics)*> GradFor<[Tensor<T>]> for $list {
            fn list(self) -> GradEntries {
                GradEntries(Entries::List(self.into_iter().map($each).collect()))
            }
        }
    )*};
}

list_grads! {
    [] Vec<Tensor<T>>, |grad| Some(T::wrap(grad));
    [] Vec<Option<Tensor<T>>>, |grad| grad.map(T::wrap);
    [const N: usize] [Tensor<T>; N], |grad| Some(T::wrap(grad));
    [const N: usize] [Option<Tensor<T>>; N], |grad| grad.map(T::wrap);
}

/// An integer input that is not marked is told at the input; so nothing is told here.
macro_rules! integers {
    ($($t:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<U: Float> GradFor<Tensor<$t>> for Tensor<U> {
            fn list(self) -> GradEntries {
                GradEntries(Entries::One(None))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<U: Float> GradFor<Tensor<$t>> for Option<Tensor<U>> {
            fn list(self) -> GradEntries {
                GradEntries(Entries::One(None))
            }
        }
    )*};
}

integers! { i32 i64 u8 bool }

impl RawBackward<'_> {
    /// What backward returned for input `group`.
    pub fn give<I: ?Sized, G: GradFor<I>>(&self, group: usize, grad: G) {
        self.give_entries(group, grad.list());
    }

    fn give_entries(&self, group: usize, grads: GradEntries) {
        self.unbroken(|| match grads.0 {
            Entries::One(grad) => self.deliver_one(group, grad),
            Entries::List(grads) => self.deliver(group, grads),
        });
    }

    /// What backward returned for all inputs, where the macro could not see the parts.
    pub fn give_all<I, G: GradsFor<I>>(&self, grads: G, groups: &[usize]) {
        grads.give(self, groups);
    }

    /// What backward returned, unless it is an error.
    pub fn user<R: Fallible<Error: Display>>(&self, returned: R) -> Option<R::Output> {
        returned.result().map_err(|error| self.failed(error.to_string())).ok()
    }
}

/// What backward may return for all inputs together, `I` being a tuple of them.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "what backward returns, `{Self}`, is not one gradient for each tensor input",
    label = "must hold the gradients of `{I}`, in this order",
    note = "return a tuple with one gradient for each tensor input, in the order of forward's parameters"
)]
pub trait GradsFor<I> {
    /// Hands them on one by one.
    fn give(self, raw: &RawBackward<'_>, groups: &[usize]);
}

macro_rules! grads_tuples {
    ($(($($input:ident $grad:ident $position:tt)*))*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($input, $grad: GradFor<$input>),*> GradsFor<($($input,)*)> for ($($grad,)*) {
            fn give(self, raw: &RawBackward<'_>, groups: &[usize]) {
                $(raw.give(groups[$position], self.$position);)*
            }
        }
    )*};
}

grads_tuples! {
    (A A1 0 B B1 1)
    (A A1 0 B B1 1 C C1 2)
    (A A1 0 B B1 1 C C1 2 D D1 3)
    (A A1 0 B B1 1 C C1 2 D D1 3 E E1 4)
    (A A1 0 B B1 1 C C1 2 D D1 3 E E1 4 F F1 5)
    (A A1 0 B B1 1 C C1 2 D D1 3 E E1 4 F F1 5 G G1 6)
    (A A1 0 B B1 1 C C1 2 D D1 3 E E1 4 F F1 5 G G1 6 H H1 7)
    (A A1 0 B B1 1 C C1 2 D D1 3 E E1 4 F F1 5 G G1 6 H H1 7 I I1 8)
    (A A1 0 B B1 1 C C1 2 D D1 3 E E1 4 F F1 5 G G1 6 H H1 7 I I1 8 J J1 9)
    (A A1 0 B B1 1 C C1 2 D D1 3 E E1 4 F F1 5 G G1 6 H H1 7 I I1 8 J J1 9 K K1 10)
    (A A1 0 B B1 1 C C1 2 D D1 3 E E1 4 F F1 5 G G1 6 H H1 7 I I1 8 J J1 9 K K1 10 L L1 11)
    (A A1 0 B B1 1 C C1 2 D D1 3 E E1 4 F F1 5 G G1 6 H H1 7 I I1 8 J J1 9 K K1 10 L L1 11 M M1 12)
    (A A1 0 B B1 1 C C1 2 D D1 3 E E1 4 F F1 5 G G1 6 H H1 7 I I1 8 J J1 9 K K1 10 L L1 11 M M1 12
        N N1 13)
    (A A1 0 B B1 1 C C1 2 D D1 3 E E1 4 F F1 5 G G1 6 H H1 7 I I1 8 J J1 9 K K1 10 L L1 11 M M1 12
        N N1 13 O O1 14)
    (A A1 0 B B1 1 C C1 2 D D1 3 E E1 4 F F1 5 G G1 6 H H1 7 I I1 8 J J1 9 K K1 10 L L1 11 M M1 12
        N N1 13 O O1 14 P P1 15)
}
