//! What is the same in all calls of a layer.

use std::any::TypeId;
use std::marker::PhantomData;

use super::Layer;
use super::forward_mode::RawJvp;
use super::info::Info;
use super::node::{Pulled, RawBackward, run};
use super::saved::Saved;
use crate::error::Result;
use crate::graph::SmallOp;

/// What a call starts from.
#[doc(hidden)]
pub struct Rules {
    pub(super) rules: &'static LayerRules,
    /// The same as small nodes hold it.
    pub(super) small: &'static &'static dyn SmallOp,
}

/// What is the same in all calls of a layer.
#[doc(hidden)]
pub struct LayerRules {
    pub(super) info: Info,
    /// Whether forward must save something.
    pub(super) saves: fn() -> bool,
    /// Whether forward must set attributes.
    pub(super) sets: fn() -> bool,
    /// Whether what it saves may stand in a node.
    saves_inline: bool,
    /// What its node does with gradients: unpacks what forward saved, and calls `pull`.
    pub(super) run: fn(&RawBackward<'_>, Pulled) -> Result<()>,
    /// Calls the user's backward.
    pub(super) pull: Pulled,
    /// What its node does with tangents; `None` for a layer without `fn jvp`.
    pub(super) push: Option<fn(&RawJvp<'_>) -> Result<()>>,
}

impl Rules {
    pub(super) const fn of<L: Layer<K>, K>() -> Self {
        Self { rules: Of::<L, K>::RULES, small: Of::<L, K>::SMALL }
    }
}

/// What constants of a layer refer to.
struct Of<L, K>(PhantomData<(L, K)>);

impl<L: Layer<K>, K> Of<L, K> {
    const RULES: &'static LayerRules = &LayerRules {
        info: Info::of(L::INFO),
        saves: is_not_unit::<L::Saved>,
        sets: is_not_unit::<L::Attrs>,
        saves_inline: L::Saved::TENSORS <= 2,
        run: run::<L::Saved>,
        pull: L::pull,
        push: L::PUSH,
    };
    const AS_SMALL: &'static dyn SmallOp = Self::RULES;
    const SMALL: &'static &'static dyn SmallOp = &Self::AS_SMALL;
}

impl LayerRules {
    /// Whether a call whose tensors are all of few numbers can be noted in its node.
    #[inline]
    pub(super) fn may_be_small(&self) -> bool {
        self.saves_inline && self.info.is_all_differentiable() && !(self.sets)()
    }
}

fn is_not_unit<T: 'static>() -> bool {
    TypeId::of::<T>() != TypeId::of::<()>()
}
