//! From tokens to the model.

use proc_macro2::{Ident, TokenStream};
use syn::{FnArg, PatType, ReturnType, Type};

use super::messages;
use super::model::{Backward, Forward, Kind, Op, Param};
use crate::errors::Errors;
use crate::items::ParsedItem;
use crate::model::{
    Function, Returned, argument_of, as_tensor, bare, is_named, last_segment, without_reference,
};
use crate::parse::{BlockRules, block, parameter_attributes, parameters, pattern_name, returned};
use crate::tokens::{find_ident, is_one_of, mentions, plain_name, text};

const BLOCK_RULES: BlockRules = BlockRules {
    rules: &["forward", "backward"],
    generated: &["apply", "try_apply", "with", "check_backward"],
    lenient: false,
};

/// Parses the block; `None` if the tokens are not an impl block of an op.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Option<Op> {
    let (mut block, mut found) = block(tokens, "py_layer", errors)?;
    let arguments = last_segment(&block.self_ty).map(|segment| &segment.arguments);
    if !block.generics.params.is_empty() || arguments.is_some_and(|a| !a.is_none()) {
        errors.at(&block.self_ty, messages::generics(&block.name.to_string()));
    }
    found.retain(|item| match item {
        ParsedItem::Function(function) if function.sig.ident == "jvp" => {
            errors.at(&function.sig.ident, messages::no_jvp());
            false
        }
        _ => true,
    });
    correct(&mut found, errors);
    let (functions, types) = block.sort(found, &BLOCK_RULES, errors);
    for item in types {
        errors.at(&item.ident, messages::declares_type(&item.ident.to_string()));
    }
    let mut op = Op { block, forward: None, backward: None };
    for function in functions {
        match function.sig.ident == "forward" {
            true => op.forward = Some(forward(&function, errors)),
            false => op.backward = Some(backward(&function, errors)),
        }
    }
    Some(op)
}

/// Reports and corrects mistakes that the compiler would report again in generated code.
fn correct(found: &mut [ParsedItem], errors: &mut Errors) {
    let mut narrow: Vec<String> = Vec::new();
    for rule in BLOCK_RULES.rules {
        for item in found.iter_mut() {
            let ParsedItem::Function(Function { sig, body, .. }) = item else { continue };
            if sig.ident != rule {
                continue;
            }
            let converts = |word: &Ident| is_one_of(word, "f64 from into as");
            let is_formula =
                mentions(&sig.inputs, "Real") && find_ident(body.stream(), converts).is_none();
            for input in &mut sig.inputs {
                let FnArg::Typed(PatType { pat, ty, .. }) = input else { continue };
                let name = text(pat);
                let is_f32 = matches!(bare(ty), Type::Path(path) if path.path.is_ident("f32"));
                if is_f32 && is_formula && *rule == "forward" {
                    errors.at(&*ty, messages::plain_f32(&name));
                    narrow.push(name.clone());
                }
                if is_f32 && narrow.contains(&name) {
                    **ty = syn::parse_quote!(f64);
                }
            }
        }
    }
}

