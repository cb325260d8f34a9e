//! `_` in place of a type. The compiler tells it, mostly with the type to write; of the rest of the
//! signature the macro goes on to tell what is wrong.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::{FnArg, ReturnType, Type};

use crate::model::Function;

/// The function with a likely type in place of each; none where there is none to replace.
pub(super) fn filled(function: &Function) -> Option<Function> {
    let mut filled = function.clone();
    let mut found = false;
    for input in &mut filled.sig.inputs {
        if let FnArg::Typed(param) = input {
            found |= fill(&mut param.ty);
        }
    }
    if let ReturnType::Type(_, ty) = &mut filled.sig.output {
        found |= fill(ty);
    }
    found.then_some(filled)
}

fn fill(ty: &mut Type) -> bool {
    let mut found = false;
    let tokens = likely(ty.to_token_stream(), &mut found);
    match syn::parse2(tokens) {
        Ok(new) if found => {
            *ty = new;
            true
        }
        _ => false,
    }
}

fn likely(tokens: TokenStream, found: &mut bool) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    for tree in tokens {
        let before = |at: usize, mark: char| matches!(out.iter().nth_back(at), Some(TokenTree::Punct(punct)) if punct.as_char() == mark);
        let element = before(0, '<')
            && matches!(out.iter().nth_back(1), Some(TokenTree::Ident(name)) if name == "Tensor");
        match tree {
            // Not `'_`.
            TokenTree::Ident(word) if word == "_" && !before(0, '\'') => {
                *found = true;
                out.extend(match element {
                    true => quote_spanned!(word.span()=> f64),
                    false => quote_spanned!(word.span()=> Tensor<f64>),
                });
            }
            TokenTree::Group(group) => {
                let mut new = Group::new(group.delimiter(), likely(group.stream(), found));
                new.set_span(group.span());
                out.push(new.into());
            }
            tree => out.push(tree),
        }
    }
    out.into_iter().collect()
}
