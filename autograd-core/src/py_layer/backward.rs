//! The backward of a call: from the gradients of the outputs and what forward saved, to those of the inputs.

use std::any::Any;
use std::cell::{OnceCell, RefCell};
use std::marker::PhantomData;

use smallvec::SmallVec;

use super::call::Called;
use super::inputs::NeedsGrad;
use super::outputs::{Fallible, OwnError, TensorOutput};
use super::saved::{Saved, Unpack};
use super::tuples::each_tuple;
use crate::array::shape::same;
use crate::error::{Error, Result, Source};
use crate::graph::{AnyTensor, Slots, Tensor};
use crate::ops::Float;

/// One backward of a call: the argument of the generated `pull`.
#[doc(hidden)]
pub struct RawBackward<'a> {
    called: Called<'a>,
    /// Whether the gradient of an input tensor is needed.
    wants: &'a dyn Fn(usize) -> bool,
    /// Those of the outputs; some may be absent.
    grads: &'a Slots,
    arena: Arena,
    returned: &'a RefCell<Returned>,
    pub(super) error: OnceCell<Box<Error>>,
}

/// The gradients that backward returned until the first error, if wanted, with the positions of their input tensors.
pub(super) type Returned = SmallVec<[(usize, Option<AnyTensor>); 2]>;

#[doc(hidden)]
pub struct Lent<'a> {
    pub(super) saved: &'a dyn Any,
    pub(super) raw: &'a RawBackward<'a>,
}

pub(super) type PullFn = fn(&RawBackward<'_>, &Lent<'_>);

/// Unpacks what forward saved and calls the generated `pull`; one function for each type that is saved.
pub(super) fn lend_saved<S: Saved>(
    raw: &RawBackward<'_>,
    saved: &mut Unpack<'_>,
    pull: PullFn,
) -> Result<()> {
    S::lend(saved, |saved| pull(raw, &Lent { saved, raw }))
}

impl<'a> RawBackward<'a> {
    #[inline]
    pub(super) fn new(
        called: Called<'a>,
        wants: &'a dyn Fn(usize) -> bool,
        grads: &'a Slots,
        returned: &'a RefCell<Returned>,
    ) -> Self {
        let (arena, error) = Default::default();
        Self { called, wants, grads, arena, returned, error }
    }
}

