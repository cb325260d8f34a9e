//! Where expansions find the library: `::autograd_core`, or the path of `crate = path`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use crate::tokens::first_span;

/// What expansions call the library's insides: a name that they import. Not a path: each stream of tokens
/// that is put into another one is a call of the compiler.
pub(crate) fn private() -> Ident {
    private_at(Span::call_site())
}

/// The same, placed where an error is to be shown.
pub(crate) fn private_at(span: Span) -> Ident {
    Ident::new("__autograd", span)
}

/// One import: a wrong path is reported once, where it stands.
pub(crate) fn import(said: Option<&syn::Path>) -> TokenStream {
    let (path, imported) = (private_path(said), private());
    let Some(said) = said else {
        return quote!(use #path::{self as #imported, Unknown as _};);
    };
    let last = said.segments.last().map_or_else(Span::call_site, |last| last.ident.span());
    let (uses, name) = (Ident::new("use", first_span(said)), private_at(last));
    quote! {
        #uses #path as #name;
        use #imported::Unknown as _;
    }
}

/// The path of what expansions call.
pub(crate) fn private_path(said: Option<&syn::Path>) -> TokenStream {
    if let Some(path) = said {
        // A path that is not the library's is reported where it stands, by a name that says what misses.
        let place = path.segments.last().map_or_else(Span::call_site, |last| last.ident.span());
        let private = Ident::new("path_of_autograd_core", place);
        return quote!(#path::#private);
    }
    quote!(::autograd_core::private)
}
