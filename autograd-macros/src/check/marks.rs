//! The rule that `mark_non_differentiable` takes outputs.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};

use super::calls::{name, returned_parts};
use crate::errors::Errors;
use crate::messages;
use crate::model::Forward;
use crate::tokens::{is_one_of, is_punct, parts, plain_name};

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