impl RawBackward<'_> {
    // The vtable, with the drop of all that the backward holds, is instantiated here.
    #[inline(never)]
    pub(super) fn needs(&self) -> &dyn NeedsGrad {
        self
    }

    // Not inlined: otherwise each crate with an op would compile them again.

    #[inline(never)]
    pub(super) fn attrs(&self) -> &dyn Any {
        self.called.attrs()
    }

    /// The position of an output's first tensor, its number of tensors, and the gradients from the first one on.
    #[inline(never)]
    fn output(&self, output: usize) -> (usize, usize, &[Option<AnyTensor>]) {
        let (first, count) = self.called.group(self.called.info.inputs + output);
        (first, count, self.grads.get(first - self.called.input_tensors()..).unwrap_or(&[]))
    }

    #[inline(never)]
    fn keep(&self, zeros: AnyTensor) -> &AnyTensor {
        self.arena.keep(zeros)
    }

    #[inline]
    fn shape(&self, tensor: usize) -> &[usize] {
        let any = || self.grads.iter().flatten().next().map_or(&[][..], AnyTensor::shape);
        self.called.shape(tensor).unwrap_or_else(any)
    }

    /// Takes the gradients that backward returned for input `group`, unless an error occurred before.
    #[inline(never)]
    fn take(&self, group: usize, grads: GradEntries) {
        if self.error.get().is_some() {
            return;
        }
        let (first, count) = self.called.group(group);
        let taken = match grads {
            GradEntries::One(grad) if count == 1 => self.add((group, None), first, grad),
            GradEntries::One(_) => Ok(()),
            GradEntries::List(grads) if grads.len() == count => {
                let mut places = (first..).zip(grads).enumerate();
                places.try_for_each(|(i, (tensor, grad))| self.add((group, Some(i)), tensor, grad))
            }
            GradEntries::List(grads) => Err(Error::GradientCount {
                op: self.called.info.name,
                parameter: self.name((group, None)),
                expected: count,
                found: grads.len(),
                location: self.called.location,
            }),
        };
        if let Err(error) = taken {
            self.failed(error);
        }
    }

    #[inline(always)]
    fn add(
        &self,
        parameter: (usize, Option<usize>),
        tensor: usize,
        grad: Option<AnyTensor>,
    ) -> Result<()> {
        let (wants, location) = ((self.wants)(tensor), self.called.location);
        match grad {
            // If an output's gradient is absent, an input's gradient may depend on that one alone.
            None if wants
                && self.grads.iter().flatten().count() == self.called.output_tensors() =>
            {
                let (op, parameter) = (self.called.info.name, self.name(parameter));
                return Err(Error::GradientMissing { op, parameter, location });
            }
            None => {}
            Some(_) if !wants => {}
            Some(grad) if !same(grad.shape(), self.shape(tensor)) => {
                return Err(Error::GradientShape {
                    op: self.called.info.name,
                    parameter: self.name(parameter),
                    expected: self.shape(tensor).to_vec(),
                    found: grad.shape().to_vec(),
                    line: self.called.info.line_of(parameter.0).map(String::into_boxed_str),
                    location,
                });
            }
            Some(mut grad) => {
                // Backward may have kept a handle, and may change the tensor later.
                grad.unshare();
                self.returned.borrow_mut().push((tensor, Some(grad)));
            }
        }
        Ok(())
    }

    #[cold]
    fn name(&self, (group, position): (usize, Option<usize>)) -> String {
        let name = self.called.info.input_name(group).unwrap_or("an input");
        position.map_or_else(|| name.to_owned(), |position| format!("{name}[{position}]"))
    }

    pub fn gradient<O: TensorOutput>(&self, output: usize) -> Gradient<'_, O> {
        let (first, count, grads) = self.output(output);
        Gradient { raw: self, first, count, grads, output: PhantomData }
    }

    pub fn give<I: ?Sized, G: GradFor<I>>(&self, group: usize, grad: G) {
        self.take(group, grad.entries());
    }

    /// Takes the gradients that backward returned for all inputs, if the macro could not see the parts.
    pub fn give_all<I, G: GradsFor<I>>(&self, grads: G, groups: &[usize]) {
        grads.give(self, groups);
    }

    /// Returns the value that backward returned; keeps its error otherwise.
    pub fn user<R: Fallible<Error: OwnError>>(
        &self,
        returned: R,
        source: impl FnOnce(R::Error) -> Source,
    ) -> Option<R::Output> {
        let (op, location) = (self.called.info.name, self.called.location);
        let own = |error| self.failed(Error::user(op, location, "backward", error, source));
        returned.result().map_err(own).ok()
    }

    #[cold]
    fn failed(&self, error: Error) {
        // The first error is kept.
        let _ = self.error.set(Box::new(error));
    }
}

impl NeedsGrad for RawBackward<'_> {
    fn one(&self, group: usize) -> bool {
        let (first, count) = self.called.group(group);
        count == 1 && (self.wants)(first)
    }

    fn list(&self, group: usize) -> Vec<bool> {
        let (first, count) = self.called.group(group);
        (first..first + count).map(self.wants).collect()
    }
}

#[doc(hidden)]
pub struct Gradient<'r, O> {
    raw: &'r RawBackward<'r>,
    /// The position of the output's first tensor, and its number of tensors.
    first: usize,
    count: usize,
    grads: &'r [Option<AnyTensor>],
    output: PhantomData<fn() -> O>,
}

