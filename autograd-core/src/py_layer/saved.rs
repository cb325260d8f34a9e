//! What forward saves for backward: packed into one flat list, unpacked into the declared type.

use std::marker::PhantomData;
use std::mem::{replace, take};

use smallvec::SmallVec;

use super::Info;
use super::call::{Addresses, Call};
use super::inputs::{TensorInput, note_late};
use super::node::RawBackward;
use super::outputs::Visitor;
use super::rules::LayerRules;
use super::small::InlineCall;
use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::{
    self, AnyTensor, At, Element, Handle, Mark, Slot, State, Tensor, Visit, for_any,
};

/// What a layer can save: a tensor, `()`, a tuple, an array, a `Vec`, an `Option` of such, or a
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
    /// How many tensors that always are; more than a small node has place for where that is not known.
    #[doc(hidden)]
    const TENSORS: usize = usize::MAX;
    #[doc(hidden)]
    fn pack(&self, into: &mut Pack);
    #[doc(hidden)]
    fn unpack(from: &mut Unpack<'_>) -> Result<Self>;
    /// Where it stands, if it stands in the node as backward gets it.
    #[doc(hidden)]
    fn lent<'a>(_: &'a RawBackward<'_>) -> Option<&'a Self> {
        None
    }
}

/// What `save_for_backward` takes where `S` was declared: references to the tensors, in the same
/// form (a tuple of references for a tuple).
#[diagnostic::on_unimplemented(
    message = "the saved value is a `{Self}`, but `type Saved` says `{S}`",
    label = "of another type than the declared `{S}`",
    note = "give references in the same form: `&y` for `Tensor<T>`, `(&a, &b)` for a tuple, `Some(&t)` or `None` for an `Option`, `&list` for a `Vec`, `[&a, &b]` for an array; `Tensor` alone is `Tensor<f32>`",
    note = "what is not a tensor goes into `type Attrs`: `ctx.set_attrs(..)` in forward, `ctx.attrs()` in backward"
)]
pub trait IntoSaved<S> {
    #[doc(hidden)]
    fn pack(self, into: &mut Pack);
}

/// Notes of a call that is recorded, into which forward saves.
#[doc(hidden)]
#[derive(Default)]
pub struct Pack {
    /// The node, if the call may be small.
    pub(super) inline: Option<InlineCall>,
    /// The notes, if it is not.
    pub(super) call: Option<Call>,
    /// What forward saved beside the node, if the call turned out not to be small.
    spilled: Option<Box<List>>,
}

/// What forward saved, in its order.
#[derive(Clone, Default)]
pub(super) struct List(SmallVec<[Kept; 2]>);

/// One saved tensor, or how many follow.
#[derive(Clone)]
pub(super) enum Kept {
    Tensor {
        tensor: AnyTensor,
        version: u32,
        role: Role,
    },
    Length(usize),
    /// An optional tensor that is not there.
    Absent,
}

/// What a saved tensor is to the op that saved it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// Neither input nor output.
    Other,
    /// (One of) the tensor input with this position.
    Input(u16),
    /// The output with this slot; without a gradient if it was marked so.
    Output(u32),
    Constant,
}

/// In place of the version of an output that hooks kept as it was.
const UNPACKED: u32 = u32::MAX;

impl Role {
    /// What errors call a saved tensor: an input by its name, others by their position among all.
    pub(super) fn name(self, info: &Info, position: usize) -> String {
        match self {
            Self::Input(group) => match info.input_name(usize::from(group)) {
                Some(name) => name.to_owned(),
                None => format!("input {group}"),
            },
            _ => format!("saved tensor {position}"),
        }
    }

    /// Of what a small node keeps: of one or two inputs and one output.
    #[inline]
    pub(super) fn of_mark(mark: Mark) -> Self {
        match mark {
            Mark::First => Self::Input(0),
            Mark::Second => Self::Input(1),
            Mark::Output => Self::Output(0),
            Mark::Other => Self::Other,
        }
    }

    /// Whether backward gets the tensor that is kept, as it stands there.
    #[inline]
    pub(super) fn is_kept_as_it_is(self, at: &At<'_>) -> bool {
        match self {
            Self::Input(_) => !at.create_graph,
            Self::Output(slot) => !at.create_graph && at.node.output_version(slot) == 0,
            Self::Other | Self::Constant => !at.create_graph,
        }
    }

