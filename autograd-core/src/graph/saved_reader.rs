//! How rules read what they saved.

use std::mem::replace;
use std::sync::Arc;

use super::any::{AnyTensor, Element, for_any};
use super::node::{Pull, Push};
use super::node_parts::{At, Role, Saved, SavedEntries, SavedTensor};
use super::tensor::Tensor;
use crate::error::{Error, Result};

impl<'n> At<'n> {
    /// The saved entries: taken, or copied if the graph is retained; an error if they are gone.
    // Inlined, as are its callees: a call would move the result.
    #[inline(always)]
    pub(crate) fn read(self, retain: bool) -> Result<SavedReader<'n>> {
        let entries = self.node.entries(retain).ok_or_else(|| self.freed())?;
        let mut reader = SavedReader { entries, next: 0, read: 0, at: self };
        // Those that a node holds itself are not packed.
        if let SavedEntries::Taken(entries) = &mut reader.entries {
            for entry in entries {
                if let Saved::Packed(packed) = entry {
                    *entry = Saved::Tensor(packed.unpack(&self)?);
                }
            }
        }
        Ok(reader)
    }

    /// The values of outputs that the node saved, as backward would get them, each with the slot of its output.
    #[cfg(feature = "static-graph")]
    pub(crate) fn saved_outputs(self) -> Result<Vec<(u16, AnyTensor)>> {
        self.read(true)?.outputs()
    }

    /// The saved tensors as backward would get them; `None` for an optional one that is absent.
    pub(crate) fn saved(self) -> Result<Vec<Option<AnyTensor>>> {
        self.read(true)?.all()
    }
}

impl<'g> Pull<'_, 'g> {
    #[inline(always)]
    pub(crate) fn read(&self) -> Result<SavedReader<'g>> {
        self.at().read(self.retain)
    }

    pub(crate) fn at(&self) -> At<'g> {
        At { node: self.node, create_graph: self.create_graph }
    }
}

impl<'a> Push<'a> {
    pub(crate) fn read(&self) -> Result<SavedReader<'a>> {
        self.at().read(true)
    }

    pub(crate) fn at(&self) -> At<'a> {
        At { node: self.node, create_graph: self.record }
    }
}

impl SavedTensor {
    fn check(&self, at: At<'_>, position: usize) -> Result<()> {
        let (saved, found) = match self.role {
            Role::Input(_) | Role::Intermediate | Role::Constant => {
                (self.version, self.tensor.version())
            }
            // Only the value is kept; the node records changes after forward.
            Role::Output(slot) => {
                (0, self.version + at.node.output_version(slot.into()) + self.tensor.version())
            }
            Role::OutputValue(_) => return Ok(()),
        };
        match saved == found {
            true => Ok(()),
            false => Err(self.changed(at, position, [saved, found])),
        }
    }

    #[cold]
    #[inline(never)]
    fn changed(&self, at: At<'_>, position: usize, [saved, found]: [u32; 2]) -> Error {
        at.changed(saved, found, at.node.saved_name(self.role, position))
    }

    #[inline]
    fn restore(self, at: At<'_>, position: usize) -> Result<(AnyTensor, Role)> {
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

pub(crate) struct SavedReader<'n> {
    entries: SavedEntries<'n>,
    /// The next entry, and the number of tensors before it.
    next: usize,
    read: usize,
    /// The node that saved them.
    pub(crate) at: At<'n>,
}

impl SavedReader<'_> {
    #[inline]
    fn as_slice(&self) -> &[Saved] {
        match &self.entries {
            SavedEntries::Here(entries) => entries,
            SavedEntries::Taken(entries) => entries,
        }
    }

    /// The entry at `place`, borrowed, if it is a tensor. An output then has no place in the graph.
    #[inline(always)]
    pub(crate) fn peek_any(&self, place: usize) -> Result<Option<&AnyTensor>> {
        let Some(Saved::Tensor(saved)) = self.as_slice().get(place) else { return Ok(None) };
        saved.check(self.at, place)?;
        Ok(Some(&saved.tensor))
    }

    #[inline(always)]
    pub(crate) fn peek<T: Element>(&self, place: usize) -> Result<Option<&Tensor<T>>> {
        Ok(self.peek_any(place)?.and_then(T::peek))
    }

    /// The entry at `place`, if it is a number.
    #[inline]
    pub(crate) fn peek_number(&self, place: usize) -> Option<f64> {
        match self.as_slice().get(place) {
            Some(Saved::Number(number)) => Some(*number),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn entry(&mut self) -> Saved {
        let place = self.next;
        self.next += 1;
        match &mut self.entries {
            SavedEntries::Here(entries) => entries.get(place).cloned(),
            SavedEntries::Taken(entries) => {
                entries.get_mut(place).map(|it| replace(it, Saved::Nothing))
            }
        }
        .unwrap_or(Saved::Nothing)
    }

    /// The next entry and its role, if it is a tensor.
    #[inline]
    pub(crate) fn any(&mut self) -> Result<Option<(AnyTensor, Role)>> {
        let Saved::Tensor(saved) = self.entry() else { return Ok(None) };
        self.read += 1;
        saved.restore(self.at, self.read - 1).map(Some)
    }

    /// The next entry, if it is a number.
    pub(crate) fn number(&mut self) -> Option<f64> {
        let number = self.peek_number(self.next)?;
        self.next += 1;
        Some(number)
    }

    pub(crate) fn position(&self) -> usize {
        self.read
    }

    /// The next entry, which must be a tensor of `T` or absent.
    #[inline]
    pub(crate) fn optional<T: Element>(&mut self) -> Result<Option<Tensor<T>>> {
        Ok(self.any()?.map(|(tensor, _)| typed(tensor)))
    }

    /// The next entry, which must be a tensor of `T`.
    pub(crate) fn tensor<T: Element>(&mut self) -> Result<Tensor<T>> {
        Ok(self.optional()?.unwrap_or_else(|| entry_mismatch()))
    }

    /// The next entry, which must be neither a tensor nor a number.
    pub(crate) fn plain<P: Send + Sync + 'static>(&mut self) -> Arc<P> {
        let Saved::Plain(plain) = self.entry() else { entry_mismatch() };
        plain.downcast().unwrap_or_else(|_| entry_mismatch())
    }

    /// The tensors that hold the values of outputs, each with the slot of its output.
    #[cfg(feature = "static-graph")]
    fn outputs(mut self) -> Result<Vec<(u16, AnyTensor)>> {
        let mut outputs = Vec::new();
        while self.next < self.as_slice().len() {
            if let Some((tensor, Role::Output(slot) | Role::OutputValue(slot))) = self.any()? {
                outputs.push((slot, tensor));
            }
        }
        Ok(outputs)
    }

    fn all(mut self) -> Result<Vec<Option<AnyTensor>>> {
        let mut all = Vec::new();
        while self.next < self.as_slice().len() {
            if let Saved::Absent = self.as_slice()[self.next] {
                all.push(None);
            }
            all.extend(self.any()?.map(|(tensor, _)| Some(tensor)));
        }
        Ok(all)
    }
}

#[inline(always)]
pub(crate) fn typed<T: Element>(tensor: AnyTensor) -> Tensor<T> {
    T::unwrap(tensor).unwrap_or_else(|| unreachable!("the element type was compared"))
}

#[cold]
fn entry_mismatch() -> ! {
    unreachable!("what was saved is read in its order")
}
