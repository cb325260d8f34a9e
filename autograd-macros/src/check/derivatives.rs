//! The rules of backward and of the optional `jvp`: their parameters and results must match forward.

use proc_macro2::{Group, Ident};
use quote::ToTokens;
use syn::{Expr, Stmt, Type};

use super::calls::{grads, name, returned_parts};
use super::types::tensor_in;
use super::values::{
    Role, Taken, check_returned, check_taken, of_inputs, of_outputs, written, written_return,
};
use crate::args::Args;
use crate::errors::Errors;
use crate::generics::parameter_name;
use crate::messages;
use crate::model::{
    Derivative, Form, Forward, GradientParam, Layer, Param, ParamKind, float_output, hidden_tensor,
    output_form,
};
use crate::parse::BACKWARD_CONTEXT;
use crate::tokens::{find_ident, is_punct, plain_name, text};

pub(crate) fn check(layer: &Layer, errors: &mut Errors) {
    if let (Some(forward), Some(backward)) = (&layer.forward, &layer.backward) {
        gradients_taken(layer, forward, backward, errors);
        gradients_returned(layer, forward, backward, errors);
    }
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
    let lists = inputs.iter().filter(|(.., input)| input.form == Form::List);
    let lists: Vec<_> = lists.map(|(_, param, _)| &param.ident).collect();
    if backward.returns.tuple {
        let inputs = inputs.iter().map(|(_, param, _)| plain_name(&param.ident));
        let inputs: Vec<String> = inputs.collect();
        let params = forward.params.iter().map(|param| &param.ident);
        let given = backward.params.iter().filter_map(|param| param.name.as_ref());
        let taken: Vec<String> = params.chain(given).map(plain_name).collect();
        order(&inputs, &taken, body, errors);
    }
    if backward.returns.by_name().is_some()
        && let Some(found) = no_grads(backward)
    {
        let fields = inputs.iter().map(|(_, param, _)| format!("{}: ..", param.ident));
        let write = format!("Grads {{ {} }}", fields.collect::<Vec<_>>().join(", "));
        errors.at(found, messages::grads_not_returned(&text(found), &write));
    }
    // An empty list of gradients for a list input: its type is right, but each tensor needs a gradient.
    for (field, value) in grads(trees).into_iter().flatten() {
        let empty = ["[]", "vec![]", "Vec::new()", "std::vec::Vec::new()"];
        if lists.contains(&&field) && empty.contains(&&text(&value)[..]) {
            errors.at(value, messages::grads_field_empty(&plain_name(&field)));
        }
    }
}

/// The last expression of the body, without `Ok(..)` around it, if it is certainly not of the type `Grads`.
fn no_grads(backward: &Derivative) -> Option<&Expr> {
    let Some(Stmt::Expr(whole, None)) = backward.function.parsed()?.stmts.last() else {
        return None;
    };
    let last = match whole {
        Expr::Call(call) if text(&call.func) == "Ok" && call.args.len() == 1 => {
            call.args.first()?
        }
        last => last,
    };
    let is_gradient =
        |word: &Ident| backward.params.iter().any(|of| of.name.as_ref() == Some(word));
    let is_other = match last {
        Expr::Tuple(_) | Expr::Binary(_) | Expr::Reference(_) => true,
        Expr::Path(path) => {
            let body = backward.function.body.stream();
            let shadowed = find_ident(body, |word| word == "Grads").is_some();
            !shadowed && path.path.get_ident().is_some_and(is_gradient)
        }
        _ => false,
    };
    // It may be under a `#[cfg]`.
    let has_attribute = || is_punct(whole.to_token_stream().into_iter().next().as_ref(), '#');
    (is_other && !has_attribute()).then_some(last)
}

/// `fn backward(ctx: .., dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>)`
pub(crate) fn backward_signature(layer: &Layer) -> String {
    let (params, returns) = (written(&taken(layer)), written_return(&gradients(layer)));
    let comma = if params.is_empty() { "" } else { ", " };
    format!("fn backward(ctx: {BACKWARD_CONTEXT}{comma}{params}) -> {returns}")
}

