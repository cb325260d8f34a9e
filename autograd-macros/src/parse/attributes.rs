//! Attributes of functions and of their parameters.

use syn::{Attribute, FnArg, Meta};

use crate::attributes::{is_cfg, is_doc, is_lint};
use crate::errors::Errors;
use crate::messages;
use crate::model::{Function, nearest};
use crate::tokens::text;

pub(crate) type Default = (Attribute, Option<syn::Expr>);

pub(crate) fn parameter_attributes(
    attrs: &[Attribute],
    errors: &mut Errors,
) -> (Option<Attribute>, Option<Default>) {
    let (mut stop, mut default) = (None, None);
    for attr in attrs {
        if is_cfg(attr) {
            errors.at(attr, messages::cfg_inside("a parameter"));
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
            errors.at(attr, messages::unknown_attribute(&name, stops.then_some("stop_gradient")));
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

/// The function without the macro's own attributes.
pub(crate) fn stripped(mut function: Function) -> Function {
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(param) = input {
            param.attrs.retain(is_lint);
        }
    }
    function.attrs.retain(|attr| !attr.path().is_ident("cfg"));
    function
}
