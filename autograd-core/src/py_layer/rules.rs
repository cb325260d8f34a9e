//! What is the same in all calls of a layer: the op of its nodes.

use std::any::TypeId;

use super::Layer;
use super::backward::{Pulled, RawBackward, run};
use super::barrier::Barrier;
use super::call::Called;
use super::forward_mode::{RawJvp, push_tangents};
use super::inputs::Info;
use super::saved::Unpack;
use crate::error::Result;
use crate::graph::{AnyTensor, At, GradMode, Op, Protector, Pull, Push, Role, Slots, for_any};

/// What is the same in all calls of a layer.
#[doc(hidden)]
pub struct LayerRules {
    pub(super) info: Info,
    /// Whether forward must save something.
    pub(super) saves: fn() -> bool,
    /// Whether forward must set attributes.
    pub(super) sets: fn() -> bool,
    /// Unpacks what forward saved, and calls `pull`.
    pub(super) run: fn(&RawBackward<'_>, &mut Unpack<'_>, Pulled) -> Result<()>,
    pub(super) pull: Pulled,
    /// What is done with tangents; `None` for a layer without `fn jvp`.
    pub(super) push: Option<fn(&RawJvp<'_>) -> Result<()>>,
}

impl LayerRules {
    pub(super) const fn of<L: Layer<K>, K>() -> Self {
        Self {
            info: Info::of(L::INFO),
            saves: is_not_unit::<L::Saved>,
            sets: is_not_unit::<L::Attrs>,
            run: run::<L::Saved>,
            pull: L::pull,
            push: L::PUSH,
        }
    }
}

fn is_not_unit<T: 'static>() -> bool {
    TypeId::of::<T>() != TypeId::of::<()>()
}

impl Op for LayerRules {
    fn name(&self) -> &'static str {
        self.info.name
    }

    fn input_name(&self, position: usize) -> String {
        self.info.input(position)
    }

    fn saved_name(&self, role: Role, position: usize) -> String {
        match role {
            Role::Input(input) => self.input_name(input.into()),
            _ => format!("saved tensor {}", position + 1),
        }
    }

    fn has_jvp(&self) -> bool {
        self.push.is_some()
    }

    fn pull<'g>(&self, mut grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let (node, edges, once) = (pull.node, pull.node.edges(), self.info.once_differentiable);
        // Who made the gradients, for a node that refuses a second order.
        let barrier = (once && pull.create_graph)
            .then(|| Barrier::record(self.info.name, edges, &grads, node.location));
        // Backward may change them in place; nobody else shall see that.
        grads.iter_mut().flatten().for_each(AnyTensor::unshare);
        let at = At { node, create_graph: pull.create_graph && !once };
        let saved = &mut Unpack(at.read(pull.retain)?);
        let wants = || edges.iter().map(|edge| pull.wants(edge)).collect();
        let wants = (!pull.wants_all).then(wants);
        let mut raw = RawBackward::new(at, Called::of(&self.info, node), wants, grads);
        {
            let _off = once.then(|| GradMode::set(false));
            (self.run)(&raw, saved, self.pull)?;
        }
        raw.deliver(|tensor, mut grad| {
            if let Some(barrier) = &barrier {
                // One slot for each: gradients of different inputs are never summed.
                grad = for_any!(grad, t => t.attached(barrier.clone(), tensor as u32).into());
            }
            pull.sink.deliver(&edges[tensor], grad)
        })
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        push_tangents(Called::of(&self.info, push.node), self.push, push)
    }
}
