//! How rules get back what they saved.

use std::mem::replace;
use std::sync::Arc;

use smallvec::SmallVec;

use super::any::{AnyTensor, Element, for_any};
use super::node::{Node, Pull, Push, Slots};
use super::parts::{At, Entries, Held, Role, Saved, SavedTensor};
use super::tensor::Tensor;
use crate::array::Value;
use crate::error::Result;

impl Node {
    /// What was saved: taken or, where the graph is retained, copied.
    ///
    /// # Errors
    ///
    /// [`Error::GraphFreed`](crate::Error::GraphFreed) where an earlier backward took it.
    // Not a call, as what it calls: its result would be moved.
    #[inline(always)]
    pub(crate) fn read(&self, retain: bool, at: &At<'_>) -> Result<Reader<'_>> {
        let entries = self.entries(retain).ok_or_else(|| at.freed())?;
        let mut reader = Reader { entries, next: 0, read: 0 };
        if reader.as_slice().iter().any(|entry| matches!(entry, Saved::Packed(_))) {
            reader.unpack(at)?;
        }
        Ok(reader)
    }

    /// The saved tensors as backward would get them; `None` where an optional one is absent.
    pub(crate) fn saved(&self, at: &At<'_>) -> Result<Vec<Option<AnyTensor>>> {
        self.read(true, at)?.all(at)
    }
}

impl<'g> Pull<'_, 'g> {
    /// What the node saved.
    #[inline(always)]
    pub(crate) fn read(&self) -> Result<Reader<'g>> {
        self.node.read(self.retain, &self.at())
    }

    pub(crate) fn at(&self) -> At<'g> {
        At { node: self.node, create_graph: self.create_graph }
    }
}

impl<'a> Push<'a> {
    /// What the node saved, copied.
    pub(crate) fn read(&self) -> Result<Reader<'a>> {
        self.node.read(true, &self.at())
    }

    pub(crate) fn at(&self) -> At<'a> {
        At { node: self.node, create_graph: self.record }
    }
}

impl SavedTensor {
    /// An error if it was changed in place since.
    #[inline]
    fn check(&self, at: &At<'_>, position: usize) -> Result<()> {
        let (saved, found) = match self.role {
            Role::Input(_) | Role::Intermediate | Role::Constant => {
                (self.version, self.tensor.version())
            }
            // Only its value is kept, so the node notes changes after forward.
            Role::Output(slot) => {
                (0, self.version + at.node.output_version(slot.into()) + self.tensor.version())
            }
            Role::OutputValue(_) => return Ok(()),
        };
        at.check_version(saved, found, || at.node.saved_name(self.role, position))
    }

    /// The tensor as backward gets it.
    #[inline]
    fn restore(self, at: &At<'_>, position: usize) -> Result<(AnyTensor, Role)> {
        self.check(at, position)?;
        let Self { tensor, role, .. } = self;
        match role {
            Role::Output(slot) | Role::OutputValue(slot) if at.create_graph => {
                let node = at.node.clone();
                Ok((for_any!(tensor, t => AnyTensor::from(t.attached(node, slot.into()))), role))
            }
            _ => Ok((tensor, role)),
        }
    }
}

/// What a node saved, entry by entry, as one visit gets it.
pub(crate) struct Reader<'n> {
    entries: Held<'n>,
    next: usize,
    read: usize,
}