    /// The tensor as backward gets it, or an error if it was changed in place.
    #[inline]
    pub(super) fn reattach(
        self,
        tensor: AnyTensor,
        version: u32,
        at: &At<'_>,
        name: impl FnOnce() -> String,
    ) -> Result<AnyTensor> {
        match self {
            Self::Output(slot) => {
                // Only its value is kept, so the node notes changes after forward.
                if version != UNPACKED {
                    let changes = at.node.output_version(slot) + tensor.version();
                    at.check_version(0, version + changes, name)?;
                }
                if !at.create_graph {
                    return Ok(tensor);
                }
                let node = at.node.clone();
                Ok(for_any!(tensor, t => AnyTensor::from(t.attached(node, slot))))
            }
            Self::Input(_) | Self::Other | Self::Constant => {
                at.check_version(version, tensor.version(), name)?;
                // Where ops are recorded, what wants a gradient may be changed in place: not the caller's.
                let input = matches!(self, Self::Input(_)) && !tensor.stop_gradient();
                Ok(if input && at.create_graph { tensor.lent() } else { tensor })
            }
        }
    }
}

/// Shows every saved tensor.
pub(super) fn visit(saved: &mut List, info: &'static Info, visit: &mut Visit<'_>) -> Result<()> {
    let mut position = 0;
    for kept in &mut saved.0 {
        match kept {
            Kept::Tensor { tensor, version, role } => {
                position += 1;
                visit(Some(&mut SavedTensor { tensor, version, role: *role, info, position }))?;
            }
            Kept::Absent => visit(None)?,
            Kept::Length(_) => {}
        }
    }
    Ok(())
}

/// The place of one saved tensor.
struct SavedTensor<'a> {
    tensor: &'a mut AnyTensor,
    version: &'a mut u32,
    role: Role,
    info: &'static Info,
    position: usize,
}

impl Slot for SavedTensor<'_> {
    fn name(&self) -> String {
        self.role.name(self.info, self.position)
    }

    fn take(&mut self) -> AnyTensor {
        let tensor = replace(self.tensor, AnyTensor::Bool(Tensor::default()));
        match self.role {
            Role::Output(_) => tensor.alias(),
            _ => tensor,
        }
    }

    fn put(&mut self, tensor: AnyTensor) {
        *self.version = match self.role {
            // What forward changed is reported all the same.
            Role::Output(_) if *self.version != 0 => *self.version,
            Role::Output(_) => UNPACKED,
            _ => tensor.version(),
        };
        *self.tensor = match self.role {
            Role::Output(_) => tensor.kept_output(),
            _ => tensor,
        };
    }

    fn get(&self, at: &At<'_>) -> Result<AnyTensor> {
        self.role.reattach(self.tensor.clone(), *self.version, at, || self.name())
    }
}

impl Pack {
    fn tensor<T: Element>(&mut self, tensor: &Tensor<T>) {
        self.any(T::handle(tensor));
    }

    fn any(&mut self, tensor: &dyn Handle) {
        if let (Some(inline), None) = (&mut self.inline, &self.spilled)
            && inline.keep(tensor)
        {
            return;
        }
        let (tensor, version) = (tensor.any(), tensor.version());
        self.list().0.push(Kept::Tensor { version, tensor, role: Role::Other });
    }

    fn length(&mut self, length: usize) {
        self.list().0.push(Kept::Length(length));
    }

    /// Whether an optional value follows.
    fn option(&mut self, present: bool) {
        self.list().0.push(if present { Kept::Length(1) } else { Kept::Absent });
    }

    fn list(&mut self) -> &mut List {
        match &mut self.call {
            Some(call) => call.saved.get_or_insert_default(),
            None => self.spilled.get_or_insert_with(|| Box::new(List::spilled(&mut self.inline))),
        }
    }

