//! The rules of backward: what it takes and what it returns, against forward.

use syn::Type;

use super::grads::{Fields, NoField};
use super::order;
use super::returned::Wanted;
use super::types::{inner_tensor, is_gradient_form, is_plain, other_element};
use crate::errors::Errors;
use crate::generics::parameter_name;
use crate::messages;
use crate::model::{
    Form, GradientParam, Layer, Output, ParamKind, Returns, as_tensor, bare, gradient_type,
    hidden_tensor, parameter_type,
};
use crate::parse::BACKWARD_CONTEXT;
use crate::tokens::{plain_name, text};

/// Holds backward's signature against them.
pub(crate) fn check(layer: &Layer, errors: &mut Errors) {
    gradient_count(layer, errors);
    gradient_types(layer, errors);
    returned(layer, errors);
    parameter_named_grads(layer, errors);
}

/// A parameter of the impl with the name of the struct that the macro makes for backward.
fn parameter_named_grads(layer: &Layer, errors: &mut Errors) {
    let by_name = |returns: &Returns| matches!(returns, Returns::ByName(_));
    if !layer.backward.as_ref().is_some_and(|backward| by_name(&backward.returns)) {
        return;
    }
    for parameter in layer.generics.params.iter().filter(|of| parameter_name(of) == "Grads") {
        errors.at(parameter, messages::parameter_named_grads());
    }
}

/// The same of its body.
pub(crate) fn check_body(layer: &Layer, errors: &mut Errors) {
    returned_order(layer, errors);
    grads_fields(layer, errors);
}

/// `fn backward(ctx: .., dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>)`
pub(crate) fn backward_signature(layer: &Layer) -> String {
    let mut params = String::new();
    for (position, (_, form, tensor)) in layer.outputs().into_iter().enumerate() {
        let number = if layer.outputs().len() == 1 { String::new() } else { position.to_string() };
        params += &format!(", dy{number}: {}", parameter_type(form, &text(tensor)));
    }
    let returns = wanted_return(layer, false);
    format!("fn backward(ctx: {}{params}) -> {returns}", BACKWARD_CONTEXT)
}

