//! Tensor inputs of forward, and the facts about them that are known at compile time. The macro
//! writes these as plain values: a constant function that parsed a text would run in the compiler's
//! interpreter for each op.

use std::panic::Location;

use super::shapes::{Form, Shapes, TensorShape};
use crate::graph::{AnyTensor, Element, Lost, Protected, Protector, Tensor, TensorHandle};
use crate::ops::Float;

/// A tensor input of a custom op: a tensor, an optional tensor or a list of tensors.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor input",
    label = "not a tensor input of this library",
    note = "a tensor input is `&Tensor<T>`, `Option<&Tensor<T>>`, `&[Tensor<T>]`, `&[&Tensor<T>]` or `[&Tensor<T>; N]`, with autograd_core's `Tensor`",
    note = "if another type is called `Tensor`, `Option` or `Vec` too, import it under another name: `use other::Option as OtherOption`"
)]
#[allow(private_interfaces, reason = "what a call reads is no part of the public interface")]
pub trait TensorInput {
    /// The input's tensor at this position; `None` behind the last.
    fn get(&self, position: usize) -> Option<&dyn TensorHandle>;

    fn tensors(&self) -> InputTensors<'_>
    where
        Self: Sized,
    {
        InputTensors::List(self)
    }
}

/// The tensors of an input. A single one is reached without a call.
#[doc(hidden)]
#[derive(Clone, Copy)]
#[allow(private_interfaces, reason = "as of the trait")]
pub enum InputTensors<'a> {
    One(&'a dyn TensorHandle),
    List(&'a dyn TensorInput),
}

impl<'a> InputTensors<'a> {
    #[inline(always)]
    pub(super) fn for_each(self, mut f: impl FnMut(&'a dyn TensorHandle)) {
        match self {
            Self::One(tensor) => f(tensor),
            list => each(list).for_each(f),
        }
    }
}

#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor input",
    label = "not a tensor input of this library",
    note = "a tensor input is `&Tensor<T>`, `Option<&Tensor<T>>`, `&[Tensor<T>]`, `&[&Tensor<T>]` or `[&Tensor<T>; N]`, with autograd_core's `Tensor`",
    note = "if another type is called `Tensor`, `Option` or `Vec` too, import it under another name: `use other::Option as OtherOption`"
)]
pub trait DifferentiableInput: TensorInput {}

