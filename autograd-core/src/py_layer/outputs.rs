//! The outputs of forward, how their tensors are attached to the node, and those that a context call marks.

use std::error::Error as StdError;
use std::fmt::Display;
use std::sync::Arc;

use smallvec::SmallVec;

use super::inputs::{InputTensors, contains};
use super::tuples::each_tuple;
use crate::error::Source;
use crate::graph::{AnyTensor, Element, Lost, NodeRef, Tensor, TensorHandle, no_derivative};
use crate::ops::Float;

/// A tensor, an array or a `Vec` of tensors, with elements of a float type.
#[doc(hidden)]
pub trait TensorOutput {
    fn visit<'o>(&'o mut self, visitor: &mut Visitor<'o>);
}

#[diagnostic::do_not_recommend]
impl<T: Float> TensorOutput for Tensor<T> {
    fn visit<'o>(&'o mut self, visitor: &mut Visitor<'o>) {
        visitor.one(T::handle_mut(self));
    }
}

/// Outputs, and a function that visits their tensors.
#[diagnostic::do_not_recommend]
impl<O, V: for<'o> Fn(&'o mut O, &mut Visitor<'o>)> TensorOutput for (O, V) {
    fn visit<'o>(&'o mut self, visitor: &mut Visitor<'o>) {
        (self.1)(&mut self.0, visitor);
    }
}

#[diagnostic::do_not_recommend]
impl<T: Float> TensorOutput for Vec<Tensor<T>> {
    fn visit<'o>(&'o mut self, visitor: &mut Visitor<'o>) {
        visitor.group();
        self.iter_mut().for_each(|tensor| visitor.push(T::handle_mut(tensor)));
    }
}

#[diagnostic::do_not_recommend]
impl<T: Float, const N: usize> TensorOutput for [Tensor<T>; N] {
    fn visit<'o>(&'o mut self, visitor: &mut Visitor<'o>) {
        visitor.group();
        self.iter_mut().for_each(|tensor| visitor.push(T::handle_mut(tensor)));
    }
}

#[doc(hidden)]
pub trait PlainTensors {
    fn each(&self, see: &mut dyn FnMut(*const ()));
}

#[diagnostic::do_not_recommend]
impl<T: Element> PlainTensors for Tensor<T> {
    fn each(&self, see: &mut dyn FnMut(*const ())) {
        see(self.address());
    }
}

macro_rules! plain_lists {
    ($([$($generics:tt)*] $list:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<O: PlainTensors, $($generics)*> PlainTensors for $list {
            fn each(&self, see: &mut dyn FnMut(*const ())) {
                self.iter().for_each(|output| output.each(see));
            }
        }
    )*};
}

plain_lists! { [] Vec<O>; [] Option<O>; [const N: usize] [O; N]; }

/// A plain output: tensors have the inherent method, other types that of [`NoTensors`].
#[doc(hidden)]
pub struct PlainOutput<'a, O>(pub &'a O);

impl<O: PlainTensors> PlainOutput<'_, O> {
    pub fn __show(&self, visitor: &mut Visitor<'_>) {
        visitor.plain(self.0);
    }
}

/// The method of all other types: there is no tensor to report.
#[doc(hidden)]
pub trait NoTensors {
    fn __show(&self, _: &mut Visitor<'_>) {}
}

impl<O> NoTensors for PlainOutput<'_, O> {}

/// Collects the outputs of a call, and lends their tensors to the code that ends the call.
#[doc(hidden)]
#[derive(Default)]
pub struct Visitor<'o> {
    /// The tensors with a gradient, output by output.
    tensors: SmallVec<[&'o mut dyn TensorHandle; 2]>,
    outputs: usize,
    /// The positions where the tensors of each output begin, without the first output.
    starts: Vec<u32>,
    /// The addresses of tensors without a gradient, which hold integers or bools.
    constants: Vec<*const ()>,
}

impl<'o> Visitor<'o> {
    // Not inlined, so that a crate of ops does not compile them again.

    #[inline(never)]
    fn one(&mut self, tensor: &'o mut dyn TensorHandle) {
        self.begin();
        self.tensors.push(tensor);
    }

