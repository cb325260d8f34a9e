//! Forward: its inputs and its outputs.

use proc_macro2::{Ident, Span};
use syn::{Pat, PatType, Type};

use super::attributes::parameter_attributes;
use super::context::{FORWARD_CONTEXT, take_context};
use super::signature::{parameters, pattern_name, returned};
use crate::attributes::is_doc;
use crate::errors::Errors;
use crate::messages;
use crate::model::{
    Forward, Function, Param, ParamKind, TensorInput, argument_of, as_tensor, bare, element,
    hidden_tensor, input_form, is_integer, without_reference,
};
use crate::tokens::{first_span, plain_name, text};

pub(crate) fn forward(function: &Function, op: &str, errors: &mut Errors) -> Forward {
    let sig = &function.sig;
    let mut raw = parameters(function, &messages::receiver("forward", FORWARD_CONTEXT), errors);
    let context = take_context(&mut raw, sig, "forward", op, errors);
    let mut params: Vec<Param> = Vec::new();
    for (position, param) in raw.into_iter().enumerate() {
        let mut param = forward_param(param, position, errors);
        let name = plain_name(&param.ident);
        // The compiler has reported a repeated name; `apply` needs two names.
        if params.iter().any(|other| plain_name(&other.ident) == name) {
            param.ident = Ident::new(&format!("argument_{position}"), param.ident.span());
        }
        if matches!(name.as_str(), "apply" | "try_apply") {
            errors.at(&param.ident, messages::reserved_parameter(&name));
        }
        params.push(param);
    }
    Forward { function: function.clone(), context, params, outputs: returned(&sig.output) }
}

pub(super) fn forward_param(param: PatType, position: usize, errors: &mut Errors) -> Param {
    let PatType { attrs, pat, ty, .. } = param;
    let name = pattern_name(&pat);
    let shown = name.as_ref().map_or_else(|| text(&pat), plain_name);
    let (stop, default) = parameter_attributes(&attrs, errors);
    let ident = name.clone().unwrap_or_else(|| made_up_name(&pat, position));
    let kind = match input_form(&ty) {
        Some((form, tensor)) => {
            if name.is_none() {
                errors.at(&pat, messages::tensor_name(&text(&ty)));
            }
            if let Some(default) = default {
                errors.at(default.0, messages::default_on_tensor(&shown));
            }
            let element = element(tensor);
            if is_integer(&element) && stop.is_none() {
                errors.at(&ty, messages::integer_input(&shown, &element, &text(&ty)));
            }
            let stop_gradient = stop.is_some() || is_integer(&element);
            ParamKind::Tensor(TensorInput { form, tensor: tensor.clone(), stop_gradient })
        }
        None => {
            if let Some(tensor) = hidden_tensor(&ty) {
                wrong_form(&ty, &shown, &text(tensor), errors);
            } else if let Some(stop) = stop {
                errors.at(stop, messages::stop_gradient_on_plain(&shown));
            }
            if let Some((attr, _)) = &default
                && matches!(bare(&ty), Type::ImplTrait(_))
            {
                errors.at(attr, messages::default_on_impl(&shown));
            }
            ParamKind::Plain { default: default.and_then(|(_, default)| default) }
        }
    };
    let docs = attrs.into_iter().filter(is_doc).collect();
    Param { ident, docs, ty: *ty, kind, is_named: false }
}

pub(super) fn wrong_form(ty: &Type, name: &str, tensor: &str, errors: &mut Errors) {
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
pub(super) fn nearest_form(ty: &Type, tensor: &str) -> Option<String> {
    let item = |ty: &Type| as_tensor(without_reference(ty)).is_some();
    match without_reference(ty) {
        // `&&Tensor`
        inner if item(inner) => Some(format!("&{tensor}")),
        Type::Slice(slice) if item(&slice.elem) => Some(format!("&[{tensor}]")),
        Type::Array(array) if item(&array.elem) => {
            Some(format!("[&{tensor}; {}]", text(&array.len)))
        }
        inner => {
            let of = |name: &str| argument_of(inner, name).is_some_and(item);
            if of("Option") {
                Some(format!("Option<&{tensor}>"))
            } else if of("Vec") {
                Some(format!("&[{tensor}]"))
            } else if of("Box") || of("Rc") || of("Arc") {
                Some(format!("&{tensor}"))
            } else {
                None
            }
        }
    }
}

pub(super) fn made_up_name(pat: &Pat, position: usize) -> Ident {
    Ident::new(&format!("argument_{position}"), first_span(pat).resolved_at(Span::call_site()))
}
