//! A call of few numbers: of one or two tensors, with one output, all of one shape. What it notes stands in
//! the node itself, which is taken when the call starts, as that of a small built-in op does.

use std::panic::Location;
use std::ptr::null;

#[cfg(not(feature = "verify"))]
use super::environment;
use super::inputs::TensorInput;
use super::node::{Called, Notes, pull_through};
use super::rules::LayerRules;
use super::saved::Role;
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, At, Begun, Edge, ForwardGuard, Handle, Kept, NodeRef, Pull, Slots, Small, SmallCall,
    SmallOp, is_watched,
};

/// A call that may turn out to be small: its node, with the edges.
pub(super) struct InlineCall(pub(super) NodeRef);

impl InlineCall {
    #[inline]
    pub(super) fn begin(
        inputs: &[&dyn TensorInput],
        layer: &'static &'static dyn SmallOp,
        rules: &LayerRules,
        location: &'static Location<'static>,
    ) -> Begun {
        let (first, second) = match inputs {
            [first] => (first.single(), None),
            [first, second] => match second.single() {
                None => return Begun::Large,
                second => (first.single(), second),
            },
            _ => return Begun::Large,
        };
        let Some(first) = first else { return Begun::Large };
        if !rules.may_be_small() || is_watched() {
            return Begun::Large;
        }
        // A call with notes of its own refuses.
        #[cfg(not(feature = "verify"))]
        if environment::asks() {
            return Begun::Large;
        }
        first.begin(second, layer, location)
    }

    /// Keeps a tensor in the node, if that has place for it.
    #[inline]
    pub(super) fn keep(&mut self, tensor: &dyn Handle) -> bool {
        self.0.small_mut().is_some_and(|small| tensor.keep_in(small))
    }

    /// Forward runs no longer, and the output becomes that of the call; what has begun comes back where
    /// that is not small. An error if an input was changed meanwhile.
    #[inline(always)]
    pub(super) fn end(
        self,
        inputs: &[&dyn TensorInput],
        running: Option<ForwardGuard>,
        op: &'static &'static dyn SmallOp,
        output: &mut dyn Handle,
    ) -> Result<Option<Self>, Box<Error>> {
        let [first, rest @ ..] = inputs else { return Ok(Some(self)) };
        let Some(first) = first.single() else { return Ok(Some(self)) };
        let second = rest.first().and_then(|second| second.single());
        if let Some(running) = running {
            running.check(|input| match (input.position, second) {
                (1, Some(second)) => second.version(),
                _ => first.version(),
            })?;
        }
        if is_watched() {
            return Ok(Some(self));
        }
        let second = second.map_or(null(), Handle::address);
        let call = SmallCall { op, shape: first.shape(), inputs: [first.address(), second] };
        Ok(output.end(self.0, &call).err().map(Self))
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

    fn input_name(&self, input: usize) -> String {
        self.info.input_name(input).unwrap_or_default().to_owned()
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
        let edges = small.edges();
        let called = Called { rules: self, edges, notes: Notes::Inline(&small.kept) };
        pull_through(called, edges, Slots::from_buf([Some(grad)]), pull)
    }
}