/// The gradients that backward takes: one for each tensor output.
fn taken(layer: &Layer) -> Vec<Taken<'_>> {
    of_outputs(layer, Role::Gradient, "the gradient of")
}

/// The gradients that backward returns: one for each differentiable input.
fn gradients(layer: &Layer) -> Vec<Taken<'_>> {
    of_inputs(layer, Role::Returned, "the gradient of")
}

fn gradients_taken(layer: &Layer, forward: &Forward, backward: &Derivative, errors: &mut Errors) {
    let (outputs, mut taken) = (layer.outputs(), taken(layer));
    let found = backward.params.len();
    if outputs.len() == found {
        return check_taken(&taken, &backward.params, errors);
    }
    // An output of an unsupported form has been reported.
    let hides = |ty: &Type| float_output(ty).is_none() && hidden_tensor(ty).is_some();
    if outputs.is_empty() || forward.outputs.parts.iter().any(hides) {
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
    let is_integer = |ty: &Type| float_output(ty).is_none() && output_form(ty).is_some();
    let integers = forward.outputs.parts.iter().any(is_integer);
    for ((name, _), param) in taken.iter_mut().zip(backward.params.iter().filter(is_gradient)) {
        *name = param.name.as_ref().map_or(name.clone(), Ident::to_string);
    }
    let wanted = format!("`{}`", written(&taken));
    let message = messages::gradient_count(found, outputs.len(), integers, &wanted);
    // The surplus parameter: the first that is not a gradient, otherwise the first after the last gradient.
    let other = backward.params.iter().find(|param| !is_gradient(param));
    let surplus = backward.params.get(outputs.len());
    match surplus.map(|surplus| other.unwrap_or(surplus)) {
        Some(first) => errors.at(&first.ty, message),
        None => errors.at(&backward.function.sig.ident, message),
    }
}

fn gradients_returned(
    layer: &Layer,
    forward: &Forward,
    backward: &Derivative,
    errors: &mut Errors,
) {
    let inputs = layer.differentiable();
    // An input of an unsupported form has been reported.
    let hides =
        |of: &Param| matches!(of.kind, ParamKind::Plain { .. }) && hidden_tensor(&of.ty).is_some();
    if inputs.is_empty() || forward.params.iter().any(hides) {
        return;
    }
    let values = gradients(layer);
    let names: Vec<_> = inputs.iter().map(|(_, param, _)| plain_name(&param.ident)).collect();
    let mut write = format!("`{}`", written_return(&values));
    if inputs.len() > 1 {
        let fields: Vec<_> = inputs.iter().map(|(_, param, _)| param.ident.to_string()).collect();
        write += &format!(", or by name `Grads {{ {} }}`", fields.join(", "));
    }
    let count = messages::plural(names.len(), "differentiable tensor input");
    let has = format!("{count} ({})", messages::list(&names));
    check_returned(backward, &values, ("gradient", &has, &write), errors);
}

/// Compares a tuple of names at the end of backward, `(dw, dx)`, with the order of the inputs. `taken`
/// has the names of backward's parameters: such a name may look like that of an input's gradient, but
/// is not one.
fn order(inputs: &[String], taken: &[String], body: &Group, errors: &mut Errors) {
    let names: Vec<Option<Ident>> = returned_parts(body).iter().map(name).collect();
    if names.len() != inputs.len() {
        return;
    }
    let named_input = |name: &Option<Ident>| input_of(&plain_name(name.as_ref()?), inputs, taken);
    let named_input: Vec<Option<usize>> = names.iter().map(named_input).collect();
    let is_wrong = |place: &usize| named_input[*place].is_some_and(|input| input != *place);
    let wrong: Vec<usize> = (0..names.len()).filter(is_wrong).collect();
    let meant = |place: usize| wrong.iter().copied().find(|from| named_input[*from] == Some(place));
    // Only a permutation is certainly a mistake.
    if let Some(&place) = wrong.first()
        && let Some(first) = &names[place]
        && wrong.iter().all(|place| meant(*place).is_some())
    {
        let right = (0..names.len()).map(|place| &names[meant(place).unwrap_or(place)]);
        let right = right.map(|name| name.as_ref().map_or("..".to_owned(), Ident::to_string));
        let right = right.collect::<Vec<_>>().join(", ");
        errors.at(first, messages::gradients_swapped(&first.to_string(), &inputs[place], &right));
    }
}

/// The only input whose gradient could have this name.
fn input_of(name: &str, inputs: &[String], taken: &[String]) -> Option<usize> {
    if taken.iter().any(|other| other == name) {
        return None;
    }
    let says = |input: &String| {
        let forms = [
            format!("d{input}"),
            format!("d_{input}"),
            format!("grad_{input}"),
            format!("{input}_grad"),
        ];
        forms.iter().any(|form| form == name)
    };
    let mut found = (0..inputs.len()).filter(|&i| says(&inputs[i]));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

pub(crate) fn check_jvp(layer: &Layer, args: &Args, errors: &mut Errors) {
    let Some(jvp) = &layer.jvp else { return };
    if args.no_grad.is_some() {
        return errors.at(&jvp.function.sig.ident, messages::jvp_without_gradient());
    }
    if layer.forward.is_none() {
        return;
    }
    jvp_parameters(layer, jvp, errors);
    jvp_returned(layer, jvp, errors);
}

fn jvp_parameters(layer: &Layer, jvp: &Derivative, errors: &mut Errors) {
    let inputs = layer.differentiable();
    if inputs.is_empty() {
        return;
    }
    let names: Vec<String> = inputs.iter().map(|(_, param, _)| plain_name(&param.ident)).collect();
    let mut taken = of_inputs(layer, Role::Input, "the input");
    taken.extend(of_inputs(layer, Role::Tangent, "the tangent of"));
    let count = jvp.params.len();
    let is_counted = count == taken.len();
    let write = format!("`{}`", written(&taken));
    let (before, mut misplaced) = (errors.count(), None);
    for (position, param) in jvp.params.iter().enumerate() {
        let Some(found) = &param.name else { continue };
        let name = plain_name(found);
        let mut params = layer.forward.iter().flat_map(|forward| &forward.params);
        match params.find(|of| plain_name(&of.ident) == name).map(|of| &of.kind) {
            Some(ParamKind::Plain { .. }) => errors.at(found, messages::jvp_plain_input(&name)),
            Some(ParamKind::Tensor(input)) if input.stop_gradient => {
                errors.at(found, messages::jvp_stopped_input(&name));
            }
            Some(_) if names.get(position) != Some(&name) => {
                misplaced.get_or_insert((position, found));
            }
            _ => {}
        }
    }
    if errors.count() > before {
        return;
    }
    if let (true, Some((position, found))) = (is_counted, misplaced) {
        let (_, expected) = &taken[position];
        let expected = format!("{} {}", expected.what, expected.whose);
        return errors.at(found, messages::jvp_order(&plain_name(found), &expected, &write));
    }
    if is_counted {
        return check_taken(&taken, &jvp.params, errors);
    }
    let message = messages::jvp_count(count, &names, &write);
    match jvp.params.get(taken.len()) {
        Some(surplus) => errors.at(&surplus.ty, message),
        None => errors.at(&jvp.function.sig.ident, message),
    }
}

fn jvp_returned(layer: &Layer, jvp: &Derivative, errors: &mut Errors) {
    let outputs = layer.outputs();
    if outputs.is_empty() {
        return;
    }
    let values = of_outputs(layer, Role::Returned, "the tangent of");
    let write = format!("`{}`", written_return(&values));
    if let Some(ty) = jvp.returns.by_name() {
        return errors.at(ty, messages::jvp_returned_grads(&write));
    }
    let has = messages::plural(outputs.len(), "tensor output");
    check_returned(jvp, &values, ("tangent", &has, &write), errors);
}
