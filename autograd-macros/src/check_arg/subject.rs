//! What is checked, from the models of the model of a layer.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{GenericParam, Type};

use super::expand::Subject;
use super::messages;
use super::model::{Check, Form, Kind, Parameter, Tensor};
use crate::args::Args;
use crate::errors::Errors;
use crate::library::private_path;
use crate::model::{Layer, OutputKind, ParamKind, bare, element};
use crate::tokens::{mentions, replace_ident};

/// Holds the checks of a layer against its forward.
pub(crate) fn check_layer(layer: &Layer, args: &Args, errors: &mut Errors) {
    if args.no_grad.is_some() {
        return refuse(&args.checks, &messages::no_gradient(), errors);
    }
    if args.surrogate.is_some() {
        return refuse(&args.checks, &messages::surrogate(), errors);
    }
    let parameters = of_layer(layer);
    // What stands in a signature that cannot be read is not missing.
    if layer.forward.is_some() && errors.is_empty() {
        args.checks.iter().for_each(|check| check.check(&parameters, errors));
    }
}

/// The tests of a layer.
pub(crate) fn layer_tests(layer: &Layer, args: &Args) -> TokenStream {
    let Some(forward) = layer.forward.as_ref().filter(|_| !args.checks.is_empty()) else {
        return TokenStream::new();
    };
    let parameters = of_layer(layer);
    let own = &forward.function.sig.generics.params;
    let elements = layer.generics.params.iter().chain(own).filter_map(|param| match param {
        GenericParam::Type(param) => Some(param.ident.to_string()),
        _ => None,
    });
    let tensors = || {
        parameters.iter().filter_map(|parameter| match &parameter.kind {
            Kind::Tensor(tensor) => Some(&tensor.ty),
            Kind::Plain { .. } => None,
        })
    };
    let elements: Vec<String> =
        elements.filter(|name| tensors().any(|ty| mentions(ty, name))).collect();
    let is_tensor = |kind: &OutputKind| matches!(kind, OutputKind::Tensor { .. });
    let subject = Subject {
        name: &layer.name,
        ty: op_type(layer, &elements),
        private: private_path(args.krate.as_ref()),
        cfg: layer.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect(),
        elements,
        fallible: forward.fallible,
        outputs: forward.outputs.parts.iter().map(|part| is_tensor(&part.kind)).collect(),
        tuple: forward.outputs.tuple,
        once_differentiable: args.once_differentiable.is_some(),
        derived: false,
        parameters,
    };
    subject.tests(&args.checks)
}

/// The op as it is called: with its parameters, where they are known.
fn op_type(layer: &Layer, elements: &[String]) -> TokenStream {
    let known = |param: &GenericParam| elements.contains(&crate::generics::parameter_name(param));
    match layer.generics.params.iter().all(known) {
        true => layer.self_ty.to_token_stream(),
        false => layer.name.to_token_stream(),
    }
}

fn of_layer(layer: &Layer) -> Vec<Parameter> {
    let params = layer.forward.iter().flat_map(|forward| &forward.params);
    let parameter = |param: &crate::model::Param| {
        let kind = match &param.kind {
            ParamKind::Plain { default } => Kind::Plain {
                default: default.as_ref().map(|default| {
                    let op = layer.name.to_token_stream();
                    replace_ident(default.to_token_stream(), "Self", &quote!(<#op>))
                }),
            },
            ParamKind::Tensor(input) => Kind::Tensor(Tensor {
                form: form(&param.ty, input.form),
                ty: input.tensor.to_token_stream(),
                element: element(&input.tensor),
                differentiable: !input.stop_gradient,
            }),
        };
        Parameter { ident: param.ident.clone(), kind }
    };
    params.map(parameter).collect()
}

/// How a parameter of this type takes a tensor, or several.
pub(crate) fn form(ty: &Type, form: crate::model::Form) -> Form {
    match form {
        crate::model::Form::One => Form::One,
        crate::model::Form::Optional => Form::Optional,
        crate::model::Form::List => {
            let (list, borrowed) = match bare(ty) {
                Type::Reference(reference) => (bare(&reference.elem), true),
                list => (list, false),
            };
            let (item, array) = match list {
                Type::Slice(slice) => (Some(bare(&slice.elem)), false),
                Type::Array(array) => (Some(bare(&array.elem)), true),
                _ => (None, false),
            };
            let references = matches!(item, Some(Type::Reference(_)));
            Form::List { references, array, borrowed }
        }
    }
}

/// Checks where there is nothing to check.
pub(crate) fn refuse(checks: &[Check], message: &str, errors: &mut Errors) {
    checks.iter().for_each(|check| errors.at(&check.word, message));
}
