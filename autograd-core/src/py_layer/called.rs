//! A layer's node, as a visit sees it.

use std::any::Any;

use super::call::Notes;
use super::info::Info;
use super::layout::Primal;
use crate::graph::{Edge, NodeRef};

/// What a visit knows of the call.
#[derive(Clone, Copy)]
pub(super) struct Called<'a> {
    pub(super) info: &'a Info,
    /// One for each tensor of the differentiable inputs.
    pub(super) edges: &'a [Edge],
    /// None where each input and output is one tensor, all of one shape.
    notes: Option<&'a Notes>,
}

impl<'a> Called<'a> {
    pub(super) fn of(info: &'a Info, node: &'a NodeRef) -> Self {
        Self { info, edges: node.edges(), notes: node.attrs() }
    }

    /// Position of the first tensor of an input or, counted after these, an output, and how many tensors
    /// it has.
    #[inline]
    pub(super) fn group(&self, group: usize) -> (usize, usize) {
        self.notes.map_or((group, 1), |notes| notes.layout.group(group))
    }

    pub(super) fn groups(&self) -> usize {
        self.notes.map_or(self.info.inputs + 1, |notes| notes.layout.groups())
    }

    /// The shape of a tensor; `None` where all have one.
    #[inline]
    pub(super) fn shape(&self, tensor: usize) -> Option<&'a [usize]> {
        self.notes.map(|notes| notes.layout.shape(tensor))
    }

    pub(super) fn attrs(&self) -> &'a dyn Any {
        self.notes.and_then(|notes| notes.attrs.as_deref()).map_or(&(), |attrs| attrs)
    }

    /// What `jvp` gets, where forward mode was on.
    pub(super) fn primals(&self) -> Option<&'a [Primal]> {
        self.notes?.primals.as_deref()
    }
}
