//! From the model to code: the user's block, the struct, one trait impl, `apply`, the builder.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, GenericParam, Generics, ReturnType, Type, Visibility};

use crate::args::Args;
use crate::builder;
use crate::check::{is_bare_gradient, unsaveable};
use crate::context_use::escapes;
use crate::library::import;
use crate::model::{
    Form, Forward, Function, Item, Layer, Output, OutputKind, Param, ParamKind, Returns,
    TensorInput, bare, local, mentions, parameter_name, plain_name,
};
use crate::{expand_jvp, fallback, typecheck};

/// Whether the block passed its checks.
#[derive(Clone)]
pub(crate) enum Mode {
    Full,
    /// Everything that a caller can name exists, and does nothing. Holds an expression of any type
    /// for what was told to be wrong.
    Fallback(TokenStream),
}

/// All that an expansion is made from.
pub(crate) struct Expansion<'a> {
    pub(crate) layer: &'a Layer,
    pub(crate) args: &'a Args,
    pub(crate) private: TokenStream,
    pub(crate) mode: Mode,
}

impl Expansion<'_> {
    pub(crate) fn tokens(&self) -> TokenStream {
        let block = self.user_block();
        let structure = self.structure();
        let key = self.key();
        let layer = self.layer_impl();
        let grads = self.grads_struct();
        let needs = self.asks_needs().then(|| self.needs_struct());
        let apply = self.apply();
        let with = builder::expand(self);
        let cfg = self.attributes(is_cfg);
        let library = match self.mode {
            // One name for the library: a wrong path to it is told once.
            Mode::Full => import(self.args.krate.as_ref()),
            Mode::Fallback(_) => TokenStream::new(),
        };
        // `Grads` is seen by the user's functions, so they stand beside it.
        let (outside, inside) = match &grads {
            Some(_) => (TokenStream::new(), block),
            None => (block, TokenStream::new()),
        };
        quote! {
            #structure
            #outside
            #(#cfg)*
            #[allow(
                non_camel_case_types, non_snake_case, dead_code, unreachable_pub, unused_qualifications,
                elided_lifetimes_in_paths, private_interfaces, missing_debug_implementations,
                single_use_lifetimes, unused_lifetimes, clippy::all, clippy::pedantic,
                clippy::nursery
            )]
            const _: () = {
                #library
                /// Names this op among all layers; keeps its private types private.
                struct #key;
                #needs
                #grads
                #inside
                #layer
                #apply
                #with
            };
        }
    }

    /// The path of what expansions call, placed where an error is to be shown.
    pub(crate) fn private_at(&self, span: Span) -> TokenStream {
        respanned(self.private.clone(), span)
    }

    /// What finds the bounds of a tensor type, or none where the type is no tensor.
    pub(crate) fn known(&self, tensor: &syn::TypePath, span: Span) -> TokenStream {
        let p = self.private_at(span);
        quote_spanned!(span=> #p::Known::<#tensor>::new())
    }

    pub(crate) fn op(&self) -> &Type {
        &self.layer.self_ty
    }

    pub(crate) fn key(&self) -> Ident {
        format_ident!("{}Key", self.layer.name)
    }

    fn needs(&self) -> Ident {
        format_ident!("{}NeedsGrad", self.layer.name)
    }

    pub(crate) fn forward_vis(&self) -> Visibility {
        match &self.layer.forward {
            Some(forward) => forward.function.vis.clone(),
            // Who calls the op shall not hear of its visibility instead.
            None => Visibility::Public(syn::Token![pub](Span::call_site())),
        }
    }

    fn attributes(&self, which: fn(&Attribute) -> bool) -> Vec<&Attribute> {
        self.layer.attrs.iter().filter(|attr| which(attr)).collect()
    }

    /// The user's functions, less what stable Rust cannot compile where it stands.
    fn user_block(&self) -> TokenStream {
        let (generics, _, clause) = self.layer.generics.split_for_impl();
        let op = self.op();
        let attrs = self.layer.attrs.iter().filter(|attr| is_cfg(attr) || is_lint(attr));
        let items = self.layer.items.iter().map(|item| match item {
            Item::Other(tokens) => tokens.clone(),
            Item::Function(function) => self.user_function(function),
        });
        quote! {
            #(#attrs)*
            #[allow(elided_lifetimes_in_paths)]
            impl #generics #op #clause {
                #(#items)*
            }
        }
    }

    fn user_function(&self, function: &Function) -> TokenStream {
        let Function { attrs, vis, sig, body } = function;
        let mut sig = sig.clone();
        if sig.ident == "backward"
            && let Some(backward) = &self.layer.backward
            && let Returns::ByName(grads) = &backward.returns
            && let ReturnType::Type(_, ty) = &mut sig.output
        {
            let with_types = self.grads_type(grads);
            let tokens = replace_ident(ty.to_token_stream(), "Grads", &with_types);
            if let Ok(new) = syn::parse2(tokens) {
                **ty = new;
            }
        }
        // The op's docs say what it does; a public function without docs is warned about.
        let doc = match (sig.ident.to_string().as_str(), vis) {
            (_, Visibility::Inherited) => None,
            ("forward", _) => undocumented(attrs, "Computes the op; called by `apply`."),
            ("backward", _) => undocumented(attrs, "The op's gradient; called in backward."),
            ("jvp", _) => undocumented(attrs, "The op's slope; called in forward mode."),
            _ => None,
        };
        if let Mode::Fallback(told) = &self.mode {
            let body = fallback::repair(self, told, &mut sig, body);
            return quote!(#doc #(#attrs)* #[allow(unused)] #vis #sig #body);
        }
        quote!(#doc #(#attrs)* #vis #sig #body)
    }

    fn structure(&self) -> TokenStream {
        let attrs = self.layer.attrs.iter().filter(|attr| !is_expect(attr));
        let name = &self.layer.name;
        // A struct of this name that stands here already is told at the name.
        let place = name.span();
        let vis = located(self.forward_vis().to_token_stream(), place);
        let keyword = Ident::new("struct", Span::call_site().located_at(place));
        let doc = undocumented(&self.layer.attrs, "A differentiable op.");
        let params = &self.layer.generics.params;
        if params.is_empty() {
            let end = quote_spanned!(Span::call_site().located_at(place)=> ;);
            return quote! {
                #doc #(#attrs)*
                #[allow(dead_code, missing_copy_implementations)]
                #vis #keyword #name #end
            };
        }
        let declared = params.iter().map(|param| match param {
            GenericParam::Type(param) => {
                let ident = &param.ident;
                quote!(#ident: ?::core::marker::Sized)
            }
            GenericParam::Lifetime(param) => param.lifetime.to_token_stream(),
            GenericParam::Const(param) => {
                let (ident, ty) = (&param.ident, &param.ty);
                quote!(const #ident: #ty)
            }
        });
        let phantom = phantom(&self.layer.generics);
        // In the order of the name's own arguments, which may differ from the impl's.
        let declared = self.ordered(declared.collect());
        quote! {
            #doc #(#attrs)*
            #[allow(dead_code, missing_copy_implementations)]
            #vis #keyword #name<#(#declared),*>(::core::marker::PhantomData<#phantom>);
        }
    }

    fn ordered(&self, declared: Vec<TokenStream>) -> Vec<TokenStream> {
        let names: Vec<String> = self.layer.generics.params.iter().map(parameter_name).collect();
        let Type::Path(path) = bare(self.op()) else { return declared };
        let Some(segment) = path.path.segments.last() else { return declared };
        let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments else {
            return declared;
        };
        arguments
            .args
            .iter()
            .filter_map(|argument| {
                let text = crate::model::text(argument);
                names.iter().position(|name| *name == text).map(|at| declared[at].clone())
            })
            .collect()
    }

    fn needs_struct(&self) -> TokenStream {
        let needs = self.needs();
        let p = &self.private;
        let fields = self.layer.inputs().map(|(param, input)| {
            let ident = &param.ident;
            let ty = match input.form {
                Form::List => quote!(::std::vec::Vec<::core::primitive::bool>),
                Form::One | Form::Optional => quote!(::core::primitive::bool),
            };
            quote!(pub #ident: #ty)
        });
        let asked = self.layer.inputs().enumerate().map(|(group, (param, input))| {
            let ident = &param.ident;
            match input.form {
                Form::List => quote!(#ident: needs.list(#group)),
                Form::One | Form::Optional => quote!(#ident: needs.one(#group)),
            }
        });
        quote! {
            /// Which tensor inputs want a gradient.
            pub struct #needs { #(#fields),* }

            #[automatically_derived]
            impl #p::Needs for #needs {
                #[allow(unused_variables)]
                fn of(needs: &dyn #p::NeedsGrad) -> Self {
                    Self { #(#asked),* }
                }
            }
        }
    }

    /// Whether something may ask which inputs want a gradient: in the block, or where a context is
    /// given to.
    fn asks_needs(&self) -> bool {
        let layer = self.layer;
        let contexts = [
            layer.forward.as_ref().map(|f| (&f.context, &f.function.body)),
            layer.backward.as_ref().map(|f| (&f.context, &f.function.body)),
            // Not there; but what is told of it shall be told once.
            layer.jvp.as_ref().map(|f| (&f.context, &f.function.body)),
        ];
        contexts.into_iter().flatten().any(|(context, body)| {
            let body = body.stream();
            mentions(&body, "needs_input_grad")
                || context.as_ref().is_some_and(|context| escapes(&body, context))
        })
    }

    fn layer_impl(&self) -> TokenStream {
        let p = &self.private;
        let (generics, _, clause) = self.layer.generics.split_for_impl();
        let (op, key, needs) = (self.op(), self.key(), self.needs());
        let unit = || quote!(());
        let saved = match &self.layer.saved {
            Some(saved) if unsaveable(saved).is_empty() => saved.to_token_stream(),
            _ => unit(),
        };
        let checked = typecheck::savable(self);
        let attrs = self.layer.state.as_ref().map_or_else(unit, ToTokens::to_token_stream);
        let info = self.info();
        let needs = match self.asks_needs() {
            true => needs.into_token_stream(),
            false => unit(),
        };
        let pull = self.pull();
        let push = expand_jvp::push(self);
        let proofs = typecheck::declared(self);
        let (raw, context) = (local("raw"), local("context"));
        quote! {
            #[automatically_derived]
            #[allow(deprecated)]
            impl #generics #p::Layer<#key> for #op #clause {
                type Saved = #saved;
                type Checked = #checked;
                type Attrs = #attrs;
                type Needs = #needs;
                const INFO: &'static ::core::primitive::str = #info;
                fn pull(#raw: &#p::RawBackward<'_>, #context: &#p::BackwardContext<'_, Self>) {
                    #proofs
                    #pull
                }
                #push
            }
        }
    }

    /// What is known of the op, in the line that the library reads.
    fn info(&self) -> String {
        let mut line = plain_name(&self.layer.name);
        for (param, input) in self.layer.inputs() {
            let stopped = if input.stop_gradient { "~" } else { "" };
            line = format!("{line} {stopped}{}", plain_name(&param.ident));
        }
        let params = self.layer.backward.iter().flat_map(|backward| &backward.params);
        let bare = params
            .filter(|param| is_bare_gradient(&param.ty))
            .map(|param| param.name.as_ref().map_or_else(|| "_".to_owned(), plain_name));
        let bare = bare.collect::<Vec<_>>().join(" ");
        let once = self.args.once_differentiable.map_or("", |_| "| once");
        format!("{line} | {bare} {once}").trim_end_matches([' ', '|']).to_owned()
    }

    /// The body of `pull`: gradients are lent to backward, and what it returns is handed on.
    fn pull(&self) -> TokenStream {
        let p = &self.private;
        let Some(backward) =
            self.layer.backward.as_ref().filter(|_| matches!(self.mode, Mode::Full))
        else {
            let (raw, context) = (local("raw"), local("context"));
            return quote!(let _ = (#raw, #context););
        };
        let raw = local("raw");
        let (context, returned) = (local("context"), local("returned"));
        let outputs = self.layer.outputs();
        let held: Vec<_> = (0..outputs.len()).map(|i| local(&format!("gradient{i}"))).collect();
        let takes =
            outputs.iter().zip(&held).enumerate().map(|(group, ((ty, _, tensor), held))| {
                let ty = anonymous(ty);
                let span = whole_span(&ty);
                let known = self.known(tensor, span);
                let here = here(span);
                let (held, raw) = (at(held, here), at(&raw, here));
                quote_spanned!(here=> let #held = #known.gradient::<#ty>(#raw, #group);)
            });
        let lends = backward.params.iter().zip(&held).map(|(param, held)| {
            let here = here(whole_span(&param.ty));
            let held = at(held, here);
            quote_spanned!(here=> #held.lend())
        });
        let call = &backward.function.sig.ident;
        let lent = context_argument(&quote!(#context), &backward.function);
        let result = backward.fallible.then(|| {
            let span = output_span(&backward.function.sig.output);
            let here = here(span);
            let (raw, returned) = (at(&raw, here), at(&returned, here));
            let some = quote!(::core::option::Option::Some);
            quote_spanned!(here=> let #some(#returned) = #raw.user(#returned) else { return };)
        });
        let gives = self.gives(&returned);
        quote! {
            #[allow(unused_imports)]
            use #p::Unknown as _;
            #(#takes)*
            let #returned = Self::#call(#lent, #(#lends),*);
            #result
            #gives
        }
    }

    fn gives(&self, returned: &Ident) -> TokenStream {
        let Some(backward) = &self.layer.backward else { return TokenStream::new() };
        let inputs: Vec<(usize, &Param, &TensorInput)> = self
            .layer
            .inputs()
            .enumerate()
            .filter(|(_, (_, input))| !input.stop_gradient)
            .map(|(group, (param, input))| (group, param, input))
            .collect();
        let raw = local("raw");
        let give = |group: usize, input: &TensorInput, span: Span, value: TokenStream| {
            let (known, of) = (self.known(&input.tensor, span), gradient_of(input));
            let here = here(span);
            let raw = at(&raw, here);
            quote_spanned!(here=> #known.give::<#of, _>(#raw, #group, #value);)
        };
        match &backward.returns {
            Returns::ByName(ty) => inputs
                .iter()
                .map(|(group, param, input)| {
                    let field = &param.ident;
                    let span = whole_span(ty);
                    let returned = at(returned, span);
                    give(*group, input, span, quote_spanned!(here(span)=> #returned.#field))
                })
                .collect(),
            Returns::Tuple(_, types) => inputs
                .iter()
                .zip(types)
                .enumerate()
                .map(|(position, ((group, _, input), ty))| {
                    let position = syn::Index::from(position);
                    let span = whole_span(ty);
                    let returned = at(returned, span);
                    give(*group, input, span, quote_spanned!(here(span)=> #returned.#position))
                })
                .collect(),
            Returns::One(ty) => match inputs.as_slice() {
                [(group, _, input)] => {
                    let returned = at(returned, whole_span(ty));
                    give(*group, input, whole_span(ty), quote!(#returned))
                }
                many => {
                    let of = many.iter().map(|(_, _, input)| gradient_of(input));
                    let groups = many.iter().map(|(group, _, _)| group);
                    let here = here(whole_span(ty));
                    let (raw, returned) = (at(&raw, here), at(returned, here));
                    quote_spanned! {here=>
                        #raw.give_all::<(#(#of,)*), _>(#returned, &[#(#groups),*]);
                    }
                }
            },
            Returns::Nothing => TokenStream::new(),
        }
    }

    /// `Grads` with the parameters' names as fields.
    fn grads_struct(&self) -> Option<TokenStream> {
        let backward = self.layer.backward.as_ref()?;
        let Returns::ByName(_) = &backward.returns else { return None };
        let inputs = self.layer.differentiable();
        let names: Vec<_> = inputs.iter().map(|(param, _)| &param.ident).collect();
        if self.literal() {
            let types: Vec<_> = (0..names.len()).map(|i| format_ident!("G{i}")).collect();
            return Some(quote! {
                /// What backward returns, by the names of the inputs.
                struct Grads<#(#types),*> { #(#names: #types),* }
            });
        }
        let types = inputs.iter().map(|(_, input)| concrete(input));
        let (generics, clause) = (&self.layer.generics, &self.layer.generics.where_clause);
        Some(quote! {
            /// What backward returns, by the names of the inputs.
            struct Grads #generics #clause { #(#names: #types),* }
        })
    }

    /// Whether backward builds `Grads` itself: then its fields have the types that stand there.
    fn literal(&self) -> bool {
        self.layer
            .backward
            .as_ref()
            .is_some_and(|backward| has_literal(backward.function.body.stream()))
    }

    fn grads_type(&self, grads: &Type) -> TokenStream {
        let p = &self.private;
        let span = whole_span(grads);
        if !self.literal() {
            let (_, arguments, _) = self.layer.generics.split_for_impl();
            return quote_spanned!(span=> Grads #arguments);
        }
        let grads = grads.to_token_stream();
        let bounds = self.layer.differentiable().into_iter().map(|(param, input)| {
            let of = gradient_of(input);
            match self.mode {
                Mode::Full => {
                    let name = builder::argument(self.layer, &param.ident);
                    quote_spanned!(span=> impl #p::NamedGrad<#name, #of>)
                }
                // The names may be what is wrong.
                Mode::Fallback(_) => quote_spanned!(span=> impl #p::GradFor<#of>),
            }
        });
        quote_spanned!(span=> #grads<#(#bounds),*>)
    }

    /// `apply` and `try_apply`.
    fn apply(&self) -> TokenStream {
        let meant = fallback::meant_forward(self.layer);
        let Some(forward) = self.layer.forward.as_ref().or(meant.as_ref()) else {
            return fallback::guessed_apply(self);
        };
        let p = &self.private;
        let (generics, _, clause) = self.layer.generics.split_for_impl();
        let op = self.op();
        let vis = &forward.function.vis;
        let attrs: Vec<_> = forward.function.attrs.iter().filter(|attr| survives(attr)).collect();
        let doc = undocumented(&forward.function.attrs, "Runs the op on these inputs.");
        let try_doc = TRY_DOC;
        let own = &forward.function.sig.generics;
        let own_clause = &own.where_clause;
        let turbofish = turbofish(own);
        let params = forward.params.iter().map(|param| {
            let (ident, ty) = (&param.ident, &param.ty);
            quote!(#ident: #ty)
        });
        let params: Vec<_> = params.collect();
        let names: Vec<_> = forward.params.iter().map(|param| &param.ident).collect();
        let output = output_type(forward);
        let body = match &self.mode {
            Mode::Full => self.try_apply_body(forward),
            Mode::Fallback(told) => quote! {{
                let _ = (#(&#names,)*);
                #told
            }},
        };
        quote! {
            #[allow(deprecated)]
            impl #generics #op #clause {
                #doc #(#attrs)*
                #[track_caller]
                #[inline]
                #vis fn apply #own (#(#params),*) -> #output #own_clause {
                    #p::expect(Self::try_apply #turbofish (#(#names),*))
                }

                #[doc = #try_doc]
                #[track_caller]
                #vis fn try_apply #own (#(#params),*) -> #p::Result<#output> #own_clause
                #body
            }
        }
    }

    fn try_apply_body(&self, forward: &Forward) -> TokenStream {
        let p = &self.private;
        let key = self.key();
        let inputs = forward.inputs().map(|(param, input)| {
            let ident = &param.ident;
            let first = first_span(&param.ty);
            let function = if input.stop_gradient { "constant" } else { "input" };
            let function = Ident::new(function, first);
            let (known, ident) = (self.known(&input.tensor, first), at(ident, first));
            quote_spanned!(first=> #known.#function(&#ident))
        });
        let (array, context) = (local("inputs"), local("context"));
        let function = &forward.function.sig.ident;
        let turbofish = turbofish(&forward.function.sig.generics);
        let names = forward.params.iter().map(|param| &param.ident);
        let refuse =
            self.layer.backward.is_none().then(|| quote!(#p::without_gradient(&#context.state)?;));
        let proofs = typecheck::plain_inputs(self, forward);
        let checks = typecheck::checked_when_running(self, forward);
        let finish = if forward.fallible { "finish_fallible" } else { "finish" };
        let lent = context_argument(&quote!(&mut #context), &forward.function);
        let returned = local("returned");
        let end = match forward.outputs.parts.as_slice() {
            // The only output is shown to the visitor as it is.
            [Output { ty, kind: OutputKind::Tensor { tensor, .. } }] if !forward.outputs.tuple => {
                let span = whole_span(ty);
                let (known, finish) = (self.known(tensor, span), Ident::new(finish, span));
                quote_spanned!(here(span)=> #known.#finish(&mut #context.state, #returned))
            }
            _ => {
                let (out, visitor) = (local("out"), local("visitor"));
                let visits = self.visits(forward, &out, &visitor);
                let finish = Ident::new(finish, Span::mixed_site());
                quote! {
                    #p::#finish(&mut #context.state, #returned, |#out, #visitor| { #visits })
                }
            }
        };
        quote! {{
            #proofs
            #checks
            #[allow(unused_imports)]
            use #p::Unknown as _;
            let #array: &[&dyn #p::TensorInput] = &[#(#inputs),*];
            let mut #context = #p::start::<Self, #key>(#array);
            #refuse
            let #returned = Self::#function #turbofish (#lent, #(#names),*);
            #end
        }}
    }

    /// Shows the visitor each tensor output, and proves that the others are none.
    fn visits(&self, forward: &Forward, out: &Ident, visitor: &Ident) -> TokenStream {
        let tuple = forward.outputs.tuple;
        forward
            .outputs
            .parts
            .iter()
            .enumerate()
            .map(|(position, output)| {
                let position = syn::Index::from(position);
                let span = whole_span(&output.ty);
                let here = here(span);
                let (out, visitor) = (at(out, here), at(visitor, here));
                let part = match tuple {
                    true => quote_spanned!(here=> #out.#position),
                    false => quote_spanned!(here=> *#out),
                };
                match output.kind {
                    OutputKind::Tensor { ref tensor, .. } => {
                        let known = self.known(tensor, span);
                        quote_spanned!(here=> #known.output(#visitor, &mut #part);)
                    }
                    OutputKind::Plain => {
                        let (p, proof) = (&self.private, typecheck::plain(self, &part, &output.ty));
                        quote! {
                            #proof
                            #[allow(unused_imports)]
                            use #p::NoTensors as _;
                            #p::PlainOutput(&#part).show(#visitor);
                        }
                    }
                }
            })
            .collect()
    }
}

/// What is written of `try_apply`.
pub(crate) const TRY_DOC: &str = "As `apply`, with misuse of the op as an error instead of a \
    panic.\n\n# Errors\n\nIf a context call was against its rules, or an input against the op's.";

/// What expansions call the library's insides.
pub(crate) fn private_name() -> TokenStream {
    let name = Ident::new("__autograd", Span::call_site());
    quote!(#name)
}

/// The macro's own names at a place of the user's.
pub(crate) fn here(place: Span) -> Span {
    Span::mixed_site().located_at(place)
}

/// The context as it is given to a function: another type of its name is shown where it stands.
fn context_argument(context: &TokenStream, function: &Function) -> TokenStream {
    match function.sig.inputs.first() {
        Some(syn::FnArg::Typed(param)) => located(context.clone(), here(whole_span(&param.ty))),
        _ => context.clone(),
    }
}

/// A local at the place where an error is to be shown.
pub(crate) fn at(local: &Ident, span: Span) -> Ident {
    let mut local = local.clone();
    local.set_span(local.span().located_at(span));
    local
}

/// Tokens at one place, with the names as they were.
pub(crate) fn respanned(tokens: TokenStream, span: Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|mut tree| {
            tree.set_span(span);
            tree
        })
        .collect()
}

/// The same tokens, shown at another place.
fn located(tokens: TokenStream, place: Span) -> TokenStream {
    let locate = |mut tree: TokenTree| {
        tree.set_span(tree.span().located_at(place));
        tree
    };
    tokens.into_iter().map(locate).collect()
}

/// The type that `apply` returns.
pub(crate) fn output_type(forward: &Forward) -> TokenStream {
    match &forward.function.sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    }
}

/// What a gradient is matched with: the tensor type of the input, a slice of it for a list.
fn gradient_of(input: &TensorInput) -> TokenStream {
    let tensor = &input.tensor;
    match input.form {
        Form::List => quote!([#tensor]),
        Form::One | Form::Optional => quote!(#tensor),
    }
}

pub(crate) fn concrete(input: &TensorInput) -> TokenStream {
    let tensor = &input.tensor;
    match input.form {
        Form::List => quote!(::std::vec::Vec<#tensor>),
        Form::One | Form::Optional => quote!(#tensor),
    }
}

fn has_literal(tokens: TokenStream) -> bool {
    let mut before = false;
    for tree in tokens {
        match tree {
            TokenTree::Group(group) => {
                if before && group.delimiter() == proc_macro2::Delimiter::Brace {
                    return true;
                }
                if has_literal(group.stream()) {
                    return true;
                }
                before = false;
            }
            TokenTree::Ident(ident) => before = ident == "Grads",
            _ => before = false,
        }
    }
    false
}

/// Puts tokens in place of a name.
pub(crate) fn replace_ident(tokens: TokenStream, name: &str, with: &TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|tree| match tree {
            TokenTree::Ident(ident) if ident == name => with.clone(),
            TokenTree::Group(group) => {
                let inner = replace_ident(group.stream(), name, with);
                let mut new = proc_macro2::Group::new(group.delimiter(), inner);
                new.set_span(group.span());
                TokenTree::Group(new).into()
            }
            tree => tree.into(),
        })
        .collect()
}

/// A type with `'_` in place of its lifetimes.
fn anonymous(ty: &impl ToTokens) -> TokenStream {
    let mut tokens = TokenStream::new();
    let mut trees = ty.to_token_stream().into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Punct(punct) if punct.as_char() == '\'' => {
                tokens.extend([TokenTree::Punct(punct)]);
                if let Some(TokenTree::Ident(name)) = trees.next() {
                    let name = if name == "static" { name } else { Ident::new("_", name.span()) };
                    tokens.extend([TokenTree::Ident(name)]);
                }
            }
            TokenTree::Group(group) => {
                let mut new =
                    proc_macro2::Group::new(group.delimiter(), anonymous(&group.stream()));
                new.set_span(group.span());
                tokens.extend([TokenTree::Group(new)]);
            }
            tree => tokens.extend([tree]),
        }
    }
    tokens
}

/// `::<F, N>`, or nothing.
pub(crate) fn turbofish(generics: &Generics) -> Option<TokenStream> {
    let names: Vec<_> = generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.ident),
            GenericParam::Const(param) => Some(&param.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    (!names.is_empty()).then(|| quote!(::<#(#names),*>))
}

/// A type that mentions all parameters and is `Send` and `Sync` whatever they are.
pub(crate) fn phantom(generics: &Generics) -> TokenStream {
    let parts = generics.params.iter().filter_map(|param| match param {
        GenericParam::Type(param) => {
            let ident = &param.ident;
            Some(quote!(*const #ident))
        }
        GenericParam::Lifetime(param) => {
            let lifetime = &param.lifetime;
            Some(quote!(& #lifetime ()))
        }
        GenericParam::Const(_) => None,
    });
    quote!(fn() -> (#(#parts,)*))
}

/// A doc comment where the user wrote none.
fn undocumented(attrs: &[Attribute], doc: &str) -> Option<TokenStream> {
    let documented = attrs.iter().any(|attr| attr.path().is_ident("doc"));
    (!documented).then(|| quote!(#[doc = #doc]))
}

fn is_cfg(attr: &Attribute) -> bool {
    attr.path().is_ident("cfg")
}

fn is_lint(attr: &Attribute) -> bool {
    ["allow", "warn", "deny", "forbid", "expect"].iter().any(|name| attr.path().is_ident(name))
}

fn is_expect(attr: &Attribute) -> bool {
    attr.path().is_ident("expect")
}

/// Attributes of forward that say something of `apply` too.
fn survives(attr: &Attribute) -> bool {
    ["doc", "must_use", "deprecated"].iter().any(|name| attr.path().is_ident(name))
}

pub(crate) fn first_span(tokens: &impl ToTokens) -> Span {
    crate::errors::ends(tokens.to_token_stream()).0
}

/// The span over all of some tokens, where the compiler can join spans; else the first.
pub(crate) fn whole_span(tokens: &impl ToTokens) -> Span {
    let (first, last) = crate::errors::ends(tokens.to_token_stream());
    first.join(last).unwrap_or(first)
}

pub(crate) fn output_span(output: &ReturnType) -> Span {
    match output {
        ReturnType::Default => Span::call_site(),
        ReturnType::Type(_, ty) => whole_span(ty),
    }
}

/// Whether a parameter has a default.
pub(crate) fn default_of(param: &Param) -> Option<&syn::Expr> {
    match &param.kind {
        ParamKind::Plain { default } => default.as_ref(),
        ParamKind::Tensor(_) => None,
    }
}
