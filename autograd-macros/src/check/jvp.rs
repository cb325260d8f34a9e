//! The rules of `fn jvp`, where there is one.

use syn::Type;

use super::returned::Wanted;
use super::types::{is_gradient_form, other_element, tensor_in, together};
use crate::args::Args;
use crate::errors::Errors;
use crate::messages;
use crate::model::{
    Derivative, Form, GradientParam, Layer, Param, ParamKind, Returns, TensorInput, argument_of,
    as_tensor, bare, gradient_type, input_form, primal_type, shared,
};
use crate::tokens::{plain_name, text};

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
            let ty = primal_type(input.form, &text(&input.tensor));
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
    let (primals, tangents) = jvp.params.split_at(inputs.len());
    for ((param, input), primal) in inputs.iter().zip(primals) {
        primal_parameter(param, input, primal, errors);
    }
    for ((param, input), tangent) in inputs.iter().zip(tangents) {
        tangent_parameter(param, input, tangent, errors);
    }
}

/// Parameters with the names of inputs that have no tangent; whether there are any.
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

/// The name of an input at another place than its own; whether there is one.
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

fn primal_parameter(
    param: &Param,
    input: &TensorInput,
    found: &GradientParam,
    errors: &mut Errors,
) {
    let Some(tensor) = tensor_in(&found.ty) else { return };
    let name = plain_name(&param.ident);
    let write = primal_type(input.form, &text(&input.tensor));
    if let Some((is, of)) = other_element(tensor, &input.tensor) {
        errors.at(&found.ty, messages::jvp_input_element(&name, &is, &of, &write));
    } else if !is_primal_form(input.form, &found.ty) {
        errors.at(&found.ty, messages::jvp_input_form(&name, &text(&found.ty), &write));
    }
}

fn is_primal_form(form: Form, ty: &Type) -> bool {
    match (form, input_form(ty)) {
        (Form::List, _) => {
            matches!(shared(ty).map(bare), Some(Type::Slice(list)) if as_tensor(&list.elem).is_some())
        }
        (form, Some((found, _))) => form == found,
        (_, None) => false,
    }
}

fn tangent_parameter(
    param: &Param,
    input: &TensorInput,
    found: &GradientParam,
    errors: &mut Errors,
) {
    let Some(tensor) = tensor_in(&found.ty) else { return };
    let (of_input, of) = (plain_name(&param.ident), text(&input.tensor));
    let name = found.name.as_ref().map_or_else(|| format!("d{of_input}"), plain_name);
    let write = primal_type(input.form, &of);
    let message = if let Some((is, of)) = other_element(tensor, &input.tensor) {
        messages::tangent_element(&name, &is, &of_input, &of, &write)
    } else if !is_gradient_form(input.form, &found.ty) {
        let forms = match input.form {
            Form::One => format!("{write}` or `Option<{write}>"),
            Form::Optional => write,
            Form::List => format!("{write}` or `&[Option<{of}>]"),
        };
        messages::tangent_form(&of_input, &text(&found.ty), &name, &forms)
    } else if input.form == Form::Optional && argument_of(&found.ty, "Option").is_none() {
        messages::tangent_optional(&of_input, &name, &write)
    } else {
        return;
    };
    errors.at(&found.ty, message);
}

fn wanted_return(layer: &Layer) -> String {
    let outputs = layer.outputs().into_iter();
    together(outputs.map(|(_, form, tensor)| gradient_type(form, &text(tensor))).collect())
}

fn returned(layer: &Layer, jvp: &Derivative, errors: &mut Errors) {
    let outputs = layer.outputs();
    if outputs.is_empty() {
        return;
    }
    let write = wanted_return(layer);
    if let Returns::ByName(ty) = &jvp.returns {
        return errors.at(ty, messages::jvp_returned_grads(&write));
    }
    let values = outputs.iter().enumerate().map(|(position, (_, form, tensor))| {
        (messages::output(position, outputs.len()), *form, *tensor)
    });
    let wanted = Wanted {
        values: values.collect(),
        count: &|found| messages::jvp_returned_count(found, outputs.len(), &write),
        list: &|found| messages::jvp_returned_list(found, outputs.len(), &write),
        form: messages::jvp_returned_form,
        element: messages::jvp_returned_element,
    };
    wanted.check(&jvp.returns, &jvp.function, errors);
}