macro_rules! tensor_inputs {
    ($([$($generics:tt)*] $input:ty, $this:ident, $position:ident => $tensor:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        #[allow(private_interfaces, reason = "as of the trait")]
        impl<T: Element, $($generics)*> TensorInput for $input {
            fn get(&self, $position: usize) -> Option<&dyn TensorHandle> {
                let $this = self;
                $tensor.map(|tensor| T::handle(tensor))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Float, $($generics)*> DifferentiableInput for $input {}
    )*};
}

tensor_inputs! {
    [] Option<&Tensor<T>>, this, position => this.filter(|_| position == 0);
    [] &[Tensor<T>], this, position => <[_]>::get(this, position);
    [] &[&Tensor<T>], this, position => <[_]>::get(this, position).copied();
    [const N: usize] [&Tensor<T>; N], this, position => <[_]>::get(this, position).copied();
    [const N: usize] &[Tensor<T>; N], this, position => <[_]>::get(*this, position);
    [const N: usize] &[&Tensor<T>; N], this, position => <[_]>::get(*this, position).copied();
    [] &Vec<Tensor<T>>, this, position => <[_]>::get(this, position);
}

#[diagnostic::do_not_recommend]
#[allow(private_interfaces, reason = "as of the trait")]
impl<T: Element> TensorInput for &Tensor<T> {
    fn get(&self, position: usize) -> Option<&dyn TensorHandle> {
        (position == 0).then(|| T::handle(self))
    }

    fn tensors(&self) -> InputTensors<'_> {
        InputTensors::One(T::handle(self))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Float> DifferentiableInput for &Tensor<T> {}

/// The tensors of an input.
#[inline]
pub(super) fn each(input: InputTensors<'_>) -> impl Iterator<Item = &dyn TensorHandle> {
    (0..).map_while(move |position| match input {
        InputTensors::One(tensor) => (position == 0).then_some(tensor),
        InputTensors::List(list) => list.get(position),
    })
}

/// The op's name, the number of forward's tensor inputs, their names (separated by spaces, with `~`
/// before a marked one), a bit for each of the first 64 that is marked `#[stop_gradient]`,
/// backward's parameters that are not an `Option`, and whether the op is `once_differentiable`.
#[doc(hidden)]
pub type Facts = (&'static str, usize, &'static str, u64, &'static str, bool);

pub(super) struct Info {
    pub(super) name: &'static str,
    pub(super) once_differentiable: bool,
    pub(super) inputs: usize,
    input_names: &'static str,
    bare: &'static str,
    stopped: u64,
    pub(super) shapes: Option<&'static Shapes>,
}

impl Info {
    pub(super) const fn of(facts: Facts, shapes: Option<&'static Shapes>) -> Self {
        let (name, inputs, input_names, stopped, bare, once_differentiable) = facts;
        Self { name, once_differentiable, inputs, input_names, bare, stopped, shapes }
    }

    /// The shape of an input in the op's `shapes(..)`, as it is written.
    pub(super) fn line_of(&self, input: usize) -> Option<String> {
        let (_, shape) = self.shapes?.inputs.get(input)?;
        shape.axes.map(|_| TensorShape { form: Form::One, ..*shape }.to_string())
    }

    pub(super) fn input_name(&self, input: usize) -> Option<&'static str> {
        let name = self.input_names.split_ascii_whitespace().nth(input)?;
        Some(name.trim_start_matches('~'))
    }

    #[inline]
    pub(super) fn is_differentiable(&self, input: usize) -> bool {
        match u32::try_from(input).ok().and_then(|input| 1_u64.checked_shl(input)) {
            Some(bit) => self.stopped & bit == 0,
            None => {
                let mut names = self.input_names.split_ascii_whitespace();
                names.nth(input).is_some_and(|name| !name.starts_with('~'))
            }
        }
    }

    /// The first gradient parameter of backward that is not an `Option`.
    pub(super) fn first_bare(&self) -> Option<&'static str> {
        self.bare.split_ascii_whitespace().next()
    }
}

impl Protector for Info {
    fn op_name(&self) -> &'static str {
        self.name
    }

    fn input(&self, position: usize) -> String {
        match self.input_name(position) {
            Some(name) => name.to_owned(),
            None => format!("input {position}"),
        }
    }
}

impl Info {
    pub(super) fn lost(&self, inputs: &[InputTensors<'_>], at: &'static Location<'static>) -> Lost {
        let mut lost = Lost::NONE;
        for (position, input) in inputs.iter().enumerate() {
            let differentiable = self.is_differentiable(position);
            for tensor in each(*input) {
                lost = lost.and(tensor.lost_by(self.name, at, differentiable));
            }
        }
        lost
    }
}

pub(super) fn contains(input: InputTensors<'_>, address: *const ()) -> bool {
    let mut found = false;
    input.for_each(|tensor| found |= tensor.address() == address);
    found
}

/// The current version of a protected input.
#[inline]
pub(super) fn version(inputs: &[InputTensors<'_>], of: &Protected) -> u32 {
    match inputs[of.position as usize] {
        InputTensors::One(tensor) => tensor.version(),
        list => each(list)
            .find(|tensor| tensor.address() == of.tensor)
            .map_or(0, |tensor| tensor.version()),
    }
}

pub(super) fn wanted(input: InputTensors<'_>) -> Vec<bool> {
    each(input).map(|tensor| !tensor.stop_gradient()).collect()
}

pub(super) fn tensors(input: InputTensors<'_>) -> Vec<AnyTensor> {
    each(input).map(TensorHandle::any).collect()
}

#[doc(hidden)]
pub trait NeedsGrad {
    fn one(&self, group: usize) -> bool;
    fn list(&self, group: usize) -> Vec<bool>;
}

/// The tensors of a repeated call, input by input.
#[cfg(feature = "verify")]
#[doc(hidden)]
pub struct Again(pub(super) Vec<Vec<AnyTensor>>);

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::Info;

    #[test]
    fn inputs_beyond_the_bits_are_read_from_their_names() {
        static NAMES: OnceLock<String> = OnceLock::new();
        let name = |i| format!("{}x{i}", if i % 2 == 1 { "~" } else { "" });
        let names = NAMES.get_or_init(|| (0..70).map(name).collect::<Vec<_>>().join(" "));
        let info = Info::of(("Wide", 70, names, 0xAAAA_AAAA_AAAA_AAAA, "", false), None);
        for input in 0..70 {
            assert_eq!(info.is_differentiable(input), input % 2 == 0, "{input}");
        }
    }
}
