//! The rules that `mark_non_differentiable` takes outputs, and `mark_not_inplace` inputs.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use super::calls::{name, returned_parts};
use crate::errors::Errors;
use crate::messages;
use crate::model::Forward;
use crate::tokens::{is_group, is_one_of, is_punct, parts, plain_name};

/// Reports inputs that are marked, unless the body binds their names again or returns them.
pub(super) fn check(given: TokenStream, forward: &Forward, body: &Group, errors: &mut Errors) {
    let (mut names, mut others) = (Vec::new(), Vec::new());
    marked(given, &mut names);
    collect_bound(body.stream(), false, &mut others);
    let returned = returned_parts(body);
    others.extend(returned.iter().filter_map(name));
    for marked in names {
        let input = forward.inputs().any(|(param, _)| param.ident == marked);
        if input && !others.contains(&marked) && !returned.iter().any(TokenStream::is_empty) {
            errors.at(&marked, messages::marks_input(&plain_name(&marked)));
        }
    }
}

/// Reports what is marked as an input after `let y = x * 2.0;`, unless the name was bound again.
pub(super) fn check_inputs(body: &Group, context: &Ident, errors: &mut Errors) {
    let trees: Vec<TokenTree> = body.stream().into_iter().collect();
    let mut computed: Vec<&Ident> = Vec::new();
    for statement in trees.split(|tree| is_punct(Some(tree), ';')) {
        let mut bound = Vec::new();
        collect_bound(statement.iter().cloned().collect(), false, &mut bound);
        computed.retain(|name| !bound.contains(name));
        match statement {
            [TokenTree::Ident(word), TokenTree::Ident(name), equals, value @ ..]
                if word == "let" && is_punct(Some(equals), '=') && is_new(value) =>
            {
                computed.push(name);
            }
            [TokenTree::Ident(word), _, TokenTree::Ident(call), TokenTree::Group(given)]
                if word == context && call == "mark_not_inplace" =>
            {
                let mut names = Vec::new();
                marked(given.stream(), &mut names);
                for name in names.iter().filter(|name| computed.contains(name)) {
                    errors.at(name, messages::marks_output(&plain_name(name)));
                }
            }
            _ => {}
        }
    }
}

/// Whether the value is that of an operator: `x * 2.0`.
fn is_new(value: &[TokenTree]) -> bool {
    let is_operator =
        |tree: &TokenTree| ['+', '-', '*', '/'].iter().any(|c| is_punct(Some(tree), *c));
    !value.iter().any(|tree| is_group(Some(tree), Delimiter::Brace))
        && value
            .windows(2)
            .any(|two| !matches!(two[0], TokenTree::Punct(_)) && is_operator(&two[1]))
}

/// Collects the names in the tuple or reference that a mark takes.
fn marked(given: TokenStream, names: &mut Vec<Ident>) {
    for (part, _) in parts(given) {
        let bare = part.clone().into_iter().skip_while(|tree| is_punct(Some(tree), '&'));
        match &bare.collect::<Vec<_>>()[..] {
            [TokenTree::Group(group)] => marked(group.stream(), names),
            _ => names.extend(name(&part)),
        }
    }
}

/// Collects the names after `let` and `for`, at any depth. Too many names only suppress the error.
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
