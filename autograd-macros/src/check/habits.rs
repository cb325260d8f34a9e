//! What people write of a context who know it from other languages: fields, and several arguments.

use proc_macro2::{Delimiter, Group, Ident, TokenTree};

use super::calls::{arguments, escapes, find_call};
use crate::errors::Errors;
use crate::messages;
use crate::model::{Layer, nearest};
use crate::tokens::{Trees, is_group, is_punct, plain_name, text};

const TOGETHER: [&str; 4] =
    ["save_for_backward", "set_attrs", "mark_not_inplace", "mark_non_differentiable"];

const READS: [&str; 3] = ["saved_tensor", "attrs", "needs_input_grad"];

/// What a context of another library keeps in a field, and the start of a call's name here.
const SAVED: &str = "saved";

const ELSEWHERE: [&str; 2] = ["mark_dirty", "save_for_forward"];

/// Tells it, with the code to write.
pub(super) fn check(layer: &Layer, errors: &mut Errors) {
    fields(layer, errors);
    calls_in_forward(layer, errors);
    positions(layer, errors);
}

/// What needs a gradient, asked by position.
fn positions(layer: &Layer, errors: &mut Errors) {
    let names: Vec<String> = layer.inputs().map(|(param, _)| plain_name(&param.ident)).collect();
    for (context, function) in layer.contexts().filter(|(_, of)| of.sig.ident != "jvp") {
        let body = function.judged().1;
        for group in all(body, &|trees| position(trees, context).cloned()) {
            let position = group.stream().to_string().parse::<usize>().ok();
            let name = position.and_then(|position| names.get(position)).or(names.first());
            let write = name.map_or("x", String::as_str);
            errors.at(TokenTree::from(group), messages::needs_by_position(write));
        }
    }
}

/// The brackets, if these trees start with `ctx.needs_input_grad()[..]`.
fn position<'a>(trees: &'a [TokenTree], context: &Ident) -> Option<&'a Group> {
    match trees {
        [
            TokenTree::Ident(receiver),
            dot,
            TokenTree::Ident(name),
            call,
            TokenTree::Group(index),
            ..,
        ] if receiver == context
            && is_punct(Some(dot), '.')
            && name == "needs_input_grad"
            && is_group(Some(call), Delimiter::Parenthesis)
            && index.delimiter() == Delimiter::Bracket =>
        {
            Some(index)
        }
        _ => None,
    }
}

/// `ctx.name` without a call, as in languages where a context keeps anything.
fn fields(layer: &Layer, errors: &mut Errors) {
    for (context, function) in layer.contexts() {
        let (forward, body) = (function.sig.ident == "forward", function.judged().1);
        // Another value of this name may have fields.
        if escapes(body, context) {
            continue;
        }
        let mut reported: Vec<String> = Vec::new();
        for field in all(body, &|trees| field(trees, context).cloned()) {
            let name = plain_name(&field);
            if !reported.contains(&name) {
                let longer = READS.into_iter().find(|_| !forward && name == SAVED);
                let near = nearest(&name, &READS).or(longer);
                errors.at(&field, messages::field_of_context(&name, near, forward));
                reported.push(name);
            }
        }
    }
}

fn all<T>(body: &Trees, look: &dyn Fn(&[TokenTree]) -> Option<T>) -> Vec<T> {
    let mut found = Vec::new();
    body.find(&mut |trees, at| {
        found.extend(look(&trees[at..]));
        None::<()>
    });
    found
}

/// The field, if these trees start with `ctx.field` and no call follows.
fn field<'a>(trees: &'a [TokenTree], context: &Ident) -> Option<&'a Ident> {
    let [TokenTree::Ident(receiver), dot, TokenTree::Ident(name), rest @ ..] = trees else {
        return None;
    };
    let called = match rest.first() {
        // Still being written.
        None => {
            let calls = TOGETHER.iter().chain(&READS).chain(["set_materialize_grads"].iter());
            let name = name.to_string();
            name != SAVED && calls.into_iter().any(|call| call.starts_with(&name))
        }
        next => is_group(next, Delimiter::Parenthesis) || is_punct(next, ':'),
    };
    (receiver == context && is_punct(Some(dot), '.') && !called).then_some(name)
}

/// What is given one by one, but taken as a tuple; and calls that there are not.
fn calls_in_forward(layer: &Layer, errors: &mut Errors) {
    let Some(forward) = &layer.forward else { return };
    let Some(context) = &forward.context else { return };
    let body = forward.function.judged().1;
    for call in ELSEWHERE {
        if let Some((ident, _)) = find_call(body, context, call) {
            errors.at(ident, messages::call_of_another_library(call));
        }
    }
    for call in TOGETHER {
        let Some((ident, given)) = find_call(body, context, call) else { continue };
        if !given.clone().into_iter().any(|tree| is_punct(Some(&tree), ',')) {
            continue;
        }
        let given = arguments(&given);
        if given.len() > 1 {
            let written: Vec<_> = given.iter().map(text).collect();
            let message = messages::several_arguments(call, given.len(), &written.join(", "));
            errors.at(ident, message);
        }
    }
}
