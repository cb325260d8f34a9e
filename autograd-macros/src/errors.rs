//! Collects errors, so that every mistake is reported in one compile.

use crate::tokens::ends;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{ReturnType, Signature};

#[must_use]
pub(crate) struct Errors(Vec<Report>);

struct Report {
    first: Span,
    last: Span,
    message: String,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Into<String>) {
        let (first, last) = ends(tokens.into_token_stream());
        self.0.push(Report { first, last, message: message.into() });
    }

    pub(crate) fn at_span(&mut self, span: Span, message: impl Into<String>) {
        self.0.push(Report { first: span, last: span, message: message.into() });
    }

    /// Adds an error at the return type, or at the function's name if there is none.
    pub(crate) fn at_output(&mut self, sig: &Signature, message: String) {
        match &sig.output {
            ReturnType::Type(_, ty) => self.at(ty, message),
            ReturnType::Default => self.at(&sig.ident, message),
        }
    }

    pub(crate) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    pub(crate) fn syntax(&mut self, error: &syn::Error) {
        for error in error {
            self.at_span(error.span(), error.to_string());
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The errors as items. The first one is inside a type alias of this name, so the alias is an error type,
    /// and the compiler reports nothing about its values.
    pub(crate) fn into_items(self, name: &Ident) -> TokenStream {
        let mut all = self.0.iter().map(Report::to_tokens);
        let first = all.next();
        quote! {
            type #name = <[(); { #first }] as ::core::iter::Iterator>::Item;
            #(#all)*
        }
    }

    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0.iter().map(Report::to_tokens).collect()
    }
}

impl Report {
    fn to_tokens(&self) -> TokenStream {
        // The compiler underlines from the start of the path to the end of the braces.
        let message = &self.message;
        let path = quote_spanned!(self.first=> ::core::compile_error!);
        let text = quote_spanned!(self.last=> { #message });
        quote_spanned!(self.first=> #path #text)
    }
}
