//! The rules of the optional `fn jvp`.

use super::types::together;
use super::values::{ExpectedReturn, Role, Value, usual};
use crate::args::Args;
use crate::errors::Errors;
use crate::messages;
use crate::model::{Derivative, GradientParam, Layer, ParamKind};
use crate::tokens::plain_name;

pub(crate) fn check(layer: &Layer, args: &Args, errors: &mut Errors) {
    let Some(jvp) = &layer.jvp else { return };
    if args.no_grad.is_some() {
        return errors.at(&jvp.function.sig.ident, messages::jvp_without_gradient());
    }
    if layer.forward.is_none() {
        return;
    }
    parameters(layer, jvp, errors);
    returned(layer, jvp, errors);
}

fn wanted_parameters(layer: &Layer) -> String {
    let inputs = layer.differentiable();
    let written = |prefix: &str| {
        let written = inputs.iter().map(|(param, input)| {
            let ty = usual(Role::Input, input.form, &input.tensor);
            format!("{prefix}{}: {ty}", plain_name(&param.ident))
        });
        written.collect::<Vec<_>>().join(", ")
    };
    format!("`{}, {}`", written(""), written("d"))
}

fn parameters(layer: &Layer, jvp: &Derivative, errors: &mut Errors) {
    let inputs = layer.differentiable();
    if inputs.is_empty() {
        return;
    }
    let names: Vec<String> = inputs.iter().map(|(param, _)| plain_name(&param.ident)).collect();
    if other_inputs(layer, jvp, errors) {
        return;
    }
    let found = jvp.params.len();
    if found != 2 * inputs.len() {
        let message = messages::jvp_count(found, &names, &wanted_parameters(layer));
        return match jvp.params.get(2 * inputs.len()) {
            Some(surplus) => errors.at(&surplus.ty, message),
            None => errors.at(&jvp.function.sig.ident, message),
        };
    }
    if order(layer, jvp, &names, errors) {
        return;
    }
    let roles = [(Role::Input, "the input"), (Role::Tangent, "the tangent of")];
    let wanted = roles.into_iter().flat_map(|role| inputs.iter().map(move |input| (role, input)));
    for (((role, what), (param, input)), found) in wanted.zip(&jvp.params) {
        let name = plain_name(&param.ident);
        let whose = format!("`{name}`");
        let value = Value { role, what, whose, form: input.form, tensor: &input.tensor };
        let own = match role {
            Role::Tangent => found.name.as_ref().map_or_else(|| format!("d{name}"), plain_name),
            _ => name,
        };
        value.check(&found.ty, Some(&own), errors);
    }
}

/// Reports parameters named after inputs without a tangent. Returns whether there are any.
fn other_inputs(layer: &Layer, jvp: &Derivative, errors: &mut Errors) -> bool {
    let mut any = false;
    let params = layer.forward.iter().flat_map(|forward| &forward.params);
    for param in params {
        let message = match &param.kind {
            ParamKind::Tensor(input) if !input.stop_gradient => continue,
            ParamKind::Tensor(_) => messages::jvp_stopped_input,
            ParamKind::Plain { .. } => messages::jvp_plain_input,
        };
        let name = plain_name(&param.ident);
        let same =
            |other: &&GradientParam| other.name.as_ref().map(plain_name) == Some(name.clone());
        if let Some(found) = jvp.params.iter().find(same) {
            errors.at(&found.name, message(&name));
            any = true;
        }
    }
    any
}

/// Reports a parameter named after an input at another position. Returns whether there is one.
fn order(layer: &Layer, jvp: &Derivative, names: &[String], errors: &mut Errors) -> bool {
    for (position, param) in jvp.params.iter().enumerate() {
        let Some(name) = &param.name else { continue };
        let text = plain_name(name);
        let Some(own) = names.iter().position(|input| *input == text) else { continue };
        if own == position {
            continue;
        }
        let expected = match names.get(position) {
            Some(input) => format!("the input `{input}`"),
            None => format!("the tangent of `{}`", names[position - names.len()]),
        };
        errors.at(name, messages::jvp_order(&text, &expected, &wanted_parameters(layer)));
        return true;
    }
    false
}

fn wanted_return(layer: &Layer) -> String {
    let outputs = layer.outputs().into_iter();
    together(outputs.map(|(_, form, tensor)| usual(Role::Returned, form, tensor)).collect())
}

fn returned(layer: &Layer, jvp: &Derivative, errors: &mut Errors) {
    let outputs = layer.outputs();
    if outputs.is_empty() {
        return;
    }
    let write = wanted_return(layer);
    if let Some(ty) = jvp.returns.by_name() {
        return errors.at(ty, messages::jvp_returned_grads(&write));
    }
    let values = outputs.iter().enumerate().map(|(position, (_, form, tensor))| Value {
        role: Role::Returned,
        what: "the tangent of",
        whose: messages::output(position, outputs.len()),
        form: *form,
        tensor,
    });
    let has = messages::plural(outputs.len(), "tensor output");
    let write = format!("`{write}`");
    let wanted = ExpectedReturn { one: "tangent", has, values: values.collect(), write };
    wanted.check(&jvp.returns, &jvp.function, errors);
}
