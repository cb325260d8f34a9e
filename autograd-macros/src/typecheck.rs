//! The proofs: what the macro guessed from names, the compiler checks by types, at the user's
//! spans, in the words of the traits. Emitted only where the syntax had nothing to say.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};

use crate::errors::ends;
use crate::expand::{Expansion, Mode, whole_span};
use crate::model::{Forward, ParamKind};

/// That a value holds no tensor. Never runs.
pub(crate) fn plain(
    expansion: &Expansion<'_>,
    value: &TokenStream,
    place: &impl ToTokens,
) -> TokenStream {
    let (first, last) = ends(place.to_token_stream());
    let p = expansion.private_at(first);
    let answer = quote_spanned!(last=> .answer());
    quote_spanned! {first=>
        if false {
            #[allow(unused_imports)]
            use #p::HoldsNoTensor as _;
            #p::plain(#p::Probe::of(&#value)#answer);
        }
    }
}

/// That no plain parameter holds a tensor.
pub(crate) fn plain_inputs(expansion: &Expansion<'_>, forward: &Forward) -> TokenStream {
    forward
        .params
        .iter()
        .filter(|param| matches!(param.kind, ParamKind::Plain { .. }))
        .map(|param| {
            let mut ident = param.ident.clone();
            ident.set_span(ident.span().located_at(whole_span(&param.ty)));
            plain(expansion, &quote!(#ident), &param.ty)
        })
        .collect()
}

/// That `type Attrs` holds no tensor: it would lose its gradient, and an output would leak.
pub(crate) fn declared(expansion: &Expansion<'_>) -> TokenStream {
    let Some(attrs) = &expansion.layer.state else { return TokenStream::new() };
    if expansion.mode == Mode::Fallback {
        return TokenStream::new();
    }
    let (first, last) = ends(attrs.to_token_stream());
    let p = expansion.private_at(first);
    let answer = quote_spanned!(last=> .answer());
    quote_spanned! {first=>
        if false {
            #[allow(unused_imports)]
            use #p::HoldsNoTensor as _;
            #p::attrs(#p::Probe::<#attrs>::new()#answer);
        }
    }
}