impl<'r, O: TensorOutput> Gradient<'r, O> {
    pub fn lend<P: GradParam<'r, O>>(&self) -> P {
        P::lend(self)
    }

    fn at<T: Float>(&self, position: usize) -> Option<&'r Tensor<T>> {
        self.grads.get(position)?.as_ref()?.downcast_ref()
    }

    /// The gradient at this position; zeros if it is absent.
    fn full<T: Float>(&self, position: usize) -> Tensor<T> {
        let zeros = || T::filled(self.raw.shape(self.first + position), T::ZERO);
        self.at(position).cloned().unwrap_or_else(zeros)
    }

    fn list<I: 'static>(&self, each: impl Fn(usize) -> I) -> &'r [I] {
        self.raw.arena.keep::<Vec<I>>((0..self.count).map(each).collect())
    }
}

/// Values created to lend them to backward: zeros for absent gradients, and lists.
#[derive(Default)]
struct Arena(OnceCell<Box<Link>>);

struct Link {
    value: Box<dyn Any>,
    next: Arena,
}

impl Arena {
    fn keep<T: 'static>(&self, value: T) -> &T {
        let mut end = self;
        while let Some(link) = end.0.get() {
            end = &link.next;
        }
        let link =
            end.0.get_or_init(|| Box::new(Link { value: Box::new(value), next: Self::default() }));
        link.value.downcast_ref().unwrap_or_else(|| unreachable!("it has just been put there"))
    }
}

#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a gradient parameter of type `{Self}` does not fit its output, which is `{O}`",
    label = "must be the gradient of a `{O}`",
    note = "the gradient of an output `Tensor<T>` is `&Tensor<T>` (zeros where none came) or `Option<&Tensor<T>>`, with the same `T` (`Tensor` alone is `Tensor<f32>`); of a `Vec` or an array of tensors it is `&[Tensor<T>]` or `&[Option<Tensor<T>>]`"
)]
pub trait GradParam<'s, O: TensorOutput>: Sized {
    fn lend(from: &Gradient<'s, O>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<'s, T: Float> GradParam<'s, Tensor<T>> for &'s Tensor<T> {
    fn lend(from: &Gradient<'s, Tensor<T>>) -> Self {
        let zeros = || from.raw.keep(T::wrap(from.full(0))).downcast_ref();
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

/// A gradient that backward may return for an input of type `I`, a tensor or a list of tensors.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a returned gradient of type `{Self}` does not fit its input, which is `{I}`",
    label = "must be the gradient of a `{I}`",
    note = "the gradient of an input `Tensor<T>` is a `Tensor<T>` or `Option<Tensor<T>>` by value, with the same `T` (`Tensor` alone is `Tensor<f32>`); of a list of tensors it is a `Vec` or an array of as many tensors; a `Result` around them is written by this name, not by an alias"
)]
pub trait GradFor<I: ?Sized> {
    /// One entry for each tensor of the input.
    fn entries(self) -> GradEntries;
}

/// An input that may have a gradient of type `G`. `Name` is the input's name in errors.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the gradient of `{Name}` is given as `{G}`, but the input `{Name}` is `{Self}`",
    label = "a gradient of another type than its input",
    note = "the gradient of an input `Tensor<T>` is a `Tensor<T>` or `Option<Tensor<T>>` by value, with the same `T` (`Tensor` alone is `Tensor<f32>`); of a list of tensors it is a `Vec` or an array of as many tensors; write `dy.clone()` for a reference, `dy.cast::<T>()` for another element type"
)]
pub trait NamedGrad<Name, G> {
    fn entries(grad: [G; 1]) -> GradEntries;
}

#[diagnostic::do_not_recommend]
impl<Name, I: ?Sized, G: GradFor<I>> NamedGrad<Name, G> for I {
    fn entries([grad]: [G; 1]) -> GradEntries {
        grad.entries()
    }
}

