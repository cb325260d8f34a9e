//! What an expansion is made from.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Type, Visibility};

use crate::args::Args;
use crate::generics::generated;
use crate::library::private_at;
use crate::model::{Forward, Layer};
use crate::tokens::mentions;

/// Whether the block passed its checks.
pub(crate) enum Mode {
    Full,
    /// The compiler refuses a type of a signature: nothing repeats it.
    Refused,
    /// It did not: what callers name is of this type, which has an error in it.
    Reported(Ident),
}

pub(crate) struct Expansion<'a> {
    pub(crate) layer: &'a Layer,
    pub(crate) args: &'a Args,
    pub(crate) mode: Mode,
    /// Where types have other names in what is made: forward as it was written, and these names.
    pub(crate) written: Option<(&'a Forward, &'a TokenStream)>,
}

impl Expansion<'_> {
    /// What finds the bounds of a type, or none where it is no tensor or no output.
    pub(crate) fn known(&self, ty: &impl ToTokens, span: Span) -> TokenStream {
        let p = private_at(span);
        quote_spanned!(span=> #p::Known::<#ty>)
    }

    pub(crate) fn op(&self) -> &Type {
        &self.layer.self_ty
    }

    pub(crate) fn key(&self) -> Ident {
        generated(&self.layer.name, "Key")
    }

    pub(crate) fn needs(&self) -> Ident {
        generated(&self.layer.name, "NeedsGrad")
    }

    pub(crate) fn forward_vis(&self) -> Visibility {
        match &self.layer.forward {
            Some(forward) => forward.function.vis.clone(),
            // Who calls the op shall not hear of its visibility instead.
            None => Visibility::Public(syn::Token![pub](Span::call_site())),
        }
    }

    /// What is deprecated is reported in the user's block, and not again.
    pub(crate) fn deprecated(&self) -> Option<TokenStream> {
        let functions = self.layer.functions().flat_map(|function| &function.attrs);
        let mut attrs = self.layer.attrs.iter().chain(functions);
        attrs.any(|attr| mentions(attr, "deprecated")).then(|| quote!(#[allow(deprecated)]))
    }
}
