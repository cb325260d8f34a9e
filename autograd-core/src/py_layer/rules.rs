//! What is the same in all calls of a layer.

use super::info::Info;
use crate::graph::Op;

/// What is the same in all calls of a layer.
#[doc(hidden)]
pub struct LayerRules {
    pub(super) info: &'static Info,
    /// Whether forward must save something.
    pub(super) saves: fn() -> bool,
    /// Whether forward must set attributes.
    pub(super) sets: fn() -> bool,
    pub(super) has_jvp: bool,
    /// As nodes hold it.
    pub(super) op: &'static dyn Op,
}
