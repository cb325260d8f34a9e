//! The output that all forms share: the struct, and the user's functions.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, GenericParam};

use crate::attributes::{is, is_expect, is_lint, is_lint_of_types, undocumented};
use crate::expansion::Mode;
use crate::generics::{argument, parameter_name, phantom};
use crate::model::{Block, Function, Item, generic_arguments, last_segment};
use crate::tokens::{located, text};

impl Block {
    pub(crate) fn cfg(&self) -> Vec<&Attribute> {
        self.attrs.iter().filter(|attr| is(attr, &["cfg"])).collect()
    }

    /// `impl`, with the span of the user's. Errors about a repeated type are then identical, so the compiler
    /// prints them once, and its suggestions edit the block, not the attribute.
    pub(crate) fn keyword(&self) -> Ident {
        Ident::new("impl", Span::call_site().located_at(self.place))
    }

    /// The struct, with the attributes of the block except `expect`s of lints in the functions.
    pub(crate) fn structure(&self, vis: &impl ToTokens, doc: &str) -> TokenStream {
        let attrs = self.attrs.iter().filter(|attr| !is_expect(attr) || is_lint_of_types(attr));
        let (name, params) = (&self.name, &self.generics.params);
        // A second struct of this name is reported at the name.
        let place = name.span();
        let vis = located(vis.to_token_stream(), place);
        let keyword = Ident::new("struct", Span::call_site().located_at(place));
        let doc = undocumented(&self.attrs, doc);
        let head = quote!(#doc #(#attrs)* #vis #keyword #name);
        if params.is_empty() {
            let end = quote_spanned!(Span::call_site().located_at(place)=> ;);
            return quote!(#head #end);
        }
        let declared = params.iter().map(|param| match (param, argument(param)) {
            (GenericParam::Type(_), name) => quote!(#name: ?::core::marker::Sized),
            (GenericParam::Lifetime(_), name) => name,
            (GenericParam::Const(syn::ConstParam { ty, .. }), name) => quote!(const #name: #ty),
        });
        let (phantom, declared) = (phantom(&self.generics), self.ordered(declared.collect()));
        quote!(#head<#(#declared),*>(::core::marker::PhantomData<#phantom>);)
    }

    /// The parameters in the order of the arguments of `self_ty`, which may differ from the impl's.
    fn ordered(&self, declared: Vec<TokenStream>) -> Vec<TokenStream> {
        let arguments = last_segment(&self.self_ty).into_iter().flat_map(generic_arguments);
        let names: Vec<String> = self.generics.params.iter().map(parameter_name).collect();
        let position = |argument| {
            let text = text(argument);
            names.iter().position(|name| *name == text)
        };
        arguments.filter_map(position).map(|at| declared[at].clone()).collect()
    }

    pub(crate) fn written(
        &self,
        mode: &Mode,
        function: impl Fn(&Function) -> TokenStream,
    ) -> TokenStream {
        let attrs = self.attrs.iter().filter(|attr| {
            is(attr, &["cfg"]) || is_lint(attr) && !(is_expect(attr) && is_lint_of_types(attr))
        });
        let items = self.items.iter().map(|item| match item {
            Item::Other(tokens) => tokens.clone(),
            Item::Function(written) => function(written),
        });
        let (op, (generics, _, clause)) = (&self.self_ty, self.generics.split_for_impl());
        let keyword = self.keyword();
        let editors = mode.mentions_editors();
        // A type parameter becomes the error type. Otherwise the compiler takes the operators of its bounds for
        // values of an error type, and reports their operands. In an editor it is as written.
        if let Mode::Reported(reported) = mode
            && self.generics.type_params().next().is_some()
        {
            let is_type = |param: &&GenericParam| matches!(param, GenericParam::Type(_));
            let (types, others): (Vec<_>, Vec<_>) = self.generics.params.iter().partition(is_type);
            let (names, cfg) = (types.iter().copied().map(argument), self.cfg());
            return quote! {
                #(#cfg)*
                #editors
                const _: () = {
                    #(#attrs)*
                    #keyword<#(#others,)* #(#[cfg(rust_analyzer)] #types),*> #op {
                        #(#items)*
                    }
                    #(#[cfg(not(rust_analyzer))] type #names = #reported;)*
                };
            };
        }
        quote! {
            #(#attrs)*
            #editors
            #keyword #generics #op #clause {
                #(#items)*
            }
        }
    }
}
