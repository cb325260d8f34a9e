//! Parsing and checks that all signatures share.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{FnArg, Pat, PatType, ReturnType, Type};

use crate::errors::Errors;
use crate::messages;
use crate::model::{Function, Returned, argument_of, bare, last_segment};

/// Returns the parameters of a function, and reports mistakes that any signature can have. `receiver` is
/// the message for a `self`.
pub(crate) fn parameters(function: &Function, receiver: &str, errors: &mut Errors) -> Vec<PatType> {
    qualifiers(function, errors);
    let name = function.sig.ident.to_string();
    let mut params = Vec::new();
    for input in &function.sig.inputs {
        match input {
            FnArg::Receiver(found) => errors.at(found, receiver),
            FnArg::Typed(param) => params.push(param.clone()),
            #[allow(unreachable_patterns, reason = "more may come with the language")]
            other => errors.at(other, messages::variadic(&name)),
        }
    }
    params
}

fn qualifiers(function: &Function, errors: &mut Errors) {
    let name = &function.sig.ident.to_string()[..];
    let sig = &function.sig;
    for attr in &function.attrs {
        if attr.path().is_ident("cfg") {
            errors.at(attr, messages::cfg_inside(&format!("`{name}`")));
        }
    }
    if let Some(token) = &sig.asyncness {
        errors.at(token, messages::qualifier("async", name));
    }
    let safety = sig.safety.to_token_stream();
    if !safety.is_empty() {
        let word = safety.to_string();
        errors.at(safety, messages::qualifier(&word, name));
    }
    if let Some(variadic) = &sig.variadic {
        errors.at(variadic, messages::variadic(name));
    }
}

pub(crate) fn pattern_name(pat: &Pat) -> Option<Ident> {
    match pat {
        Pat::Ident(ident) if ident.subpat.is_none() => Some(ident.ident.clone()),
        _ => None,
    }
}

pub(crate) fn returned(output: &ReturnType) -> Returned {
    let ReturnType::Type(_, written) = output else {
        return Returned { fallible: false, whole: None, tuple: false, parts: Vec::new() };
    };
    let inside = inside_result(written);
    let whole = bare(inside.unwrap_or(written)).clone();
    let (tuple, parts) = match &whole {
        Type::Tuple(tuple) => (true, tuple.elems.iter().cloned().collect()),
        one => (false, vec![one.clone()]),
    };
    Returned { fallible: inside.is_some(), whole: Some(whole), tuple, parts }
}

/// The type inside a `Result`, or inside an alias with a name like `MyResult`.
fn inside_result(ty: &Type) -> Option<&Type> {
    let name = last_segment(ty)?.ident.to_string();
    argument_of(ty, "Result")
        .or_else(|| name.ends_with("Result").then(|| argument_of(ty, &name))?)
}
