//! Habits from other libraries: fields of a context, and several arguments in one call.

use proc_macro2::{Delimiter, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, Token};

use super::calls::{Use, Uses};
use crate::errors::Errors;
use crate::messages;
use crate::model::{Layer, nearest};
use crate::tokens::{is_group, is_punct, plain_name, text};

const TUPLE_CALLS: [&str; 4] =
    ["save_for_backward", "set_attrs", "mark_not_inplace", "mark_non_differentiable"];

const READ_CALLS: [&str; 3] = ["saved_tensor", "attrs", "needs_input_grad"];

/// In other libraries a field of the context; here the start of a call's name.
const SAVED: &str = "saved";

/// Reports such uses, with the code to write.
pub(super) fn check(layer: &Layer, errors: &mut Errors) {
    for (context, function) in layer.contexts() {
        let name = function.sig.ident.to_string();
        let uses = Uses::new(function.without_cfg().1, context);
        let mut fields: Vec<String> = Vec::new();
        for used in uses.iter() {
            // A context that escapes may be shadowed by a value that has fields.
            if !uses.escapes && is_field(used) && !fields.contains(&plain_name(&used.name)) {
                field(used, name == "forward", errors);
                fields.push(plain_name(&used.name));
            }
            if name == "forward" {
                call_in_forward(used, errors);
            }
            if name != "jvp" {
                needs_by_position(layer, used, errors);
            }
        }
    }
}

/// Reports an index by position: `ctx.needs_input_grad()[0]`.
fn needs_by_position(layer: &Layer, used: &Use, errors: &mut Errors) {
    if let [call, TokenTree::Group(index)] = &used.following[..]
        && used.name == "needs_input_grad"
        && is_group(Some(call), Delimiter::Parenthesis)
        && index.delimiter() == Delimiter::Bracket
    {
        let position = index.stream().to_string().parse().unwrap_or(0);
        let named = layer.inputs().nth(position).or(layer.inputs().next());
        let write = named.map_or("x".to_owned(), |(param, _)| plain_name(&param.ident));
        errors.at(TokenTree::from(index.clone()), messages::needs_by_position(&write));
    }
}

/// Whether this is `ctx.name` without a call, as in languages where a context can have any field.
fn is_field(used: &Use) -> bool {
    match used.following.first() {
        // Possibly the start of a call.
        None => {
            let mut calls = TUPLE_CALLS.iter().chain(&READ_CALLS).chain(&["set_materialize_grads"]);
            let name = used.name.to_string();
            name == SAVED || !calls.any(|call| call.starts_with(&name))
        }
        next => used.given().is_none() && !is_punct(next, ':'),
    }
}

fn field(used: &Use, forward: bool, errors: &mut Errors) {
    let name = plain_name(&used.name);
    let longer = READ_CALLS.into_iter().find(|_| !forward && name == SAVED);
    let near = nearest(&name, &READ_CALLS).or(longer);
    let message = match forward {
        true => messages::field_in_forward(&name, near),
        false => messages::field_in_derivative(&name, near),
    };
    errors.at(&used.name, message);
}

/// Reports several arguments for a call that takes a tuple, and calls that do not exist here.
fn call_in_forward(used: &Use, errors: &mut Errors) {
    let (name, Some(given)) = (used.name.to_string(), used.given()) else { return };
    match &name[..] {
        "mark_dirty" => errors.at(&used.name, messages::mark_dirty()),
        "save_for_forward" => errors.at(&used.name, messages::save_for_forward()),
        _ => {}
    }
    if TUPLE_CALLS.contains(&&name[..])
        && given.clone().into_iter().any(|tree| is_punct(Some(&tree), ','))
    {
        let parsed = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(given);
        let given: Vec<String> = parsed.iter().flatten().map(text).collect();
        if given.len() > 1 {
            let message = messages::several_arguments(&name, given.len(), &given.join(", "));
            errors.at(&used.name, message);
        }
    }
}
