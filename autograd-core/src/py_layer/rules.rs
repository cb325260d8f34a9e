//! What is the same in all calls of a layer.

use std::any::TypeId;

use super::Layer;
use super::forward_mode::RawJvp;
use super::info::Info;
use super::node::{Pulled, RawBackward, run};
use crate::error::Result;

/// What is the same in all calls of a layer.
#[doc(hidden)]
pub struct LayerRules {
    pub(super) info: Info,
    /// Whether forward must save something.
    pub(super) saves: fn() -> bool,
    /// Whether forward must set attributes.
    pub(super) sets: fn() -> bool,
    /// What its node does with gradients: unpacks what forward saved, and calls `pull`.
    pub(super) run: fn(&RawBackward<'_>, Pulled) -> Result<()>,
    /// Calls the user's backward.
    pub(super) pull: Pulled,
    /// What its node does with tangents; `None` for a layer without `fn jvp`.
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
