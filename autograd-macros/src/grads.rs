//! `Grads { .. }` in backward's body, found among tokens: the body may still be half written.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::quote_spanned;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{FieldValue, Member, Token};

use crate::expand::{Expansion, concrete, respanned};
use crate::model::plain_name;

/// A `Grads { .. }` that builds one.
pub(crate) struct Literal {
    pub(crate) name: Ident,
    pub(crate) fields: Vec<Ident>,
    /// Fields that are plainly `None`.
    pub(crate) none: Vec<Ident>,
}

/// All of them, at any depth. Patterns, updates (`..`) and what does not parse are left out.
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
    let before = position.checked_sub(2).map(|before| &trees[before]);
    let other = match before {
        Some(TokenTree::Ident(word)) => {
            ["let", "struct", "impl", "for", "enum", "mod"].iter().any(|other| word == other)
        }
        Some(TokenTree::Punct(punct)) => matches!(punct.as_char(), ':' | '>'),
        _ => false,
    };
    // `Grads { x } => ..` in a match is a pattern.
    let pattern = matches!(
        trees.get(position + 1),
        Some(TokenTree::Punct(punct)) if punct.as_char() == '=' || punct.as_char() == '|'
    );
    let field_value = matches!(before, Some(TokenTree::Punct(punct)) if punct.as_char() == '>')
        && matches!(
            position.checked_sub(3).map(|before| &trees[before]),
            Some(TokenTree::Punct(punct)) if punct.as_char() == '='
        );
    (name == "Grads" && (!other || field_value) && !pattern).then_some(name)
}

fn fields(group: &Group) -> Option<Vec<FieldValue>> {
    let parser = Punctuated::<FieldValue, Token![,]>::parse_terminated;
    Some(parser.parse2(group.stream()).ok()?.into_iter().collect())
}

fn literal(name: &Ident, group: &Group) -> Option<Literal> {
    let values = fields(group)?;
    let mut literal = Literal { name: name.clone(), fields: Vec::new(), none: Vec::new() };
    for value in &values {
        let Member::Named(field) = &value.member else { return None };
        if matches!(&value.expr, syn::Expr::Path(path) if path.path.is_ident("None")) {
            literal.none.push(field.clone());
        }
        literal.fields.push(field.clone());
    }
    Some(literal)
}

/// A body whose literals have every field once: what is wrong with them was told.
pub(crate) fn completed(expansion: &Expansion<'_>, group: &Group) -> Group {
    if literals(group.stream()).is_empty() {
        return group.clone();
    }
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    let mut out = TokenStream::new();
    for (position, tree) in trees.iter().enumerate() {
        let TokenTree::Group(inner) = tree else {
            out.extend([tree.clone()]);
            continue;
        };
        let mut inner = completed(expansion, inner);
        if literal_name(&trees, position).is_some()
            && let Some(values) = fields(&inner)
        {
            inner = complete(expansion, &inner, &values);
        }
        out.extend([TokenTree::Group(inner)]);
    }
    let mut new = Group::new(group.delimiter(), out);
    new.set_span(group.span());
    new
}

fn complete(expansion: &Expansion<'_>, group: &Group, values: &[FieldValue]) -> Group {
    let span = group.span();
    let p = respanned(expansion.private.clone(), span);
    let mut out = TokenStream::new();
    let backward = expansion.layer.backward.iter();
    let all: Vec<Literal> =
        backward.flat_map(|backward| literals(backward.function.body.stream())).collect();
    for (param, input) in expansion.layer.differentiable() {
        let name = plain_name(&param.ident);
        let given = values.iter().find(
            |value| matches!(&value.member, Member::Named(field) if plain_name(field) == name),
        );
        out.extend(match given {
            Some(value) => quote_spanned!(span=> #value,),
            None => {
                let ident = &param.ident;
                // Where another place gives it, its type is the one that stands there.
                let elsewhere = all
                    .iter()
                    .any(|literal| literal.fields.iter().any(|field| plain_name(field) == name));
                let ty = if elsewhere { quote_spanned!(span=> _) } else { concrete(input) };
                quote_spanned!(span=> #ident: #p::stand_in::<#ty>(),)
            }
        });
    }
    let mut new = Group::new(group.delimiter(), out);
    new.set_span(span);
    new
}