fn gradient_count(layer: &Layer, errors: &mut Errors) {
    let (Some(forward), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    let outputs = layer.outputs();
    let found = backward.params.len();
    if outputs.is_empty() || outputs.len() == found || forward.hides_output() {
        return;
    }
    // As in libraries whose backward is a function of its own.
    let inputs: Vec<String> = forward.params.iter().map(|param| plain_name(&param.ident)).collect();
    let is_input = |param: &&GradientParam| {
        param.name.as_ref().is_some_and(|name| inputs.contains(&plain_name(name)))
    };
    let given: Vec<_> = backward.params.iter().filter(is_input).collect();
    if found - given.len() == outputs.len() {
        for param in given {
            let name = param.name.as_ref().map(plain_name).unwrap_or_default();
            errors.at(&param.name, messages::gradient_of_input(&name));
        }
        return;
    }
    let is_gradient = |param: &&GradientParam| inner_tensor(&param.ty).is_some();
    let taken: Vec<_> = backward.params.iter().filter(is_gradient).collect();
    let wanted: Vec<_> = outputs
        .iter()
        .enumerate()
        .map(|(position, (_, form, tensor))| {
            let name = taken.get(position).and_then(|param| param.name.as_ref());
            let name = match name {
                Some(name) => name.to_string(),
                None if outputs.len() == 1 => "dy".to_owned(),
                None => format!("dy{position}"),
            };
            format!("{name}: {}", parameter_type(*form, &text(tensor)))
        })
        .collect();
    let integers = forward.outputs.parts.len() > outputs.len()
        && forward.outputs.parts.iter().any(Output::is_integer);
    let wanted = format!("`{}`", wanted.join(", "));
    let message = messages::gradient_count(found, outputs.len(), integers, &wanted);
    // The first that is too many: one that is no gradient at all, or else that after the last.
    let other = backward.params.iter().find(|param| !is_gradient(param));
    let surplus = backward.params.get(outputs.len());
    match surplus.map(|surplus| other.unwrap_or(surplus)) {
        Some(first) => errors.at(&first.ty, message),
        None => errors.at(&backward.function.sig.ident, message),
    }
}

/// Where both element types are known by name, they are compared here; the rest is for the
/// compiler.
fn gradient_types(layer: &Layer, errors: &mut Errors) {
    let (Some(_), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    let outputs = layer.outputs();
    if outputs.len() != backward.params.len() {
        return;
    }
    for (position, ((_, form, tensor), param)) in outputs.iter().zip(&backward.params).enumerate() {
        // It has an error of its own.
        if matches!(bare(&param.ty), Type::ImplTrait(_)) {
            continue;
        }
        let of = text(*tensor);
        let write = parameter_type(*form, &of);
        let forms = match form {
            Form::List => format!("&[{of}]` or `&[Option<{of}>]"),
            _ => format!("{write}` or `Option<{write}>"),
        };
        let Some(found) = as_tensor(&param.ty)
            .or_else(|| hidden_tensor(&param.ty))
            .or_else(|| inner_tensor(&param.ty))
        else {
            if is_plain(&param.ty) {
                let name = param.name.as_ref().map_or("dy".to_owned(), plain_name);
                let output = messages::output(position, outputs.len());
                let found = text(&param.ty);
                errors.at(&param.ty, messages::gradient_form(&output, &found, &name, &forms));
            }
            continue;
        };
        let name = match &param.name {
            Some(name) => name.to_string(),
            None => "dy".to_owned(),
        };
        let output = messages::output(position, outputs.len());
        if let Some((found, expected)) = other_element(found, tensor) {
            let message = messages::gradient_element(&name, &found, &output, &expected, &write);
            errors.at(&param.ty, message);
        } else if !is_gradient_form(*form, &param.ty) {
            let found = text(&param.ty);
            let message = messages::gradient_form(&output, &found, &name, &forms);
            errors.at(&param.ty, message);
        }
    }
}

/// What backward should return, as code.
fn wanted_return(layer: &Layer, by_name: bool) -> String {
    let inputs = layer.differentiable();
    if by_name {
        let names: Vec<_> = inputs.iter().map(|(param, _)| param.ident.to_string()).collect();
        return format!("Grads {{ {} }}", names.join(", "));
    }
    let types: Vec<_> =
        inputs.iter().map(|(_, input)| gradient_type(input.form, &text(&input.tensor))).collect();
    match types.as_slice() {
        [one] => one.clone(),
        many => format!("({})", many.join(", ")),
    }
}

fn returned(layer: &Layer, errors: &mut Errors) {
    let (Some(forward), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    let inputs = layer.differentiable();
    if inputs.is_empty() || forward.hides_input() {
        return;
    }
    let names: Vec<_> = inputs.iter().map(|(param, _)| plain_name(&param.ident)).collect();
    let mut write = format!("`{}`", wanted_return(layer, false));
    if inputs.len() > 1 {
        write += &format!(", or by name `{}`", wanted_return(layer, true));
    }
    let values = names.iter().zip(&inputs);
    let wanted = Wanted {
        values: values.map(|(name, (_, of))| (name.clone(), of.form, &of.tensor)).collect(),
        count: &|found| messages::returned_count(found, &names, &write),
        list: &|found| messages::returned_list(found, &names, &write),
        form: messages::returned_form,
        element: messages::returned_element,
    };
    wanted.check(&backward.returns, &backward.function, errors);
}

fn returned_order(layer: &Layer, errors: &mut Errors) {
    let (Some(forward), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    let Returns::Tuple(..) = &backward.returns else { return };
    let inputs: Vec<String> =
        layer.differentiable().iter().map(|(param, _)| plain_name(&param.ident)).collect();
    let given = backward.params.iter().filter_map(|param| param.name.as_ref());
    let all = forward.params.iter().map(|param| &param.ident).chain(given);
    let taken: Vec<String> = all.map(plain_name).collect();
    order::check(&inputs, &taken, &backward.function.judged(), errors);
}

/// The fields of each `Grads { .. }` that backward builds.
fn grads_fields(layer: &Layer, errors: &mut Errors) {
    let (Some(forward), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    let Returns::ByName(_) = &backward.returns else { return };
    let inputs = layer.differentiable();
    let lists = inputs.iter().filter(|(_, input)| input.form == Form::List);
    let fields = Fields {
        names: inputs.iter().map(|(param, _)| plain_name(&param.ident)).collect(),
        lists: lists.map(|(param, _)| plain_name(&param.ident)).collect(),
        write: format!(
            "write `{}` (`None` where there is no gradient)",
            wanted_return(layer, true)
        ),
        other: &|name| {
            let param = forward.params.iter().find(|param| plain_name(&param.ident) == name)?;
            Some(match param.kind {
                ParamKind::Tensor(_) => NoField::Stopped,
                ParamKind::Plain { .. } => NoField::Plain,
            })
        },
    };
    fields.check(backward.function.judged().stream(), errors);
}
