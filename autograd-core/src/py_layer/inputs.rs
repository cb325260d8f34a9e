//! Tensor inputs: what forward takes, and how edges are drawn from it.

use std::panic::Location;

use super::info::Info;
use super::layout::Inputs;
use super::rules::LayerRules;
use crate::graph::{AnyTensor, Element, ForwardMode, Handle, Lost, Protected, Tensor};
use crate::ops::Float;

/// A tensor input of a layer: a tensor, an optional tensor or a list of tensors.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor input",
    label = "not a tensor input of this library",
    note = "a tensor input is `&Tensor<T>`, `Option<&Tensor<T>>`, `&[Tensor<T>]`, `&[&Tensor<T>]` or `[&Tensor<T>; N]`, with autograd_core's `Tensor`",
    note = "if another type is called `Tensor`, `Option` or `Vec` too, import it under another name: `use other::Option as OtherOption`"
)]
#[allow(private_interfaces, reason = "what notes read is no part of the public interface")]
pub trait TensorInput {
    /// Shows each tensor to the collector.
    fn collect(&self, collector: &mut Collector<'_>);
    /// Whether one of its tensors wants a gradient.
    fn wants_gradient(&self) -> bool;
    /// The tensor, if it is declared as one.
    fn single(&self) -> Option<&dyn Handle> {
        None
    }
}

/// A tensor input that can be differentiated: its elements are of a float type.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor input",
    label = "not a tensor input of this library",
    note = "a tensor input is `&Tensor<T>`, `Option<&Tensor<T>>`, `&[Tensor<T>]`, `&[&Tensor<T>]` or `[&Tensor<T>; N]`, with autograd_core's `Tensor`",
    note = "if another type is called `Tensor`, `Option` or `Vec` too, import it under another name: `use other::Option as OtherOption`"
)]
pub trait DifferentiableInput: TensorInput {}

