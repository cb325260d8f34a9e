//! Arguments by name: `Op::with().x(&x).apply()`.

mod named;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{GenericParam, Type};

use crate::expand::{
    Expansion, Mode, TRY_DOC, default_of, first_span, generated, output_type, phantom,
    replace_ident, turbofish,
};
use crate::model::{Forward, Layer, Param, local, mentions, parameter_name, plain_name};
use crate::piece::{Piece, piece, put};
use named::{Hidden, Named};

const START_DOC: &str = " Starts a call with arguments by name, in any order; ends with `apply()`.";

/// What a call by name is made of, which is left out where its methods would clash. `places`: whether
/// the op can be called with the place of a call.
pub(crate) fn expand<'a>(
    expansion: &'a Expansion<'a>,
    forward: &'a Forward,
    places: bool,
) -> Option<ByName<'a>> {
    let reserved = |param: &Param| param.ident == "apply" || param.ident == "try_apply";
    if forward.params.is_empty() || forward.params.iter().any(reserved) {
        return None;
    }
    Some(ByName::new(expansion, forward, places))
}

/// The type that names an argument of an op.
pub(crate) fn argument(layer: &Layer, ident: &Ident) -> TokenStream {
    let (names, name) = (arguments_of(layer), marker(ident));
    quote!(#names::#name)
}

fn arguments_of(layer: &Layer) -> Ident {
    generated(&layer.name, "Arguments")
}

/// What a call by name is made of: a type with a state for each argument.
pub(crate) struct ByName<'a> {
    expansion: &'a Expansion<'a>,
    forward: &'a Forward,
    name: Ident,
    names: Ident,
    states: Vec<Ident>,
    /// The types of the parameters, in their order.
    named: Vec<Named>,
}

