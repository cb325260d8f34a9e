//! Parsing and checks that all signatures share: parameters, their attributes, the context.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{
    Attribute, FnArg, GenericArgument, Meta, Pat, PatType, PathArguments, ReturnType, Signature,
    Type,
};

use crate::attributes::{is_cfg, is_doc, is_lint};
use crate::errors::Errors;
use crate::messages;
use crate::model::{
    Function, Returned, argument_of, bare, is_named, last_segment, nearest, without_reference,
};
use crate::tokens::{mentions, text};

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
        if mentions(attr, "target_feature") {
            errors.at(attr, messages::target_feature(name));
        }
        if attr.path().is_ident("cfg") {
            errors.at(attr, messages::cfg_inside("cfg", &format!("`{name}`")));
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

pub(crate) type Default = (Attribute, Option<syn::Expr>);

pub(crate) fn parameter_attributes(
    attrs: &[Attribute],
    errors: &mut Errors,
) -> (Option<Attribute>, Option<Default>) {
    let (mut stop, mut default) = (None, None);
    for attr in attrs {
        if is_cfg(attr) {
            errors.at(attr, messages::cfg_inside(&text(attr.path()), "a parameter"));
            // The attribute inside is assumed, so that nothing else is reported.
            if mentions(attr, "stop_gradient") {
                stop.get_or_insert_with(|| attr.clone());
            } else if mentions(attr, "default") {
                default.get_or_insert_with(|| (attr.clone(), None));
            }
        } else if attr.path().is_ident("stop_gradient") {
            if !matches!(attr.meta, Meta::Path(_)) {
                errors.at(attr, messages::malformed_stop_gradient());
            }
            if stop.replace(attr.clone()).is_some() {
                errors.at(attr, messages::twice("#[stop_gradient]"));
            }
        } else if attr.path().is_ident("default") {
            let expression = match &attr.meta {
                Meta::List(list) => list.parse_args::<syn::Expr>().ok(),
                _ => None,
            };
            if expression.is_none() {
                errors.at(attr, messages::malformed_default());
            }
            if default.replace((attr.clone(), expression)).is_some() {
                errors.at(attr, messages::twice("#[default]"));
            }
        } else if !is_lint(attr) && !is_doc(attr) {
            let name = text(attr.path());
            let stops = means_stop_gradient(&name);
            let meant = stops.then_some("stop_gradient");
            errors.at(attr, messages::unknown_attribute(&name, meant));
            errors.complete(attr.path(), "parameters");
            // The intended attribute is assumed, so that nothing else is reported.
            if stops {
                stop.get_or_insert_with(|| attr.clone());
            }
        }
    }
    (stop, default)
}

/// Whether the name is one that other libraries use for the attribute, or a misspelling.
pub(super) fn means_stop_gradient(name: &str) -> bool {
    const FOREIGN_NAMES: [&str; 6] =
        ["no_grad", "nograd", "no_gradient", "detach", "non_differentiable", "nondiff"];
    FOREIGN_NAMES.contains(&name) || nearest(name, &["stop_gradient"]).is_some()
}

pub(crate) fn stripped(mut function: Function) -> Function {
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(param) = input {
            param.attrs.retain(is_lint);
        }
    }
    function.attrs.retain(|attr| !attr.path().is_ident("cfg"));
    function
}

pub(crate) const FORWARD_CONTEXT: &str = "&mut ForwardContext<Self>";

pub(crate) const BACKWARD_CONTEXT: &str = "&BackwardContext<Self>";

pub(crate) const JVP_CONTEXT: &str = "&JvpContext<Self>";

/// The names of contexts: any of them may be written by mistake.
const CONTEXTS: [&str; 4] = ["ForwardContext", "BackwardContext", "JvpContext", "PyLayerContext"];

pub(crate) fn is_context(ty: &Type) -> bool {
    CONTEXTS.iter().any(|name| is_named(without_reference(ty), name))
}

pub(super) fn take_context(
    params: &mut Vec<PatType>,
    sig: &Signature,
    name: &str,
    op: &str,
    errors: &mut Errors,
) -> Option<Ident> {
    let (own, written) = match name {
        "forward" => ("ForwardContext", FORWARD_CONTEXT),
        "backward" => ("BackwardContext", BACKWARD_CONTEXT),
        _ => ("JvpContext", JVP_CONTEXT),
    };
    let found: Vec<usize> = (0..params.len()).filter(|&i| is_context(&params[i].ty)).collect();
    let Some(&first) = found.first() else {
        if params.first().is_some_and(|param| is_alias(&param.ty, name == "forward")) {
            return pattern_name(&params.remove(0).pat);
        }
        // A type of any other name may be an alias of the context: the parameter's name decides.
        if params.first().is_some_and(|param| text(&param.pat) == "ctx") {
            let param = params.remove(0);
            errors.at(&param.ty, messages::context_form(name, &text(&param.ty), written));
            return pattern_name(&param.pat);
        }
        if sig.receiver().is_none() {
            errors.at(&sig.ident, messages::context_missing(name, written));
        }
        return None;
    };
    for &again in found.iter().skip(1).rev() {
        let param = params.remove(again);
        errors.at(&param.ty, messages::context_again(name));
    }
    let param = params.remove(first);
    if first != 0 {
        errors.at(&param.ty, messages::context_not_first(name, written));
    } else if !is_own(&param.ty, own, name == "forward", op) {
        errors.at(&param.ty, messages::context_form(name, &text(&param.ty), written));
    }
    for attr in param.attrs.iter().filter(|attr| !is_lint(attr) && !is_doc(attr)) {
        errors.at(attr, messages::attribute_on_context(&text(attr.path())));
    }
    pattern_name(&param.pat)
}

/// Whether the type, with the right kind of reference, looks like an alias of the context: `MyContext`.
fn is_alias(ty: &Type, mutable: bool) -> bool {
    let Type::Reference(reference) = bare(ty) else { return false };
    let name = last_segment(&reference.elem).map(|last| last.ident.to_string());
    reference.mutability.is_some() == mutable
        && name.is_some_and(|name| name.ends_with("Ctx") || name.ends_with("Context"))
}

/// Whether the context has the right kind of reference, the right name, and this op as its argument.
fn is_own(ty: &Type, own: &str, mutable: bool, op: &str) -> bool {
    let Type::Reference(reference) = bare(ty) else { return false };
    // Any name but `Self` and the op's is that of another type.
    let of_op = |argument: &GenericArgument| match argument {
        GenericArgument::Type(ty) => is_named(ty, "Self") || is_named(ty, op),
        _ => true,
    };
    reference.mutability.is_some() == mutable
        && last_segment(&reference.elem).is_some_and(|segment| {
            segment.ident == own
                && matches!(&segment.arguments, PathArguments::AngleBracketed(list)
                    if list.args.iter().all(of_op))
        })
}
