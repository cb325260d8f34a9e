//! `mark_non_differentiable` takes outputs, and `mark_not_inplace` inputs.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};

use super::calls::{ends_statement, name, returned_parts};
use super::question::is_value;
use crate::errors::Errors;
use crate::messages;
use crate::model::Forward;
use crate::tokens::{is_one_of, is_punct, parts, plain_name};

/// Inputs among what is marked as outputs, and the reverse.
pub(super) fn check(
    (call, given): &(Ident, TokenStream),
    forward: &Forward,
    body: &Group,
    errors: &mut Errors,
) {
    let (mut names, mut bound) = (Vec::new(), Vec::new());
    marked(given.clone(), &mut names);
    collect_bound(body.stream(), false, &mut bound);
    for marked in names {
        let input = forward.inputs().any(|(param, _)| param.ident == marked);
        let rebound = bound.iter().filter(|other| **other == marked).count();
        match call.to_string().as_str() {
            "mark_non_differentiable" if input && rebound == 0 => {
                // It may be an output too.
                let returned = returned_parts(body);
                if !returned
                    .iter()
                    .any(|part| part.is_empty() || name(part).as_ref() == Some(&marked))
                {
                    errors.at(&marked, messages::marks_input(&plain_name(&marked)));
                }
            }
            "mark_not_inplace" if !input && rebound == 1 && is_computed(body, &marked) => {
                errors.at(&marked, messages::marks_output(&plain_name(&marked)));
            }
            _ => {}
        }
    }
}

/// Names in the tuple or reference that a mark takes, with their place.
fn marked(given: TokenStream, names: &mut Vec<Ident>) {
    for (part, _) in parts(given) {
        let bare = part.clone().into_iter().skip_while(|tree| is_punct(Some(tree), '&'));
        match &bare.collect::<Vec<_>>()[..] {
            [TokenTree::Group(group)] => marked(group.stream(), names),
            _ => names.extend(name(&part)),
        }
    }
}

/// Whether the name is surely bound to something new: `let y = x * 2.0;`.
fn is_computed(body: &Group, name: &Ident) -> bool {
    let trees: Vec<TokenTree> = body.stream().into_iter().collect();
    let mut statements = trees.split(ends_statement);
    statements.any(|statement| {
        let binds = matches!(statement, [TokenTree::Ident(word), TokenTree::Ident(bound), ..]
            if word == "let" && bound == name);
        let operator = |two: &[TokenTree]| {
            is_value(&two[0]) && ['+', '-', '*', '/'].iter().any(|c| is_punct(two.get(1), *c))
        };
        binds && statement.windows(2).any(operator)
    })
}

/// What stands after `let` and `for`, at any depth, counts as bound: better silent than wrong.
fn collect_bound(tokens: TokenStream, mut binds: bool, names: &mut Vec<Ident>) {
    for tree in tokens {
        match tree {
            TokenTree::Ident(word) if is_one_of(&word, "let for") => binds = true,
            TokenTree::Ident(word) if binds && word != "in" => names.push(word),
            TokenTree::Ident(_) => binds = false,
            TokenTree::Punct(punct) => binds &= !matches!(punct.as_char(), '=' | ';'),
            TokenTree::Group(group) => collect_bound(group.stream(), binds, names),
            TokenTree::Literal(_) => {}
        }
    }
}