    /// Whether it holds nothing.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.inline.is_none() && self.call.is_none() && self.spilled.is_none()
    }

    /// Whether forward saved what a small node has no place for.
    pub(super) fn is_spilled(&self) -> bool {
        self.spilled.is_some()
    }

    /// The notes of a call that is not small, with what forward saved.
    pub(super) fn into_call(
        mut self,
        inputs: &[&dyn TensorInput],
        rules: &'static LayerRules,
    ) -> Result<Call, Box<Error>> {
        if let Some(call) = self.call {
            return Ok(call);
        }
        let saved = take(self.list());
        let Some(inline) = self.inline else { unreachable!("what is recorded was noted") };
        let mut call = note_late(inline, inputs, rules)?;
        call.saved = State::new(saved);
        Ok(call)
    }
}

impl List {
    /// What stood in a node.
    #[cold]
    fn spilled(inline: &mut Option<InlineCall>) -> Self {
        let kept = inline.as_mut().map_or(graph::Kept::Nothing, InlineCall::take_kept);
        let places = (0..).map_while(|place| kept.get(place));
        let tensor = |(tensor, version, _)| Kept::Tensor { tensor, version, role: Role::Other };
        Self(places.map(tensor).collect())
    }

    /// An input is kept as it is, and so is an output without a gradient; of another output only the value,
    /// because the output holds the node and the node must not hold the output.
    pub(super) fn assign_roles(
        &mut self,
        inputs: &Addresses,
        outputs: &Visitor<'_>,
        marked: &[AnyTensor],
    ) {
        for kept in &mut self.0 {
            let Kept::Tensor { tensor, version, role } = kept else { continue };
            let address = tensor.address();
            if let Some(group) = inputs.input(address) {
                *role = Role::Input(group);
                continue;
            }
            let Some(slot) = outputs.position(address) else { continue };
            let differentiable = !marked.iter().any(|marked| marked.address() == address);
            *role = match u32::try_from(slot) {
                Ok(slot) if differentiable => Role::Output(slot),
                _ => Role::Constant,
            };
            if differentiable {
                // Whether forward changed it after it was saved.
                *version = tensor.version().abs_diff(*version);
                *tensor = tensor.kept_output();
            }
        }
    }
}

/// Saved state on its way to backward.
#[doc(hidden)]
pub struct Unpack<'a> {
    pub(super) kept: Source<'a>,
    pub(super) next: usize,
    pub(super) at: At<'a>,
    pub(super) info: &'a Info,
    pub(super) position: usize,
}

