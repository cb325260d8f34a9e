//! From the model to code: the user's block, the struct, one trait impl, `apply`, the builder.

mod apply;
mod pull;
mod tokens;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Attribute, GenericParam, ReturnType, Type, Visibility};

use crate::args::Args;
use crate::builder;
use crate::check::{is_bare_gradient, kept_attrs, unsaveable};
use crate::context_use::escapes;
use crate::library::{Private, import};
use crate::model::{
    Form, Function, Item, Layer, Returns, bare, local, mentions, parameter_name, plain_name,
};
use crate::parse::is_lint;
use crate::piece::{Piece, piece, put};
use crate::{expand_jvp, fallback, typecheck};
use apply::context_argument;
use tokens::{is_cfg, is_expect, located, survives, undocumented};

pub(crate) use apply::{TRY_DOC, default_of, output_type};
pub(crate) use pull::concrete;
pub(crate) use tokens::{
    anonymous, at, first_span, generated, here, output_span, phantom, replace_ident, respanned,
    turbofish, whole_span, whole_span_of_path,
};

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
    pub(crate) private: Private,
    pub(crate) mode: Mode,
    /// Whether the op can make a call again, for `AUTOGRAD_VERIFY`.
    pub(crate) verifies: bool,
}

const KEY_DOC: &str = " Names this op among all layers; keeps its private types private.";

