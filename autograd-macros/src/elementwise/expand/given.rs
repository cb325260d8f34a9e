//! The arguments of a formula.

use proc_macro2::Ident;

use crate::elementwise::model::{Forward, Kind, Meant};
use crate::tokens::local;

/// The arguments: first numbers (inputs, outputs, gradients, in this order), then masks.
pub(super) struct Given {
    pub(super) numbers: Vec<(Ident, Meant)>,
    pub(super) masks: Vec<(Ident, Meant)>,
}

impl Given {
    /// Selects the arguments among all named values.
    pub(super) fn new(forward: &Forward, keeps: impl Fn(&Meant) -> bool) -> Self {
        let kind = |meant: &Meant| match meant {
            Meant::Input(at) => forward.params[*at].kind,
            Meant::Output(_) | Meant::Gradient(_) => Kind::Real,
        };
        let kept = forward.names().into_iter().filter(|(_, meant)| keeps(meant));
        let (masks, others): (Vec<_>, Vec<_>) = kept
            .map(|(name, meant)| (given_name(&name), meant))
            .partition(|(_, meant)| kind(meant) == Kind::Mask);
        let numbers = others.into_iter().filter(|(_, meant)| kind(meant) == Kind::Real).collect();
        Self { numbers, masks }
    }

    pub(super) fn has(&self, wanted: &Meant) -> bool {
        self.numbers.iter().chain(&self.masks).any(|(_, meant)| meant == wanted)
    }
}

/// The local variable for the argument of this name.
pub(super) fn given_name(name: &str) -> Ident {
    local(&format!("given_{name}"))
}