#[doc(hidden)]
pub enum GradEntries {
    /// For a parameter that is one tensor, or an option of one.
    One(Option<AnyTensor>),
    List(SmallVec<[Option<AnyTensor>; 1]>),
}

fn entries_of<T: Float, G: Into<Option<Tensor<T>>>>(
    list: impl IntoIterator<Item = G>,
) -> GradEntries {
    GradEntries::List(list.into_iter().map(|grad| grad.into().map(T::wrap)).collect())
}

macro_rules! grads {
    ($([$($generics:tt)*] $grad:ty => $input:ty, $this:ident => $entries:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> GradFor<$input> for $grad {
            fn entries(self) -> GradEntries {
                let $this = self;
                $entries
            }
        }
    )*};
}

grads! {
    [T: Float] Tensor<T> => Tensor<T>, grad => GradEntries::One(Some(T::wrap(grad)));
    [T: Float] Option<Tensor<T>> => Tensor<T>, grad => GradEntries::One(grad.map(T::wrap));
    [T: Float] Vec<Tensor<T>> => [Tensor<T>], list => entries_of(list);
    [T: Float] Vec<Option<Tensor<T>>> => [Tensor<T>], list => entries_of(list);
    [T: Float, const N: usize] [Tensor<T>; N] => [Tensor<T>], list => entries_of(list);
    [T: Float, const N: usize] [Option<Tensor<T>>; N] => [Tensor<T>], list => entries_of(list);
    [T: Float, const N: usize] Vec<Tensor<T>> => [Tensor<T>; N], list => entries_of(list);
    [T: Float, const N: usize] Vec<Option<Tensor<T>>> => [Tensor<T>; N], list => entries_of(list);
    [T: Float, const N: usize] [Tensor<T>; N] => [Tensor<T>; N], list => entries_of(list);
    [T: Float, const N: usize] [Option<Tensor<T>>; N] => [Tensor<T>; N], list => entries_of(list);
    // A field of `Grads`, whose type was checked against the input at the field.
    [I: ?Sized] GradEntries => I, entries => entries;
    // An integer input that is not marked is reported at the input, so nothing is reported here.
    [T: Float] Tensor<T> => Tensor<i32>, _grad => GradEntries::One(None);
    [T: Float] Option<Tensor<T>> => Tensor<i32>, _grad => GradEntries::One(None);
    [T: Float] Tensor<T> => Tensor<i64>, _grad => GradEntries::One(None);
    [T: Float] Option<Tensor<T>> => Tensor<i64>, _grad => GradEntries::One(None);
    [T: Float] Tensor<T> => Tensor<u8>, _grad => GradEntries::One(None);
    [T: Float] Option<Tensor<T>> => Tensor<u8>, _grad => GradEntries::One(None);
    [T: Float] Tensor<T> => Tensor<bool>, _grad => GradEntries::One(None);
    [T: Float] Option<Tensor<T>> => Tensor<bool>, _grad => GradEntries::One(None);
}

/// A type that backward may return for all inputs together; `I` is a tuple of the inputs.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "what backward returns, `{Self}`, is not one gradient for each tensor input",
    label = "must hold the gradients of `{I}`, in this order",
    note = "return a tuple with one gradient for each tensor input, in the order of forward's parameters"
)]
pub trait GradsFor<I> {
    fn give(self, to: &RawBackward<'_>, groups: &[usize]);
}

macro_rules! grads_tuple {
    () => {};
    ($only:tt) => {};
    ($(($input:ident $grad:ident $position:tt))*) => {
        #[diagnostic::do_not_recommend]
        impl<$($input, $grad: GradFor<$input>),*> GradsFor<($($input,)*)> for ($($grad,)*) {
            fn give(self, to: &RawBackward<'_>, groups: &[usize]) {
                $(to.give(groups[$position], self.$position);)*
            }
        }
    };
}

each_tuple! { grads_tuple }
