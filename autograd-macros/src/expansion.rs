//! The input of an expansion.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Visibility;

use crate::args::Args;
use crate::expand::elements::Named;
use crate::generics::generated;
use crate::library::private_at;
use crate::model::{Forward, Layer};
use crate::signatures;

pub(crate) enum Mode {
    Full,
    /// The compiler rejects a type of a signature, so the expansion must not repeat that type.
    Refused,
    /// The block has errors. The names that callers use get this error type.
    Reported(Ident),
}

impl Mode {
    /// Allows `cfg(rust_analyzer)`, which cargo does not know.
    pub(crate) fn mentions_editors(&self) -> Option<TokenStream> {
        matches!(self, Self::Reported(_)).then(|| quote!(#[allow(unexpected_cfgs)]))
    }
}

pub(crate) struct Expansion<'a> {
    pub(crate) layer: &'a Layer,
    pub(crate) args: &'a Args,
    pub(crate) mode: Mode,
    /// If the compiler may reject a type: what stands for the types in the expansion.
    pub(crate) named: Option<&'a Named>,
}

impl Expansion<'_> {
    /// `Known::<ty>`: its methods have bounds if `ty` is a tensor or an output; placeholders have none.
    pub(crate) fn known(&self, ty: &impl ToTokens, span: Span) -> TokenStream {
        let p = private_at(span);
        quote_spanned!(span=> #p::Known::<#ty>)
    }

    /// Forward as written.
    pub(crate) fn written<'f>(&'f self, forward: &'f Forward) -> &'f Forward {
        self.named.map_or(forward, |named| &named.written)
    }

    /// The op in calls of its functions: an error type if the compiler rejects a type of theirs.
    pub(crate) fn callee(&self, op: &impl ToTokens) -> TokenStream {
        self.named.map_or_else(|| op.to_token_stream(), |_| signatures::callee(op))
    }

    pub(crate) fn key(&self) -> Ident {
        generated(&self.layer.name, "Key")
    }

    pub(crate) fn forward_vis(&self) -> Visibility {
        match &self.layer.forward {
            Some(forward) => forward.function.vis.clone(),
            // Otherwise a caller would get an error about the visibility instead.
            None => Visibility::Public(syn::Token![pub](Span::call_site())),
        }
    }
}
