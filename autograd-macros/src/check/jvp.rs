//! The rules of the optional `fn jvp`.

use super::values::{
    ExpectedReturn, Role, Taken, check_taken, of_inputs, of_outputs, written, written_return,
};
use crate::args::Args;
use crate::errors::Errors;
use crate::messages;
use crate::model::{Derivative, Layer, ParamKind};
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

/// The inputs, and then their tangents.
fn taken(layer: &Layer) -> Vec<Taken<'_>> {
    let mut taken = of_inputs(layer, Role::Input, "the input");
    taken.extend(of_inputs(layer, Role::Tangent, "the tangent of"));
    taken
}

fn parameters(layer: &Layer, jvp: &Derivative, errors: &mut Errors) {
    let inputs = layer.differentiable();
    if inputs.is_empty() {
        return;
    }
    let names: Vec<String> = inputs.iter().map(|(_, param, _)| plain_name(&param.ident)).collect();
    let (count, taken) = (jvp.params.len(), taken(layer));
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

fn returned(layer: &Layer, jvp: &Derivative, errors: &mut Errors) {
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
    let wanted = ExpectedReturn { one: "tangent", has, values, write };
    wanted.check(&jvp.returns, &jvp.function, errors);
}
