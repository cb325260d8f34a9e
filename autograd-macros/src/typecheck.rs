//! The proofs: what the macro guessed from names, the compiler checks by types, at the user's
//! spans, in the words of the traits. Emitted only where the syntax had nothing to say.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use crate::expand::{Expansion, Mode, whole_span};
use crate::model::{Forward, ParamKind};

/// That a value holds no tensor. Never runs.
pub(crate) fn plain(expansion: &Expansion<'_>, value: &TokenStream, span: Span) -> TokenStream {
    let p = &expansion.private;
    quote_spanned! {span=>
        if false {
            use #p::HoldsNoTensor as _;
            #p::plain(#p::Probe::of(&#value).answer());
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
            let ident = &param.ident;
            plain(expansion, &quote!(#ident), whole_span(&param.ty))
        })
        .collect()
}

/// That `type Attrs` holds no tensor: it would lose its gradient, and an output would leak.
pub(crate) fn declared(expansion: &Expansion<'_>) -> TokenStream {
    let p = &expansion.private;
    let Some(attrs) = &expansion.layer.state else { return TokenStream::new() };
    if expansion.mode == Mode::Fallback {
        return TokenStream::new();
    }
    let span = whole_span(attrs);
    quote_spanned! {span=>
        if false {
            use #p::HoldsNoTensor as _;
            #p::attrs(#p::Probe::<#attrs>::new().answer());
        }
    }
}
