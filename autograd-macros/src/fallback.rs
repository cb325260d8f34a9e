//! What comes out where the block has errors: the user's code, and everything that a caller can
//! name, so that one mistake is one error.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{FnArg, Signature};

use crate::args::Args;
use crate::expand::{Expansion, Mode, respanned, whole_span};
use crate::model::{Layer, bare, is_named};

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
    let at =
        trees.iter().position(|tree| matches!(tree, TokenTree::Ident(word) if word == "impl"))?;
    match (trees.get(at + 1), trees.get(at + 2)) {
        (Some(name @ TokenTree::Ident(_)), Some(TokenTree::Group(_))) => Some(name.clone()),
        _ => None,
    }
}

/// Puts right what was told already, so that the compiler does not tell it again: qualifiers,
/// contexts of a wrong form, calls that need a declaration. The user's tokens stay where they are.
pub(crate) fn repair(expansion: &Expansion<'_>, sig: &mut Signature, body: &Group) -> Group {
    let forward = sig.ident == "forward";
    if !forward && sig.ident != "backward" {
        return body.clone();
    }
    sig.constness = None;
    sig.asyncness = None;
    sig.abi = None;
    sig.variadic = None;
    sig.safety = syn::Safety::Default;
    for input in &mut sig.inputs {
        let FnArg::Typed(param) = input else { continue };
        let inner = match bare(&param.ty) {
            syn::Type::Reference(reference) => &*reference.elem,
            ty => ty,
        };
        if is_named(inner, "ForwardContext") || is_named(inner, "BackwardContext") {
            let span = whole_span(&param.ty);
            let p = respanned(expansion.private.clone(), span);
            let ty = match forward {
                true => quote_spanned!(span=> &mut #p::ForwardContext<'_, Self>),
                false => quote_spanned!(span=> &#p::BackwardContext<'_, Self>),
            };
            if let Ok(ty) = syn::parse2(ty) {
                *param.ty = ty;
            }
        }
    }
    let context = expansion.layer.forward.as_ref().and_then(|forward| forward.context.clone());
    let Some(context) = context.filter(|_| forward) else { return body.clone() };
    let mut calls = Vec::new();
    if expansion.layer.saved.is_none() {
        calls.push("save_for_backward");
    }
    if expansion.layer.state.is_none() {
        calls.push("set_attrs");
    }
    without_calls(body, &context, &calls)
}

/// `ctx.call(value)` becomes `drop((value))`.
fn without_calls(group: &Group, context: &Ident, calls: &[&str]) -> Group {
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    let mut out = TokenStream::new();
    let mut position = 0;
    while position < trees.len() {
        if let [
            TokenTree::Ident(receiver),
            TokenTree::Punct(dot),
            TokenTree::Ident(name),
            TokenTree::Group(value),
            ..,
        ] = &trees[position..]
            && receiver == context
            && dot.as_char() == '.'
            && calls.iter().any(|call| name == call)
            && value.delimiter() == Delimiter::Parenthesis
        {
            out.extend(quote_spanned!(name.span()=> ::core::mem::drop(#value)));
            position += 4;
            continue;
        }
        match &trees[position] {
            TokenTree::Group(inner) => without_calls(inner, context, calls).to_tokens(&mut out),
            tree => tree.to_tokens(&mut out),
        }
        position += 1;
    }
    let mut new = Group::new(group.delimiter(), out);
    new.set_span(group.span());
    new
}
