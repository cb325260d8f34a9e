//! The first parameter of forward, backward and `jvp`.

use proc_macro2::Ident;
use syn::{GenericArgument, PatType, PathArguments, Signature, Type};

use super::signature::pattern_name;
use crate::attributes::{is_doc, is_lint};
use crate::errors::Errors;
use crate::messages;
use crate::model::{bare, is_named, last_segment, without_reference};
use crate::tokens::text;

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
