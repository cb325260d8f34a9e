//! `Real` and `Mask` without what they are generic over.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::quote;

use crate::tokens::{is_punct, rewritten};

/// `Real<L>` for `Real`, and so for `Mask`; none where neither stands without it.
pub(super) fn completed(tokens: TokenStream, lane: &Ident) -> Option<TokenStream> {
    rewritten(tokens, &mut |trees, at| {
        let TokenTree::Ident(name) = &trees[at] else { return None };
        let next = |further: usize, c: char| is_punct(trees.get(at + further), c);
        let bare = !next(1, '<') && (!next(1, ':') || !next(2, ':'));
        (bare && (name == "Real" || name == "Mask")).then(|| (quote!(#name<#lane>), 1))
    })
}