impl Reader<'_> {
    #[inline]
    fn as_slice(&self) -> &[Saved] {
        match &self.entries {
            Held::Here(entries) => entries,
            Held::Taken(entries) => entries,
        }
    }

    /// Takes back what hooks hold.
    #[cold]
    fn unpack(&mut self, at: &At<'_>) -> Result<()> {
        let mut entries = self.as_slice().to_vec();
        for entry in &mut entries {
            if let Saved::Packed(packed) = entry {
                *entry = Saved::Tensor(packed.unpack(at)?);
            }
        }
        self.entries = Held::Taken(entries);
        Ok(())
    }

    /// Whether the entries stay in the node.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self.entries, Held::Here(_))
    }

    /// The entry in this place, if it is a tensor. An output has no place in the graph then.
    #[inline(always)]
    pub(crate) fn lent<T: Element>(&self, place: usize, at: &At<'_>) -> Result<Option<&Tensor<T>>> {
        let Some(Saved::Tensor(saved)) = self.as_slice().get(place) else { return Ok(None) };
        saved.check(at, place)?;
        Ok(T::peek(&saved.tensor))
    }

    /// The number in this place.
    #[inline]
    pub(crate) fn number(&self, place: usize) -> Option<f64> {
        match self.as_slice().get(place) {
            Some(Saved::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// The next entry.
    #[inline]
    pub(crate) fn entry(&mut self) -> Saved {
        let place = self.next;
        self.next += 1;
        match &mut self.entries {
            Held::Here(entries) => entries.get(place).cloned(),
            Held::Taken(entries) => entries.get_mut(place).map(|it| replace(it, Saved::Nothing)),
        }
        .unwrap_or(Saved::Nothing)
    }

    /// The next entry, if it is a tensor, and what it was.
    #[inline]
    pub(crate) fn any(&mut self, at: &At<'_>) -> Result<Option<(AnyTensor, Role)>> {
        let Saved::Tensor(saved) = self.entry() else { return Ok(None) };
        self.read += 1;
        saved.restore(at, self.read - 1).map(Some)
    }

    /// How many tensors came.
    pub(crate) fn position(&self) -> usize {
        self.read
    }

    /// The same as [`any`](Self::any), where the type of its elements is known.
    #[inline]
    pub(crate) fn tensor<T: Element>(&mut self, at: &At<'_>) -> Result<Option<Tensor<T>>> {
        Ok(self.any(at)?.map(|(tensor, _)| typed(tensor)))
    }

    /// All tensors as backward gets them; `None` for an optional one that is absent.
    pub(super) fn all(mut self, at: &At<'_>) -> Result<Vec<Option<AnyTensor>>> {
        let mut all = Vec::new();
        while self.next < self.as_slice().len() {
            if let Saved::Absent = self.as_slice()[self.next] {
                all.push(None);
            }
            all.extend(self.any(at)?.map(|(tensor, _)| Some(tensor)));
        }
        Ok(all)
    }
}

/// What the rule of an op saves: tensors, plain values, and tuples and options of them.
pub(crate) trait Saves {
    /// As the rule gets it.
    type Read;
    /// The part that is no tensor, which stays as long as the node.
    type Plain: Send + Sync + 'static;
    /// Whether the op has one input, and each element of its output depends on the same element of
    /// that only. Then `pull` is its own transpose.
    const ELEMENTWISE: bool = false;
    /// Whether there is a rule for forward mode, [`tangent`](Self::tangent).
    const PUSHES: bool = false;
    fn save(self, into: &mut Entries) -> Self::Plain;
    fn read(plain: &Self::Plain, from: &mut Reader<'_>, at: &At<'_>) -> Result<Self::Read>;
    /// From the tangents of the inputs that of the output, which has this shape; `None` where this
    /// call has no rule for that.
    fn tangent(
        _: &Self::Plain,
        _: &mut Reader<'_>,
        _: &At<'_>,
        _: (&Slots, &[usize]),
    ) -> Result<Option<AnyTensor>> {
        Ok(None)
    }
}

/// An input that is saved: the tensor itself.
pub(crate) struct SavedInput<T: Element>(u8, Tensor<T>);

impl<T: Element> SavedInput<T> {
    pub(crate) fn at(position: u8, tensor: &Tensor<T>) -> Self {
        Self(position, tensor.clone())
    }
}

const OUT_OF_STEP: &str = "what was saved is read in its order";

impl<T: Element> Saves for SavedInput<T> {
    type Read = Tensor<T>;
    type Plain = ();

    fn save(self, into: &mut Entries) {
        into.push(Saved::input(self.0.into(), &self.1));
    }

    fn read((): &(), from: &mut Reader<'_>, at: &At<'_>) -> Result<Tensor<T>> {
        Ok(from.tensor(at)?.unwrap_or_else(|| unreachable!("{OUT_OF_STEP}")))
    }
}

/// The value of the only output. Read, it is the output where the backward is recorded.
pub(crate) struct SavedOutput<T: Element>(pub(crate) Value<T>);

impl<T: Element> Saves for SavedOutput<T> {
    type Read = Tensor<T>;
    type Plain = ();

    fn save(self, into: &mut Entries) {
        into.push(Saved::tensor(Tensor::new(self.0), Role::OutputValue(0)));
    }

    fn read((): &(), from: &mut Reader<'_>, at: &At<'_>) -> Result<Tensor<T>> {
        Ok(from.tensor(at)?.unwrap_or_else(|| unreachable!("{OUT_OF_STEP}")))
    }
}

/// Something of the size of a tensor that is none to users: freed by backward, and no hook sees it.
pub(crate) struct Hidden<P>(pub(crate) Arc<P>);

impl<P: Send + Sync + 'static> Saves for Hidden<P> {
    type Read = Arc<P>;
    type Plain = ();

    fn save(self, into: &mut Entries) {
        into.push(Saved::Plain(self.0));
    }

    fn read((): &(), from: &mut Reader<'_>, _: &At<'_>) -> Result<Arc<P>> {
        let Saved::Plain(plain) = from.entry() else { unreachable!("{OUT_OF_STEP}") };
        Ok(plain.downcast().unwrap_or_else(|_| unreachable!("{OUT_OF_STEP}")))
    }
}

/// A small plain value.
pub(crate) struct SavedAttr<P>(pub(crate) P);

impl<P: Clone + Send + Sync + 'static> Saves for SavedAttr<P> {
    type Read = P;
    type Plain = P;

    fn save(self, _: &mut Entries) -> P {
        self.0
    }

    fn read(plain: &P, _: &mut Reader<'_>, _: &At<'_>) -> Result<P> {
        Ok(plain.clone())
    }
}

