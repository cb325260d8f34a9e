//! The body of `try_apply`, and the check of a backward written by hand.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};

use super::formula::Given;
use crate::elementwise::parse::Kind;
use crate::expansion::Expansion;
use crate::library::private;
use crate::model::{Forward, Param};
use crate::tokens::{local, text};

impl Expansion<'_> {
    /// The plain parameters, by value, or with `lent` before the type.
    pub(super) fn plain(&self, forward: &Forward, lent: Option<TokenStream>) -> Vec<TokenStream> {
        let plain = forward.of(Kind::Plain);
        plain.map(|Param { ident, ty, .. }| quote!(#ident: #lent #ty)).collect()
    }

    /// The op: a static, or a function of its plain parameters.
    pub(super) fn pair(&self, forward: &Forward) -> TokenStream {
        let p = private();
        let fields = forward.of(Kind::Plain).map(|param| &param.ident);
        let fields = fields.map(|ident| quote!(#ident: ::core::clone::Clone::clone(#ident)));
        let fields: Vec<_> = fields.collect();
        // A formula, compiled for its numbers of arguments and results.
        let name = self.struct_name("Formula");
        let formulas = self.given(forward);
        let compiled = |which: usize| {
            let Given { numbers, masks, results, .. } = &formulas[which];
            let (i, m) = (numbers.len(), masks.len());
            let ty = quote!(#p::elementwise::Compiled<#name<#which>, #i, #m, #results>);
            (ty, quote!(#p::elementwise::Compiled(#name::<#which> { #(#fields),* })))
        };
        let (forward_type, forward_value) = compiled(0);
        let (backward_type, backward_value) = compiled(formulas.len() - 1);
        let derived = |(ty, value)| (ty, quote!(::core::option::Option::Some(#value)));
        let (derived_type, derived_value) = match formulas.len() {
            2 => (quote!(#p::elementwise::Program), quote!(::core::option::Option::None)),
            _ => derived(compiled(1)),
        };
        let info = self.struct_name("Info");
        let ty = quote!(#p::elementwise::Pair<#forward_type, #backward_type, #derived_type>);
        let pair = quote! {
            #p::elementwise::Pair::new(&#info, #forward_value, #backward_value, #derived_value)
        };
        let name = self.struct_name("Pair");
        let plain = self.plain(forward, Some(quote!(&)));
        match fields.is_empty() {
            true => quote!(static #name: #ty = #pair;),
            false => quote!(#[inline] fn #name(#(#plain),*) -> #ty { #pair }),
        }
    }

    /// The op with these plain arguments.
    pub(crate) fn pair_of(&self, plain: &[Ident]) -> TokenStream {
        let pair = self.struct_name("Pair");
        if plain.is_empty() { quote!(#pair) } else { quote!(#pair(#(&#plain),*)) }
    }

    pub(crate) fn formula_body(&self, forward: &Forward) -> TokenStream {
        let p = private();
        let pair = self.struct_name("Pair");
        let element = forward.function.sig.generics.type_params().next().map(|of| &of.ident);
        let reals: Vec<_> = forward.of(Kind::Real).map(|param| &param.ident).collect();
        let masks = forward.of(Kind::Mask).map(|param| {
            let ident = &param.ident;
            quote!(&#p::elementwise::MaskElement::mask(#ident))
        });
        let masks: Vec<_> = masks.collect();
        let (op, outputs) = (local("op"), local("outputs"));
        let plain: Vec<_> = forward.of(Kind::Plain).map(|param| &param.ident).collect();
        let alone = plain.is_empty();
        let take = quote! {
            ::core::iter::Iterator::next(&mut #outputs).unwrap_or_else(|| ::core::unreachable!())
        };
        let each = vec![take; forward.outputs.parts.len()];
        let result = if forward.outputs.tuple { quote!((#(#each,)*)) } else { quote!(#(#each)*) };
        let (op_value, apply, given) = match alone {
            true => (None, quote!(apply_static), quote!(&#pair)),
            false => (Some(quote!(let #op = #pair(#(&#plain),*);)), quote!(apply), quote!(#op)),
        };
        let verify = self.args.verify.map(|_| {
            let op = if alone { given.clone() } else { quote!(&#given) };
            quote! {
                if ::core::cfg!(debug_assertions) {
                    #p::elementwise::verify(#op, &[#(#reals),*], &[#(#masks),*])?;
                }
            }
        });
        // Without parameters all calls are alike, so one check is enough.
        let once = self.layer.backward.is_some() && self.args.surrogate.is_none() && alone;
        let checked = (once && self.args.verify.is_none()).then(|| {
            quote! {
                if ::core::cfg!(debug_assertions) {
                    static __CHECKED: #p::elementwise::Checked = #p::elementwise::Checked::new();
                    __CHECKED.require(&#pair)?;
                }
            }
        });
        let one =
            alone && masks.is_empty() && forward.outputs.parts.len() == 1 && !forward.outputs.tuple;
        let call = match &reals[..] {
            [x] if one => quote!(#p::elementwise::apply_one::<#element>(&#pair, #x)),
            _ => quote! {
                let mut #outputs = ::core::iter::IntoIterator::into_iter(
                    #p::elementwise::#apply::<#element>(#given, &[#(#reals),*], &[#(#masks),*])?,
                );
                #p::Result::Ok(#result)
            },
        };
        let constructed = self.layer.constructed();
        quote! {{
            #constructed
            #op_value
            #verify
            #checked
            #call
        }}
    }

    /// For a backward written by hand: `check_backward`, and the test that calls it.
    pub(crate) fn formula_checks(&self) -> Option<(TokenStream, Option<TokenStream>)> {
        let forward = self.layer.forward.as_ref()?;
        self.layer.backward.as_ref()?;
        let p = private();
        let (op, vis) = (&self.layer.name, self.forward_vis());
        let params = self.plain(forward, None);
        let pair = self.struct_name("Pair");
        let plain: Vec<_> = forward.of(Kind::Plain).map(|param| &param.ident).collect();
        let given = (!plain.is_empty()).then(|| quote!((#(&#plain),*)));
        let check = quote! {
            impl #op {
            /// Compares `backward` with the derivative of `forward` at many points.
            ///
            /// # Errors
            ///
            /// `Error::BackwardDiffers` with the input and the point where they differ.
            #vis fn check_backward(#(#params),*) -> #p::Result<()> {
                #p::elementwise::check_backward(&#pair #given)
            }
            }
        };
        Some((check, self.formula_test(forward)))
    }

    /// For `check(exhaustive)`: a function that compares at all inputs, and the ignored test that calls it.
    pub(crate) fn exhaustive_check(&self) -> Option<(TokenStream, TokenStream)> {
        self.args.exhaustive.as_ref()?;
        let forward = self.layer.forward.as_ref()?;
        let (p, op) = (private(), &self.layer.name);
        let plain: Vec<_> = forward.of(Kind::Plain).map(|param| param.ident.clone()).collect();
        let plain_values = forward.of(Kind::Plain).map(|param| {
            let (ident, ty, default) = (&param.ident, &param.ty, param.default());
            quote!(let #ident: #ty = #default;)
        });
        let pair = self.pair_of(&plain);
        let pair = match plain.is_empty() {
            true => quote!(&#pair),
            false => quote!(#p::Box::leak(#p::Box::new(#pair))),
        };
        let function = local("exhaustive");
        let check = quote! {
            #[cfg(test)]
            impl #op {
                fn #function() -> #p::Result<#p::check::Exhaustive> {
                    #(#plain_values)*
                    let op: &'static _ = #pair;
                    #p::check::exhaustive(op, op, 1)
                }
            }
        };
        let mut name = format_ident!("{}_exhaustive", op);
        name.set_span(Span::call_site());
        let (cfg, silent) = (self.layer.cfg(), self.layer.silent(0));
        let test = quote! {
            #(#cfg)*
            #silent
            #[cfg(test)]
            #[test]
            #[ignore = "all numbers of type f32 take minutes"]
            fn #name() {
                match <#op>::#function() {
                    ::core::result::Result::Ok(found) => ::std::println!("{found}"),
                    ::core::result::Result::Err(error) => ::core::panic!("{error}"),
                }
            }
        };
        Some((check, test))
    }

    fn formula_test(&self, forward: &Forward) -> Option<TokenStream> {
        if self.args.surrogate.is_some() {
            return None;
        }
        // Numbers without a default are tried with sample values. For other types the macro has no values.
        let value = local("value");
        let given = forward.of(Kind::Plain).map(|param| match param.default() {
            Some(default) => Some(default.to_token_stream()),
            None => (text(&param.ty) == "f64").then(|| value.to_token_stream()),
        });
        let given: Vec<TokenStream> = given.collect::<Option<_>>()?;
        let op = &self.layer.name;
        let mut name = format_ident!("{}_backward_is_the_derivative", op);
        name.set_span(Span::call_site());
        let (cfg, silent) = (self.layer.cfg(), self.layer.silent(0));
        Some(quote! {
            #(#cfg)*
            #silent
            #[cfg(test)]
            #[test]
            fn #name() {
                for #value in [0.25, 1.0, 2.5] {
                    let _ = #value;
                    if let ::core::result::Result::Err(error) = <#op>::check_backward(#(#given),*) {
                        ::core::panic!("{error}");
                    }
                }
            }
        })
    }
}

pub(crate) const TRY_DOC: &str = "As `apply`, with shapes that do not fit as an error.\n\n# Errors\n\nIf the \
    inputs cannot be broadcast to one shape.";
