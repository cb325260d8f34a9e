//! The arguments of a formula.

use proc_macro2::Ident;

use crate::elementwise::model::{FormulaValue, Forward, Kind};
use crate::tokens::local;

/// The arguments: first numbers (inputs, outputs, gradients, in this order), then masks.
pub(super) struct Given {
    pub(super) numbers: Vec<(Ident, FormulaValue)>,
    pub(super) masks: Vec<(Ident, FormulaValue)>,
}

impl Given {
    /// Selects the arguments among all named values.
    pub(super) fn new(forward: &Forward, keeps: impl Fn(&FormulaValue) -> bool) -> Self {
        let kind = |value: &FormulaValue| match value {
            FormulaValue::Input(at) => forward.params[*at].kind,
            FormulaValue::Output(_) | FormulaValue::Gradient(_) => Kind::Real,
        };
        let kept = forward.names().into_iter().filter(|(_, value)| keeps(value));
        let (masks, others): (Vec<_>, Vec<_>) = kept
            .map(|(name, value)| (given_name(&name), value))
            .partition(|(_, value)| kind(value) == Kind::Mask);
        let numbers = others.into_iter().filter(|(_, value)| kind(value) == Kind::Real).collect();
        Self { numbers, masks }
    }

    pub(super) fn has(&self, wanted: &FormulaValue) -> bool {
        self.numbers.iter().chain(&self.masks).any(|(_, value)| value == wanted)
    }
}

/// The local variable for the argument of this name.
pub(super) fn given_name(name: &str) -> Ident {
    local(&format!("given_{name}"))
}
