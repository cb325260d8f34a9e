//! `_` in place of a type. The compiler reports it, mostly with the type to write; of the rest of the
//! signature the macro goes on to report what is wrong.

use proc_macro2::TokenTree;
use quote::{ToTokens, quote_spanned};
use syn::{FnArg, ReturnType, Type};

use crate::model::Function;
use crate::tokens::{is_punct, mentions, rewritten};

pub(super) fn filled(function: &Function) -> Option<Function> {
    if !mentions(&function.sig, "_") {
        return None;
    }
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
    let tokens = rewritten(ty.to_token_stream(), &mut |trees, at| {
        let before = |back: usize| at.checked_sub(back).map(|at| &trees[at]);
        let element = is_punct(before(1), '<')
            && matches!(before(2), Some(TokenTree::Ident(name)) if name == "Tensor");
        match &trees[at] {
            // Not `'_`.
            TokenTree::Ident(word) if word == "_" && !is_punct(before(1), '\'') => {
                let likely = match element {
                    true => quote_spanned!(word.span()=> f64),
                    false => quote_spanned!(word.span()=> Tensor<f64>),
                };
                Some((likely, 1))
            }
            _ => None,
        }
    });
    let new = tokens.and_then(|tokens| syn::parse2(tokens).ok());
    new.map(|new| *ty = new).is_some()
}
