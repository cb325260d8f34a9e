//! Collects errors, so that every mistake is reported in one compile.

use crate::tokens::ends;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

/// All that is wrong with a block. Must be read: it panics when dropped unread.
pub(crate) struct Errors {
    found: Vec<Report>,
    read: bool,
}

struct Report {
    first: Span,
    last: Span,
    message: String,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { found: Vec::new(), read: false }
    }

    /// An error on some tokens, from the first to the last of them.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Into<String>) {
        let (first, last) = ends(tokens.into_token_stream());
        self.found.push(Report { first, last, message: message.into() });
    }

    pub(crate) fn at_span(&mut self, span: Span, message: impl Into<String>) {
        self.found.push(Report { first: span, last: span, message: message.into() });
    }

    pub(crate) fn extend(&mut self, mut more: Self) {
        more.read = true;
        self.found.append(&mut more.found);
    }

    pub(crate) fn syntax(&mut self, error: &syn::Error) {
        for error in error {
            self.at_span(error.span(), error.to_string());
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.found.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// For errors that have been reported already.
    pub(crate) fn forget(mut self) {
        self.read = true;
    }

    /// The errors as items, the first of them as a type of this name: the compiler does not know which
    /// type that is, and says nothing of its values.
    pub(crate) fn into_items(mut self, name: &Ident) -> TokenStream {
        self.read = true;
        let mut all = self.found.iter().map(Report::to_tokens);
        let first = all.next();
        quote! {
            #[allow(dead_code, non_camel_case_types)]
            type #name = <[(); { #first }] as ::core::iter::Iterator>::Item;
            #(#all)*
        }
    }

    pub(crate) fn into_tokens(mut self) -> TokenStream {
        self.read = true;
        self.found.iter().map(Report::to_tokens).collect()
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        assert!(
            self.read || self.found.is_empty() || std::thread::panicking(),
            "errors were found and not reported"
        );
    }
}

impl Report {
    fn to_tokens(&self) -> TokenStream {
        // The error is shown from the start of the path to the end of the braces.
        let message = &self.message;
        let path = quote_spanned!(self.first=> ::core::compile_error!);
        let text = quote_spanned!(self.last=> { #message });
        quote_spanned!(self.first=> #path #text)
    }
}
