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
    [] &Tensor<T>, this => [*this];
    [] Option<&Tensor<T>>, this => this.iter().copied();
    [] &[Tensor<T>], this => this.iter();
    [] &[&Tensor<T>], this => this.iter().copied();
    [const N: usize] [&Tensor<T>; N], this => this.iter().copied();
    [const N: usize] &[Tensor<T>; N], this => this.iter();
    [const N: usize] &[&Tensor<T>; N], this => this.iter().copied();
    [] &Vec<Tensor<T>>, this => this.iter();
}

/// Is shown the tensors of an input.
#[doc(hidden)]
pub struct Collector<'a>(Task<'a>);

enum Task<'a> {
    /// Note addresses and, of an input that is differentiated, shapes and edges. Protect it too.
    Note(&'a mut Inputs, u16, Option<&'static Info>),
    Show(&'a mut dyn FnMut(&dyn Handle)),
}

impl Collector<'_> {
    fn see(&mut self, tensor: &dyn Handle) {
        match &mut self.0 {
            Task::Note(noted, group, None) => noted.addresses.add(tensor.address(), *group),
            Task::Note(noted, group, Some(info)) => {
                tensor.protect(*info, usize::from(*group));
                noted.add(*group, tensor);
            }
            Task::Show(see) => see(tensor),
        }
    }
}

fn each(input: &dyn TensorInput, mut see: impl FnMut(&dyn Handle)) {
    input.collect(&mut Collector(Task::Show(&mut see)));
}

/// Notes of all inputs in one go, before forward runs.
pub(super) fn note(noted: &mut Inputs, inputs: &[&dyn TensorInput], rules: &'static LayerRules) {
    for (position, input) in inputs.iter().enumerate() {
        let group = u16::try_from(position).unwrap_or(u16::MAX);
        let before = noted.edges.len();
        let info = rules.info.is_differentiable(position).then_some(rules.info);
        input.collect(&mut Collector(Task::Note(noted, group, info)));
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

/// What the outputs of a call that is not recorded have lost.
pub(super) fn lost(
    info: &Info,
    inputs: &[&dyn TensorInput],
    at: &'static Location<'static>,
) -> Lost {
    let mut lost = Lost::NONE;
    for (position, input) in inputs.iter().enumerate() {
        let differentiable = info.is_differentiable(position);
        each(*input, |tensor| lost = lost.and(tensor.lost_by(info.name, at, differentiable)));
    }
    lost
}

pub(super) fn contains(input: &dyn TensorInput, address: *const ()) -> bool {
    let mut found = false;
    each(input, |tensor| found |= tensor.address() == address);
    found
}

/// Protects what the layer differentiates and wants a gradient.
pub(super) fn protect(inputs: &[&dyn TensorInput], layer: &'static Info) {
    for (position, input) in inputs.iter().enumerate() {
        if layer.is_differentiable(position) {
            each(*input, |tensor| tensor.protect(layer, position));
        }
    }
}

pub(super) fn version(inputs: &[&dyn TensorInput], of: &Protected) -> u32 {
    let mut version = 0;
    each(inputs[of.position as usize], |tensor| {
        if tensor.address() == of.tensor {
            version = tensor.version();
        }
    });
    version
}

pub(super) fn each_wants(input: &dyn TensorInput) -> Vec<bool> {
    let mut wants = Vec::new();
    each(input, |tensor| wants.push(!tensor.stop_gradient()));
    wants
}

pub(super) fn primals(input: &dyn TensorInput) -> Vec<AnyTensor> {
    let mut kept = Vec::new();
    each(input, |tensor| kept.push(tensor.any()));
    kept
}

/// Which inputs want a gradient.
#[doc(hidden)]
pub trait NeedsGrad {
    fn one(&self, group: usize) -> bool;
    fn list(&self, group: usize) -> Vec<bool>;
}
