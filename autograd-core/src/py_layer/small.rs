//! A call of few numbers: of one or two tensors, with one output, all of one shape. What it notes stands in
//! the node itself, which is taken when the call starts, as that of a small built-in op does.

use std::panic::Location;

#[cfg(not(feature = "verify"))]
use super::environment;
use super::inputs::TensorInput;
use super::node::{Called, Notes, pull_through};
use super::outputs::Visitor;
use super::rules::LayerRules;
use super::saved::Role;
use crate::array::shape::{copied, same};
use crate::error::Result;
use crate::graph::{
    AnyTensor, At, Blank, Edge, Handle, Kept, NodeRef, Pull, Slots, Small, SmallOp, is_watched,
};

/// A call that may turn out to be small: its node, with the edges.
pub(super) struct Few(NodeRef);

impl Few {
    /// `None` where it cannot be small.
    #[inline]
    pub(super) fn start(
        inputs: &[&dyn TensorInput],
        rules: &LayerRules,
        location: &'static Location<'static>,
    ) -> Option<Self> {
        let (first, second) = match inputs {
            [first] => (first.single()?, None),
            [first, second] => (first.single()?, Some(second.single()?)),
            _ => return None,
        };
        let alike = |second: &dyn Handle| same(second.shape(), first.shape());
        if !first.is_few() || !second.is_none_or(alike) || !rules.may_be_small() || is_watched() {
            return None;
        }
        // A call with notes of its own refuses.
        #[cfg(not(feature = "verify"))]
        if environment::asks() {
            return None;
        }
        let mut node = Blank::new(0, location);
        let [left, right] = &mut node.small().edges;
        let level = first.draw_edge(left);
        let level = level.max(second.map_or(0, |second| second.draw_edge(right)));
        node.raise(level);
        Some(Self(node.done()))
    }

    /// Keeps a tensor in the node, if that has place for it.
    #[inline]
    pub(super) fn keep(&mut self, tensor: &dyn Handle) -> bool {
        let Some(small) = self.0.small_mut() else { return false };
        tensor.is_few() && small.keep(tensor.any(), tensor.version())
    }

    /// The node of the call; what has begun comes back where that is not small.
    #[inline]
    pub(super) fn finish(
        mut self,
        inputs: &[&dyn TensorInput],
        op: &'static &'static dyn SmallOp,
        outputs: &Visitor<'_>,
    ) -> Result<NodeRef, Self> {
        let single = |position: usize| inputs.get(position).and_then(|input| input.single());
        let (Some(input), Some(output)) = (single(0), outputs.only()) else { return Err(self) };
        if !same(output.shape(), input.shape()) || is_watched() {
            return Err(self);
        }
        let Some(small) = self.0.small_mut() else { return Err(self) };
        let (first, second) = (input.address(), single(1).map(Handle::address));
        let output = output.address();
        small.op = op;
        small.mark_kept(|address| match address {
            _ if address == first => (Role::Input(0).mark(), false),
            _ if Some(address) == second => (Role::Input(1).mark(), false),
            // The output holds the node, so the node holds its value only.
            _ if address == output => (Role::Output(0).mark(), true),
            _ => (Role::Other.mark(), false),
        });
        Ok(self.0)
    }

    /// The edges, for notes elsewhere.
    pub(super) fn into_edges(mut self) -> [Edge; 2] {
        self.0.small_mut().map_or(Small::BLANK.edges, Small::take_edges)
    }

    /// What is kept up to now, likewise.
    pub(super) fn take_kept(&mut self) -> Kept {
        self.0.small_mut().map_or(Kept::Nothing, Small::take_kept)
    }
}

impl SmallOp for LayerRules {
    fn name(&self) -> &'static str {
        self.info.name
    }

    fn inputs(&self) -> usize {
        self.info.inputs
    }

    fn has_jvp(&self) -> bool {
        self.push.is_some()
    }

    fn kept_name(&self, kept: &Kept, place: usize) -> String {
        let role = kept.get(place).map_or(Role::Other, |(_, _, mark)| Role::of_mark(mark));
        role.name(&self.info, place + 1)
    }

    fn saved(&self, small: &Small, at: &At<'_>) -> Result<Option<Vec<Option<AnyTensor>>>> {
        let kept = (0..2).map_while(|place| Some((place, small.kept.get(place)?)));
        let shown = kept.map(|(place, (tensor, version, mark))| {
            let role = Role::of_mark(mark);
            role.reattach(tensor, version, at, || role.name(&self.info, place + 1)).map(Some)
        });
        shown.collect::<Result<_>>().map(Some)
    }

    fn pull<'g>(&self, small: &'g Small, grad: AnyTensor, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let shape = copied(grad.shape());
        let notes = Notes::Few { kept: &small.kept, shape: &shape };
        let called = Called { rules: self, edges: small.edges(), notes };
        pull_through(called, small.edges(), Slots::from_buf([Some(grad)]), pull)
    }
}
