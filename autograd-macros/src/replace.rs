//! Tokens with others in place of some.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;

use crate::library::Private;

/// What comes in place of the first trees of these, and how many they are.
pub(crate) type Replacement = Option<(TokenStream, usize)>;

/// The group with replacements at any depth; none where there is nothing to replace. A group that is
/// made anew has one place for all of its ends, and what is wrong in it would be reported once more.
pub(crate) fn replaced(
    group: &Group,
    replace: &dyn Fn(&[TokenTree]) -> Replacement,
) -> Option<Group> {
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    let (mut out, mut changed, mut position) = (TokenStream::new(), false, 0);
    while position < trees.len() {
        if let Some((tokens, taken)) = replace(&trees[position..]) {
            out.extend(tokens);
            (position, changed) = (position + taken, true);
            continue;
        }
        let inner = match &trees[position] {
            TokenTree::Group(inner) => replaced(inner, replace),
            _ => None,
        };
        changed |= inner.is_some();
        out.extend([inner.map_or_else(|| trees[position].clone(), TokenTree::Group)]);
        position += 1;
    }
    let mut new = Group::new(group.delimiter(), out);
    new.set_span(group.span());
    changed.then_some(new)
}

/// What `apply` returns for an output by reference, which was reported: the value.
pub(crate) fn by_value(p: &Private, tokens: TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Punct(punct) if punct.as_char() == '&' => {
                let lifetime = matches!(trees.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == '\'');
                if lifetime {
                    trees.nth(1);
                }
                let list = matches!(trees.peek(), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket);
                if let Some(TokenTree::Group(list)) = trees.next_if(|_| list) {
                    let element = by_value(p, list.stream());
                    out.extend(quote!(#p::Vec<#element>));
                }
            }
            TokenTree::Group(group) => {
                let mut new = Group::new(group.delimiter(), by_value(p, group.stream()));
                new.set_span(group.span());
                out.extend([TokenTree::Group(new)]);
            }
            tree => out.extend([tree]),
        }
    }
    out
}
