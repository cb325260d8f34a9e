//! Where expansions find the library: `::autograd_core`, or the path of `crate = path`.

use crate::tokens::{first_span, respanned};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};

/// What an expansion calls the library's insides.
#[derive(Clone)]
pub(crate) enum Private {
    /// By a name that it imports. Not a stream: each that is put into another one is a call of the
    /// compiler.
    Name(Ident),
    Path(TokenStream),
}

impl Private {
    pub(crate) fn imported() -> Self {
        Self::Name(Ident::new("__autograd", Span::call_site()))
    }

    /// Placed where an error is to be shown.
    pub(crate) fn at(&self, span: Span) -> Self {
        match self {
            Self::Name(name) => Self::Name(Ident::new(&name.to_string(), span)),
            Self::Path(path) => Self::Path(respanned(path.clone(), span)),
        }
    }
}

impl ToTokens for Private {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Name(name) => name.to_tokens(tokens),
            Self::Path(path) => path.to_tokens(tokens),
        }
    }
}

/// One name for what expansions call: a wrong path is reported once, where it stands.
pub(crate) fn import(said: Option<&syn::Path>) -> TokenStream {
    let (path, mut name) = (private_path(said), Private::imported());
    if let Some(last) = said.and_then(|said| said.segments.last()) {
        name = name.at(last.ident.span());
    }
    let Some(said) = said else {
        return quote!(use #path::{self as #name, Unknown as _};);
    };
    let (uses, imported) = (Ident::new("use", first_span(said)), Private::imported());
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