/// Where it comes from.
pub(super) enum Source<'a> {
    /// Out of notes, where nothing stays.
    List(&'a mut List),
    /// From a small node, which keeps it.
    Inline(&'a graph::Kept),
}

/// The typed reading follows the typed writing, so what comes is what was written.
const OUT_OF_STEP: &str = "saved state is read as it was written";

impl Unpack<'_> {
    /// The next entry, taken.
    fn entry(&mut self) -> Option<Kept> {
        let next = self.next;
        self.next += 1;
        match &mut self.kept {
            Source::List(list) => Some(replace(list.0.get_mut(next)?, Kept::Absent)),
            Source::Inline(kept) => {
                let (tensor, version, mark) = kept.get(next)?;
                Some(Kept::Tensor { tensor, version, role: Role::of_mark(mark) })
            }
        }
    }

    fn tensor<T: Element>(&mut self) -> Result<Tensor<T>> {
        Ok(T::unwrap(self.any()?).unwrap_or_else(|| unreachable!("{OUT_OF_STEP}")))
    }

    /// The next tensor.
    fn any(&mut self) -> Result<AnyTensor> {
        let Some(Kept::Tensor { tensor, version, role }) = self.entry() else {
            unreachable!("{OUT_OF_STEP}")
        };
        self.position += 1;
        let tensor = role.reattach(tensor, version, &self.at, || self.name(role))?;
        if matches!(role, Role::Other) && self.at.create_graph {
            self.check_known(&tensor)?;
        }
        Ok(tensor)
    }

    /// A tensor whose own gradient is known may take part in a recorded backward.
    fn check_known(&self, tensor: &AnyTensor) -> Result<()> {
        let float = matches!(tensor.dtype(), DType::Float32 | DType::Float64);
        if !float || !tensor.stop_gradient() {
            return Ok(());
        }
        Err(Error::SavedIntermediate {
            op: self.at.op,
            parameter: self.name(Role::Other),
            location: self.at.location,
        })
    }

    fn name(&self, role: Role) -> String {
        role.name(self.info, self.position)
    }

    fn length(&mut self) -> usize {
        match self.entry() {
            Some(Kept::Length(length)) => length,
            Some(Kept::Absent) => 0,
            _ => unreachable!("{OUT_OF_STEP}"),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> Saved for Tensor<T> {
    const TENSORS: usize = 1;
    fn pack(&self, into: &mut Pack) {
        into.tensor(self);
    }
    fn unpack(from: &mut Unpack<'_>) -> Result<Self> {
        from.tensor()
    }
    fn lent<'a>(from: &'a RawBackward<'_>) -> Option<&'a Self> {
        from.lent()
    }
}

#[diagnostic::do_not_recommend]
impl<S: Saved> Saved for Vec<S> {
    fn pack(&self, into: &mut Pack) {
        into.length(self.len());
        self.iter().for_each(|saved| saved.pack(into));
    }
    fn unpack(from: &mut Unpack<'_>) -> Result<Self> {
        (0..from.length()).map(|_| S::unpack(from)).collect()
    }
}

#[diagnostic::do_not_recommend]
impl<S: Saved> Saved for Option<S> {
    fn pack(&self, into: &mut Pack) {
        into.option(self.is_some());
        self.iter().for_each(|saved| saved.pack(into));
    }
    fn unpack(from: &mut Unpack<'_>) -> Result<Self> {
        (from.length() == 1).then(|| S::unpack(from)).transpose()
    }
}

#[diagnostic::do_not_recommend]
impl<S: Saved, const N: usize> Saved for [S; N] {
    fn pack(&self, into: &mut Pack) {
        self.iter().for_each(|saved| saved.pack(into));
    }
    fn unpack(from: &mut Unpack<'_>) -> Result<Self> {
        let mut broken = None;
        let saved = [(); N].map(|()| match &broken {
            None => S::unpack(from).map_err(|error| broken = Some(error)).ok(),
            Some(_) => None,
        });
        match broken {
            None => Ok(saved.map(|saved| saved.unwrap_or_else(|| unreachable!("{OUT_OF_STEP}")))),
            Some(error) => Err(error),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> IntoSaved<Tensor<T>> for &Tensor<T> {
    fn pack(self, into: &mut Pack) {
        into.tensor(self);
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> IntoSaved<Tensor<T>> for Tensor<T> {
    fn pack(self, into: &mut Pack) {
        into.tensor(&self);
    }
}

// The only form for an optional tensor: so `None` alone is understood.
#[diagnostic::do_not_recommend]
impl<T: Element> IntoSaved<Option<Tensor<T>>> for Option<&Tensor<T>> {
    fn pack(self, into: &mut Pack) {
        into.option(self.is_some());
        self.into_iter().for_each(|tensor| into.tensor(tensor));
    }
}

macro_rules! saved_lists {
    ($($list:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Element> IntoSaved<Vec<Tensor<T>>> for $list {
            fn pack(self, into: &mut Pack) {
                into.length(self.len());
                self.iter().for_each(|tensor| into.tensor(tensor));
            }
        }
    )*};
}

saved_lists! {
    &[Tensor<T>];
    &[&Tensor<T>];
    &Vec<Tensor<T>>;
    &Vec<&Tensor<T>>;
    Vec<Tensor<T>>;
    Vec<&Tensor<T>>;
}

macro_rules! saved_arrays {
    ($($generics:ident $list:ty => $saved:ty, $length:tt;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Element, const $generics: usize> IntoSaved<$saved> for $list {
            fn pack(self, into: &mut Pack) {
                saved_arrays!(@ $length into, self);
                self.iter().for_each(|tensor| into.tensor(tensor));
            }
        }
    )*};
    (@ with $into:ident, $this:ident) => { $into.length($this.len()) };
    (@ without $into:ident, $this:ident) => {};
}

saved_arrays! {
    N [&Tensor<T>; N] => [Tensor<T>; N], without;
    N [Tensor<T>; N] => [Tensor<T>; N], without;
    N &[Tensor<T>; N] => [Tensor<T>; N], without;
    N &[&Tensor<T>; N] => [Tensor<T>; N], without;
    N &[Tensor<T>; N] => Vec<Tensor<T>>, with;
    N &[&Tensor<T>; N] => Vec<Tensor<T>>, with;
    N [&Tensor<T>; N] => Vec<Tensor<T>>, with;
    N [Tensor<T>; N] => Vec<Tensor<T>>, with;
}

macro_rules! saved_tuples {
    ($(($($name:ident $given:ident)*))*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($name: Saved),*> Saved for ($($name,)*) {
            const TENSORS: usize = 0_usize$(.saturating_add($name::TENSORS))*;
            #[allow(non_snake_case, reason = "the names of the types serve the values too")]
            fn pack(&self, _into: &mut Pack) {
                let ($($name,)*) = self;
                $($name.pack(_into);)*
            }
            fn unpack(_from: &mut Unpack<'_>) -> Result<Self> {
                Ok(($($name::unpack(_from)?,)*))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($name, $given: IntoSaved<$name>),*> IntoSaved<($($name,)*)> for ($($given,)*) {
            #[allow(non_snake_case, reason = "the names of the types serve the values too")]
            fn pack(self, _into: &mut Pack) {
                let ($($name,)*) = self;
                $($name.pack(_into);)*
            }
        }
    )*};
}

saved_tuples! {
    ()
    (A A1)
    (A A1 B B1)
    (A A1 B B1 C C1)
    (A A1 B B1 C C1 D D1)
    (A A1 B B1 C C1 D D1 E E1)
    (A A1 B B1 C C1 D D1 E E1 F F1)
    (A A1 B B1 C C1 D D1 E E1 F F1 G G1)
    (A A1 B B1 C C1 D D1 E E1 F F1 G G1 H H1)
    (A A1 B B1 C C1 D D1 E E1 F F1 G G1 H H1 I I1)
    (A A1 B B1 C C1 D D1 E E1 F F1 G G1 H H1 I I1 J J1)
    (A A1 B B1 C C1 D D1 E E1 F F1 G G1 H H1 I I1 J J1 K K1)
    (A A1 B B1 C C1 D D1 E E1 F F1 G G1 H H1 I I1 J J1 K K1 L L1)
    (A A1 B B1 C C1 D D1 E E1 F F1 G G1 H H1 I I1 J J1 K K1 L L1 M M1)
    (A A1 B B1 C C1 D D1 E E1 F F1 G G1 H H1 I I1 J J1 K K1 L L1 M M1 N N1)
    (A A1 B B1 C C1 D D1 E E1 F F1 G G1 H H1 I I1 J J1 K K1 L L1 M M1 N N1 O O1)
    (A A1 B B1 C C1 D D1 E E1 F F1 G G1 H H1 I I1 J J1 K K1 L L1 M M1 N N1 O O1 P P1)
}

/// Asks a type that the macro does not know by name whether it can be saved: the answer of the
/// inherent constant, there for what can be, shadows that of the trait.
#[doc(hidden)]
pub struct CanSave<S>(PhantomData<S>);

impl<S: Saved> CanSave<S> {
    /// Yes.
    pub const ANSWER: bool = true;
}

/// All other types.
#[doc(hidden)]
pub trait CannotSave {
    /// No.
    const ANSWER: bool = false;
}

impl<S> CannotSave for CanSave<S> {}

/// The declared type by the answer.
#[doc(hidden)]
pub struct Chosen<const CAN_SAVE: bool>;

#[doc(hidden)]
pub trait Choose<S> {
    /// What `save_for_backward` is held against.
    type Checked;
}

impl<S> Choose<S> for Chosen<true> {
    type Checked = S;
}

impl<S> Choose<S> for Chosen<false> {
    type Checked = Unsavable;
}

/// Stands for a declared type that cannot be saved, so that it is reported at the declaration only:
/// anything can be given for it.
#[doc(hidden)]
pub struct Unsavable;

#[diagnostic::do_not_recommend]
impl<V> IntoSaved<Unsavable> for V {
    fn pack(self, _: &mut Pack) {}
}
