//! The tensor op of a formula, as a [`Layer`]: it shares the calls, the builder and the tests.

use std::cell::OnceCell;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::Generics;

use super::model::{Forward, Kind, Op, Param};
use crate::check::types::is_plain;
use crate::errors::Errors;
use crate::expand::elements::declared;
use crate::generics::generated;
use crate::model::{Block, Function, Layer};
use crate::parse;
use crate::tokens::{mentions, plain_name};

impl Op {
    /// The layer; `None` if an input has a wrong type. `any_mask`: masks may have any mask element type,
    /// otherwise `bool`. `named`: types of plain parameters are replaced by aliases.
    pub(super) fn layer(&self, p: &impl ToTokens, any_mask: bool, named: bool) -> Option<Layer> {
        let forward = self.forward.as_ref()?;
        let mut element = self.parameter("T").to_token_stream();
        let (mut generics, mut params) = (Vec::new(), Vec::new());
        // Without a number `T` could not be inferred.
        match forward.of(Kind::Real).next() {
            Some(_) => generics.push(quote!(#element: #p::elementwise::Float)),
            None => element = quote!(::core::primitive::f64),
        }
        for (i, param) in forward.params.iter().enumerate() {
            let (ident, docs) = (&param.ident, &param.docs);
            let ty = match param.kind {
                Kind::Real => quote!(&#p::Tensor<#element>),
                Kind::Mask if any_mask => {
                    let mask = format_ident!("M{i}");
                    generics.push(quote!(#mask: #p::elementwise::MaskElement));
                    quote!(&#p::Tensor<#mask>)
                }
                Kind::Mask => quote!(&#p::Tensor<bool>),
                Kind::Plain if named => self.plain_type(param),
                Kind::Plain => param.ty.to_token_stream(),
                Kind::Wrong => return None,
            };
            let stop = param.stop_gradient.then(|| quote!(#[stop_gradient]));
            let default = param.default.as_ref().map(|default| quote!(#[default(#default)]));
            params.push(quote!(#(#docs)* #stop #default #ident: #ty));
        }
        let output = self.output(p, &element);
        let sig = quote! {
            fn forward<#(#generics),*>(ctx: &mut #p::ForwardContext<Self>, #(#params),*) -> #output
        };
        let function = Function {
            attrs: forward.function.attrs.clone(),
            vis: forward.function.vis.clone(),
            sig: syn::parse2(sig).ok()?,
            body: Group::new(Delimiter::Brace, TokenStream::new()),
            without_cfg: OnceCell::new(),
            trees: OnceCell::new(),
        };
        let forward = parse::forward(&function, &self.name.to_string(), &mut Errors::new());
        let block = Block {
            attrs: self.attrs.clone(),
            place: self.place,
            generics: Generics::default(),
            self_ty: self.self_ty.clone(),
            name: self.name.clone(),
            items: Vec::new(),
            exists: None,
            broken: Vec::new(),
        };
        Some(Layer { forward: Some(forward), ..Layer::new(block) })
    }

    /// The type of a plain parameter in generated code: an alias, unless the type is certainly valid. The
    /// compiler reports a wrong type wherever it is written, but not where the alias is used.
    pub(super) fn plain_type(&self, param: &Param) -> TokenStream {
        match is_plain(&param.ty) {
            true => param.ty.to_token_stream(),
            false => generated(&self.name, &format!("Type_{}", plain_name(&param.ident)))
                .to_token_stream(),
        }
    }

    /// The declarations of the aliases of [`Self::plain_type`].
    pub(super) fn plain_types(&self, forward: &Forward) -> TokenStream {
        let unsure = forward.of(Kind::Plain).filter(|of| !is_plain(&of.ty));
        let named = unsure.map(|of| (self.plain_type(of), of.ty.to_token_stream()));
        named.map(|(name, ty)| declared(&name, &ty, &ty)).collect()
    }

    /// The return type of a call, for tensors of this element type.
    pub(super) fn output(&self, p: &impl ToTokens, element: &TokenStream) -> TokenStream {
        let Some(forward) = &self.forward else { return TokenStream::new() };
        let tensors = vec![quote!(#p::Tensor<#element>); forward.outputs.parts.len()];
        match forward.outputs.tuple {
            true => quote!((#(#tensors,)*)),
            false => quote!(#(#tensors)*),
        }
    }

    /// The name of a type parameter that the macro adds, distinct from the user's names.
    pub(super) fn parameter(&self, name: &str) -> Ident {
        let forward = self.forward.iter();
        let plain = forward.flat_map(|forward| &forward.params).map(|param| &param.ty);
        let taken = self.name == name || plain.into_iter().any(|ty| mentions(ty, name));
        let name = if taken { format!("__{name}") } else { name.to_owned() };
        Ident::new(&name, Span::call_site())
    }
}
