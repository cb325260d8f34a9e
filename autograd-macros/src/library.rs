//! The path of the library in expansions: `::autograd_core`, or that of `crate = path`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

use crate::tokens::{at, first_span, local};

/// The name under which expansions import the library's private module. Not a path: each stream that is
/// inserted into another costs a call of the compiler.
pub(crate) fn private() -> Ident {
    private_at(Span::call_site())
}

/// As [`private`], at the span where an error is to be shown.
pub(crate) fn private_at(span: Span) -> Ident {
    Ident::new("__autograd", span)
}

/// The import. There is only one, so that a wrong path is reported once, at its own span.
pub(crate) fn import(written: Option<&syn::Path>) -> TokenStream {
    let (path, imported) = (private_path(written), private());
    let last = written.and_then(|path| path.segments.last());
    let last = last.map_or_else(Span::call_site, |last| last.ident.span());
    let first = written.map_or_else(Span::call_site, first_span);
    let (uses, name) = (Ident::new("use", first), private_at(last));
    quote! {
        #uses #path as #name;
        use #imported::Unknown as _;
    }
}

pub(crate) fn private_path(written: Option<&syn::Path>) -> TokenStream {
    if let Some(path) = written {
        // A wrong path is reported at its own span; the missing name in the error tells what is wrong.
        let place = path.segments.last().map_or_else(Span::call_site, |last| last.ident.span());
        let private = Ident::new("path_of_autograd_core", place);
        return quote!(#path::#private);
    }
    quote!(::autograd_core::private)
}

/// A function that keeps the user's error, if its type allows that.
pub(crate) fn kept(here: Span) -> TokenStream {
    let (p, error) = (private_at(here), at(&local("error"), here));
    quote_spanned! {here=>
        |#error| {
            use #p::NotKept as _;
            #p::Kept(#error).source()
        }
    }
}
