//! The results of a backward: gradients of leaves, and of other tensors that retain theirs.

use super::accumulate::{accumulate, own};
use super::hooks::run_leaf_hooks;
use super::traversal::AddressMap;
use crate::error::Result;
use crate::graph::{AnyTensor, Edge, HookId, Sink, Tensor};
use crate::ops::Float;

#[derive(Default)]
pub(super) struct Gradients {
    leaves: AddressMap<(AnyTensor, Option<AnyTensor>), usize>,
    pub(super) retained: Vec<(AnyTensor, AnyTensor)>,
}

impl Gradients {
    pub(super) fn add(&mut self, leaf: &AnyTensor, grad: AnyTensor) -> Result<()> {
        let key = leaf.address().addr();
        if let Some((_, sum)) = self.leaves.get_mut(&key) {
            return accumulate(sum, grad);
        }
        self.leaves.insert(key, (leaf.clone(), Some(grad)));
        Ok(())
    }

    pub(super) fn append(&mut self, later: Self) -> Result<()> {
        self.retained.extend(later.retained);
        let mut leaves = later.leaves.entries.into_iter();
        leaves.try_for_each(|(_, (leaf, grad))| grad.map_or(Ok(()), |grad| self.add(&leaf, grad)))
    }

    /// Writes the gradients of all leaves, and of all tensors that retain theirs; none of them if a hook
    /// fails or there is no memory for a gradient. Hooks before `until` run.
    pub(super) fn commit(mut self, until: HookId) -> Result<()> {
        for (_, (leaf, slot)) in &mut self.leaves.entries {
            if let Some(mut grad) = slot.take() {
                run_leaf_hooks(leaf, until, &mut grad)?;
                *slot = Some(own(grad));
            }
        }
        self.retained.into_iter().for_each(|(tensor, grad)| keep(&tensor, grad));
        for (_, (leaf, grad)) in &mut self.leaves.entries {
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

pub(super) fn keep(tensor: &AnyTensor, grad: AnyTensor) {
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