fn forward(function: &Function, errors: &mut Errors) -> Forward {
    let lifetimes = function.sig.generics.lifetimes().map(|of| of.lifetime.ident.to_string());
    let lifetimes: Vec<String> = lifetimes.collect();
    let mut params: Vec<Param> = Vec::new();
    for (position, param) in typed(function, errors).into_iter().enumerate() {
        let PatType { attrs, pat, ty, .. } = &param;
        let name = pattern_name(pat);
        let shown = name.as_ref().map_or_else(|| text(pat), plain_name);
        let (stop, default) = parameter_attributes(attrs, errors);
        let wrong = wrong_form(ty, &shown, name.as_ref().map_or("xs", |_| &shown));
        let refused = crate::check::refused::is_wrong(ty, &lifetimes);
        let is_wrong = wrong.is_some() || refused;
        // A tensor is reported below, and treated as the number that was meant.
        let kind = match is_wrong {
            true => Kind::Wrong,
            false if is_tensor(ty) => Kind::Real,
            false => kind(ty),
        };
        if name.is_none() && !is_wrong {
            errors.at(pat, messages::pattern());
        }
        if let Some(message) = wrong {
            errors.at(ty, message);
        } else if refused {
            // The compiler reports it.
        } else if is_tensor(ty) {
            errors.at(ty, messages::tensor(&shown));
        } else if kind == Kind::Plain
            && matches!(bare(ty), Type::Reference(_) | Type::ImplTrait(_) | Type::Slice(_))
        {
            errors.at(ty, messages::borrowed_plain(&shown));
        }
        match (&stop, kind) {
            (None, Kind::Mask) => errors.at(ty, messages::mask_not_stopped(&shown)),
            (Some(stop), Kind::Plain) => {
                errors.at(stop, messages::stop_on_plain(&shown));
            }
            _ => {}
        }
        if let (Some((attr, _)), Kind::Real | Kind::Mask) = (&default, kind) {
            errors.at(attr, messages::default_on_number(&shown));
        }
        let made_up =
            || Ident::new(&format!("argument_{position}"), proc_macro2::Span::call_site());
        let mut ident = name.unwrap_or_else(made_up);
        if params.iter().any(|other| plain_name(&other.ident) == plain_name(&ident)) {
            ident = made_up();
        }
        params.push(Param {
            ident,
            docs: attrs.iter().filter(|attr| crate::attributes::is_doc(attr)).cloned().collect(),
            ty: (**ty).clone(),
            kind,
            stop_gradient: stop.is_some(),
            default: default.and_then(|(_, default)| default),
        });
    }
    let outputs = returns(&function.sig.output);
    Forward { function: function.clone(), params, outputs }
}

fn backward(function: &Function, errors: &mut Errors) -> Backward {
    let mut params = Vec::new();
    for PatType { attrs, pat, ty, .. } in typed(function, errors) {
        for attr in attrs.iter().filter(|attr| crate::attributes::is_ours(attr)) {
            errors.at(attr, crate::messages::attribute_on_gradient(&text(attr.path())));
        }
        match pattern_name(&pat) {
            Some(name) => params.push((name, *ty)),
            None => errors.at(pat, messages::pattern()),
        }
    }
    let returned = returns(&function.sig.output);
    Backward { function: function.clone(), params, returned }
}

fn typed(function: &Function, errors: &mut Errors) -> Vec<PatType> {
    let name = function.sig.ident.to_string();
    let mut params = parameters(function, &messages::receiver(&name), errors);
    params.retain(|param| {
        let ty = without_reference(&param.ty);
        let context = is_named(ty, "ForwardContext") || is_named(ty, "BackwardContext");
        if context {
            errors.at(param, messages::context(&name));
        }
        !context
    });
    params
}

/// The return type of a formula, which cannot be a `Result`.
fn returns(output: &ReturnType) -> Returned {
    let found = returned(output);
    match output {
        ReturnType::Type(_, ty) if found.fallible => {
            let (whole, parts) = (Some((**ty).clone()), vec![(**ty).clone()]);
            Returned { fallible: false, whole, tuple: false, parts }
        }
        _ => found,
    }
}

/// The message for numbers, masks or tensors in a form that formulas do not support.
fn wrong_form(ty: &Type, name: &str, list_name: &str) -> Option<String> {
    let number = |ty: &Type| matches!(kind(ty), Kind::Real | Kind::Mask);
    let element =
        |ty: &Type| as_tensor(without_reference(ty)).is_some() || number(without_reference(ty));
    let inner = without_reference(ty);
    let list = match inner {
        Type::Slice(slice) => element(&slice.elem),
        Type::Array(array) => element(&array.elem),
        Type::Tuple(tuple) => tuple.elems.iter().any(element),
        ty => argument_of(ty, "Vec").is_some_and(element),
    };
    if list {
        Some(messages::list_input(name, list_name))
    } else if argument_of(inner, "Option").is_some_and(element) {
        Some(messages::optional_input(name))
    } else if matches!(bare(ty), Type::Reference(_)) && number(inner) {
        Some(messages::borrowed_number(name, &text(inner)))
    } else {
        None
    }
}

pub(crate) fn kind(ty: &Type) -> Kind {
    if is_named(ty, "Real") {
        Kind::Real
    } else if is_named(ty, "Mask") {
        Kind::Mask
    } else {
        Kind::Plain
    }
}

pub(crate) fn is_tensor(ty: &Type) -> bool {
    crate::model::hidden_tensor(ty).is_some() || as_tensor(ty).is_some()
}
