//! Tensor outputs: what forward returns, and how it is attached to the node.

use smallvec::SmallVec;

use super::call::{Layout, Tensors};
use super::inputs::{TensorInput, contains};
use crate::graph::{AnyTensor, Element, Handle, Lost, NodeRef, Tensor, no_derivative};
use crate::ops::Float;

/// An output of a layer that has a gradient: a tensor, an array or a `Vec` of tensors, with
/// elements of a float type.
#[doc(hidden)]
pub trait TensorOutput {
    /// Shows each tensor to the visitor.
    fn visit(&mut self, visitor: &mut Visitor<'_>);
}

#[diagnostic::do_not_recommend]
impl<T: Float> TensorOutput for Tensor<T> {
    fn visit(&mut self, visitor: &mut Visitor<'_>) {
        visitor.group(1);
        visitor.see(T::handle_mut(self));
    }
}

#[diagnostic::do_not_recommend]
impl<T: Float> TensorOutput for Vec<Tensor<T>> {
    fn visit(&mut self, visitor: &mut Visitor<'_>) {
        visitor.group(self.len());
        self.iter_mut().for_each(|tensor| visitor.see(T::handle_mut(tensor)));
    }
}

#[diagnostic::do_not_recommend]
impl<T: Float, const N: usize> TensorOutput for [Tensor<T>; N] {
    fn visit(&mut self, visitor: &mut Visitor<'_>) {
        visitor.group(N);
        self.iter_mut().for_each(|tensor| visitor.see(T::handle_mut(tensor)));
    }
}

/// Tensors among the plain outputs.
#[doc(hidden)]
pub trait PlainTensors {
    /// Shows where each is.
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

/// A plain output to be shown: the inherent method is there for tensors, the one of
/// [`NoTensors`] for all else.
#[doc(hidden)]
pub struct PlainOutput<'a, O>(pub &'a O);

impl<O: PlainTensors> PlainOutput<'_, O> {
    /// Shadows the method of [`NoTensors`].
    pub fn show(&self, visitor: &mut Visitor<'_>) {
        visitor.plain(self.0);
    }
}

/// The same for all other types: nothing to show.
#[doc(hidden)]
pub trait NoTensors {
    /// Shows nothing.
    fn show(&self, _: &mut Visitor<'_>) {}
}

impl<O> NoTensors for PlainOutput<'_, O> {}

/// Goes over the tensor outputs of a call.
#[doc(hidden)]
pub struct Visitor<'a>(Task<'a>);

enum Task<'a> {
    Look(&'a mut Layout, &'a mut Tensors),
    Attach(Attach<'a>),
    Release(Release<'a>),
    Keep(&'a mut Vec<AnyTensor>),
}

/// What is done to the outputs once the node is there.
struct Attach<'a> {
    /// None once the last output has it.
    node: Option<NodeRef>,
    total: u32,
    slot: u32,
    /// Outputs that shall have no gradient, and who is who; `None` where there are none.
    marked: Option<&'a (Tensors, &'a [AnyTensor])>,
}