impl<'a> ByName<'a> {
    fn new(expansion: &'a Expansion<'a>, forward: &'a Forward, places: bool) -> Self {
        let op = &expansion.layer.name;
        let count = forward.params.len();
        let mut builder = Self {
            expansion,
            forward,
            name: generated(op, "With"),
            names: arguments_of(expansion.layer),
            states: (0..count).map(|i| format_ident!("Argument{i}")).collect(),
            named: Vec::new(),
        };
        // Lifetimes that the user wrote anywhere.
        let taken: Vec<String> = match expansion.layer.glance.may_mention("'") {
            true => lifetimes_in(forward.function.sig.to_token_stream())
                .chain(lifetimes_in(expansion.layer.generics.to_token_stream()))
                .collect(),
            false => Vec::new(),
        };
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
                named.ty = builder.type_without_self(named.ty);
                let types = std::mem::take(&mut named.types);
                named.types = types.into_iter().map(|ty| builder.without_self(ty)).collect();
                named
            })
            .collect();
        builder
    }

    /// What starts the call, of the op itself.
    pub(crate) fn put_start(&self, tokens: &mut TokenStream) {
        let p = &self.expansion.private;
        let (name, mark) = (&self.name, self.mark());
        let vis = self.expansion.forward_vis();
        let arguments = arguments(&self.expansion.layer.generics);
        let start = self.forward.params.iter().map(|param| {
            let state = if default_of(param).is_some() { "Optional" } else { "Required" };
            let state = Ident::new(state, Span::call_site());
            piece!(Span::call_site()=> #p::#state)
        });
        let start: Vec<_> = start.collect();
        let doc = START_DOC;
        put! {tokens, Span::call_site()=>
            #[doc = #doc]
            #[inline]
            #vis fn with() -> #name<#(#arguments,)* #(#start),*> {
                #name(#(#start,)* #mark)
            }
        }
    }

    /// The types that name the arguments.
    pub(crate) fn put_names(&self, tokens: &mut TokenStream) {
        let names = &self.names;
        let markers = self.forward.params.iter().map(|param| {
            let marker = marker(&param.ident);
            piece!(Span::call_site()=> pub struct #marker {})
        });
        let markers: Vec<_> = markers.collect();
        put!(tokens, Span::call_site()=> mod #names { #(#markers)* });
    }

    /// The builder, with a function for each argument and those that run the op.
    pub(crate) fn put_builder(&self, tokens: &mut TokenStream) {
        let (name, states) = (&self.name, &self.states);
        let layer = self.expansion.layer;
        let vis = self.expansion.forward_vis();
        let arguments = arguments(&layer.generics);
        let (lifetimes, others): (Vec<_>, Vec<_>) =
            layer.generics.params.iter().partition(|param| is_lifetime(param));
        let clause = &layer.generics.where_clause;
        let marked = self.marked();
        let setters = (0..states.len()).map(|position| {
            Piece(move |tokens: &mut TokenStream| self.put_setter(position, tokens))
        });
        let setters: Vec<_> = setters.collect();
        let apply = Piece(|tokens: &mut TokenStream| self.put_apply(tokens));
        let doc = format!("Arguments of [`{}`] by name; ends with `apply()`.", layer.name);
        let unused = "nothing runs before `apply()`";
        put! {tokens, Span::call_site()=>
            #[doc = #doc]
            #[must_use = #unused]
            #vis struct #name<#(#lifetimes,)* #(#others,)* #(#states),*>(
                #(#states,)*
                #marked
            ) #clause;

            #[allow(deprecated)]
            impl<#(#lifetimes,)* #(#others,)* #(#states),*> #name<#(#arguments,)* #(#states),*>
            #clause
            {
                #(#setters)*
                #apply
            }
        }
    }

    /// The field that mentions the op's parameters, if it has any.
    fn marked(&self) -> Option<TokenStream> {
        let generics = &self.expansion.layer.generics;
        (!generics.params.is_empty()).then(|| {
            let phantom = phantom(generics);
            quote!(::core::marker::PhantomData<#phantom>,)
        })
    }

    fn mark(&self) -> Option<TokenStream> {
        let generics = &self.expansion.layer.generics;
        (!generics.params.is_empty()).then(|| quote!(::core::marker::PhantomData))
    }

    fn put_setter(&self, position: usize, tokens: &mut TokenStream) {
        let p = &self.expansion.private;
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
            Piece(move |tokens: &mut TokenStream| match other == position {
                true => put!(tokens, Span::call_site()=> #p::Set(#ident)),
                false => put!(tokens, Span::call_site()=> self.#index),
            })
        });
        let values: Vec<_> = values.collect();
        let docs = &param.docs;
        let doc = docs.is_empty().then(|| {
            let doc = format!("The argument `{}`.", plain_name(ident));
            piece!(Span::call_site()=> #[doc = #doc])
        });
        let mark = self.mark();
        // Of several lifetimes it must be said which is returned: the value is known by what takes it.
        let value = (named.hidden == Hidden::AmongOthers).then(|| named::of(position));
        let is_taken = value.as_ref().map(|value| quote!(fn(#ty): ::core::ops::FnOnce(#value)));
        let ty: &dyn ToTokens = match &value {
            Some(value) => value,
            None => ty,
        };
        let states = self.states.iter().enumerate().map(|(other, state)| {
            Piece(move |tokens: &mut TokenStream| match other == position {
                true => put!(tokens, Span::call_site()=> #p::Set<#ty>),
                false => state.to_tokens(tokens),
            })
        });
        let states: Vec<_> = states.collect();
        put! {tokens, Span::call_site()=>
            #doc #(#docs)*
            #vis fn #ident<#(#lifetimes,)* #(#own,)* #(#types,)* #value>(
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

    fn put_apply(&self, tokens: &mut TokenStream) {
        let p = &self.expansion.private;
        let names = &self.names;
        let vis = self.expansion.forward_vis();
        let (mut lifetimes, mut types) = (Vec::new(), Vec::new());
        let mut bounds: Vec<Box<dyn ToTokens + '_>> = Vec::new();
        let mut values: Vec<Box<dyn ToTokens + '_>> = Vec::new();
        let mut taken = Vec::new();
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
            match default_of(param) {
                None => {
                    let marker = name_type.clone();
                    values.push(Box::new(piece! {Span::call_site()=>
                        #p::Given::<#names::#marker>::take(self.#index)
                    }));
                    if named.hidden == Hidden::No {
                        bounds.push(Box::new(piece! {Span::call_site()=>
                            #state: #p::Given<#names::#name_type, Value = #ty>
                        }));
                        taken.push(ty.to_token_stream());
                    } else {
                        let given = quote!(#p::Given<#names::#name_type>);
                        taken.push(quote!(<#state as #given>::Value));
                        bounds.push(Box::new(quote!(#state: #given)));
                    }
                }
                Some(default) => {
                    let default = self.without_self(default.to_token_stream());
                    let span = first_span(&default);
                    let default = match self.expansion.mode {
                        Mode::Full => default,
                        Mode::Fallback(_) => quote!(::core::unreachable!("the op did not compile")),
                    };
                    let hides = named.hidden != Hidden::No;
                    let ty = match hides {
                        true => named::of(position).to_token_stream(),
                        false => ty.to_token_stream(),
                    };
                    let given_or = quote!(#p::GivenOr::<#names::#name_type, #ty>);
                    if hides {
                        taken.push(quote!(::core::option::Option<#ty>));
                        values.push(Box::new(quote!(#given_or::given(self.#index))));
                        let closure = quote_spanned!(span=> || { #default });
                        passed[position] = quote!(#value.unwrap_or_else(#closure));
                        hidden.push(named::of(position));
                    } else {
                        taken.push(ty.clone());
                        let closure = quote_spanned!(span=> || -> #ty { #default });
                        values.push(Box::new(quote!(#given_or::take_or(self.#index, #closure))));
                    }
                    bounds.push(Box::new(quote!(#state: #given_or)));
                }
            }
            each.push(value);
            for outlives in &named.outlives {
                bounds.push(Box::new(outlives));
            }
            lifetimes.extend(named.lifetimes.iter().cloned());
            types.extend(named.types.iter().cloned());
        }
        let own = &self.forward.function.sig.generics;
        for parameter in &own.params {
            if let GenericParam::Lifetime(lifetime) = parameter {
                lifetimes.retain(|other| *other != lifetime.lifetime);
            }
        }
        let own_lifetimes = own.params.iter().filter(|param| is_lifetime(param));
        let own_others = own.params.iter().filter(|param| !is_lifetime(param));
        let own_clause: Vec<TokenStream> = own
            .where_clause
            .iter()
            .flat_map(|clause| &clause.predicates)
            .map(|predicate| {
                let predicate = self.without_self(predicate.to_token_stream());
                quote!(#predicate,)
            })
            .collect();
        let turbofish = turbofish(own);
        let output = self.without_self(output_type(self.forward));
        let (own_lifetimes, own_others) = (own_lifetimes.collect(), own_others.collect());
        let head: [Vec<&GenericParam>; 2] = [own_lifetimes, own_others];
        let [own_lifetimes, own_others] = &head;
        let output = &output;
        let result = piece!(Span::call_site()=> #p::Result<#output>);
        let placed_run = match self.placed() {
            None => None,
            Some(placed) => {
                let types = self.named.iter().zip(&self.forward.params).map(|(named, param)| {
                    let ty = &named.ty;
                    match default_of(param) {
                        Some(_) if named.hidden != Hidden::No => {
                            quote!(::core::option::Option<#ty>)
                        }
                        _ => ty.to_token_stream(),
                    }
                });
                let place = quote!(&'static ::core::panic::Location<'static>);
                let run = quote!(fn(#place, (#(#types,)*)) -> #result);
                bounds.push(Box::new(quote! {
                    #run: ::core::ops::FnOnce(#place, (#(#taken,)*)) -> #result
                }));
                let (function, here) = (local("function"), local("here"));
                Some(quote! {
                    let #function: #run =
                        |#here, (#(#each,)*)| <#op>::#placed #turbofish (#here, #(#passed),*);
                    #p::call_placed(#function, (#(#values,)*))
                })
            }
        };
        let run = Piece(|tokens: &mut TokenStream| match &placed_run {
            Some(run) => run.to_tokens(tokens),
            None => {
                put!(tokens, Span::call_site()=> <#op>::try_apply #turbofish (#(#values),*));
            }
        });
        let place = Span::call_site().located_at(self.forward.function.sig.ident.span());
        let mut call = |name: &str, doc: &str, output: &dyn ToTokens, body: &dyn ToTokens| {
            let name = Ident::new(name, place);
            put! {tokens, Span::call_site()=>
                #[doc = #doc]
                #[track_caller]
                #vis fn #name<
                    #(#own_lifetimes,)* #(#lifetimes,)* #(#own_others,)* #(#types,)* #(#hidden,)*
                >(
                    self,
                ) -> #output
                where
                    #(#own_clause)*
                    #(#bounds,)*
                {
                    #body
                }
            }
        };
        // What only the caller says cannot be found.
        let said = own_others.iter().map(|param| argument_of(param));
        let said: Vec<_> = said.chain(given.iter().map(|name| name as &dyn ToTokens)).collect();
        let all = (!said.is_empty()).then(|| quote!(::<#(#said,)* #(#hidden,)*>));
        let run_or_panic = piece!(Span::call_site()=> #p::expect(self.try_apply #all ()));
        call("apply", "Runs the op.", output, &run_or_panic);
        call("try_apply", TRY_DOC, &result, &run);
    }

    /// The function of the op that is told where it is called, if the builder needs one: in whose
    /// parameters lifetimes may be hidden.
    pub(crate) fn placed(&self) -> Option<Ident> {
        let hides = self.named.iter().any(|named| named.hidden != Hidden::No);
        hides.then(|| Ident::new("__try_apply_at", Span::call_site()))
    }

    /// Those of forward's own parameters that a setter needs.
    fn own_generics(&self, named: &Named) -> Vec<&GenericParam> {
        let own = &self.forward.function.sig.generics;
        if own.params.is_empty() {
            return Vec::new();
        }
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
        needed
    }

    /// The same for a type as a whole.
    fn type_without_self(&self, ty: Type) -> Type {
        if !self.expansion.layer.glance.may_mention_self() {
            return ty;
        }
        Type::Verbatim(self.without_self(ty.to_token_stream()))
    }

    /// The op's name in place of `Self`, which is another type in the builder.
    fn without_self(&self, tokens: TokenStream) -> TokenStream {
        if !self.expansion.layer.glance.may_mention_self() {
            return tokens;
        }
        let op = self.expansion.op();
        if self.expansion.layer.generics.params.is_empty() {
            return replace_ident(tokens, "Self", &op.to_token_stream());
        }
        replace_self(tokens, &op.to_token_stream())
    }
}

/// The lifetimes that stand anywhere in some tokens.
fn lifetimes_in(tokens: TokenStream) -> std::vec::IntoIter<String> {
    let mut found = Vec::new();
    let mut quoted = false;
    for tree in tokens {
        let quote = matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == '\'');
        match tree {
            TokenTree::Ident(name) if quoted => found.push(format!("'{name}")),
            TokenTree::Group(group) => found.extend(lifetimes_in(group.stream())),
            _ => {}
        }
        quoted = quote;
    }
    found.into_iter()
}

/// `Self::X` becomes `<Op<T>>::X`.
fn replace_self(tokens: TokenStream, op: &TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Ident(ident) if ident == "Self" => {
                let path =
                    matches!(trees.peek(), Some(TokenTree::Punct(colon)) if colon.as_char() == ':');
                out.extend(if path { quote!(<#op>) } else { op.clone() });
            }
            TokenTree::Group(group) => {
                let mut new =
                    proc_macro2::Group::new(group.delimiter(), replace_self(group.stream(), op));
                new.set_span(group.span());
                out.extend([TokenTree::Group(new)]);
            }
            tree => out.extend([tree]),
        }
    }
    out
}

fn is_lifetime(param: &GenericParam) -> bool {
    matches!(param, GenericParam::Lifetime(_))
}

/// The parameters as arguments: `T, N`.
fn arguments(generics: &syn::Generics) -> Vec<&dyn ToTokens> {
    let (lifetimes, others): (Vec<_>, Vec<_>) =
        generics.params.iter().partition(|p| is_lifetime(p));
    lifetimes.into_iter().chain(others).map(argument_of).collect()
}

fn argument_of(param: &GenericParam) -> &dyn ToTokens {
    match param {
        GenericParam::Type(param) => &param.ident,
        GenericParam::Const(param) => &param.ident,
        GenericParam::Lifetime(param) => &param.lifetime,
    }
}

/// The name of a parameter as the name of a type.
fn marker(ident: &Ident) -> Ident {
    let mut ident = ident.clone();
    ident.set_span(Span::call_site().located_at(ident.span()));
    ident
}
