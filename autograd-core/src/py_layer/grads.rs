//! Gradients at the boundary to user code: backward's parameters, and what it returns.

use std::any::Any;
use std::cell::OnceCell;
use std::marker::PhantomData;

use smallvec::SmallVec;

use super::called::Called;
use super::outputs::TensorOutput;
use super::tuples::each_tuple;
use crate::graph::{AnyTensor, Slots, Tensor};
use crate::ops::Float;

/// The gradients of a node's outputs: they stay where they are while the node is visited.
pub(super) struct Came<'a> {
    pub(super) called: Called<'a>,
    grads: Slots,
    made: Made,
}

impl<'a> Came<'a> {
    pub(super) fn new(called: Called<'a>, grads: Slots) -> Self {
        Self { called, grads, made: Made::default() }
    }

    // These stay calls: inlined, they would be compiled again in each crate with an op.

    /// The first tensor of an output, and how many they are.
    #[inline(never)]
    fn group(&self, output: usize) -> (usize, usize) {
        self.called.group(self.called.info.inputs + output)
    }

    /// The gradient of a tensor, if one came.
    #[inline(never)]
    fn at(&self, tensor: usize) -> Option<&AnyTensor> {
        self.grads.get(tensor.checked_sub(self.called.edges.len())?)?.as_ref()
    }

    #[inline]
    pub(super) fn shape(&self, tensor: usize) -> &[usize] {
        let any = || self.grads.iter().flatten().next().map_or(&[][..], AnyTensor::shape);
        self.called.shape(tensor).unwrap_or_else(any)
    }

    /// A gradient that did not come, lent.
    #[inline(never)]
    fn lend(&self, zeros: AnyTensor) -> &AnyTensor {
        self.made.keep(zeros)
    }
}

/// The gradients of one output.
#[doc(hidden)]
pub struct Gradient<'r, O> {
    came: &'r Came<'r>,
    /// The first of the output's tensors, and how many they are.
    group: (usize, usize),
    output: PhantomData<fn() -> O>,
}

impl<'r, O: TensorOutput> Gradient<'r, O> {
    pub(super) fn new(came: &'r Came<'_>, output: usize) -> Self {
        Self { came, group: came.group(output), output: PhantomData }
    }

    pub fn lend<P: GradParam<'r, O>>(&self) -> P {
        P::lend(self)
    }

    /// The one at this position, if it came.
    fn at<T: Float>(&self, position: usize) -> Option<&'r Tensor<T>> {
        self.came.at(self.group.0 + position)?.downcast_ref()
    }

    /// Zeros where none came.
    fn full<T: Float>(&self, position: usize) -> Tensor<T> {
        let zeros = || T::filled(self.came.shape(self.group.0 + position), T::ZERO);
        self.at(position).cloned().unwrap_or_else(zeros)
    }

    /// All of a list, lent.
    fn list<I: 'static>(&self, each: impl Fn(usize) -> I) -> &'r [I] {
        self.came.made.keep::<Vec<I>>((0..self.group.1).map(each).collect())
    }
}

/// What is lent to backward and was not there: zeros, and lists.
#[derive(Default)]
struct Made(OnceCell<Box<Link>>);

struct Link {
    made: Box<dyn Any>,
    next: Made,
}

impl Made {
    fn keep<T: 'static>(&self, made: T) -> &T {
        let mut end = self;
        while let Some(link) = end.0.get() {
            end = &link.next;
        }
        let link =
            end.0.get_or_init(|| Box::new(Link { made: Box::new(made), next: Self::default() }));
        link.made.downcast_ref().unwrap_or_else(|| unreachable!("it has just been put there"))
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
    /// Lent for the time of the visit.
    fn lend(from: &Gradient<'s, O>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<'s, T: Float> GradParam<'s, Tensor<T>> for &'s Tensor<T> {
    fn lend(from: &Gradient<'s, Tensor<T>>) -> Self {
        let zeros = || from.came.lend(T::wrap(from.full(0))).downcast_ref();
        let there = from.at(0).or_else(zeros);
        there.unwrap_or_else(|| unreachable!("it is of the output's own type"))
    }
}

#[diagnostic::do_not_recommend]
impl<'s, T: Float> GradParam<'s, Tensor<T>> for Option<&'s Tensor<T>> {
    fn lend(from: &Gradient<'s, Tensor<T>>) -> Self {
        from.at(0)
    }
}

macro_rules! list_params {
    ($([$($generics:tt)*] $output:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<'s, T: Float, $($generics)*> GradParam<'s, $output> for &'s [Tensor<T>] {
            fn lend(from: &Gradient<'s, $output>) -> Self {
                from.list(|position| from.full(position))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<'s, T: Float, $($generics)*> GradParam<'s, $output> for &'s [Option<Tensor<T>>] {
            fn lend(from: &Gradient<'s, $output>) -> Self {
                from.list(|position| from.at(position).cloned())
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

/// What takes the gradients that backward returned.
#[doc(hidden)]
pub trait GradSink {
    /// That of input `group`, which is one tensor.
    fn one(&self, group: usize, grad: AnyTensor);
    /// Those of input `group`.
    fn entries(&self, group: usize, grads: GradEntries);
}

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
    /// Hands them on to input `group`.
    fn hand_to(self, to: &dyn GradSink, group: usize)
    where
        Self: Sized,
    {
        to.entries(group, self.list());
    }
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
pub struct GradEntries(pub(super) Entries);

impl GradEntries {
    pub(super) fn into_list(self) -> GradList {
        match self.0 {
            Entries::One(grad) => GradList::from_elem(grad, 1),
            Entries::List(grads) => grads,
        }
    }
}

pub(super) enum Entries {
    /// For a parameter that is one tensor, or an option of one.
    One(Option<AnyTensor>),
    List(GradList),
}

#[diagnostic::do_not_recommend]
impl<T: Float> GradFor<Tensor<T>> for Tensor<T> {
    fn list(self) -> GradEntries {
        GradEntries(Entries::One(Some(T::wrap(self))))
    }
    fn hand_to(self, to: &dyn GradSink, group: usize) {
        to.one(group, T::wrap(self));
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

/// An integer input that is not marked is reported at the input, so nothing is reported here.
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

/// What backward may return for all inputs together, `I` being a tuple of them.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "what backward returns, `{Self}`, is not one gradient for each tensor input",
    label = "must hold the gradients of `{I}`, in this order",
    note = "return a tuple with one gradient for each tensor input, in the order of forward's parameters"
)]
pub trait GradsFor<I> {
    fn give(self, to: &dyn GradSink, groups: &[usize]);
}

macro_rules! grads_tuple {
    () => {};
    ($only:tt) => {};
    ($(($input:ident $grad:ident $position:tt))*) => {
        #[diagnostic::do_not_recommend]
        impl<$($input, $grad: GradFor<$input>),*> GradsFor<($($input,)*)> for ($($grad,)*) {
            fn give(self, to: &dyn GradSink, groups: &[usize]) {
                $(self.$position.hand_to(to, groups[$position]);)*
            }
        }
    };
}

each_tuple! { grads_tuple }
