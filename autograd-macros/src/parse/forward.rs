//! Forward: its inputs and its outputs.

use proc_macro2::{Ident, Span};
use syn::{Attribute, Expr, Pat, PatType, Type};

use super::signature::{
    Default, FORWARD_CONTEXT, parameter_attributes, parameters, pattern_name, returned,
    take_context,
};
use crate::attributes::is_doc;
use crate::errors::Errors;
use crate::messages;
use crate::model::{
    Form, Forward, Function, Param, ParamKind, TensorInput, as_tensor, bare, contained_types,
    element, hidden_tensor, input_form, is_integer, last_segment, without_reference,
};
use crate::tokens::{first_span, plain_name, text};

pub(crate) fn forward(function: &Function, op: &str, errors: &mut Errors) -> Forward {
    let sig = &function.sig;
    let mut raw = parameters(function, &messages::receiver("forward", FORWARD_CONTEXT), errors);
    let context = take_context(&mut raw, sig, "forward", op, errors);
    let params = params(raw, errors, |_, param, errors| {
        if matches!(param.shown, "apply" | "try_apply") {
            errors.at(param.pat, messages::reserved_parameter(param.shown));
        }
        (param.ty.clone(), kind(&param, errors))
    });
    Forward { function: function.clone(), context, params, outputs: returned(&sig.output) }
}

/// A parameter as written. `shown`: its name in messages.
pub(crate) struct Written<'a> {
    pub(crate) pat: &'a Pat,
    pub(crate) is_named: bool,
    pub(crate) shown: &'a str,
    pub(crate) ty: &'a Type,
    pub(crate) stop: Option<&'a Attribute>,
    pub(crate) default: Option<&'a Default>,
}

/// The parameters, each with a name of its own. `read` gets the position, and returns type and kind.
pub(crate) fn params(
    raw: Vec<PatType>,
    errors: &mut Errors,
    mut read: impl FnMut(usize, Written<'_>, &mut Errors) -> (Type, ParamKind),
) -> Vec<Param> {
    let mut params: Vec<Param> = Vec::new();
    for (position, PatType { attrs, pat, ty, .. }) in raw.into_iter().enumerate() {
        let name = pattern_name(&pat);
        let shown = name.as_ref().map_or_else(|| text(&pat), plain_name);
        let (stop, default) = parameter_attributes(&attrs, errors);
        let written = Written {
            pat: &pat,
            is_named: name.is_some(),
            shown: &shown,
            ty: &ty,
            stop: stop.as_ref(),
            default: default.as_ref(),
        };
        let (ty, kind) = read(position, written, errors);
        // The compiler has reported a repeated name; `apply` needs two names.
        let is_new =
            |name: &Ident| params.iter().all(|other| plain_name(&other.ident) != plain_name(name));
        let made_up = || {
            let place = first_span(&pat).resolved_at(Span::call_site());
            Ident::new(&format!("argument_{position}"), place)
        };
        let ident = name.filter(is_new).unwrap_or_else(made_up);
        let docs = attrs.into_iter().filter(is_doc).collect();
        params.push(Param { ident, docs, ty, kind });
    }
    params
}

fn kind(param: &Written<'_>, errors: &mut Errors) -> ParamKind {
    let (ty, shown) = (param.ty, param.shown);
    match input_form(ty) {
        Some((form, tensor)) => {
            if !param.is_named {
                errors.at(param.pat, messages::tensor_name(&text(ty)));
            }
            let none = |default: &&Expr| form == Form::Optional && text(default) == "None";
            let default = param.default.and_then(|(_, value)| value.as_ref().filter(none)).cloned();
            if let Some((attr, _)) = param.default
                && default.is_none()
            {
                errors.at(attr, messages::default_on_tensor(shown));
            }
            let element = element(tensor);
            if is_integer(&element) && param.stop.is_none() {
                errors.at(ty, messages::integer_input(shown, &element, &text(ty)));
            }
            let stop_gradient = param.stop.is_some() || is_integer(&element);
            let tensor = tensor.clone();
            ParamKind::Tensor(TensorInput { form, tensor, stop_gradient, default })
        }
        None => {
            if let Some(tensor) = hidden_tensor(ty) {
                wrong_form(ty, shown, &text(tensor), errors);
            } else if let Some(stop) = param.stop {
                errors.at(stop, messages::stop_gradient_on_plain(shown));
            }
            if let Some((attr, _)) = param.default
                && matches!(bare(ty), Type::ImplTrait(_))
            {
                errors.at(attr, messages::default_on_impl(shown));
            }
            ParamKind::Plain { default: param.default.and_then(|(_, default)| default.clone()) }
        }
    }
}

fn wrong_form(ty: &Type, name: &str, tensor: &str, errors: &mut Errors) {
    let message = match bare(ty) {
        Type::Path(_) if as_tensor(ty).is_some() => messages::tensor_by_value(name, tensor),
        Type::Reference(reference) if as_tensor(&reference.elem).is_some() => {
            messages::tensor_by_mut(name, tensor)
        }
        _ => {
            let write = nearest_form(ty, tensor);
            messages::tensor_form(name, &text(ty), tensor, write.as_deref())
        }
    };
    errors.at(ty, message);
}

/// The supported form that a user probably meant by this type.
fn nearest_form(ty: &Type, tensor: &str) -> Option<String> {
    let is_tensor = |ty: &Type| as_tensor(without_reference(ty)).is_some();
    let inner = without_reference(ty);
    // `&&Tensor`
    if is_tensor(inner) {
        return Some(format!("&{tensor}"));
    }
    let form = match inner {
        Type::Slice(_) => format!("&[{tensor}]"),
        Type::Array(array) => format!("[&{tensor}; {}]", text(&array.len)),
        ty => match &last_segment(ty)?.ident.to_string()[..] {
            "Option" => format!("Option<&{tensor}>"),
            "Vec" => format!("&[{tensor}]"),
            "Box" | "Rc" | "Arc" => format!("&{tensor}"),
            _ => return None,
        },
    };
    contained_types(inner).first().is_some_and(|ty| is_tensor(ty)).then_some(form)
}
