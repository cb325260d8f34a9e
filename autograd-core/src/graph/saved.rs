//! What a node keeps for backward, and how it is put together again.

use std::panic::Location;

use smallvec::SmallVec;

use super::any::{AnyTensor, Element};
use super::node::{NodeRef, Slots};
use super::pack::{Slot, Visit};
use super::tensor::{Read, Tensor};
use crate::array::Value;
use crate::error::{Error, Result};

/// An input kept for backward: the tensor itself.
pub(crate) struct Keep<T: Element> {
    tensor: Tensor<T>,
    version: u32,
    position: u8,
}

impl<T: Element> Clone for Keep<T> {
    fn clone(&self) -> Self {
        Self { tensor: self.tensor.clone(), ..*self }
    }
}

impl<T: Element> Keep<T> {
    /// Keeps input `position` of the op.
    pub(crate) fn input(position: u8, tensor: &Tensor<T>) -> Self {
        Self { tensor: tensor.clone(), version: tensor.version(), position }
    }

    /// The input where it stands; an error if it was changed in place since.
    pub(crate) fn read(&self, at: &At<'_>) -> Result<&Tensor<T>> {
        at.check_version(self.version, self.tensor.version(), || self.name())?;
        Ok(&self.tensor)
    }
}

/// The op's only output kept for backward: a tensor of its own with the same value, because the
/// output holds the node and the node must not hold the output.
pub(crate) struct KeepOutput<T: Element>(Tensor<T>);

impl<T: Element> Clone for KeepOutput<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Element> KeepOutput<T> {
    /// Keeps what will be the output.
    pub(crate) fn of(output: &Tensor<T>) -> Self {
        // What is deferred stays so: the node holds what it is computed from.
        let value = || Tensor::new(output.read().into_owned());
        Self(output.small_copy().unwrap_or_else(value))
    }

    /// The output's value where it stands.
    pub(crate) fn read(&self) -> &Tensor<T> {
        &self.0
    }

    /// Keeps the value of what will be the output.
    pub(crate) fn value(value: &Value<T>) -> Self {
        Self(Tensor::new(value.clone()))
    }
}

/// A kept output: its value, and its place in the graph where that is needed.
pub(crate) struct KeptOutput<T: Element> {
    tensor: Tensor<T>,
    node: Option<NodeRef>,
}

impl<T: Element> KeptOutput<T> {
    /// The output's value.
    pub(crate) fn read(&self) -> Read<'_, T> {
        self.tensor.read()
    }

    /// The output's value as a tensor outside the graph.
    pub(crate) fn into_value(self) -> Tensor<T> {
        self.tensor
    }

    /// The output put together again; differentiable where this backward is recorded.
    pub(crate) fn into_tensor(self) -> Tensor<T> {
        match self.node {
            Some(node) => self.tensor.attached(node, 0),
            None => self.tensor,
        }
    }
}

/// Where something kept is asked for again.
pub(crate) struct At<'a> {
    pub(crate) op: &'static str,
    pub(crate) location: &'static Location<'static>,
    pub(crate) node: &'a NodeRef,
    pub(crate) create_graph: bool,
}

impl At<'_> {
    /// An error if a saved tensor was changed in place since.
    pub(crate) fn check_version(
        &self,
        saved: u32,
        found: u32,
        parameter: impl FnOnce() -> String,
    ) -> Result<()> {
        if saved == found {
            return Ok(());
        }
        Err(Error::SavedTensorChanged {
            op: self.op,
            parameter: parameter(),
            saved,
            found,
            location: self.location,
        })
    }
}

/// Something a node can keep: tensors, plain values, and tuples and options of them.
pub(crate) trait Keeps: Clone + Send + Sync {
    type Kept;
    /// Whether the op has one input, and each element of its output depends on the same element of
    /// that only. Then `pull` is its own transpose.
    const ELEMENTWISE: bool = false;
    /// Whether there is a rule for forward mode, [`tangent`](Self::tangent).
    const PUSHES: bool = false;
    /// From the tangents of the inputs that of the output, which has this shape; `None` where this
    /// call has no rule for that.
    fn tangent(self, _: &At<'_>, _: &Slots, _: &[usize]) -> Result<Option<AnyTensor>> {
        Ok(None)
    }
    fn unpack(self, at: &At<'_>) -> Result<Self::Kept>;
    /// Shows every tensor.
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<()>;
}

impl<T: Element> Keeps for Keep<T> {
    type Kept = Tensor<T>;

    fn unpack(self, at: &At<'_>) -> Result<Tensor<T>> {
        self.read(at)?;
        Ok(self.tensor)
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        visit(Some(self))
    }
}

/// What errors call input `position` of an op.
pub(super) fn input_name(position: usize) -> String {
    match position {
        0 => "its first input".into(),
        1 => "its second input".into(),
        n => format!("input {n}"),
    }
}

impl<T: Element> Slot for Keep<T> {
    fn name(&self) -> String {
        input_name(usize::from(self.position))
    }

    fn take(&mut self) -> AnyTensor {
        std::mem::replace(&mut self.tensor, Tensor::new(Value::scalar(T::ZERO))).into()
    }

    fn put(&mut self, tensor: AnyTensor) {
        self.tensor = typed(tensor);
        self.version = self.tensor.version();
    }

    fn get(&self, at: &At<'_>) -> Result<AnyTensor> {
        self.clone().unpack(at).map(AnyTensor::from)
    }
}

impl<T: Element> Keeps for KeepOutput<T> {
    type Kept = KeptOutput<T>;

