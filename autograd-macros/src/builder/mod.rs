//! Arguments by name: `Op::with().x(&x).apply()`.

mod named;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{GenericParam, Lifetime};

use crate::attributes::of_each_call;
use crate::expansion::Expansion;
use crate::generics::{
    self, arguments, generated, is_lifetime, lifetimes_and_others, parameter_name, phantom,
    turbofish,
};
use crate::library::private;
use crate::model::{Forward, Layer, Param};
use crate::tokens::{Trees, first_span, is_punct, local, mentions, plain_name, rewrite};
use named::{Hidden, Named};

/// What a call by name is made of.
pub(crate) struct ByName {
    pub(crate) with: TokenStream,
    pub(crate) names: TokenStream,
    pub(crate) builder: TokenStream,
    /// The function of the op that is reported where it is called, if the builder needs one.
    pub(crate) placed: Option<Ident>,
}

/// The builder: a type with a state for each argument. `places`: whether the op can be called with
/// the place of a call.
pub(crate) fn expand(expansion: &Expansion<'_>, places: bool) -> Option<ByName> {
    let forward = expansion.layer.forward.as_ref()?;
    let reserved = |param: &Param| param.ident == "apply" || param.ident == "try_apply";
    if forward.params.is_empty() || forward.params.iter().any(reserved) {
        return None;
    }
    Some(Builder::new(expansion, forward, places).tokens())
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
    fn new(expansion: &'a Expansion<'a>, forward: &'a Forward, places: bool) -> Self {
        let op = &expansion.layer.name;
        let count = forward.params.len();
        // The user may have a type of this name.
        let generics = &expansion.layer.generics;
        let sig = &forward.function.sig;
        let written = Trees::new(quote!(#op #generics #sig));
        let taken = written.find_ident(|word| word.to_string().starts_with("Argument"));
        let state = if taken.is_some() { "__Argument" } else { "Argument" };
        let mut builder = Self {
            expansion,
            forward,
            name: generated(op, "With"),
            names: arguments_of(expansion.layer),
            states: (0..count).map(|i| format_ident!("{state}{i}")).collect(),
            named: Vec::new(),
        };
        // Lifetimes that the user wrote anywhere.
        let taken = lifetimes_in(&written);
        let own = &forward.function.sig.generics;
        let parameters = own.type_params().chain(expansion.layer.generics.type_params());
        let parameters: Vec<_> = parameters.map(|param| param.ident.to_string()).collect();
        let known: Vec<_> =
            own.params.iter().chain(&expansion.layer.generics.params).map(parameter_name).collect();
        let params = forward.params.iter().enumerate();
        builder.named = params
            .map(|(position, param)| {
                let mut named = Named::new(param, position, &parameters, &taken, places);
                named.lifetimes.retain(|lifetime| !known.contains(&lifetime.to_string()));
                named.ty = builder.without_self(named.ty);
                let types = std::mem::take(&mut named.types);
                named.types = types.into_iter().map(|ty| builder.without_self(ty)).collect();
                named
            })
            .collect();
        builder
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
        let clause = &layer.generics.where_clause;
        let (marked, mark) = (self.marked(), self.mark());
        let (deprecated, keyword) = (self.expansion.deprecated(), layer.keyword());
        let start = self.forward.params.iter().map(|param| match param.default() {
            Some(_) => quote!(#p::Optional),
            None => quote!(#p::Required),
        });
        let start: Vec<_> = start.collect();
        let setters = (0..states.len()).map(|position| self.setter(position));
        let apply = self.apply();
        let doc = format!("Arguments of [`{}`] by name; ends with `apply()`.", layer.name);
        // Texts in variables: those in quoted code are parsed.
        let start_doc = "Starts a call with arguments by name, in any order; ends with `apply()`.";
        let must_use = "nothing runs before `apply()`";
        let with = quote! {
            #[doc = #start_doc]
            #[inline]
            #vis fn with() -> #name<#(#arguments,)* #(#start),*> {
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

            #deprecated
            #keyword<#(#lifetimes,)* #(#others,)* #(#states),*> #name<#(#arguments,)* #(#states),*>
            #clause
            {
                #(#setters)*
                #apply
            }
        };
        ByName { with, names, builder, placed: self.placed() }
    }

    /// The field that mentions the op's parameters, if it has any.
    fn marked(&self) -> Option<TokenStream> {
        let generics = &self.expansion.layer.generics;
        let phantom = phantom(generics);
        (!generics.params.is_empty()).then(|| quote!(::core::marker::PhantomData<#phantom>,))
    }

    fn mark(&self) -> Option<TokenStream> {
        let generics = &self.expansion.layer.generics;
        (!generics.params.is_empty()).then(|| quote!(::core::marker::PhantomData))
    }

    fn setter(&self, position: usize) -> TokenStream {
        let p = &private();
        let (name, names) = (&self.name, &self.names);
        let vis = self.expansion.forward_vis();
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
        let mark = self.mark();
        // Of several lifetimes it must be said which is returned: the value is known by what takes it.
        let value = (named.hidden == Hidden::AmongOthers).then(|| named::of(position));
        let is_taken = value.as_ref().map(|value| quote!(fn(#ty): ::core::ops::FnOnce(#value)));
        let ty = value.as_ref().map_or_else(|| ty.clone(), ToTokens::to_token_stream);
        let states = self.states.iter().enumerate().map(|(other, state)| {
            if other == position { quote!(#p::Set<#ty>) } else { quote!(#state) }
        });
        quote! {
            #doc #(#docs)*
            #vis fn #ident<#(#lifetimes,)* #own #(#types,)* #value>(
                self,
                #ident: #ty,
            ) -> #name<#(#arguments,)* #(#states),*>
            where
                #state: #p::NotGiven<#names::#name_type>,
                #is_taken
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
        let (mut bounds, mut values, mut taken) = (Vec::new(), Vec::new(), Vec::new());
        // The arguments of the op's function, made of what was taken.
        let (mut each, mut passed) = (Vec::new(), Vec::new());
        let (mut given, mut hidden) = (Vec::new(), Vec::new());
        let op = self.expansion.op();
        for (position, param) in self.forward.params.iter().enumerate() {
            let named = &self.named[position];
            let (ty, state) = (&named.ty, &self.states[position]);
            let name_type = marker(&param.ident);
            let index = syn::Index::from(position);
            let value = local(&format!("value{position}"));
            passed.push(value.to_token_stream());
            given.extend((0..named.types.len()).map(|i| named::implemented(position, i)));
            match param.default() {
                None => {
                    let given = quote!(#p::Given<#names::#name_type>);
                    values.push(quote!(#p::Given::<#names::#name_type>::take(self.#index)));
                    if named.hidden == Hidden::No {
                        bounds.push(quote!(#state: #p::Given<#names::#name_type, Value = #ty>));
                        taken.push(ty.clone());
                    } else {
                        bounds.push(quote!(#state: #given));
                        taken.push(quote!(<#state as #given>::Value));
                    }
                }
                Some(default) => {
                    let default = self.without_self(default.to_token_stream());
                    let span = first_span(&default);
                    let hides = named.hidden != Hidden::No;
                    let ty = if hides { named::of(position).to_token_stream() } else { ty.clone() };
                    let given_or = quote!(#p::GivenOr::<#names::#name_type, #ty>);
                    if hides {
                        taken.push(quote!(::core::option::Option<#ty>));
                        values.push(quote!(#given_or::given(self.#index)));
                        let closure = quote_spanned!(span=> || { #default });
                        passed[position] = quote!(#value.unwrap_or_else(#closure));
                        hidden.push(named::of(position));
                    } else {
                        taken.push(ty.clone());
                        let closure = quote_spanned!(span=> || -> #ty { #default });
                        values.push(quote!(#given_or::take_or(self.#index, #closure)));
                    }
                    bounds.push(quote!(#state: #given_or));
                }
            }
            each.push(value);
            bounds.extend(named.outlives.iter().cloned());
            lifetimes.extend(named.lifetimes.iter().cloned());
            types.extend(named.types.iter().cloned());
        }
        let own = &self.forward.function.sig.generics;
        let (own_lifetimes, own_others) = lifetimes_and_others(own);
        let is_own = |lifetime: &Lifetime| own.lifetimes().any(|of| of.lifetime == *lifetime);
        lifetimes.retain(|lifetime| !is_own(lifetime));
        let own_clause: TokenStream = own
            .where_clause
            .iter()
            .flat_map(|clause| &clause.predicates)
            .map(|predicate| {
                let predicate = self.without_self(predicate.to_token_stream());
                quote!(#predicate,)
            })
            .collect();
        let turbofish = turbofish(own);
        let output = self.without_self(self.forward.output());
        let result = quote!(#p::Result<#output>);
        let run = match self.placed() {
            None => quote!(<#op>::try_apply #turbofish (#(#values),*)),
            Some(placed) => {
                let types = self.named.iter().zip(&self.forward.params).map(|(named, param)| {
                    let ty = &named.ty;
                    match param.default() {
                        Some(_) if named.hidden != Hidden::No => {
                            quote!(::core::option::Option<#ty>)
                        }
                        _ => ty.clone(),
                    }
                });
                let place = quote!(&'static ::core::panic::Location<'static>);
                let run = quote!(fn(#place, (#(#types,)*)) -> #result);
                bounds.push(quote! {
                    #run: ::core::ops::FnOnce(#place, (#(#taken,)*)) -> #result
                });
                let (function, here) = (local("function"), local("here"));
                quote! {
                    let #function: #run =
                        |#here, (#(#each,)*)| <#op>::#placed #turbofish (#here, #(#passed),*);
                    #p::call_placed(#function, (#(#values,)*))
                }
            }
        };
        let place = Span::call_site().located_at(self.forward.function.sig.ident.span());
        let attrs: Vec<_> =
            self.forward.function.attrs.iter().filter(|attr| of_each_call(attr)).collect();
        let call = |name: &str, doc: &str, output: TokenStream, body: TokenStream| {
            let name = Ident::new(name, place);
            quote! {
                #[doc = #doc]
                #(#attrs)*
                #[track_caller]
                #vis fn #name<
                    #(#own_lifetimes,)* #(#lifetimes,)* #(#own_others,)* #(#types,)* #(#hidden,)*
                >(
                    self,
                ) -> #output
                where
                    #own_clause
                    #(#bounds,)*
                {
                    #body
                }
            }
        };
        // What only the caller says cannot be found.
        let said = own_others.iter().map(|param| generics::argument(param));
        let said: Vec<_> = said.chain(given.iter().map(ToTokens::to_token_stream)).collect();
        let turbofish = (!said.is_empty()).then(|| quote!(::<#(#said,)* #(#hidden,)*>));
        let run_or_panic = quote!(#p::expect(self.try_apply #turbofish ()));
        let apply = call("apply", "Runs the op.", output.clone(), run_or_panic);
        let try_doc = "As `apply`, with misuse of the op as an error instead of a panic.";
        let try_apply = call("try_apply", try_doc, result, run);
        quote!(#apply #try_apply)
    }

    /// A function in whose parameters lifetimes may be hidden knows not where it is called.
    fn placed(&self) -> Option<Ident> {
        let hides = self.named.iter().any(|named| named.hidden != Hidden::No);
        hides.then(|| Ident::new("__try_apply_at", Span::call_site()))
    }

    /// Those of forward's own parameters that a setter needs.
    fn own_generics(&self, named: &Named) -> TokenStream {
        let own = &self.forward.function.sig.generics;
        let types = &named.types;
        let (ty, mut seen) = (&named.ty, quote!(#(#types)*));
        ty.to_tokens(&mut seen);
        let mut needed: Vec<&GenericParam> = Vec::new();
        loop {
            let before = needed.len();
            for param in &own.params {
                let name = parameter_name(param);
                let known = needed.iter().any(|other| parameter_name(other) == name);
                if !known && mentions(&seen, name.trim_start_matches('\'')) {
                    param.to_tokens(&mut seen);
                    needed.push(param);
                }
            }
            if needed.len() == before {
                break;
            }
        }
        needed.sort_by_key(|param| !is_lifetime(param));
        quote!(#(#needed,)*)
    }

    /// The op's name in place of `Self`, which is another type in the builder.
    fn without_self(&self, tokens: TokenStream) -> TokenStream {
        let op = self.expansion.op();
        let generic = !self.expansion.layer.generics.params.is_empty();
        rewrite(tokens, &mut |trees, at| match &trees[at] {
            // `Self::X` becomes `<Op<T>>::X`.
            TokenTree::Ident(ident) if ident == "Self" => {
                let path = generic && is_punct(trees.get(at + 1), ':');
                Some((if path { quote!(<#op>) } else { op.to_token_stream() }, 1))
            }
            _ => None,
        })
    }
}

fn lifetimes_in(written: &Trees) -> Vec<String> {
    let mut found = Vec::new();
    written.find(&mut |trees, at| {
        if let [quote, TokenTree::Ident(name), ..] = &trees[at..]
            && is_punct(Some(quote), '\'')
        {
            found.push(format!("'{name}"));
        }
        None::<()>
    });
    found
}

/// The name of a parameter as the name of a type.
fn marker(ident: &Ident) -> Ident {
    // Raw: the macro's edition may have keywords that the user's has not.
    Ident::new_raw(&plain_name(ident), Span::call_site().located_at(ident.span()))
}
