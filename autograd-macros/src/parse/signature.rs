//! What all signatures have in common, whoever they belong to.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{Attribute, FnArg, Pat, ReturnType, Signature, Type};

use crate::errors::Errors;
use crate::messages;
use crate::model::{Function, argument_of, last_segment};
use crate::tokens::plain_name;

/// What is wrong with a signature whoever it belongs to.
pub(crate) fn qualifiers(function: &Function, name: &str, errors: &mut Errors) {
    let sig = &function.sig;
    for attr in &function.attrs {
        if attr.path().is_ident("cfg") {
            errors.at(attr, messages::cfg_inside(&format!("`{name}`")));
        }
    }
    if let Some(token) = &sig.constness {
        errors.at(token, messages::qualifier("const", name));
    }
    if let Some(token) = &sig.asyncness {
        errors.at(token, messages::qualifier("async", name));
    }
    let safety = sig.safety.to_token_stream();
    if !safety.is_empty() {
        let word = safety.to_string();
        errors.at(safety, messages::qualifier(&word, name));
    }
    if let Some(abi) = &sig.abi {
        errors.at(abi, messages::qualifier("extern", name));
    }
    if let Some(variadic) = &sig.variadic {
        errors.at(variadic, messages::variadic(name));
    }
}

/// A parameter before it is known what it is.
pub(super) struct RawParam {
    pub(super) attrs: Vec<Attribute>,
    pub(super) pat: Pat,
    pub(super) ty: Type,
}

pub(super) fn raw_params(
    sig: &Signature,
    name: &str,
    context: &str,
    errors: &mut Errors,
) -> Vec<RawParam> {
    let mut params = Vec::new();
    for input in &sig.inputs {
        match input {
            FnArg::Receiver(receiver) => errors.at(receiver, messages::receiver(name, context)),
            FnArg::Typed(param) => params.push(RawParam {
                attrs: param.attrs.clone(),
                pat: (*param.pat).clone(),
                ty: (*param.ty).clone(),
            }),
            #[allow(unreachable_patterns, reason = "more may come with the language")]
            other => errors.at(other, messages::variadic(name)),
        }
    }
    params
}

/// One name for two parameters: the second is reported.
pub(crate) fn repeated_names(sig: &Signature, errors: &mut Errors) {
    let mut seen: Vec<String> = Vec::new();
    for input in &sig.inputs {
        let FnArg::Typed(param) = input else { continue };
        let Some(name) = pattern_name(&param.pat) else { continue };
        let text = plain_name(&name);
        if seen.contains(&text) {
            errors.at(&name, messages::repeated_parameter(&text, &sig.ident.to_string()));
        }
        seen.push(text);
    }
}

pub(crate) fn pattern_name(pat: &Pat) -> Option<Ident> {
    match pat {
        Pat::Ident(ident) if ident.subpat.is_none() => Some(ident.ident.clone()),
        _ => None,
    }
}

pub(super) fn returned(output: &ReturnType) -> Option<&Type> {
    match output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some(ty),
    }
}

/// The type inside a `Result`, or inside an alias of it, which has a name like `MyResult`.
pub(super) fn inside_result(ty: &Type) -> Option<&Type> {
    let name = last_segment(ty)?.ident.to_string();
    argument_of(ty, "Result")
        .or_else(|| name.ends_with("Result").then(|| argument_of(ty, &name))?)
}
