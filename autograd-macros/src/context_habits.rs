//! What people write of a context who know it from other languages: fields, and several arguments.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, Token};

use crate::args::is_comma;
use crate::context_use::{escapes, find_call};
use crate::errors::Errors;
use crate::messages;
use crate::model::{Layer, nearest, plain_name, text};

/// The calls that take everything at once.
pub(crate) const TOGETHER: [&str; 4] =
    ["save_for_backward", "set_attrs", "mark_not_inplace", "mark_non_differentiable"];

/// The calls that take nothing.
const READS: [&str; 3] = ["saved_tensor", "attrs", "needs_input_grad"];

/// What a context of another library keeps in a field, and the start of a call's name here.
const SAVED: &str = "saved";

/// Calls that a context has in other libraries.
pub(crate) const ELSEWHERE: [&str; 2] = ["mark_dirty", "save_for_forward"];

/// Tells it, with the code to write.
pub(crate) fn check(layer: &Layer, errors: &mut Errors) {
    fields(layer, errors);
    several_arguments(layer, errors);
    positions(layer, errors);
    of_other_libraries(layer, errors);
}

fn of_other_libraries(layer: &Layer, errors: &mut Errors) {
    let Some(forward) = &layer.forward else { return };
    let Some(context) = &forward.context else { return };
    let uses = layer.glance.uses(context);
    for call in ELSEWHERE.into_iter().filter(|call| uses.may_call(call)) {
        let body = forward.function.judged().stream();
        if let Some((ident, _)) = find_call(&body, context, call) {
            errors.at(ident, messages::call_of_another_library(call));
        }
    }
}

/// What needs a gradient, asked by position.
fn positions(layer: &Layer, errors: &mut Errors) {
    if !layer.glance.may_mention("needs_input_grad") {
        return;
    }
    let names: Vec<String> = layer.inputs().map(|(param, _)| plain_name(&param.ident)).collect();
    let forward = layer.forward.iter().map(|f| (&f.context, f.function.judged()));
    let backward = layer.backward.iter().map(|b| (&b.context, b.function.judged()));
    for (context, body) in forward.chain(backward) {
        let mut found = Vec::new();
        if let Some(context) = context {
            find_positions(&body.stream(), context, &mut found);
        }
        for group in found {
            let position = group.stream().to_string().parse::<usize>().ok();
            let name = position.and_then(|position| names.get(position)).or(names.first());
            let write = name.map_or("x", String::as_str);
            errors.at(TokenTree::from(group), messages::needs_by_position(write));
        }
    }
}

fn find_positions(tokens: &TokenStream, context: &Ident, found: &mut Vec<Group>) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        found.extend(position(&trees[at..], context).cloned());
        if let TokenTree::Group(group) = tree {
            find_positions(&group.stream(), context, found);
        }
    }
}

/// The brackets, if these trees start with `ctx.needs_input_grad()[..]`.
pub(crate) fn position<'a>(trees: &'a [TokenTree], context: &Ident) -> Option<&'a Group> {
    match trees {
        [
            TokenTree::Ident(receiver),
            TokenTree::Punct(dot),
            TokenTree::Ident(name),
            TokenTree::Group(call),
            TokenTree::Group(index),
            ..,
        ] if receiver == context
            && dot.as_char() == '.'
            && name == "needs_input_grad"
            && call.delimiter() == Delimiter::Parenthesis
            && index.delimiter() == Delimiter::Bracket =>
        {
            Some(index)
        }
        _ => None,
    }
}

/// `ctx.name` without a call, as in languages where a context keeps anything.
fn fields(layer: &Layer, errors: &mut Errors) {
    let forward = layer.forward.iter().map(|f| (true, &f.context, f.function.judged()));
    let backward = layer.backward.iter().map(|b| (false, &b.context, b.function.judged()));
    let jvp = layer.jvp.iter().map(|jvp| (false, &jvp.context, jvp.function.judged()));
    for (forward, context, body) in forward.chain(backward).chain(jvp) {
        let Some(context) = context else { continue };
        if !layer.glance.uses(context).otherwise {
            continue;
        }
        let body = body.stream();
        // Another value of this name may have fields.
        if escapes(&body, context) {
            continue;
        }
        let mut found = Vec::new();
        find_fields(&body, context, &mut found);
        let mut reported: Vec<String> = Vec::new();
        for field in found {
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

fn find_fields(tokens: &TokenStream, context: &Ident, found: &mut Vec<Ident>) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        found.extend(field(&trees[at..], context).cloned());
        if let TokenTree::Group(group) = tree {
            find_fields(&group.stream(), context, found);
        }
    }
}

/// The field, if these trees start with `ctx.field` and no call follows.
pub(crate) fn field<'a>(trees: &'a [TokenTree], context: &Ident) -> Option<&'a Ident> {
    let [TokenTree::Ident(receiver), TokenTree::Punct(dot), TokenTree::Ident(name), rest @ ..] =
        trees
    else {
        return None;
    };
    let called = match rest {
        [TokenTree::Group(group), ..] => group.delimiter() == Delimiter::Parenthesis,
        [TokenTree::Punct(colon), ..] => colon.as_char() == ':',
        // Still being written.
        [] => {
            let calls = TOGETHER.iter().chain(&READS).chain(["set_materialize_grads"].iter());
            let name = name.to_string();
            name != SAVED && calls.into_iter().any(|call| call.starts_with(&name))
        }
        _ => false,
    };
    (receiver == context && dot.as_char() == '.' && !called).then_some(name)
}

/// What is given one by one, but taken as a tuple.
fn several_arguments(layer: &Layer, errors: &mut Errors) {
    let Some(forward) = &layer.forward else { return };
    let Some(context) = &forward.context else { return };
    let uses = layer.glance.uses(context);
    for call in TOGETHER.into_iter().filter(|call| uses.may_call(call)) {
        let body = forward.function.judged().stream();
        let Some((ident, given)) = find_call(&body, context, call) else { continue };
        if !given.clone().into_iter().any(|tree| is_comma(&tree)) {
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

/// The arguments of a call; none where they cannot be read.
pub(crate) fn arguments(tokens: &TokenStream) -> Vec<Expr> {
    let parsed = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens.clone());
    parsed.map(|arguments| arguments.into_iter().collect()).unwrap_or_default()
}
