//! The rules of backward: its parameters and gradients must match forward.

use proc_macro2::Ident;

use super::calls::grads;
use super::order;
use super::types::{tensor_in, together};
use super::values::{ExpectedReturn, Role, Value, usual};
use crate::errors::Errors;
use crate::generics::parameter_name;
use crate::messages;
use crate::model::{Form, GradientParam, Layer, float_output, output_form};
use crate::parse::BACKWARD_CONTEXT;
use crate::tokens::{plain_name, text};

pub(crate) fn check(layer: &Layer, errors: &mut Errors) {
    gradient_count(layer, errors);
    gradient_types(layer, errors);
    returned(layer, errors);
    // The macro generates a struct of this name.
    let by_name = layer.backward.as_ref().and_then(|of| of.returns.by_name());
    let params = by_name.into_iter().flat_map(|_| &layer.generics.params);
    for parameter in params.filter(|of| parameter_name(of) == "Grads") {
        errors.at(parameter, messages::parameter_named_grads());
    }
}

pub(crate) fn check_body(layer: &Layer, errors: &mut Errors) {
    let (Some(forward), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    let (body, trees) = backward.function.without_cfg();
    let inputs = layer.differentiable();
    let lists = inputs.iter().filter(|(_, input)| input.form == Form::List);
    let lists: Vec<_> = lists.map(|(param, _)| &param.ident).collect();
    if backward.returns.tuple {
        let inputs = inputs.iter().map(|(param, _)| plain_name(&param.ident));
        let inputs: Vec<String> = inputs.collect();
        let params = forward.params.iter().map(|param| &param.ident);
        let given = backward.params.iter().filter_map(|param| param.name.as_ref());
        let taken: Vec<String> = params.chain(given).map(plain_name).collect();
        order::check(&inputs, &taken, body, errors);
    }
    // An empty list of gradients for a list input: its type is right, but each tensor needs a gradient.
    for (field, value) in grads(trees).into_iter().flatten() {
        let empty = ["[]", "vec![]", "Vec::new()", "std::vec::Vec::new()"];
        if lists.contains(&&field) && empty.contains(&&text(&value)[..]) {
            errors.at(value, messages::grads_field_empty(&plain_name(&field)));
        }
    }
}

/// `fn backward(ctx: .., dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>)`
pub(crate) fn backward_signature(layer: &Layer) -> String {
    let mut params = String::new();
    for (position, (_, form, tensor)) in layer.outputs().into_iter().enumerate() {
        let number = if layer.outputs().len() == 1 { String::new() } else { position.to_string() };
        params += &format!(", dy{number}: {}", usual(Role::Gradient, form, tensor));
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
    // Inputs as parameters of backward, as in libraries where backward is a free function.
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
    let is_gradient = |param: &&GradientParam| tensor_in(&param.ty).is_some();
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
            format!("{name}: {}", usual(Role::Gradient, *form, tensor))
        })
        .collect();
    let integers = forward.outputs.parts.len() > outputs.len()
        && forward
            .outputs
            .parts
            .iter()
            .any(|ty| float_output(ty).is_none() && output_form(ty).is_some());
    let wanted = format!("`{}`", wanted.join(", "));
    let message = messages::gradient_count(found, outputs.len(), integers, &wanted);
    // The surplus parameter: the first that is not a gradient, otherwise the first after the last gradient.
    let other = backward.params.iter().find(|param| !is_gradient(param));
    let surplus = backward.params.get(outputs.len());
    match surplus.map(|surplus| other.unwrap_or(surplus)) {
        Some(first) => errors.at(&first.ty, message),
        None => errors.at(&backward.function.sig.ident, message),
    }
}

fn gradient_types(layer: &Layer, errors: &mut Errors) {
    let (Some(_), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    let outputs = layer.outputs();
    if outputs.len() != backward.params.len() {
        return;
    }
    for (position, ((_, form, tensor), param)) in outputs.iter().zip(&backward.params).enumerate() {
        let (role, what) = (Role::Gradient, "the gradient of");
        let whose = messages::output(position, outputs.len());
        let value = Value { role, what, whose, form: *form, tensor };
        let name = param.name.as_ref().map_or("dy".to_owned(), Ident::to_string);
        value.check(&param.ty, Some(&name), errors);
    }
}

fn wanted_return(layer: &Layer, by_name: bool) -> String {
    let inputs = layer.differentiable();
    if by_name {
        let names: Vec<_> = inputs.iter().map(|(param, _)| param.ident.to_string()).collect();
        return format!("Grads {{ {} }}", names.join(", "));
    }
    let types = inputs.iter().map(|(_, input)| usual(Role::Returned, input.form, &input.tensor));
    together(types.collect())
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
    let values = names.iter().zip(&inputs).map(|(name, (_, of))| Value {
        role: Role::Returned,
        what: "the gradient of",
        whose: format!("`{name}`"),
        form: of.form,
        tensor: &of.tensor,
    });
    let count = messages::plural(names.len(), "differentiable tensor input");
    let has = format!("{count} ({})", messages::list(&names));
    let wanted = ExpectedReturn { one: "gradient", has, values: values.collect(), write };
    wanted.check(&backward.returns, &backward.function, errors);
}
