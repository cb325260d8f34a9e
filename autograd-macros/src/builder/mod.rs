//! Arguments by name: `Op::with().x(&x).apply()`.

pub(crate) mod named;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::GenericParam;

use crate::attributes::is_for_each_call;
use crate::expansion::Expansion;
use crate::generics::{
    self, arguments, generated, is_lifetime, lifetimes_and_others, parameter_name, phantom,
    turbofish,
};
use crate::library::private;
use crate::model::{Forward, Layer, Param, ParamKind};
use crate::tokens::{first_span, mentions, plain_name, text};
use named::{Named, Scope, without_self};

/// The generated code for calls by name.
pub(crate) struct ByName {
    pub(crate) with: TokenStream,
    pub(crate) names: TokenStream,
    pub(crate) builder: TokenStream,
}

/// Generates the builder: a type with a state for each argument.
pub(crate) fn expand(expansion: &Expansion<'_>) -> Option<ByName> {
    let forward = expansion.layer.forward.as_ref()?;
    let reserved = |param: &Param| param.ident == "apply" || param.ident == "try_apply";
    if forward.params.is_empty() || forward.params.iter().any(reserved) {
        return None;
    }
    Some(Builder::new(expansion, forward).tokens())
}

pub(crate) fn argument(layer: &Layer, ident: &Ident) -> TokenStream {
    let (names, name) = (arguments_of(layer), marker(ident));
    quote!(#names::#name)
}

fn arguments_of(layer: &Layer) -> Ident {
    generated(&layer.name, "Arguments")
}

struct Builder<'a> {
    expansion: &'a Expansion<'a>,
    forward: &'a Forward,
    name: Ident,
    names: Ident,
    states: Vec<Ident>,
    named: Vec<Named>,
}

impl<'a> Builder<'a> {
    fn new(expansion: &'a Expansion<'a>, forward: &'a Forward) -> Self {
        let op = &expansion.layer.name;
        // The alias of a type with hidden lifetimes is built from the type as written.
        let written = expansion.written(forward);
        let scope = Scope::new(expansion.layer, written);
        let params = forward.params.iter().zip(&written.params).enumerate();
        let named = params.map(|(position, (param, written))| {
            // The alias of a formula's type has no lifetimes.
            let is_plain = matches!(param.kind, ParamKind::Plain { .. });
            let hidden = is_plain && !expansion.layer.is_formula && scope.needs_alias(&written.ty);
            scope.name(if hidden { written } else { param }, position, hidden)
        });
        Self {
            expansion,
            forward,
            name: generated(op, "With"),
            names: arguments_of(expansion.layer),
            states: (0..forward.params.len()).map(|i| format_ident!("__Argument{i}")).collect(),
            named: named.collect(),
        }
    }