    fn unpack(self, at: &At<'_>) -> Result<KeptOutput<T>> {
        let node = at.create_graph.then(|| at.node.clone());
        Ok(KeptOutput { tensor: self.0, node })
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        visit(Some(self))
    }
}

impl<T: Element> Slot for KeepOutput<T> {
    fn name(&self) -> String {
        "its output".into()
    }

    fn take(&mut self) -> AnyTensor {
        std::mem::replace(&mut self.0, Tensor::new(Value::scalar(T::ZERO))).into()
    }

    fn put(&mut self, tensor: AnyTensor) {
        self.0 = typed(tensor);
    }

    fn get(&self, at: &At<'_>) -> Result<AnyTensor> {
        self.clone().unpack(at).map(|kept| kept.into_tensor().into())
    }
}

/// A tensor whose element type is known.
#[inline(always)]
pub(crate) fn typed<T: Element>(tensor: AnyTensor) -> Tensor<T> {
    T::unwrap(tensor).unwrap_or_else(|| unreachable!("the element type was compared"))
}

/// Tangents whose element type is known.
fn all_typed<T: Element>(tangents: &Slots) -> SmallVec<[Option<Tensor<T>>; 2]> {
    tangents.iter().map(|tangent| T::peek(tangent.as_ref()?).cloned()).collect()
}

/// A plain value that a rule needs.
#[derive(Clone)]
pub(crate) struct Plain<P>(pub(crate) P);

impl<P: Clone + Send + Sync> Keeps for Plain<P> {
    type Kept = P;

    fn unpack(self, _: &At<'_>) -> Result<P> {
        Ok(self.0)
    }

    fn visit(&mut self, _: &mut Visit<'_>) -> Result<()> {
        Ok(())
    }
}

/// A rule of an op for forward mode: from what it keeps and the tangents of its inputs, of which
/// there is one at least, the tangent of its output; `None` where it is left to the transposed
/// backward.
pub(crate) trait PushRule<T: Element, K: Keeps>: Send + Sync {
    fn push(
        kept: K::Kept,
        tangents: &[Option<Tensor<T>>],
        shape: &[usize],
    ) -> Result<Option<Tensor<T>>>;
}

/// What an op with such a rule keeps. Which rule is data: ops that keep the same are one type.
pub(crate) struct Pushed<T: Element, K: Keeps>(K, PushFn<T, K>);

/// [`PushRule::push`].
type PushFn<T, K> =
    fn(<K as Keeps>::Kept, &[Option<Tensor<T>>], &[usize]) -> Result<Option<Tensor<T>>>;

/// Adds a rule to what an op keeps.
pub(crate) fn with_push<T: Element, R: PushRule<T, K>, K: Keeps>(_: R, kept: K) -> Pushed<T, K> {
    Pushed(kept, R::push)
}

impl<T: Element, K: Keeps> Clone for Pushed<T, K> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), self.1)
    }
}

impl<T: Element, K: Keeps> Keeps for Pushed<T, K> {
    type Kept = K::Kept;
    const PUSHES: bool = true;

    fn tangent(self, at: &At<'_>, tangents: &Slots, shape: &[usize]) -> Result<Option<AnyTensor>> {
        Ok((self.1)(self.0.unpack(at)?, &all_typed(tangents), shape)?.map(T::wrap))
    }

    fn unpack(self, at: &At<'_>) -> Result<K::Kept> {
        self.0.unpack(at)
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        self.0.visit(visit)
    }
}

/// What an op keeps whose `pull` is its own transpose: a function of each element above all.
#[derive(Clone)]
pub(crate) struct Elementwise<K>(pub(crate) K);

impl<K: Keeps> Keeps for Elementwise<K> {
    type Kept = K::Kept;
    const ELEMENTWISE: bool = true;

    fn unpack(self, at: &At<'_>) -> Result<K::Kept> {
        self.0.unpack(at)
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        self.0.visit(visit)
    }
}

impl<K: Keeps> Keeps for Option<K> {
    type Kept = Option<K::Kept>;

    fn unpack(self, at: &At<'_>) -> Result<Self::Kept> {
        self.map(|kept| kept.unpack(at)).transpose()
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        match self {
            Some(kept) => kept.visit(visit),
            None => visit(None),
        }
    }
}

impl<K: Keeps> Keeps for Vec<K> {
    type Kept = Vec<K::Kept>;

    fn unpack(self, at: &At<'_>) -> Result<Self::Kept> {
        self.into_iter().map(|kept| kept.unpack(at)).collect()
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        self.iter_mut().try_for_each(|kept| kept.visit(visit))
    }
}

macro_rules! keeps_tuples {
    ($(($($name:ident)*))*) => {$(
        impl<$($name: Keeps),*> Keeps for ($($name,)*) {
            type Kept = ($($name::Kept,)*);

            #[allow(non_snake_case, reason = "the names of the types serve the values too")]
            fn unpack(self, _at: &At<'_>) -> Result<Self::Kept> {
                let ($($name,)*) = self;
                Ok(($($name.unpack(_at)?,)*))
            }

            #[allow(non_snake_case, reason = "the names of the types serve the values too")]
            fn visit(&mut self, _visit: &mut Visit<'_>) -> Result<()> {
                let ($($name,)*) = self;
                $($name.visit(_visit)?;)*
                Ok(())
            }
        }
    )*};
}

keeps_tuples! { () (A) (A B) (A B C) (A B C D) }