impl Visitor<'_> {
    fn group(&mut self, count: usize) {
        if let Task::Look(layout, _) = &mut self.0 {
            layout.push_count(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// One tensor output.
    pub fn output<O: TensorOutput>(&mut self, output: &mut O) {
        output.visit(self);
    }

    /// A plain output: where it is made of tensors, which then have no gradient, they are outputs
    /// all the same, and may be marked as such.
    pub fn plain<O: PlainTensors>(&mut self, output: &O) {
        if let Task::Look(_, tensors) = &mut self.0 {
            output.each(&mut |address| tensors.add_constant(address));
        }
    }

    fn see(&mut self, tensor: &mut dyn Handle) {
        match &mut self.0 {
            Task::Look(layout, tensors) => {
                tensors.add_output(tensor.address());
                layout.push_shape(tensor.shape());
            }
            Task::Attach(attach) => attach.one(tensor),
            Task::Release(release) => release.one(tensor),
            Task::Keep(kept) => kept.push(tensor.any()),
        }
    }
}

impl Attach<'_> {
    fn one(&mut self, tensor: &mut dyn Handle) {
        let slot = self.slot;
        self.slot += 1;
        // The last output takes the node itself: one count less up and down.
        let node = if self.slot == self.total { self.node.take() } else { self.node.clone() };
        match node {
            // A tensor that somebody else holds, an input above all, stays as it is: the output is
            // a new one.
            Some(node) if self.is_marked(slot) => self.leave(tensor, slot, &node),
            Some(node) => tensor.attach(node, slot),
            None => {}
        }
    }

    #[inline]
    fn is_marked(&self, slot: u32) -> bool {
        self.marked.is_some_and(|(tensors, marked)| {
            let address = tensors.outputs().get(slot as usize);
            marked.iter().any(|marked| Some(&marked.address().addr()) == address)
        })
    }

    /// A marked output stays outside the graph, as a tensor of its own.
    #[cold]
    fn leave(&self, tensor: &mut dyn Handle, slot: u32, node: &NodeRef) {
        let Some((tensors, _)) = self.marked else { return };
        let (before, rest) = tensors.outputs().split_at(slot as usize);
        let again = rest.first().is_some_and(|address| before.contains(address));
        let free = tensor.stop_gradient() && !tensor.has_producer();
        if again || !free || tensors.input(tensor.address()).is_some() {
            tensor.become_alias();
        }
        tensor.store_lost(tensor.lost().and(no_derivative(node.name(), node.location)));
    }
}

/// What is done to the outputs where nothing is recorded.
struct Release<'a> {
    inputs: &'a [&'a dyn TensorInput],
    before: SmallVec<[*const (); 2]>,
    lost: Lost,
}

impl Release<'_> {
    /// An input, a tensor with a graph of its own and one that came before stay as they are: the
    /// output is a new tensor.
    fn one(&mut self, tensor: &mut dyn Handle) {
        let known = self.is_known(tensor.address());
        if known || !tensor.stop_gradient() || tensor.has_producer() {
            tensor.become_alias();
        }
        tensor.store_lost(tensor.lost().and(self.lost));
    }

    /// Whether the tensor with this address is an input or came before.
    fn is_known(&mut self, address: *const ()) -> bool {
        let known = self.before.contains(&address)
            || self.inputs.iter().any(|input| contains(*input, address));
        self.before.push(address);
        known
    }
}

/// Goes over the outputs of a call; shows them to a visitor.
pub(super) type Visit<'a> = dyn FnMut(&mut Visitor<'_>) + 'a;

/// What there is; counts and shapes go to the layout.
pub(super) fn look(visit: &mut Visit<'_>, layout: &mut Layout, tensors: &mut Tensors) {
    visit(&mut Visitor(Task::Look(layout, tensors)));
}

/// The outputs as they are now.
pub(super) fn kept(visit: &mut Visit<'_>) -> Vec<AnyTensor> {
    let mut kept = Vec::new();
    visit(&mut Visitor(Task::Keep(&mut kept)));
    kept
}

/// Makes them outputs of a node.
pub(super) fn attach(
    visit: &mut Visit<'_>,
    node: NodeRef,
    count: usize,
    marked: Option<&(Tensors, &[AnyTensor])>,
) {
    let total = u32::try_from(count).unwrap_or(u32::MAX);
    let node = Some(node);
    visit(&mut Visitor(Task::Attach(Attach { node, total, slot: 0, marked })));
}

/// Makes them tensors of their own, outside the graph.
pub(super) fn release(visit: &mut Visit<'_>, inputs: &[&dyn TensorInput], lost: Lost) {
    visit(&mut Visitor(Task::Release(Release { inputs, before: SmallVec::new(), lost })));
}
