//! `apply`, `try_apply`, the builder, and what checks a backward that was written by hand.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::Type;

use super::{Expansion, Given, field};
use crate::attributes::{is, of_callers, of_each_call, of_start};
use crate::builder::ByName;
use crate::elementwise::model::{Forward, Kind};
use crate::expansion::{self, Mode};
use crate::library::Private;
use crate::model::Layer;
use crate::tokens::mentions;

impl Expansion<'_> {
    /// The inputs of `apply`, with the parameters of the function.
    pub(super) fn signature(&self, forward: &Forward) -> (TokenStream, Vec<TokenStream>) {
        let p = Private::imported();
        // Nothing would tell what `T` is.
        let known = forward.of(Kind::Real).next().is_some();
        let element = self.element();
        let mut generics = match known {
            true => quote!(#element: #p::elementwise::Float),
            false => TokenStream::new(),
        };
        let params = forward.params.iter().enumerate().map(|(i, param)| {
            let ident = &param.ident;
            match param.kind {
                Kind::Real => quote!(#ident: &#p::Tensor<#element>),
                Kind::Mask => {
                    let mask = format_ident!("M{i}");
                    let comma = (!generics.is_empty()).then(|| quote!(,));
                    generics.extend(quote!(#comma #mask: #p::elementwise::MaskElement));
                    quote!(#ident: &#p::Tensor<#mask>)
                }
                Kind::Plain => {
                    let ty = &param.ty;
                    quote!(#ident: #ty)
                }
                Kind::Wrong => TokenStream::new(),
            }
        });
        let params = params.collect();
        (generics, params)
    }

    pub(super) fn output(&self, forward: &Forward) -> TokenStream {
        let p = Private::imported();
        let element = match forward.of(Kind::Real).next() {
            Some(_) => self.element().to_token_stream(),
            None => quote!(::core::primitive::f64),
        };
        let tensors = vec![quote!(#p::Tensor<#element>); forward.outputs.len().max(1)];
        match tensors.as_slice() {
            [one] if !forward.tuple || self.op.forward.is_none() => one.clone(),
            many => quote!((#(#many,)*)),
        }
    }

    /// `apply`, `try_apply` and `check_backward`.
    pub(super) fn apply(&self, forward: &Forward) -> TokenStream {
        let p = Private::imported();
        let (op, vis) = (&self.op.name, self.vis());
        let attrs: Vec<_> = forward.function.attrs.iter().filter(|attr| of_callers(attr)).collect();
        let calls = attrs.iter().filter(|attr| of_each_call(attr));
        let documented = attrs.iter().any(|attr| is(attr, &["doc"]));
        let doc = (!documented).then(|| quote!(#[doc = "Runs the op on these inputs."]));
        let (generics, params) = self.signature(forward);
        let names: Vec<_> = forward.params.iter().map(|param| &param.ident).collect();
        let output = self.output(forward);
        let body = self.try_apply_body(forward);
        let check = self.check_backward(forward);
        // `apply` calls `try_apply`, which is as deprecated as itself.
        let deprecated = forward.function.attrs.iter().any(|attr| mentions(attr, "deprecated"));
        let deprecated = deprecated.then(|| quote!(#[allow(deprecated)]));
        quote! {
            #deprecated
            impl #op {
                #doc #(#attrs)*
                #[track_caller]
                #vis fn apply<#generics>(#(#params),*) -> #output {
                    #p::expect(Self::try_apply(#(#names),*))
                }

                /// As [`apply`](Self::apply), with shapes that do not fit as an error.
                ///
                /// # Errors
                ///
                /// If the inputs cannot be broadcast to one shape.
                #(#calls)*
                #[track_caller]
                #vis fn try_apply<#generics>(#(#params),*) -> #p::Result<#output> #body

                #check
            }
        }
    }

    /// The calls of an op with an input whose type the compiler refuses.
    pub(super) fn loose(&self, forward: &Forward) -> TokenStream {
        let (p, name) = (Private::imported(), &self.op.name);
        let tensors = vec![quote!(#p::Tensor<::core::primitive::f64>); forward.outputs.len()];
        let output = match (tensors.as_slice(), forward.tuple) {
            ([one], false) => one.clone(),
            (many, _) => quote!((#(#many,)*)),
        };
        let names: Vec<_> = forward.params.iter().map(|param| param.ident.clone()).collect();
        let op = syn::parse_quote!(#name);
        crate::fallback::loose(&p, &syn::Generics::default(), name, &op, &names, &output)
    }

    /// The op with its plain parameters: its type and its value.
    pub(super) fn pair(&self, forward: &Forward) -> (TokenStream, TokenStream) {
        let p = Private::imported();
        let fields: Vec<_> = forward
            .of(Kind::Plain)
            .map(|param| {
                let (field, ident) = (field(param), &param.ident);
                quote!(#field: ::core::clone::Clone::clone(&#ident))
            })
            .collect();
        // A struct of a formula, compiled for what it is given.
        let compiled = |name: &Ident, given: &Given, outputs: usize| {
            let (i, m) = (given.count(), given.masks.len());
            let ty = quote!(#p::elementwise::Compiled<#name, #i, #m, #outputs>);
            (ty, quote!(#p::elementwise::Compiled(#name { #(#fields),* })))
        };
        let differentiable = forward.differentiable().len();
        let (forward_type, forward_value) =
            compiled(&self.struct_name("Forward"), &Given::all(forward), forward.outputs.len());
        let (derived_type, derived_value) =
            compiled(&self.struct_name("Derivative"), &Given::derived(forward), differentiable);
        let (backward_type, backward_value, derived_type, derived_value) = match &self.op.backward {
            Some(backward) => {
                let given = Given::by(forward, &backward.meant(forward));
                let (ty, value) = compiled(&self.struct_name("Backward"), &given, differentiable);
                (ty, value, derived_type, quote!(::core::option::Option::Some(#derived_value)))
            }
            None => {
                let none = quote!(::core::option::Option::None);
                (derived_type, derived_value, quote!(#p::elementwise::Program), none)
            }
        };
        let info = self.struct_name("Info");
        (
            quote!(#p::elementwise::Pair<#forward_type, #backward_type, #derived_type>),
            quote!(#p::elementwise::Pair::new(&#info, #forward_value, #backward_value, #derived_value)),
        )
    }

    pub(super) fn try_apply_body(&self, forward: &Forward) -> TokenStream {
        let p = Private::imported();
        let (pair_type, pair) = self.pair(forward);
        let (element, name) = (self.element(), &self.op.name);
        let reals: Vec<_> = forward.of(Kind::Real).map(|param| &param.ident).collect();
        let masks = forward.of(Kind::Mask).map(|param| {
            let ident = &param.ident;
            quote!(&#p::elementwise::MaskElement::mask(#ident))
        });
        let masks: Vec<_> = masks.collect();
        let (op, outputs) = (crate::tokens::local("op"), crate::tokens::local("outputs"));
        let plain = forward.of(Kind::Plain).next().is_some();
        let take = quote! {
            ::core::iter::Iterator::next(&mut #outputs).unwrap_or_else(|| ::core::unreachable!())
        };
        let result = match (forward.outputs.len(), forward.tuple) {
            (1, false) => take,
            (n, _) => {
                let each = vec![take; n];
                quote!((#(#each,)*))
            }
        };
        // Without parameters, it is the same in all calls.
        let (op_value, (apply, given)) = match plain {
            false => {
                (quote!(static __OP: #pair_type = #pair;), (quote!(apply_static), quote!(&__OP)))
            }
            true => (quote!(let #op: #pair_type = #pair;), (quote!(apply), quote!(#op))),
        };
        let verify = self.args.verify.map(|_| {
            let op = if plain { quote!(&#given) } else { given.clone() };
            quote! {
                if ::core::cfg!(debug_assertions) {
                    #p::elementwise::verify(#op, &[#(#reals),*], &[#(#masks),*])?;
                }
            }
        });
        // Without parameters, what is true of one call is true of all.
        let once = self.op.backward.is_some() && self.args.surrogate.is_none() && !plain;
        let checked = (once && self.args.verify.is_none()).then(|| {
            quote! {
                if ::core::cfg!(debug_assertions) {
                    static __CHECKED: #p::elementwise::Checked = #p::elementwise::Checked::new();
                    __CHECKED.require(&__OP)?;
                }
            }
        });
        let one = !plain && masks.is_empty() && forward.outputs.len() == 1 && !forward.tuple;
        let call = match &reals[..] {
            [x] if one => quote!(#p::elementwise::apply_one::<#element>(&__OP, #x)),
            _ => quote! {
                let mut #outputs = ::core::iter::IntoIterator::into_iter(
                    #p::elementwise::#apply::<#element>(#given, &[#(#reals),*], &[#(#masks),*])?,
                );
                #p::Result::Ok(#result)
            },
        };
        // An op that is called is no dead code.
        quote! {{
            let _ = #name;
            #op_value
            #verify
            #checked
            #call
        }}
    }

    /// Compares what was written by hand with the derivative.
    pub(super) fn check_backward(&self, forward: &Forward) -> Option<TokenStream> {
        self.op.backward.as_ref()?;
        let p = Private::imported();
        let vis = self.vis();
        let params = forward.of(Kind::Plain).map(|param| {
            let (ident, ty) = (&param.ident, &param.ty);
            quote!(#ident: #ty)
        });
        let (_, pair) = self.pair(forward);
        Some(quote! {
            /// Compares `backward` with the derivative of `forward` at many points.
            ///
            /// # Errors
            ///
            /// [`BackwardDiffers`](#p::Error::BackwardDiffers) with the input and the point where
            /// they differ.
            #vis fn check_backward(#(#params),*) -> #p::Result<()> {
                #p::elementwise::check_backward(&#pair)
            }
        })
    }

    /// The test that is generated for a backward that was written by hand.
    pub(super) fn test(&self) -> Option<TokenStream> {
        let forward = self.op.forward.as_ref().filter(|_| matches!(self.mode, Mode::Full))?;
        self.op.backward.as_ref()?;
        if self.args.surrogate.is_some() {
            return None;
        }
        // Numbers without a default are tried with some; other types the macro knows nothing of.
        let tried = |value: f64| -> Option<Vec<TokenStream>> {
            forward
                .of(Kind::Plain)
                .map(|param| match (&param.default, crate::tokens::text(&param.ty).as_str()) {
                    (Some(default), _) => Some(default.to_token_stream()),
                    (None, "f64") => Some(quote!(#value)),
                    (None, _) => None,
                })
                .collect()
        };
        let plain = forward.of(Kind::Plain).any(|param| param.default.is_none());
        let values: &[f64] = if plain { &[0.25, 1.0, 2.5] } else { &[1.0] };
        let calls: Option<Vec<Vec<TokenStream>>> =
            values.iter().map(|&value| tried(value)).collect();
        let calls = calls?;
        let op = &self.op.name;
        let name = format_ident!("{}_backward_is_the_derivative", op);
        let cfg = self.op.attrs.iter().filter(|attr| is(attr, &["cfg"]));
        Some(quote! {
            #(#cfg)*
            #[cfg(test)]
            #[test]
            #[allow(non_snake_case, unnameable_test_items)]
            fn #name() {
                #(
                    if let ::core::result::Result::Err(error) = <#op>::check_backward(#(#calls),*) {
                        ::core::panic!("{error}");
                    }
                )*
            }
        })
    }

    /// Arguments by name: the builder of an op with the same inputs as tensors.
    pub(super) fn with(&self, forward: &Forward) -> TokenStream {
        let p = Private::imported();
        let (generics, params) = self.signature(forward);
        let params = params.into_iter().zip(&forward.params).map(|(tokens, param)| {
            let default = param.default.as_ref().map(|default| quote!(#[default(#default)]));
            let docs = &param.docs;
            quote!(#(#docs)* #default #tokens)
        });
        let (output, vis) = (self.output(forward), self.vis());
        let attrs = forward.function.attrs.iter().filter(|attr| of_each_call(attr));
        let block = quote! {
            impl Op {
                #(#attrs)*
                #vis fn forward<#generics>(
                    ctx: &mut #p::ForwardContext<Self>, #(#params),*
                ) -> #output {}
            }
        };
        let mut errors = crate::errors::Errors::new();
        let layer = crate::parse::parse(block, &mut errors);
        errors.forget();
        let Some(mut layer) = layer else { return TokenStream::new() };
        let op: Ident = self.op.name.clone();
        layer.block.self_ty =
            Type::Path(syn::TypePath { attrs: Vec::new(), qself: None, path: op.clone().into() });
        layer.block.name = op;
        self.builder(&layer)
    }

    pub(super) fn builder(&self, layer: &Layer) -> TokenStream {
        let (args, private, mode) = (self.args, Private::imported(), Mode::Full);
        let expansion = expansion::Expansion { layer, args, private, mode, verifies: false };
        let Some(ByName { with, names, builder, .. }) = crate::builder::expand(&expansion, false)
        else {
            return TokenStream::new();
        };
        let op = &layer.self_ty;
        let forward = layer.forward.iter().flat_map(|forward| &forward.function.attrs);
        let starts = forward.filter(|attr| of_start(attr));
        quote!(impl #op { #(#starts)* #with } #names #builder)
    }
}