/// A tensor whose element type is known.
#[inline(always)]
pub(crate) fn typed<T: Element>(tensor: AnyTensor) -> Tensor<T> {
    T::unwrap(tensor).unwrap_or_else(|| unreachable!("the element type was compared"))
}

/// What an op with a rule for forward mode saves. The rule is data: ops that save the same are one type.
pub(crate) struct Pushed<T: Element, S: Saves>(S, PushFn<T, S>);

/// A rule for forward mode: from what was saved, the tangents of the inputs, of which there is one at least, and
/// the output's shape, the tangent of the output; `None` where it is left to the transposed backward.
type PushFn<T, S> =
    fn(<S as Saves>::Read, &[Option<Tensor<T>>], &[usize]) -> Result<Option<Tensor<T>>>;

/// Adds a rule for forward mode to what an op saves.
pub(crate) fn with_push<T: Element, S: Saves>(saved: S, push: PushFn<T, S>) -> Pushed<T, S> {
    Pushed(saved, push)
}

impl<T: Element, S: Saves + 'static> Saves for Pushed<T, S>
where
    S::Read: 'static,
{
    type Read = S::Read;
    type Plain = (S::Plain, PushFn<T, S>);
    const PUSHES: bool = true;

    fn save(self, into: &mut Entries) -> Self::Plain {
        (self.0.save(into), self.1)
    }

    fn read((plain, _): &Self::Plain, from: &mut Reader<'_>, at: &At<'_>) -> Result<S::Read> {
        S::read(plain, from, at)
    }

    fn tangent(
        (plain, push): &Self::Plain,
        from: &mut Reader<'_>,
        at: &At<'_>,
        (tangents, shape): (&Slots, &[usize]),
    ) -> Result<Option<AnyTensor>> {
        Ok(push(S::read(plain, from, at)?, &all_typed(tangents), shape)?.map(T::wrap))
    }
}

// Compiled once for a type of elements, whatever an op saves.
fn all_typed<T: Element>(tangents: &Slots) -> SmallVec<[Option<Tensor<T>>; 2]> {
    tangents.iter().map(|tangent| T::peek(tangent.as_ref()?).cloned()).collect()
}

/// What an op saves whose `pull` is its own transpose: a function of each element above all.
pub(crate) struct Elementwise<S>(pub(crate) S);

impl<S: Saves> Saves for Elementwise<S> {
    type Read = S::Read;
    type Plain = S::Plain;
    const ELEMENTWISE: bool = true;

    fn save(self, into: &mut Entries) -> S::Plain {
        self.0.save(into)
    }

    fn read(plain: &S::Plain, from: &mut Reader<'_>, at: &At<'_>) -> Result<S::Read> {
        S::read(plain, from, at)
    }
}

impl<S: Saves> Saves for Option<S> {
    type Read = Option<S::Read>;
    type Plain = Option<S::Plain>;

    fn save(self, into: &mut Entries) -> Self::Plain {
        if self.is_none() {
            into.push(Saved::Absent);
        }
        self.map(|saved| saved.save(into))
    }

    fn read(plain: &Self::Plain, from: &mut Reader<'_>, at: &At<'_>) -> Result<Self::Read> {
        match plain {
            Some(plain) => S::read(plain, from, at).map(Some),
            None => {
                from.entry();
                Ok(None)
            }
        }
    }
}

macro_rules! saves_tuples {
    ($(($($name:ident $position:tt)*))*) => {$(
        impl<$($name: Saves),*> Saves for ($($name,)*) {
            type Read = ($($name::Read,)*);
            type Plain = ($($name::Plain,)*);

            #[allow(clippy::unused_unit, reason = "of no entries there are none")]
            fn save(self, _into: &mut Entries) -> Self::Plain {
                ($(self.$position.save(_into),)*)
            }

            fn read(_plain: &Self::Plain, _from: &mut Reader<'_>, _at: &At<'_>) -> Result<Self::Read> {
                Ok(($($name::read(&_plain.$position, _from, _at)?,)*))
            }
        }
    )*};
}

saves_tuples! { () (A 0) (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) }
