//! What a backward leaves at the end: gradients of leaves, and of tensors on the way that keep theirs.

use smallvec::SmallVec;

use super::gradient::{accumulate, own};
use super::hooks::run_leaf_hooks;
use super::reach::AddressMap;
use crate::error::Result;
use crate::graph::{AnyTensor, Edge, HookId, Sink, Tensor};
use crate::ops::Float;

/// So many tensors are compared sooner than a map of them is made.
pub(super) const MAX_SCANNED: usize = 8;

/// What a backward writes when its walk is done.
#[derive(Default)]
pub(super) struct Gradients {
    leaves: SmallVec<[(AnyTensor, Option<AnyTensor>); 2]>,
    /// By the addresses of the leaves, where there are many.
    positions: AddressMap<usize, usize>,
    /// Of outputs of ops that keep their gradient.
    pub(super) retained: Vec<(AnyTensor, AnyTensor)>,
}

impl Gradients {
    /// Adds to the gradient of a leaf.
    pub(super) fn add(&mut self, leaf: &AnyTensor, grad: AnyTensor) -> Result<()> {
        let key = leaf.address().addr();
        let is_leaf = |(other, _): &(AnyTensor, _)| other.address().addr() == key;
        let position = match self.leaves.last() {
            Some(last) if is_leaf(last) => Some(self.leaves.len() - 1),
            _ if self.leaves.len() <= MAX_SCANNED => self.leaves.iter().position(is_leaf),
            _ => self.positions.get(&key).copied(),
        };
        if let Some(position) = position {
            return accumulate(&mut self.leaves[position].1, grad);
        }
        self.leaves.push((leaf.clone(), Some(grad)));
        if self.leaves.len() > MAX_SCANNED {
            // At first with all that were scanned so far.
            let unmapped = self.leaves.iter().enumerate().skip(self.positions.len());
            self.positions.extend(unmapped.map(|(at, (leaf, _))| (leaf.address().addr(), at)));
        }
        Ok(())
    }

    /// Adds those of a later backward.
    pub(super) fn append(&mut self, later: Self) -> Result<()> {
        self.retained.extend(later.retained);
        let mut leaves = later.leaves.into_iter();
        leaves.try_for_each(|(leaf, grad)| grad.map_or(Ok(()), |grad| self.add(&leaf, grad)))
    }

    /// Gives every leaf its gradient, and every tensor on the way that keeps one; all of them, or none
    /// if a hook fails or there is no memory for a gradient. Hooks before `until` run.
    pub(super) fn commit(mut self, until: HookId) -> Result<()> {
        for (leaf, slot) in &mut self.leaves {
            if let Some(mut grad) = slot.take() {
                run_leaf_hooks(leaf, until, &mut grad)?;
                *slot = Some(own(grad));
            }
        }
        self.retained.into_iter().for_each(|(tensor, grad)| keep(&tensor, grad));
        for (leaf, grad) in &mut self.leaves {
            if let Some(grad) = grad.take() {
                keep(leaf, grad);
            }
        }
        Ok(())
    }
}

impl<'g> Sink<'g> for Gradients {
    #[inline]
    fn wants(&self, edge: &Edge) -> bool {
        !matches!(edge, Edge::None(_))
    }

    fn wants_all(&self) -> bool {
        true
    }

    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()> {
        match edge {
            Edge::Leaf(leaf) => self.add(leaf, grad),
            _ => Ok(()),
        }
    }
}

/// Adds a gradient, which is owned, to the kept one.
fn keep(tensor: &AnyTensor, grad: AnyTensor) {
    fn add<T: Float>(tensor: &Tensor<T>, grad: Tensor<T>) {
        tensor.update_grad(|before| match before {
            Some(before) => (before + grad).owned(),
            None => grad,
        });
    }
    match (tensor, grad) {
        (AnyTensor::Float32(tensor), AnyTensor::Float32(grad)) => add(tensor, grad),
        (AnyTensor::Float64(tensor), AnyTensor::Float64(grad)) => add(tensor, grad),
        _ => unreachable!("a gradient has its tensor's element type"),
    }
}