    fn tokens(&self) -> ByName {
        let p = &private();
        let (name, names, states) = (&self.name, &self.names, &self.states);
        let layer = self.expansion.layer;
        let vis = self.expansion.forward_vis();
        let markers: Vec<_> =
            self.forward.params.iter().map(|param| marker(&param.ident)).collect();
        let arguments = arguments(&layer.generics);
        let (lifetimes, others) = lifetimes_and_others(&layer.generics);
        let (clause, keyword) = (&layer.generics.where_clause, layer.keyword());
        let (marked, mark) = self.mark();
        let start = self.forward.params.iter().map(|param| match param.default() {
            Some(_) => quote!(#p::Optional),
            None => quote!(#p::Required),
        });
        let start: Vec<_> = start.collect();
        let setters = (0..states.len()).map(|position| self.setter(position));
        let apply = self.apply();
        let doc = format!("Arguments of [`{}`] by name; ends with `apply()`.", layer.name);
        // Texts are in variables because `quote!` would parse literals.
        let defaults = self.forward.params.iter().filter_map(|param| {
            let (name, default) = (plain_name(&param.ident), text(param.default()?));
            Some(format!(" `{name}` is `{default}` if it is not given."))
        });
        let written = self.expansion.written(self.forward);
        let place = Span::call_site().located_at(self.forward.function.sig.ident.span());
        let start_name = Ident::new("with", place);
        let arguments_doc = written.params.iter().map(|param| {
            let ty = text(&param.ty).replace(&format!("{p}::"), "");
            format!("`{}({ty})`", plain_name(&param.ident))
        });
        let start_doc = format!(
            "Starts a call with arguments by name, in any order: {}; ends with `apply()` or `try_apply()`.{}",
            arguments_doc.collect::<Vec<_>>().join(", "),
            defaults.collect::<String>()
        );
        let must_use = "nothing runs before `apply()`";
        let with = quote! {
            #[doc = #start_doc]
            #[inline]
            #vis fn #start_name() -> #name<#(#arguments,)* #(#start),*> {
                #name(#(#start,)* #mark)
            }
        };
        let names = quote! {
            mod #names {
                #(pub struct #markers {})*
            }
        };
        let builder = quote! {
            #[doc = #doc]
            #[must_use = #must_use]
            #vis struct #name<#(#lifetimes,)* #(#others,)* #(#states),*>(
                #(#states,)*
                #marked
            ) #clause;

            #keyword<#(#lifetimes,)* #(#others,)* #(#states),*> #name<#(#arguments,)* #(#states),*>
            #clause
            {
                #(#setters)*
                #apply
            }
        };
        ByName { with, names, builder }
    }

    /// The field for the op's parameters, and its value; `None` without parameters.
    fn mark(&self) -> (Option<TokenStream>, Option<TokenStream>) {
        let generics = &self.expansion.layer.generics;
        let (phantom, data) = (phantom(generics), quote!(::core::marker::PhantomData));
        (!generics.params.is_empty()).then(|| (quote!(#data<#phantom>,), data.clone())).unzip()
    }

    fn setter(&self, position: usize) -> TokenStream {
        let p = &private();
        let (name, names) = (&self.name, &self.names);
        let param = &self.forward.params[position];
        let ident = &param.ident;
        let name_type = marker(ident);
        let state = &self.states[position];
        let named = &self.named[position];
        let (ty, lifetimes, types) = (&named.ty, &named.lifetimes, &named.types);
        let own = self.own_generics(named);
        let arguments = arguments(&self.expansion.layer.generics);
        let values = (0..self.states.len()).map(|other| {
            let index = syn::Index::from(other);
            if other == position { quote!(#p::Set(#ident)) } else { quote!(self.#index) }
        });
        let (doc, docs) = (format!("The argument `{}`.", plain_name(ident)), &param.docs);
        let doc = docs.is_empty().then(|| quote!(#[doc = #doc]));
        let (_, mark) = self.mark();
        let states = self.states.iter().enumerate().map(|(other, state)| {
            if other == position { quote!(#p::Set<#ty>) } else { quote!(#state) }
        });
        quote! {
            #doc #(#docs)*
            pub fn #ident<#(#lifetimes,)* #own #(#types),*>(
                self,
                #ident: #ty,
            ) -> #name<#(#arguments,)* #(#states),*>
            where
                #state: #p::NotGiven<#names::#name_type>,
            {
                #name(#(#values,)* #mark)
            }
        }
    }

    fn apply(&self) -> TokenStream {
        let p = &private();
        let names = &self.names;
        let vis = self.expansion.forward_vis();
        let (mut lifetimes, mut types) = (Vec::new(), Vec::new());
        let (mut bounds, mut values) = (Vec::new(), Vec::new());
        let op = &self.expansion.layer.self_ty;
        for (position, param) in self.forward.params.iter().enumerate() {
            let named = &self.named[position];
            let (ty, state) = (&named.ty, &self.states[position]);
            let name_type = marker(&param.ident);
            let index = syn::Index::from(position);
            match param.default() {
                None => {
                    bounds.push(quote!(#state: #p::Given<#names::#name_type, Value = #ty>));
                    values.push(quote!(#p::Given::<#names::#name_type>::take(self.#index)));
                }
                Some(default) => {
                    let default = self.without_self(default.to_token_stream());
                    let closure = quote_spanned!(first_span(&default)=> || -> #ty { #default });
                    let given_or = quote!(#p::GivenOr::<#names::#name_type, #ty>);
                    bounds.push(quote!(#state: #given_or));
                    values.push(quote!(#given_or::take_or(self.#index, #closure)));
                }
            }
            bounds.extend(named.outlives.iter().cloned());
            lifetimes.extend(named.lifetimes.iter().cloned());
            types.extend(named.types.iter().cloned());
        }
        let own = &self.forward.function.sig.generics;
        let (own_lifetimes, own_others) = lifetimes_and_others(own);
        let own_clause = own.where_clause.iter().map(|clause| &clause.predicates);
        let own_clause = self.without_self(quote!(#(#own_clause)*));
        let turbofish = turbofish(own);
        let output = self.without_self(self.forward.output());
        let result = quote!(#p::Result<#output>);
        let run = quote!(<#op>::try_apply #turbofish (#(#values),*));
        let place = Span::call_site().located_at(self.forward.function.sig.ident.span());
        let attrs: Vec<_> =
            self.forward.function.attrs.iter().filter(|attr| is_for_each_call(attr)).collect();
        let call = |name: &str, doc: &str, output: TokenStream, body: TokenStream| {
            let name = Ident::new(name, place);
            quote! {
                #[doc = #doc]
                #(#attrs)*
                #[track_caller]
                #vis fn #name<
                    #(#own_lifetimes,)* #(#lifetimes,)* #(#own_others,)* #(#types,)*
                >(
                    self,
                ) -> #output
                where
                    #(#bounds,)*
                    #own_clause
                {
                    #body
                }
            }
        };
        // These parameters cannot be inferred, so they are passed on.
        let uninferred = own_others.iter().map(|param| generics::argument(param));
        let given = self.named.iter().flat_map(|named| &named.given).map(ToTokens::to_token_stream);
        let uninferred: Vec<_> = uninferred.chain(given).collect();
        let turbofish = (!uninferred.is_empty()).then(|| quote!(::<#(#uninferred),*>));
        let run_or_panic = quote!(#p::expect(self.try_apply #turbofish ()));
        let apply = call("apply", "Runs the op.", output.clone(), run_or_panic);
        let try_doc = "As `apply`, with misuse of the op as an error instead of a panic.";
        let try_apply = call("try_apply", try_doc, result, run);
        quote!(#apply #try_apply)
    }

    /// The generic parameters of forward that a setter needs.
    fn own_generics(&self, named: &Named) -> TokenStream {
        let own = &self.forward.function.sig.generics;
        let types = &named.types;
        let (ty, mut seen) = (&named.ty, quote!(#(#types)*));
        ty.to_tokens(&mut seen);
        let (mut others, mut needed): (Vec<_>, Vec<_>) = (own.params.iter().collect(), Vec::new());
        let is_seen = |param: &&GenericParam, seen: &TokenStream| {
            mentions(seen, parameter_name(param).trim_start_matches('\''))
        };
        // A bound may mention another parameter.
        while let Some(at) = others.iter().position(|param| is_seen(param, &seen)) {
            let param = others.remove(at);
            param.to_tokens(&mut seen);
            needed.push(param);
        }
        needed.sort_by_key(|param| !is_lifetime(param));
        quote!(#(#needed,)*)
    }

    fn without_self(&self, tokens: TokenStream) -> TokenStream {
        without_self(self.expansion.layer, tokens)
    }
}

/// The type that stands for a parameter's name.
fn marker(ident: &Ident) -> Ident {
    // Raw: the macro's edition may have more keywords than the user's.
    Ident::new_raw(&plain_name(ident), Span::call_site())
}
