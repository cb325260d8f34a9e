//! `Grads { .. }` in backward's body, found among tokens: the body may still be half written.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use super::order;
use crate::errors::Errors;
use crate::messages;
use crate::model::{Function, nearest};
use crate::tokens::{find, is_group, is_one_of, is_punct, parts, plain_name, text};

pub(crate) struct Literal {
    pub(crate) name: Ident,
    pub(crate) fields: Vec<Ident>,
    pub(crate) none: Vec<Ident>,
    /// Fields that are plainly lists of nothing, with the list.
    empty: Vec<(Ident, TokenStream)>,
    /// What stands for the other fields: `..Default::default()`.
    default: Option<TokenStream>,
}

/// All of them, at any depth. Patterns, other updates (`..`) and what does not parse are left out.
pub(crate) fn literals(tokens: TokenStream) -> Vec<Literal> {
    let mut found = Vec::new();
    collect(tokens, &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<Literal>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (position, tree) in trees.iter().enumerate() {
        if let TokenTree::Group(group) = tree {
            if let Some(name) = literal_name(&trees, position)
                && let Some(literal) = literal(name, group)
            {
                found.push(literal);
            }
            collect(group.stream(), found);
        }
    }
}

/// The name before the braces at this position, if they are those of a `Grads` that is built.
fn literal_name(trees: &[TokenTree], position: usize) -> Option<&Ident> {
    let TokenTree::Group(group) = &trees[position] else { return None };
    if group.delimiter() != Delimiter::Brace || position == 0 {
        return None;
    }
    let TokenTree::Ident(name) = &trees[position - 1] else { return None };
    let back = |n: usize| position.checked_sub(n).map(|at| &trees[at]);
    let words = "let struct impl for enum mod";
    let other = matches!(back(2), Some(TokenTree::Ident(word)) if is_one_of(word, words))
        || is_punct(back(2), ':')
        || is_punct(back(2), '>');
    // `Grads { x } => ..` in a match is a pattern.
    let next = trees.get(position + 1);
    let pattern = is_punct(next, '=') || is_punct(next, '|');
    let field_value = is_punct(back(2), '>') && is_punct(back(3), '=');
    (name == "Grads" && (!other || field_value) && !pattern).then_some(name)
}

/// The fields, and what stands for the others if that is a default; none where they cannot be read.
fn literal(name: &Ident, group: &Group) -> Option<Literal> {
    let (fields, none, empty) = (Vec::new(), Vec::new(), Vec::new());
    let mut literal = Literal { name: name.clone(), fields, none, empty, default: None };
    for (part, _) in parts(group.stream()) {
        match &part.clone().into_iter().collect::<Vec<_>>()[..] {
            [dot, ..] if is_punct(Some(dot), '.') => {
                literal.default = Some(part).filter(|update| text(update).ends_with("default()"));
                literal.default.as_ref()?;
            }
            [TokenTree::Ident(field)] => literal.fields.push(field.clone()),
            [TokenTree::Ident(field), colon, value @ ..] if is_punct(Some(colon), ':') => {
                let value: TokenStream = value.iter().cloned().collect();
                match &text(&value)[..] {
                    "None" => literal.none.push(field.clone()),
                    "[]" | "vec![]" | "Vec::new()" | "std::vec::Vec::new()" => {
                        literal.empty.push((field.clone(), value));
                    }
                    _ => {}
                }
                literal.fields.push(field.clone());
            }
            _ => return None,
        }
    }
    Some(literal)
}

/// What the body of backward is held against.
pub(crate) struct Fields {
    /// The differentiable inputs, and which of them are lists.
    pub(crate) names: Vec<String>,
    pub(crate) lists: Vec<String>,
    pub(crate) write: String,
    /// All parameters of forward, and what is said of a field for one that has none.
    pub(crate) params: Vec<(String, Option<fn(&str) -> String>)>,
    pub(crate) given: Vec<String>,
}

impl Fields {
    /// Tells what is wrong with a tuple at its end, or with each `Grads { .. }`.
    pub(crate) fn check(&self, by_name: bool, backward: &Function, errors: &mut Errors) {
        let (body, _) = backward.judged();
        if !by_name {
            let params = self.params.iter().map(|(name, _)| name);
            let taken: Vec<&String> = params.chain(&self.given).collect();
            order::check(&self.names, &taken, body, errors);
        } else if !self.names.is_empty() {
            let call = find(body.stream(), &mut |trees, at| match &trees[at..] {
                [TokenTree::Ident(name), given, ..]
                    if name == "Grads" && is_group(Some(given), Delimiter::Parenthesis) =>
                {
                    Some(name.clone())
                }
                _ => None,
            });
            if let Some(name) = call {
                errors.at(name, messages::grads_in_parentheses(&self.names.join(": .., ")));
            }
            literals(body.stream()).iter().for_each(|literal| self.check_one(literal, errors));
        }
    }

    fn check_one(&self, literal: &Literal, errors: &mut Errors) {
        let mut given: Vec<String> = Vec::new();
        for field in &literal.fields {
            let name = plain_name(field);
            if given.contains(&name) {
                errors.at(field, messages::grads_field_repeated(&name));
            } else if !self.names.contains(&name)
                && let Some(message) = self.unknown(&name)
            {
                errors.at(field, message);
            }
            given.push(name);
        }
        for (field, value) in &literal.empty {
            let name = plain_name(field);
            if self.lists.contains(&name) {
                errors.at(value, messages::grads_field_empty(&name));
            }
        }
        // A slip of a name is one mistake, not two.
        let slips = given.iter().filter(|name| !self.names.contains(name)).count();
        let missing: Vec<String> =
            self.names.iter().filter(|name| !given.contains(name)).cloned().collect();
        if let Some(default) = &literal.default {
            errors.at(default, messages::grads_default(&self.write));
        } else if slips == 0 && !missing.is_empty() {
            errors.at(&literal.name, messages::grads_field_missing(&missing, &self.write));
        }
    }

    fn unknown(&self, name: &str) -> Option<String> {
        if let Some((_, said)) = self.params.iter().find(|(param, _)| param == name) {
            return said.map(|said| said(name));
        }
        let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let names = messages::list(&self.names);
        Some(messages::grads_field_unknown(name, nearest(name, &known), &names))
    }
}
