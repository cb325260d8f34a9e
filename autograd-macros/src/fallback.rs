//! What comes out where the block has errors: the user's code, and everything that a caller can
//! name, so that one mistake is one error.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

use crate::args::Args;
use crate::expand::{Expansion, Mode};
use crate::model::Layer;

/// The block was understood, but breaks a rule.
pub(crate) fn of_layer(layer: &Layer, args: &Args, private: TokenStream) -> TokenStream {
    Expansion { layer, args, private, mode: Mode::Fallback }.tokens()
}

/// The block was not understood: the tokens, and a struct of the name that stands there.
pub(crate) fn of_tokens(tokens: TokenStream) -> TokenStream {
    let name = impl_name(tokens.clone());
    let structure = name.map(|name| {
        quote! {
            #[allow(dead_code)]
            struct #name;
        }
    });
    quote!(#structure #tokens)
}

/// The name in `impl Name { .. }`, if the block is as simple as that.
fn impl_name(tokens: TokenStream) -> Option<TokenTree> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let at = trees.iter().position(|tree| matches!(tree, TokenTree::Ident(word) if word == "impl"))?;
    match (trees.get(at + 1), trees.get(at + 2)) {
        (Some(name @ TokenTree::Ident(_)), Some(TokenTree::Group(_))) => Some(name.clone()),
        _ => None,
    }
}
