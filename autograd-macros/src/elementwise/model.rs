//! An elementwise block as a [`Layer`](crate::model::Layer) on tensors: a number of the formula is a tensor of
//! floats, a mask a tensor of `bool`.

use syn::Type;

use crate::model::{Derivative, Forward, Param, ParamKind, element, is_named};
use crate::tokens::plain_name;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Real,
    Mask,
    Plain,
}

/// The kind of a type of the formula.
pub(crate) fn kind(ty: &Type) -> Kind {
    if is_named(ty, "Real") {
        Kind::Real
    } else if is_named(ty, "Mask") {
        Kind::Mask
    } else {
        Kind::Plain
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormulaValue {
    /// A parameter of forward, by position.
    Input(usize),
    Output(usize),
    Gradient(usize),
}

impl Param {
    pub(crate) fn formula_kind(&self) -> Kind {
        match &self.kind {
            ParamKind::Tensor(input) if element(&input.tensor) == "bool" => Kind::Mask,
            ParamKind::Tensor(_) => Kind::Real,
            ParamKind::Plain { .. } => Kind::Plain,
        }
    }
}

impl Forward {
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(move |param| param.formula_kind() == kind)
    }

    pub(crate) fn output_name(&self, k: usize) -> String {
        if self.outputs.parts.len() > 1 { format!("y{k}") } else { "y".to_owned() }
    }

    pub(crate) fn names(&self) -> Vec<(String, FormulaValue)> {
        let inputs = self.params.iter().enumerate();
        let inputs = inputs.map(|(i, param)| (plain_name(&param.ident), FormulaValue::Input(i)));
        let outputs = (0..self.outputs.parts.len()).map(|k| (self.output_name(k), k));
        let values = outputs.clone().map(|(name, k)| (name, FormulaValue::Output(k)));
        let gradients = outputs.map(|(name, k)| (format!("d{name}"), FormulaValue::Gradient(k)));
        inputs.chain(values).chain(gradients).collect()
    }

    pub(crate) fn value_named(&self, name: &str) -> Option<FormulaValue> {
        self.names().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl Derivative {
    /// The values that its parameters name, without unknown names.
    pub(crate) fn named_values(&self, forward: &Forward) -> Vec<FormulaValue> {
        let names = self.params.iter().filter_map(|param| param.name.as_ref()).map(plain_name);
        names.filter_map(|name| forward.value_named(&name)).collect()
    }
}
