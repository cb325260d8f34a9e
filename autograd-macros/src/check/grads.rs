//! `Grads { .. }` in backward's body, found among tokens: the body may still be half written.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use crate::errors::Errors;
use crate::messages;
use crate::model::Function;
use crate::tokens::{is_group, is_one_of, is_punct, parts, plain_name, text};

#[derive(Default)]
pub(crate) struct Literal {
    pub(crate) none: Vec<Ident>,
    /// Fields that are plainly lists of nothing, with the list.
    empty: Vec<(Ident, TokenStream)>,
}

/// All of them, at any depth, but for patterns.
pub(crate) fn literals(tokens: TokenStream) -> Vec<Literal> {
    let mut found = Vec::new();
    collect(tokens, &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<Literal>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (position, tree) in trees.iter().enumerate() {
        if let TokenTree::Group(group) = tree {
            if builds(&trees, position) {
                found.push(literal(group));
            }
            collect(group.stream(), found);
        }
    }
}

/// Whether braces at this position are those of a `Grads` that is built.
fn builds(trees: &[TokenTree], position: usize) -> bool {
    if !is_group(trees.get(position), Delimiter::Brace) {
        return false;
    }
    let back = |n: usize| position.checked_sub(n).map(|at| &trees[at]);
    let words = "let struct impl for enum mod";
    let other = matches!(back(2), Some(TokenTree::Ident(word)) if is_one_of(word, words))
        || is_punct(back(2), ':')
        || is_punct(back(2), '>');
    // `Grads { x } => ..` in a match is a pattern.
    let next = trees.get(position + 1);
    let pattern = is_punct(next, '=') || is_punct(next, '|');
    let field_value = is_punct(back(2), '>') && is_punct(back(3), '=');
    let named = matches!(back(1), Some(TokenTree::Ident(name)) if name == "Grads");
    named && (!other || field_value) && !pattern
}

fn literal(group: &Group) -> Literal {
    let mut literal = Literal::default();
    for (part, _) in parts(group.stream()) {
        if let [TokenTree::Ident(field), colon, value @ ..] =
            &part.into_iter().collect::<Vec<_>>()[..]
            && is_punct(Some(colon), ':')
        {
            let value: TokenStream = value.iter().cloned().collect();
            match &text(&value)[..] {
                "None" => literal.none.push(field.clone()),
                "[]" | "vec![]" | "Vec::new()" | "std::vec::Vec::new()" => {
                    literal.empty.push((field.clone(), value));
                }
                _ => {}
            }
        }
    }
    literal
}

/// A list of nothing where each tensor of an input has a gradient, which no type shows.
pub(super) fn empty_lists(lists: &[String], backward: &Function, errors: &mut Errors) {
    for literal in literals(backward.judged().0.stream()) {
        for (field, value) in literal.empty {
            let name = plain_name(&field);
            if lists.contains(&name) {
                errors.at(value, messages::grads_field_empty(&name));
            }
        }
    }
}
