//! From the model to code: the user's block, the struct, one trait impl, `apply`, the builder.

mod apply;
pub(crate) mod elements;
mod proofs;
mod rules;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{FnArg, ReturnType, Type};

use crate::builder;
use crate::check::absent;
use crate::check::calls::Uses;
use crate::check::types::{is_bare_gradient, unkeepable, unsaveable};
use crate::expansion::{Expansion, Mode};
use crate::fallback;
use crate::library::{import, private};
use crate::model::{Block, Form, Function};
use crate::parse::pattern_name;
use crate::tokens::{local, plain_name, regroup, replace_ident};

pub(crate) use apply::documented_arguments;
pub(crate) use rules::with_arguments;

impl Expansion<'_> {
    pub(crate) fn tokens(&self) -> TokenStream {
        let block = self.layer.written(&self.mode, |function| self.user_function(function));
        let vis = self.forward_vis();
        let is_formula = self.layer.is_formula;
        let doc = if is_formula { "An elementwise op." } else { "A differentiable op." };
        let structure = self.layer.structure(&vis, doc);
        let key = self.key();
        let grads = self.grads_struct();
        let full = matches!(self.mode, Mode::Full);
        let refused = matches!(self.mode, Mode::Refused);
        let by_name = (!refused).then(|| builder::expand(self)).flatten();
        let (names, builder) = by_name.as_ref().map(|of| (&of.names, &of.builder)).unzip();
        let apply = match &self.mode {
            Mode::Full => self.apply(by_name.as_ref()),
            Mode::Refused => fallback::permissive_calls(self),
            Mode::Reported(reported) => {
                let Block { generics, self_ty, .. } = &self.layer.block;
                let constants = fallback::constants(&fallback::CALLS, generics, self_ty, reported);
                let apply = self.apply(by_name.as_ref());
                fallback::calls(&constants, &quote!(#names #apply #builder))
            }
        };
        let (names, builder) = (names.filter(|_| full), builder.filter(|_| full));
        let cfg = self.layer.cfg();
        let library = import(self.args.krate.as_ref());
        let types = self.named.map(|named| &named.types);
        let library = quote!(#library #types);
        let own: Vec<TokenStream> = match is_formula {
            true if full => self.formulas(),
            true => Vec::new(),
            false => {
                let may_query_needs = self.may_query_needs();
                let needs = may_query_needs.then(|| self.needs_struct());
                // The key distinguishes this op among all layers, and keeps its private types private.
                let head = quote!(enum #key {} #needs);
                vec![head, self.layer_impl(may_query_needs)]
            }
        };
        let checks = (is_formula && full).then(|| self.formula_checks()).flatten();
        let (check, test) = checks.unzip();
        let exhaustive = (is_formula && full).then(|| self.exhaustive_check()).flatten();
        let (all, all_test) = exhaustive.unzip();
        let params = self.layer.forward.iter().flat_map(|forward| &forward.params);
        let silent = self.layer.silent(params.count());
        let export = if full { self.export() } else { None };
        let generated = quote!(#(#own)* #apply #check #all #builder #export);
        let grads = grads.map(|grads| quote!(#silent #grads));
        if grads.is_none() && !is_formula {
            return quote! {
                #block
                #structure
                #(#cfg)*
                #silent
                const _: () = { #library #names #generated };
                #test
            };
        }
        let editors = self.mode.mentions_editors();
        // The user's functions are beside `Grads` and the import, to see both, and outside the silenced
        // items, so that they get warnings as usual.
        quote! {
            #(#cfg)*
            #editors
            const _: () = {
                #block
                #library
                #names
                #grads
                #silent
                const _: () = { #generated };
            };
            #structure
            #test
            #all_test
        }
    }

    fn user_function(&self, function: &Function) -> TokenStream {
        if self.layer.is_formula {
            return self.formula_function(function);
        }
        let Function { vis, sig, body, .. } = function;
        let mut sig = sig.clone();
        if let Mode::Reported(reported) = &self.mode {
            return fallback::with_error_types(reported, function, self.absent(function));
        }
        let mut typed = None;
        if let Some(grads) = self.layer.backward.as_ref().and_then(|of| of.returns.by_name()) {
            match &mut sig.output {
                ReturnType::Type(_, ty) if sig.ident == "backward" => {
                    let with_types = self.grads_type(grads);
                    let tokens = replace_ident(ty.to_token_stream(), "Grads", &with_types);
                    if let Ok(new) = syn::parse2(tokens) {
                        **ty = new;
                    }
                }
                _ => {
                    let tokens = self.typed_grads(sig.to_token_stream());
                    if let Some(Ok(new)) = tokens.map(syn::parse2) {
                        sig = new;
                    }
                }
            }
            let full = sig.ident == "backward" && matches!(self.mode, Mode::Full);
            let proven = full.then(|| self.with_proofs(&body.stream())).flatten();
            let is_input = |input: &FnArg| {
                matches!(input, FnArg::Typed(param)
                if pattern_name(&param.pat).is_some_and(|name| name == "Grads"))
            };
            let names_input = sig.inputs.iter().any(is_input);
            let body_types = || self.typed_grads(body.stream()).filter(|_| !names_input);
            let tokens = proven.or_else(body_types);
            typed = tokens.map(|tokens| regroup(body, tokens));
        }
        let body = typed.as_ref().unwrap_or(body);
        let (hidden, attrs) = (self.layer.hidden(function), function.own_attributes());
        let refused = matches!(self.mode, Mode::Refused);
        let unused = refused.then(|| quote!(#[allow(unused_variables)]));
        // The body may need a declaration that has a syntax error.
        let absent = refused && !self.layer.broken.is_empty() && function.is_rule();
        let absent = absent.then(|| quote!({ ::core::unimplemented!() }));
        let body = absent.unwrap_or_else(|| body.to_token_stream());
        quote!(#(#attrs)* #hidden #unused #vis #sig #body)
    }

    /// The inputs that the function names and does not get.
    pub(crate) fn absent(&self, function: &Function) -> Vec<Ident> {
        let forward = self.layer.forward.as_ref().filter(|_| function.sig.ident == "backward");
        let absent = forward.map(|forward| absent::inputs(&forward.function, function));
        absent.into_iter().flatten().map(|(name, _)| name).collect()
    }

    fn needs_struct(&self) -> TokenStream {
        let (key, needs) = (self.key(), local("needs"));
        let name = format_ident!("NeedsInputGrad");
        let p = &private();
        let each = self.layer.inputs().enumerate().map(|(group, (param, input))| {
            let ident = &param.ident;
            let (list, one) =
                (quote!(#p::Vec<::core::primitive::bool>), quote!(::core::primitive::bool));
            let (ty, asked) = match input.form {
                Form::List => (list, quote!(list)),
                Form::One | Form::Optional => (one, quote!(one)),
            };
            (quote!(pub #ident: #ty), quote!(#ident: #needs.#asked(#group)))
        });
        let (fields, asked): (Vec<_>, Vec<_>) = each.unzip();
        let names: Vec<_> = self.layer.inputs().map(|(param, _)| &param.ident).collect();
        let debug = debug(None, &name.to_token_stream(), &name.to_string(), &names);
        // Errors show the struct's name. A user's type of that name is not hidden.
        quote! {
            const _: () = {
                /// Which tensor inputs want a gradient.
                pub struct #name { #(#fields),* }

                #debug

                #[automatically_derived]
                impl #p::Needs for #name {
                    fn of(#needs: &dyn #p::NeedsGrad) -> Self {
                        let _ = #needs;
                        Self { #(#asked),* }
                    }
                }

                impl #p::HasNeeds for #key {
                    type Needs = #name;
                }
            };
        }
    }

    /// Whether `needs_input_grad` may be called: in the block, or in a function that gets a context.
    fn may_query_needs(&self) -> bool {
        // `jvp` has no such call, but an error about one must be reported only once.
        let named = |of: &Function| of.trees().mentions("needs_input_grad");
        self.layer.functions().any(named)
            || self.layer.contexts().any(|(context, of)| Uses::new(of.trees(), context).escapes)
    }

    fn layer_impl(&self, may_query_needs: bool) -> TokenStream {
        let p = &private();
        let (generics, _, clause) = self.layer.generics.split_for_impl();
        let (op, key) = (&self.layer.self_ty, self.key());
        let unit = || quote!(());
        let saved = match &self.layer.saved {
            Some(saved) if unsaveable(saved, &self.layer.generics).is_empty() => {
                saved.to_token_stream()
            }
            _ => unit(),
        };
        let checked = proofs::savable(self);
        let keeps = |state: &&Type| unkeepable(state, &self.layer.generics).is_none();
        let attrs = self.layer.state.as_ref().filter(keeps);
        let attrs = attrs.map_or_else(unit, ToTokens::to_token_stream);
        let info = self.info();
        let full = matches!(self.mode, Mode::Full);
        let shapes = self.args.shapes.as_ref().filter(|_| full).map(|_| {
            let shapes = quote!(::core::option::Option::Some(Self::SHAPES));
            quote!(const SHAPES: ::core::option::Option<&'static #p::shapes::Shapes> = #shapes;)
        });
        let needs = match may_query_needs {
            true => quote!(<#key as #p::HasNeeds>::Needs),
            false => unit(),
        };
        let pull = self.pull();
        let push = rules::push(self);
        let proofs = proofs::declared(self);
        let (raw, lent) = (local("raw"), local("lent"));
        let keyword = self.layer.keyword();
        // Keeps the library's own ops out of the compiler's suggestions.
        let own = self.args.krate.as_ref().is_some_and(|path| path.is_ident("crate"));
        let unnamed = own.then(|| quote!(#[diagnostic::do_not_recommend]));
        quote! {
            #unnamed
            #keyword #generics #p::CustomOp<#key> for #op #clause {
                type Saved = #saved;
                type Checked = #checked;
                type Attrs = #attrs;
                type Needs = #needs;
                const INFO: #p::Facts = #info;
                #shapes
                fn pull(#raw: &#p::RawBackward<'_>, #lent: &#p::Lent<'_>) {
                    #proofs
                    #pull
                }
                #push
            }
        }
    }

    fn info(&self) -> TokenStream {
        let name = plain_name(&self.layer.name);
        let inputs: Vec<_> = self.layer.inputs().collect();
        let shown = inputs.iter().map(|(param, input)| {
            let mark = if input.stop_gradient { "~" } else { "" };
            format!("{mark}{}", plain_name(&param.ident))
        });
        let (count, names) = (inputs.len(), shown.collect::<Vec<_>>().join(" "));
        let stopped = (0..count.min(64)).filter(|at| inputs[*at].1.stop_gradient);
        let stopped = stopped.fold(0_u64, |bits, at| bits | 1 << at);
        let params = self.layer.backward.iter().flat_map(|backward| &backward.params);
        let bare = params
            .filter(|param| is_bare_gradient(&param.ty))
            .map(|param| param.name.as_ref().map_or_else(|| "_".to_owned(), plain_name));
        let bare = bare.collect::<Vec<_>>().join(" ");
        let once = self.args.once_differentiable.is_some();
        quote!((#name, #count, #names, #stopped, #bare, #once))
    }
}

/// The impl of `Debug` for a struct of the macro's, under a name that a user knows.
fn debug(
    generics: Option<&TokenStream>,
    ty: &TokenStream,
    shown: &str,
    fields: &[&Ident],
) -> TokenStream {
    let (f, names) = (local("f"), fields.iter().map(|field| plain_name(field)));
    quote! {
        #[automatically_derived]
        impl #generics ::core::fmt::Debug for #ty {
            fn fmt(&self, #f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #f.debug_struct(#shown)#(.field(#names, &self.#fields))*.finish()
            }
        }
    }
}
