//! What a formula is given.

use proc_macro2::{Ident, Span};
use quote::format_ident;

use crate::elementwise::model::{Forward, Kind, Meant, Param};
use crate::tokens::plain_name;

/// What a formula is given, by position: numbers that are inputs, masks, outputs, gradients.
pub(super) struct Given {
    pub(super) reals: Vec<usize>,
    pub(super) masks: Vec<usize>,
    pub(super) outputs: Vec<usize>,
    pub(super) gradients: Vec<usize>,
}

impl Given {
    pub(super) fn all(forward: &Forward) -> Self {
        Self {
            reals: (0..forward.of(Kind::Real).count()).collect(),
            masks: (0..forward.of(Kind::Mask).count()).collect(),
            outputs: Vec::new(),
            gradients: Vec::new(),
        }
    }

    pub(super) fn derived(forward: &Forward) -> Self {
        Self { gradients: (0..forward.outputs.len()).collect(), ..Self::all(forward) }
    }

    pub(super) fn by(forward: &Forward, named: &[Meant]) -> Self {
        let of = |kind: Kind| {
            let params = forward.params.iter().enumerate().filter(|(_, param)| param.kind == kind);
            let params = params.enumerate();
            params
                .filter(|(_, (position, _))| named.contains(&Meant::Input(*position)))
                .map(|(i, _)| i)
                .collect()
        };
        let outputs = 0..forward.outputs.len();
        Self {
            reals: of(Kind::Real),
            masks: of(Kind::Mask),
            outputs: outputs.clone().filter(|k| named.contains(&Meant::Output(*k))).collect(),
            gradients: outputs.filter(|k| named.contains(&Meant::Gradient(*k))).collect(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.reals.len() + self.outputs.len() + self.gradients.len()
    }

    pub(super) fn names(&self, forward: &Forward) -> Vec<Ident> {
        let inputs: Vec<_> = forward.of(Kind::Real).map(|param| &param.ident).collect();
        let inputs = self.reals.iter().map(|&i| given_name(inputs[i]));
        let named = |prefix: &str, k: usize| {
            given_name(&Ident::new(&format!("{prefix}{}", forward.output(k)), Span::call_site()))
        };
        let outputs = self.outputs.iter().map(|&k| named("", k));
        let gradients = self.gradients.iter().map(|&k| named("d", k));
        inputs.chain(outputs).chain(gradients).collect()
    }

    pub(super) fn mask_names(&self, forward: &Forward) -> Vec<Ident> {
        let masks: Vec<_> = forward.of(Kind::Mask).map(|param| &param.ident).collect();
        self.masks.iter().map(|&i| given_name(masks[i])).collect()
    }
}

/// The local that holds what is given under a name.
pub(super) fn given_name(ident: &Ident) -> Ident {
    crate::tokens::local(&format!("given_{}", plain_name(ident)))
}

pub(super) fn field(param: &Param) -> Ident {
    format_ident!("plain_{}", plain_name(&param.ident))
}
