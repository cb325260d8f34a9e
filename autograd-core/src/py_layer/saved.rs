//! What forward saves for backward: packed into one flat list, unpacked into the declared type.

use std::marker::PhantomData;

use smallvec::SmallVec;

use super::Info;
use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, At, Element, Handle, Slot, Tensor, Visit, for_any};

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
    #[doc(hidden)]
    fn pack(&self, into: &mut Pack);
    #[doc(hidden)]
    fn unpack(from: &mut Unpack<'_>) -> Result<Self>;
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

/// Saved state on its way into a node.
#[doc(hidden)]
#[derive(Clone, Default)]
pub struct Pack {
    kept: SmallVec<[Kept; 2]>,
}

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
    fn name(self, info: &Info, position: usize) -> String {
        match self {
            Self::Input(group) => match info.input_name(usize::from(group)) {
                Some(name) => name.to_owned(),
                None => format!("input {group}"),
            },
            _ => format!("saved tensor {position}"),
        }
    }

    /// The tensor as backward gets it, or an error if it was changed in place.
    #[inline]
    fn reattach(
        self,
        tensor: AnyTensor,
        version: u32,
        at: &At<'_>,
        name: impl FnOnce() -> String,
    ) -> Result<AnyTensor> {
        match self {
            Self::Output(slot) => {
                // Only its value is kept, so the node was told of changes.
                if version != UNPACKED {
                    at.check_version(0, at.node.output_version(slot), name)?;
                }
                if !at.create_graph {
                    return Ok(tensor);
                }
                let node = at.node.clone();
                Ok(for_any!(tensor, t => AnyTensor::from(t.attached(node, slot))))
            }
            Self::Input(_) | Self::Other | Self::Constant => {
                at.check_version(version, tensor.version(), name)?;
                Ok(tensor)
            }
        }
    }
}

/// Shows every saved tensor.
pub(super) fn visit(saved: &mut Pack, info: &'static Info, visit: &mut Visit<'_>) -> Result<()> {
    let mut position = 0;
    for kept in saved.iter_mut() {
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
        std::mem::replace(self.tensor, AnyTensor::Bool(Tensor::default()))
    }

    fn put(&mut self, tensor: AnyTensor) {
        *self.version = match self.role {
            Role::Output(_) => UNPACKED,
            _ => tensor.version(),
        };
        *self.tensor = tensor;
    }

    fn get(&self, at: &At<'_>) -> Result<AnyTensor> {
        self.role.reattach(self.tensor.clone(), *self.version, at, || self.name())
    }
}

impl Pack {
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Kept> {
        self.kept.iter_mut()
    }

    fn tensor<T: Element>(&mut self, tensor: &Tensor<T>) {
        self.any(T::handle(tensor));
    }

    fn any(&mut self, tensor: &dyn Handle) {
        let (tensor, version) = (tensor.any(), tensor.version());
        self.kept.push(Kept::Tensor { version, tensor, role: Role::Other });
    }

    fn length(&mut self, length: usize) {
        self.kept.push(Kept::Length(length));
    }

    /// Whether an optional value follows.
    fn option(&mut self, present: bool) {
        self.kept.push(if present { Kept::Length(1) } else { Kept::Absent });
    }
}

/// Saved state on its way to backward.
#[doc(hidden)]
pub struct Unpack<'a> {
    pub(super) kept: &'a mut Pack,
    pub(super) next: usize,
    pub(super) at: At<'a>,
    pub(super) info: &'static Info,
    pub(super) position: usize,
}

/// The typed reading follows the typed writing, so what comes is what was written.
const OUT_OF_STEP: &str = "saved state is read as it was written";

impl Unpack<'_> {
    /// The next entry, taken.
    fn entry(&mut self) -> Option<Kept> {
        let entry = self.kept.kept.get_mut(self.next)?;
        self.next += 1;
        Some(std::mem::replace(entry, Kept::Length(0)))
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
    fn pack(&self, into: &mut Pack) {
        into.tensor(self);
    }
    fn unpack(from: &mut Unpack<'_>) -> Result<Self> {
        from.tensor()
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

/// Stands for a declared type that cannot be saved, so that it is told at the declaration only:
/// anything can be given for it.
#[doc(hidden)]
pub struct Unsavable;

#[diagnostic::do_not_recommend]
impl<V> IntoSaved<Unsavable> for V {
    fn pack(self, _: &mut Pack) {}
}
