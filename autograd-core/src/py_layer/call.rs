//! A call of a layer that is recorded: what is noted while forward runs, and what its node holds.

use std::any::Any;
use std::mem::take;
use std::panic::Location;
use std::sync::Arc;

use super::layout::{Inputs, Layout, Primal};
use super::rules::LayerRules;
use super::saved::Pack;
use crate::graph::{NodeRef, Plain, State};

/// What is noted while forward runs.
#[derive(Default)]
pub(super) struct Call {
    pub(super) inputs: Inputs,
    pub(super) saved: Pack,
}

/// What a node holds beside what was saved. A call of single tensors of one shape without attributes needs
/// none of it.
pub(super) struct Notes {
    pub(super) layout: Layout,
    /// What forward set beside tensors.
    pub(super) attrs: Option<Box<dyn Any + Send + Sync>>,
    pub(super) primals: Option<Box<[Primal]>>,
}

impl Call {
    /// The node of the call.
    pub(super) fn record(
        &mut self,
        rules: &LayerRules,
        attrs: Option<Box<dyn Any + Send + Sync>>,
        location: &'static Location<'static>,
    ) -> NodeRef {
        let Self { inputs, saved } = self;
        let is_plain = inputs.layout.is_plain() && attrs.is_none() && inputs.primals.is_none();
        let notes = (!is_plain).then(|| {
            let (layout, primals) = (take(&mut inputs.layout), inputs.primals.take());
            Arc::new(Notes { layout, attrs, primals }) as Plain
        });
        let (edges, saved) = (take(&mut inputs.edges), take(&mut saved.0));
        NodeRef::record(rules.op, edges.into(), State::new(notes, saved), location)
    }
}
