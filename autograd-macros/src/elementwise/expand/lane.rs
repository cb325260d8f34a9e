//! `Real` and `Mask` without what they are generic over.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::quote;

/// Whether `Real` or `Mask` stands somewhere without what it is generic over.
pub(super) fn mentions_bare(tokens: TokenStream) -> bool {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    (0..trees.len()).any(|i| match &trees[i] {
        TokenTree::Group(group) => mentions_bare(group.stream()),
        _ => is_bare(&trees, i),
    })
}

pub(super) fn is_bare(trees: &[TokenTree], i: usize) -> bool {
    let named = matches!(&trees[i], TokenTree::Ident(name) if name == "Real" || name == "Mask");
    let next = |at: usize, c: char| matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == c);
    named && !next(i + 1, '<') && !(next(i + 1, ':') && next(i + 2, ':'))
}

/// `Real<L>` for `Real`.
pub(super) fn complete(tokens: TokenStream, lane: &Ident) -> TokenStream {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut out = TokenStream::new();
    for i in 0..trees.len() {
        match &trees[i] {
            TokenTree::Group(group) => {
                let mut new = Group::new(group.delimiter(), complete(group.stream(), lane));
                new.set_span(group.span());
                out.extend([TokenTree::Group(new)]);
            }
            tree => {
                out.extend([tree.clone()]);
                if is_bare(&trees, i) {
                    out.extend(quote!(<#lane>));
                }
            }
        }
    }
    out
}