    #[inline(never)]
    fn group(&mut self) {
        self.begin();
    }

    #[inline]
    fn begin(&mut self) {
        if self.outputs > 0 {
            let start = self.tensors.len();
            self.starts.push(u32::try_from(start).unwrap_or(u32::MAX));
        }
        self.outputs += 1;
    }

    #[inline(never)]
    fn push(&mut self, tensor: &'o mut dyn TensorHandle) {
        self.tensors.push(tensor);
    }

    /// Adds a plain output. Its tensors have no gradient, and may be marked so all the same.
    pub fn plain<O: PlainTensors>(&mut self, output: &O) {
        output.each(&mut |address| self.constants.push(address));
    }

    /// All tensors, and the positions where those of each output end.
    pub(super) fn all(&self) -> (&[&'o mut dyn TensorHandle], impl Iterator<Item = u32>) {
        let last = (self.outputs > 0).then_some(self.tensors.len() as u32);
        (&self.tensors, self.starts.iter().copied().chain(last))
    }
}

impl Visitor<'_> {
    #[inline]
    pub(super) fn only(&self) -> Option<&dyn TensorHandle> {
        match (&self.tensors[..], self.outputs) {
            ([tensor], 1) => Some(&**tensor),
            _ => None,
        }
    }

    /// The first tensor with this address among those with a gradient, and its position.
    #[inline]
    pub(super) fn find(&self, address: *const ()) -> Option<(usize, &dyn TensorHandle)> {
        let mut tensors = self.tensors.iter().map(|tensor| &**tensor as _).enumerate();
        tensors.find(|(_, tensor): &(_, &dyn TensorHandle)| tensor.address() == address)
    }

    pub(super) fn is_output(&self, address: *const ()) -> bool {
        self.find(address).is_some() || self.constants.contains(&address)
    }

    pub(super) fn to_tensors(&self) -> Vec<AnyTensor> {
        self.tensors.iter().map(|tensor| tensor.any()).collect()
    }

    /// Makes the tensors outputs of a node. A tensor that somebody else holds, such as an input, does not
    /// change: the output is a new tensor.
    #[inline(always)]
    pub(super) fn attach(&mut self, node: NodeRef) {
        let Some((last, others)) = self.tensors.split_last_mut() else { return };
        let mut slot = 0;
        for tensor in others {
            tensor.attach(node.clone(), slot);
            slot += 1;
        }
        last.attach(node, slot);
    }

