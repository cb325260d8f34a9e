//! The rules of the block, one function each.

pub(crate) mod absent;
pub(crate) mod calls;
mod context;
mod derivatives;
pub(crate) mod forward;
mod habits;
mod once;
pub(crate) mod refused;
pub(crate) mod types;
mod values;
pub(crate) mod warn;

use crate::args::Args;
use crate::errors::Errors;
use crate::messages;
use crate::model::{Item, Layer, nearest};
use crate::tokens::plain_name;
use types::{unkeepable, unsaveable};

pub(crate) fn check(layer: &Layer, args: &Args, errors: &mut Errors) {
    no_grad(layer, args, errors);
    both_functions(layer, args, errors);
    forward::check(layer, args, errors);
    derivatives::check(layer, errors);
    declared_types(layer, errors);
    derivatives::check_jvp(layer, args, errors);
}

pub(crate) fn check_bodies(layer: &Layer, errors: &mut Errors) {
    derivatives::check_body(layer, errors);
    absent_inputs(layer, errors);
    context::check(layer, errors);
}

fn no_grad(layer: &Layer, args: &Args, errors: &mut Errors) {
    if args.no_grad.is_none() {
        return;
    }
    if let Some(once) = args.once_differentiable {
        errors.at_span(once, messages::no_grad_and_once());
    }
    if let Some(backward) = &layer.backward {
        errors.at(&backward.function.sig.ident, messages::no_grad_with_backward());
    }
}

fn both_functions(layer: &Layer, args: &Args, errors: &mut Errors) {
    if layer.is_broken() {
        return;
    }
    let name = layer.name.to_string();
    if layer.forward.is_none() && layer.backward.is_none() && layer.items.is_empty() {
        return errors.at(&layer.self_ty, messages::empty_block(&name));
    }
    if layer.forward.is_none() {
        if !report_misspelling(&layer.items, "forward", errors) {
            errors.at(&layer.self_ty, messages::no_forward(&name));
        }
    } else if layer.backward.is_none() && !args.means_no_grad {
        // An op without an input that has a gradient gets its own error, and needs no backward.
        let needed = !layer.differentiable().is_empty();
        if !report_misspelling(&layer.items, "backward", errors) && needed {
            let signature = derivatives::backward_signature(layer);
            errors.at(&layer.self_ty, messages::no_backward(&name, &signature));
        }
    }
}

/// Reports a function whose name is a misspelling of `meant`. Returns whether there is one.
pub(crate) fn report_misspelling(items: &[Item], meant: &str, errors: &mut Errors) -> bool {
    let slips = items.iter().filter_map(|item| match item {
        Item::Function(function) if !function.is_rule() => Some(&function.sig.ident),
        _ => None,
    });
    let found = slips.map(|ident| (ident, ident.to_string()));
    let found = found.into_iter().find(|(_, name)| nearest(name, &[meant]).is_some());
    if let Some((ident, name)) = &found {
        errors.at(ident, messages::near_name(name, meant));
    }
    found.is_some()
}

fn absent_inputs(layer: &Layer, errors: &mut Errors) {
    let (Some(forward), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    for (name, ty) in absent::inputs(&forward.function, &backward.function) {
        let is_tensor = types::tensor_in(ty).is_some();
        let ([call, read], kept) = match is_tensor {
            true => {
                (["save_for_backward", "saved_tensor"], layer.saved.as_ref().map(|_| "type Saved"))
            }
            false => (["set_attrs", "attrs"], layer.state.as_ref().map(|_| "type Attrs")),
        };
        errors.at(&name, messages::absent_input(&plain_name(&name), call, read, kept));
    }
}

fn declared_types(layer: &Layer, errors: &mut Errors) {
    for (ty, message) in layer.saved.iter().flat_map(|saved| unsaveable(saved, &layer.generics)) {
        errors.at(ty, message);
    }
    if let Some((flaw, message)) =
        layer.state.as_ref().and_then(|state| unkeepable(state, &layer.generics))
    {
        errors.at(flaw, message);
    }
}
