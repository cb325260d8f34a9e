//! Generic parameters of an impl or a function, and code generated from them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{GenericParam, Generics};

use crate::tokens::plain_name;

pub(crate) fn parameter_name(param: &GenericParam) -> String {
    argument(param).to_string()
}

/// The name of a generated item: the op's with a suffix, at the span of the op's name. It begins as no name of the user's.
pub(crate) fn generated(op: &Ident, what: &str) -> Ident {
    Ident::new(&format!("__{}{what}", plain_name(op)), Span::call_site().located_at(op.span()))
}

/// `::<F, N>`; `None` without type and const parameters.
pub(crate) fn turbofish(generics: &Generics) -> Option<TokenStream> {
    let (_, others) = lifetimes_and_others(generics);
    let names: Vec<_> = others.into_iter().map(argument).collect();
    (!names.is_empty()).then(|| quote!(::<#(#names),*>))
}

/// A type that mentions all parameters and is always `Send` and `Sync`.
pub(crate) fn phantom(generics: &Generics) -> TokenStream {
    let parts = generics.params.iter().filter_map(|param| {
        let name = argument(param);
        match param {
            GenericParam::Type(_) => Some(quote!(*const #name)),
            GenericParam::Lifetime(_) => Some(quote!(& #name ())),
            GenericParam::Const(_) => None,
        }
    });
    quote!(fn() -> (#(#parts,)*))
}

pub(crate) fn is_lifetime(param: &GenericParam) -> bool {
    matches!(param, GenericParam::Lifetime(_))
}

/// The lifetimes, and the other parameters, each in the order of declaration.
pub(crate) fn lifetimes_and_others(
    generics: &Generics,
) -> (Vec<&GenericParam>, Vec<&GenericParam>) {
    generics.params.iter().partition(|param| is_lifetime(param))
}

/// The parameters as arguments: `T, N`.
pub(crate) fn arguments(generics: &Generics) -> Vec<TokenStream> {
    let (lifetimes, others) = lifetimes_and_others(generics);
    lifetimes.into_iter().chain(others).map(argument).collect()
}

pub(crate) fn argument(param: &GenericParam) -> TokenStream {
    match param {
        GenericParam::Type(param) => param.ident.to_token_stream(),
        GenericParam::Const(param) => param.ident.to_token_stream(),
        GenericParam::Lifetime(param) => param.lifetime.to_token_stream(),
    }
}