    /// As [`attach`](Self::attach), but the marked tensors stay outside the graph, as separate tensors.
    #[cold]
    pub(super) fn attach_unmarked(
        &mut self,
        node: &NodeRef,
        marked: &[AnyTensor],
        inputs: &[InputTensors<'_>],
    ) {
        let mut before = Vec::new();
        for (slot, tensor) in (0..).zip(&mut self.tensors) {
            let address = tensor.address();
            if marked.iter().any(|marked| marked.address() == address) {
                let lost = no_derivative(node.name(), node.location);
                release(&mut **tensor, &before, inputs, lost);
            } else {
                tensor.attach(node.clone(), slot);
            }
            before.push(address);
        }
    }

    /// Leaves the tensors outside the graph. An input, a tensor with its own graph and an earlier output do
    /// not change: the output is a new tensor.
    pub(super) fn release(&mut self, inputs: &[InputTensors<'_>], lost: Lost) {
        let mut before: SmallVec<[*const (); 2]> = SmallVec::new();
        for tensor in &mut self.tensors {
            let address = tensor.address();
            release(&mut **tensor, &before, inputs, lost);
            before.push(address);
        }
    }
}

fn release(
    tensor: &mut dyn TensorHandle,
    before: &[*const ()],
    inputs: &[InputTensors<'_>],
    lost: Lost,
) {
    let address = tensor.address();
    let is_known =
        before.contains(&address) || inputs.iter().any(|input| contains(*input, address));
    if is_known || !tensor.stop_gradient() || tensor.has_producer() {
        tensor.become_alias();
    }
    tensor.store_lost(tensor.lost().and(lost));
}

/// Tensors that a context call marks: a tensor, or a tuple, slice or array of them. An example is at
/// [`mark_non_differentiable`](crate::ForwardContext::mark_non_differentiable).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be marked",
    label = "not a reference to a tensor, nor a tuple of such",
    note = "give `&y`, or `(&a, &b)` for several at once"
)]
pub trait Outputs {
    #[doc(hidden)]
    fn collect(self, into: &mut dyn FnMut(AnyTensor));
}

/// The tensors of a reference or of a tuple, as a list; the macro calls it too.
pub fn marked(tensors: impl Outputs) -> Vec<AnyTensor> {
    let mut marked = Vec::new();
    tensors.collect(&mut |tensor| marked.push(tensor));
    marked
}

#[diagnostic::do_not_recommend]
impl<T: Element> Outputs for &Tensor<T> {
    fn collect(self, into: &mut dyn FnMut(AnyTensor)) {
        into(T::wrap(self.clone()));
    }
}

#[diagnostic::do_not_recommend]
impl<O: Outputs> Outputs for Option<O> {
    fn collect(self, into: &mut dyn FnMut(AnyTensor)) {
        self.into_iter().for_each(|outputs| outputs.collect(into));
    }
}

macro_rules! outputs_lists {
    ($([$($generics:tt)*] $list:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Element, $($generics)*> Outputs for $list {
            fn collect(self, into: &mut dyn FnMut(AnyTensor)) {
                self.iter().for_each(|tensor| into(T::wrap(Tensor::clone(tensor))));
            }
        }
    )*};
}

outputs_lists! {
    [] &[Tensor<T>];
    [] &[&Tensor<T>];
    [] &Vec<Tensor<T>>;
    [const N: usize] &[Tensor<T>; N];
    [const N: usize] [&Tensor<T>; N];
}

macro_rules! outputs_tuple {
    () => {};
    ($(($name:ident $other:ident $position:tt))*) => {
        #[diagnostic::do_not_recommend]
        impl<$($name: Outputs),*> Outputs for ($($name,)*) {
            fn collect(self, into: &mut dyn FnMut(AnyTensor)) {
                $(self.$position.collect(into);)*
            }
        }
    };
}

each_tuple! { outputs_tuple }

/// The return type of a forward, a backward or a `jvp` that may fail.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the `Result` of the standard library",
    label = "expected `Result<_, E>`",
    note = "if another type is called `Result` too, import it under another name, or write `std::result::Result` here"
)]
pub trait Fallible {
    type Output;
    type Error;
    fn result(self) -> Result<Self::Output, Self::Error>;
    fn output(&self) -> Option<&Self::Output>;
    fn of(result: Result<Self::Output, Self::Error>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<O, E> Fallible for Result<O, E> {
    type Output = O;
    type Error = E;

    #[inline]
    fn result(self) -> Self {
        self
    }

    #[inline]
    fn output(&self) -> Option<&O> {
        self.as_ref().ok()
    }

    #[inline]
    fn of(result: Self) -> Self {
        result
    }
}

/// The error that backward or `jvp` returns.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "an op cannot return the error `{Self}`: it has no `std::fmt::Display`",
    label = "the error of this `Result` cannot be displayed",
    note = "implement `std::fmt::Display` and `std::error::Error` for it; it is then the `source()` of the error that a backward through the op returns"
)]
pub trait OwnError: Display + 'static {}

#[diagnostic::do_not_recommend]
impl<E: Display + 'static> OwnError for E {}

/// Keeps an error of the user, if it can be kept: the inherent method is found then, else that of [`NotKept`].
#[doc(hidden)]
pub struct Kept<E>(pub E);

impl<E: StdError + Send + Sync + 'static> Kept<E> {
    #[cold]
    pub fn source(self) -> Source {
        Some(Arc::new(self.0))
    }
}

#[doc(hidden)]
pub trait NotKept: Sized {
    #[cold]
    fn source(self) -> Source {
        None
    }
}

impl<E> NotKept for Kept<E> {}

/// A placeholder for a missing value in an op that did not compile.
#[must_use]
pub fn stand_in<T>() -> T {
    unreachable!("what was not proven did not compile")
}