impl Expansion<'_> {
    pub(crate) fn tokens(&self) -> TokenStream {
        let block = Piece(|tokens: &mut TokenStream| self.user_block(tokens));
        let structure = Piece(|tokens: &mut TokenStream| self.structure(tokens));
        let asks_needs = self.asks_needs();
        let layer = Piece(|tokens: &mut TokenStream| self.layer_impl(asks_needs, tokens));
        let grads = self.grads_struct();
        let needs = asks_needs.then(|| self.needs_struct());
        let meant = fallback::meant_forward(self.layer);
        let forward = self.layer.forward.as_ref().or(meant.as_ref());
        let by_name = forward.and_then(|forward| builder::expand(self, forward, true));
        let apply = Piece(|tokens: &mut TokenStream| match forward {
            Some(forward) => self.apply(forward, by_name.as_ref(), tokens),
            None => fallback::guessed_apply(self).to_tokens(tokens),
        });
        let names = by_name
            .as_ref()
            .map(|by_name| Piece(|tokens: &mut TokenStream| by_name.put_names(tokens)));
        let builder = by_name
            .as_ref()
            .map(|by_name| Piece(|tokens: &mut TokenStream| by_name.put_builder(tokens)));
        let cfg = self.attributes(is_cfg);
        // One name for the library: a wrong path to it is told once.
        let library = matches!(self.mode, Mode::Full).then(|| {
            let (import, p) = (import(self.args.krate.as_ref()), &self.private);
            piece!(Span::call_site()=> #import #[allow(unused_imports)] use #p::Unknown as _;)
        });
        let silent = piece! {Span::call_site()=>
            #[allow(
                non_camel_case_types, non_snake_case, dead_code, private_interfaces, clippy::all,
                clippy::pedantic, clippy::nursery
            )]
        };
        let (doc, key) = (KEY_DOC, self.key());
        let key = piece!(Span::call_site()=> #[doc = #doc] struct #key;);
        let Some(grads) = grads else {
            return quote! {
                #structure
                #block
                #(#cfg)*
                #silent
                const _: () = { #library #key #needs #names #layer #apply #builder };
            };
        };
        // `Grads` is seen by the user's functions, so they stand beside it; and outside of what is
        // silent, so that they are warned about as any others.
        let names = names
            .map(|names| quote!(#[allow(non_camel_case_types, non_snake_case, dead_code)] #names));
        quote! {
            #structure
            #(#cfg)*
            const _: () = {
                #library
                #names
                #silent
                #grads
                #block
                #silent
                const _: () = { #key #needs #layer #apply #builder };
            };
        }
    }

    /// The path of what expansions call, placed where an error is to be shown.
    pub(crate) fn private_at(&self, span: Span) -> Private {
        self.private.at(span)
    }

    /// What finds the bounds of a type, or none where it is no tensor or no output.
    pub(crate) fn known<T: ToTokens>(&self, ty: T, span: Span) -> impl ToTokens + use<T> {
        let p = self.private_at(span);
        piece!(span=> #p::Known::<#ty>::new())
    }

    pub(crate) fn op(&self) -> &Type {
        &self.layer.self_ty
    }

    pub(crate) fn key(&self) -> Ident {
        generated(&self.layer.name, "Key")
    }

    fn needs(&self) -> Ident {
        generated(&self.layer.name, "NeedsGrad")
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
    fn user_block(&self, tokens: &mut TokenStream) {
        let (generics, _, clause) = self.layer.generics.split_for_impl();
        let op = self.op();
        let attrs = self.attributes(|attr| is_cfg(attr) || is_lint(attr));
        let items = self.layer.items.iter().map(|item| {
            Piece(move |tokens: &mut TokenStream| match item {
                Item::Other(other) => other.to_tokens(tokens),
                Item::Function(function) => self.user_function(function, tokens),
            })
        });
        let items: Vec<_> = items.collect();
        // `Grads` is nobody else's.
        let private = matches!(
            self.layer.backward.as_ref().map(|backward| &backward.returns),
            Some(Returns::ByName(_))
        );
        let private = private
            .then_some(piece!(Span::call_site()=> , private_interfaces, clippy::type_complexity));
        put! {tokens, Span::call_site()=>
            #(#attrs)*
            #[allow(elided_lifetimes_in_paths #private)]
            impl #generics #op #clause {
                #(#items)*
            }
        }
    }

    fn user_function(&self, function: &Function, tokens: &mut TokenStream) {
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
            put!(tokens, Span::call_site()=> #doc #(#attrs)* #[allow(unused)] #vis #sig #body);
            return;
        }
        put!(tokens, Span::call_site()=> #doc #(#attrs)* #vis #sig #body);
    }

    fn structure(&self, tokens: &mut TokenStream) {
        let attrs = self.attributes(|attr| !is_expect(attr));
        let name = &self.layer.name;
        // A struct of this name that stands here already is told at the name.
        let place = name.span();
        let vis = located(self.forward_vis().to_token_stream(), place);
        let keyword = Ident::new("struct", Span::call_site().located_at(place));
        let doc = undocumented(&self.layer.attrs, "A differentiable op.");
        let params = &self.layer.generics.params;
        if params.is_empty() {
            let end = piece!(Span::call_site().located_at(place)=> ;);
            put! {tokens, Span::call_site()=>
                #doc #(#attrs)*
                #[allow(dead_code, missing_copy_implementations)]
                #vis #keyword #name #end
            }
            return;
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
        put! {tokens, Span::call_site()=>
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
        let may_ask = layer.glance.may_mention("needs_input_grad");
        contexts.into_iter().flatten().any(|(context, body)| {
            let may_escape = |context| layer.glance.uses(context).otherwise;
            if !may_ask && !context.as_ref().is_some_and(may_escape) {
                return false;
            }
            let body = body.stream();
            mentions(&body, "needs_input_grad")
                || context.as_ref().is_some_and(|context| escapes(&body, context))
        })
    }

    fn layer_impl(&self, asks_needs: bool, tokens: &mut TokenStream) {
        let p = &self.private;
        let (generics, _, clause) = self.layer.generics.split_for_impl();
        let (op, key, needs) = (self.op(), self.key(), self.needs());
        let unit = piece!(Span::call_site()=> ());
        let saved: &dyn ToTokens = match &self.layer.saved {
            Some(saved) if unsaveable(saved).is_empty() => saved,
            _ => &unit,
        };
        let checked = Piece(|tokens: &mut TokenStream| typecheck::savable(self, tokens));
        let attrs: &dyn ToTokens = match kept_attrs(self.layer) {
            Some(attrs) => attrs,
            None => &unit,
        };
        let info = self.info();
        let needs: &dyn ToTokens = if asks_needs { &needs } else { &unit };
        let pull = Piece(|tokens: &mut TokenStream| self.pull(tokens));
        let push = expand_jvp::push(self);
        let proofs = Piece(|tokens: &mut TokenStream| typecheck::declared(self, tokens));
        let (raw, context) = (local("raw"), local("context"));
        // No user shall hear of the library's own ops where a type is none.
        // What is told to stand behind `impl` shall be shown there.
        let keyword = Ident::new("impl", Span::call_site().located_at(self.layer.place));
        let own = self.args.krate.as_ref().is_some_and(|path| path.is_ident("crate"));
        let unnamed = own.then(|| quote!(#[diagnostic::do_not_recommend]));
        put! {tokens, Span::call_site()=>
            #unnamed
            #[automatically_derived]
            #[allow(deprecated)]
            #keyword #generics #p::Layer<#key> for #op #clause {
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
}