macro_rules! tensor_inputs {
    ($([$($generics:tt)*] $input:ty, $this:ident => $tensors:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Element, $($generics)*> TensorInput for $input {
            fn collect(&self, collector: &mut Collector<'_>) {
                let $this = self;
                for tensor in $tensors {
                    collector.see(T::handle(tensor));
                }
            }

            fn wants_gradient(&self) -> bool {
                let $this = self;
                $tensors.into_iter().any(|tensor| !tensor.stop_gradient())
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Float, $($generics)*> DifferentiableInput for $input {}
    )*};
}

tensor_inputs! {
    [] Option<&Tensor<T>>, this => this.iter().copied();
    [] &[Tensor<T>], this => this.iter();
    [] &[&Tensor<T>], this => this.iter().copied();
    [const N: usize] [&Tensor<T>; N], this => this.iter().copied();
    [const N: usize] &[Tensor<T>; N], this => this.iter();
    [const N: usize] &[&Tensor<T>; N], this => this.iter().copied();
    [] &Vec<Tensor<T>>, this => this.iter();
}

#[diagnostic::do_not_recommend]
#[allow(private_interfaces, reason = "as in the trait")]
impl<T: Element> TensorInput for &Tensor<T> {
    fn collect(&self, collector: &mut Collector<'_>) {
        collector.see(T::handle(self));
    }

    fn wants_gradient(&self) -> bool {
        !self.stop_gradient()
    }

    fn single(&self) -> Option<&dyn Handle> {
        Some(T::handle(self))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Float> DifferentiableInput for &Tensor<T> {}

/// Goes over the tensors of an input.
#[doc(hidden)]
pub struct Collector<'a>(Task<'a>);

enum Task<'a> {
    /// Is the tensor with this address among them?
    Find(*const (), &'a mut bool),
    /// Which of them want a gradient?
    Each(&'a mut Vec<bool>),
    /// Keep them.
    Keep(&'a mut Vec<AnyTensor>),
    /// What has a result lost that is computed of them?
    Lost(&'a mut Lost, &'static str, &'static Location<'static>, bool),
    /// Protect them.
    Protect(&'static Info, usize),
    /// Which version has the one with this address?
    Version(*const (), &'a mut u32),
    /// Note addresses.
    Address(&'a mut Inputs, u16),
    /// Note addresses and shapes, draw edges, protect them.
    Edges(&'a mut Inputs, u16, &'static Info),
}

/// Notes of all inputs in one go, before forward runs.
pub(super) fn note(noted: &mut Inputs, inputs: &[&dyn TensorInput], rules: &'static LayerRules) {
    for (position, input) in inputs.iter().enumerate() {
        let group = u16::try_from(position).unwrap_or(u16::MAX);
        let before = noted.edges.len();
        let task = if rules.info.is_differentiable(position) {
            Task::Edges(noted, group, rules.info)
        } else {
            Task::Address(noted, group)
        };
        input.collect(&mut Collector(task));
        let count = noted.edges.len() - before;
        noted.layout.push_count(u32::try_from(count).unwrap_or(u32::MAX));
    }
    keep_inputs(noted, inputs, rules);
}

/// Keeps the inputs where `jvp` may be called.
fn keep_inputs(noted: &mut Inputs, inputs: &[&dyn TensorInput], rules: &LayerRules) {
    if !rules.has_jvp || !ForwardMode::is_on() {
        return;
    }
    let info = rules.info;
    let positions = (0..inputs.len()).filter(|&position| info.is_differentiable(position));
    let tensors = positions.flat_map(|position| primals(inputs[position]));
    let with_version = tensors.map(|tensor| {
        let version = tensor.version();
        (tensor, version)
    });
    noted.primals = Some(with_version.collect());
}

impl Collector<'_> {
    fn see(&mut self, tensor: &dyn Handle) {
        match &mut self.0 {
            Task::Find(address, found) => **found |= tensor.address() == *address,
            Task::Each(each) => each.push(!tensor.stop_gradient()),
            Task::Keep(kept) => kept.push(tensor.any()),
            Task::Lost(lost, op, at, differentiable) => {
                **lost = lost.and(tensor.lost_by(op, at, *differentiable));
            }
            Task::Protect(layer, position) => tensor.protect(*layer, *position),
            Task::Version(address, version) => {
                if tensor.address() == *address {
                    **version = tensor.version();
                }
            }
            Task::Address(call, group) => call.addresses.add(tensor.address(), *group),
            Task::Edges(call, group, layer) => {
                tensor.protect(*layer, usize::from(*group));
                call.add(*group, tensor);
            }
        }
    }
}

/// What the outputs of a call that is not recorded have lost.
pub(super) fn lost(
    info: &Info,
    inputs: &[&dyn TensorInput],
    at: &'static Location<'static>,
) -> Lost {
    let mut lost = Lost::NONE;
    for (position, input) in inputs.iter().enumerate() {
        let differentiable = info.is_differentiable(position);
        input.collect(&mut Collector(Task::Lost(&mut lost, info.name, at, differentiable)));
    }
    lost
}

/// Whether the tensor with this address is (one of) this input.
pub(super) fn contains(input: &dyn TensorInput, address: *const ()) -> bool {
    let mut found = false;
    input.collect(&mut Collector(Task::Find(address, &mut found)));
    found
}

/// Protects what the layer differentiates and wants a gradient.
pub(super) fn protect(inputs: &[&dyn TensorInput], layer: &'static Info) {
    for (position, input) in inputs.iter().enumerate() {
        if layer.is_differentiable(position) {
            input.collect(&mut Collector(Task::Protect(layer, position)));
        }
    }
}

/// The version that an input has now.
pub(super) fn version(inputs: &[&dyn TensorInput], of: &Protected) -> u32 {
    let mut version = 0;
    inputs[of.position as usize].collect(&mut Collector(Task::Version(of.tensor, &mut version)));
    version
}

/// Which tensors of this input want a gradient.
pub(super) fn each_wants(input: &dyn TensorInput) -> Vec<bool> {
    let mut each = Vec::new();
    input.collect(&mut Collector(Task::Each(&mut each)));
    each
}

/// The tensors of this input.
pub(super) fn primals(input: &dyn TensorInput) -> Vec<AnyTensor> {
    let mut kept = Vec::new();
    input.collect(&mut Collector(Task::Keep(&mut kept)));
    kept
}

/// Which inputs want a gradient.
#[doc(hidden)]
pub trait NeedsGrad {
    /// One tensor.
    fn one(&self, group: usize) -> bool;
    /// A list of tensors.
    fn list(&self, group: usize) -> Vec<bool>;
}
