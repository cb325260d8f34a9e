//! Backward and `jvp`, whose parameters follow from forward.

use syn::{Attribute, GenericArgument, PathArguments, Type};

use super::signature::{
    BACKWARD_CONTEXT, JVP_CONTEXT, parameters, pattern_name, returned, take_context,
};
use crate::attributes::{is, is_cfg, is_doc, is_lint};
use crate::errors::Errors;
use crate::messages;
use crate::model::{Derivative, Function, GradientParam, argument_of, bare};
use crate::tokens::text;

pub(super) fn derivative(function: &Function, op: &str, errors: &mut Errors) -> Derivative {
    let name = function.sig.ident.to_string();
    let written = if name == "backward" { BACKWARD_CONTEXT } else { JVP_CONTEXT };
    let sig = &function.sig;
    let own =
        sig.generics.params.iter().any(|param| !matches!(param, syn::GenericParam::Lifetime(_)));
    if own {
        errors.at(&sig.generics, messages::generic_derivative(&name));
    }
    if !own && let Some(clause) = &sig.generics.where_clause {
        errors.at(clause, messages::derivative_where(&name));
    }
    let mut raw = parameters(function, &messages::receiver(&name, written), errors);
    for param in &raw {
        let own = |lifetime: &str| {
            sig.generics.lifetimes().any(|own| own.lifetime.to_string() == lifetime)
        };
        if let Some(lifetime) = lifetime_of(&param.ty)
            && lifetime.ident != "_"
            && !own(&lifetime.to_string())
        {
            errors.at(lifetime, messages::lent(&name, &lifetime.to_string()));
        }
    }
    let context = take_context(&mut raw, sig, &name, op, errors);
    let params = raw
        .into_iter()
        .map(|param| {
            reject_attributes(&param.attrs, errors);
            if let Type::ImplTrait(ty) = bare(&param.ty) {
                let is_gradient = name == "backward";
                let what = if is_gradient { "a gradient" } else { "an input or a tangent" };
                errors.at(ty, messages::derivative_impl_trait(what));
            }
            GradientParam { name: pattern_name(&param.pat), ty: *param.ty }
        })
        .collect();
    let returns = returned(&sig.output);
    Derivative { function: function.clone(), context, params, returns }
}

fn lifetime_of(ty: &Type) -> Option<&syn::Lifetime> {
    match bare(argument_of(ty, "Option").unwrap_or(ty)) {
        Type::Reference(reference) => reference.lifetime.as_ref(),
        _ => None,
    }
}

pub(crate) fn reject_attributes(attrs: &[Attribute], errors: &mut Errors) {
    for attr in attrs {
        if is(attr, &["default", "stop_gradient"]) {
            errors.at(attr, messages::attribute_on_gradient(&text(attr.path())));
        } else if is_cfg(attr) {
            errors.at(attr, messages::cfg_inside(&text(attr.path()), "a parameter"));
        } else if !is_lint(attr) && !is_doc(attr) {
            errors.at(attr, messages::unknown_attribute(&text(attr.path()), None));
        }
    }
}

/// Reports and removes arguments of `Grads`, which has none in user code.
pub(super) fn bare_grads(ty: &mut Type, errors: &mut Errors) {
    let Type::Path(path) = ty else { return };
    let Some(last) = path.path.segments.last_mut() else { return };
    let PathArguments::AngleBracketed(arguments) = &mut last.arguments else { return };
    if last.ident == "Result" {
        if let Some(GenericArgument::Type(inner)) = arguments.args.first_mut() {
            bare_grads(inner, errors);
        }
    } else if last.ident == "Grads" {
        errors.at(&*arguments, messages::grads_arguments());
        last.arguments = PathArguments::None;
    }
}
