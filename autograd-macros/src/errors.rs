//! Collects errors, so that every mistake is reported in one compile.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Path, ReturnType, Signature};

use crate::library::private_path;
use crate::tokens::ends;

#[must_use]
pub(crate) struct Errors {
    reports: Vec<Report>,
    /// Unknown words, each with the module of [`Self::completions`] that has the known ones.
    unknown: Vec<(&'static str, TokenStream)>,
}

struct Report {
    first: Span,
    last: Span,
    message: String,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { reports: Vec::new(), unknown: Vec::new() }
    }

    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Into<String>) {
        let (first, last) = ends(tokens.into_token_stream());
        self.reports.push(Report { first, last, message: message.into() });
    }

    pub(crate) fn at_span(&mut self, span: Span, message: impl Into<String>) {
        self.reports.push(Report { first: span, last: span, message: message.into() });
    }

    /// Adds an error at the return type, or at the function's name if there is none.
    pub(crate) fn at_output(&mut self, sig: &Signature, message: String) {
        match &sig.output {
            ReturnType::Type(_, ty) => self.at(ty, message),
            ReturnType::Default => self.at(&sig.ident, message),
        }
    }

    pub(crate) fn extend(&mut self, more: Self) {
        self.reports.extend(more.reports);
        self.unknown.extend(more.unknown);
    }

    /// Lets editors complete an unknown word of the kind `known`.
    pub(crate) fn complete(&mut self, word: &impl ToTokens, known: &'static str) {
        self.unknown.push((known, word.to_token_stream()));
    }

    /// The imports by which an editor completes arguments and attributes. An editor looks for the path of the word that
    /// is being typed at the same place of the expansion without it, so the first import is always there. rust-analyzer
    /// sets `miri`, which no lint reports as unknown.
    pub(crate) fn completions(&self, library: Option<&Path>) -> TokenStream {
        let words = self.unknown.iter().map(|(known, word)| (*known, Some(word)));
        let none = self.unknown.is_empty().then_some(("arguments", None));
        let library = private_path(library);
        let imports = words.chain(none).map(|(known, word)| {
            let (known, word) = (Ident::new(known, Span::call_site()), word.into_iter());
            quote!(#[cfg(miri)] use #library::words::#known #(::#word)* as _;)
        });
        imports.collect()
    }

    pub(crate) fn syntax(&mut self, error: &syn::Error) {
        for error in error {
            self.at_span(error.span(), error.to_string());
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.reports.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// The errors as items. The first one is inside a type alias of this name, so the alias is an error type,
    /// and the compiler reports nothing about its values.
    pub(crate) fn into_items(self, name: &Ident) -> TokenStream {
        let mut all = self.reports.iter().map(Report::to_tokens);
        let first = all.next();
        quote! {
            type #name = <[(); { #first }] as ::core::iter::Iterator>::Item;
            #(#all)*
        }
    }

    pub(crate) fn into_tokens(self) -> TokenStream {
        self.reports.iter().map(Report::to_tokens).collect()
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
