//! A layer as nodes hold it.

use std::any::TypeId;
use std::marker::PhantomData;

use super::Layer;
use super::called::Called;
use super::forward_mode::{RawJvp, push_tangents};
use super::info::Info;
use super::node::{Pulled, RawBackward, pull_through, run};
use super::rules::LayerRules;
use crate::error::Result;
use crate::graph::{Op, Protector, Pull, Push, Role, Slots};

struct LayerOp {
    info: &'static Info,
    /// Unpacks what forward saved, and calls `pull`.
    run: fn(&RawBackward<'_>, Pulled) -> Result<()>,
    pull: Pulled,
    /// What is done with tangents; `None` for a layer without `fn jvp`.
    push: Option<fn(&RawJvp<'_>) -> Result<()>>,
}

/// What constants of a layer refer to.
struct Of<L, K>(PhantomData<(L, K)>);

impl<L: Layer<K>, K> Of<L, K> {
    const INFO: &'static Info = &Info::of(L::INFO);
    const OP: &'static dyn Op =
        &LayerOp { info: Self::INFO, run: run::<L::Saved>, pull: L::pull, push: L::PUSH };
}

impl LayerRules {
    pub(super) const fn of<L: Layer<K>, K>() -> Self {
        Self {
            info: Of::<L, K>::INFO,
            saves: is_not_unit::<L::Saved>,
            sets: is_not_unit::<L::Attrs>,
            has_jvp: L::PUSH.is_some(),
            op: Of::<L, K>::OP,
        }
    }
}

fn is_not_unit<T: 'static>() -> bool {
    TypeId::of::<T>() != TypeId::of::<()>()
}

impl Op for LayerOp {
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

    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        pull_through(Called::of(self.info, pull.node), (self.run, self.pull), grads, pull)
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        push_tangents(Called::of(self.info, push.node), self.push, push)
    }
}
