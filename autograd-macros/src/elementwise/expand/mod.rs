//! From the model to code: the user's block, the struct, the two formulas, `apply`, the builder.

mod apply;
mod formula;
mod given;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{GenericParam, Signature, Type};

use crate::args::Args;
use crate::attributes::is;
use crate::elementwise::model::Op;
use crate::expand::with_arguments;
use crate::expansion::Mode;
use crate::fallback;
use crate::generics::generated;
use crate::library::{import, private_path};
use crate::model::Function;
use crate::tokens::{is_group, is_one_of, is_punct, located, regroup, rewritten};
use given::{Given, given_name};

pub(crate) struct Expansion<'a> {
    pub(crate) op: &'a Op,
    pub(crate) args: &'a Args,
    pub(crate) mode: Mode,
}

impl Expansion<'_> {
    pub(crate) fn tokens(&self) -> TokenStream {
        let structure = self.op.structure(&self.vis(), "An elementwise op.");
        let block = self.op.written(&self.mode, |function| self.user_function(function));
        let cfg = self.op.cfg();
        let import = import(self.args.krate.as_ref());
        let inside = match (&self.op.forward, &self.mode) {
            (Some(forward), Mode::Full) => {
                let formulas = self.formulas(forward);
                let calls = self.calls(forward);
                quote!(#formulas #calls)
            }
            (Some(forward), Mode::Refused) => self.permissive_calls(forward),
            (_, Mode::Reported(reported)) => {
                let (generics, op) = (&self.op.generics, &self.op.self_ty);
                fallback::constants(&fallback::CALLS, generics, op, reported)
            }
            (None, _) => TokenStream::new(),
        };
        let test = self.test();
        // Only this block sees the struct of the gradients.
        let block = match self.grads() {
            None => block,
            Some(grads) => quote! {
                #(#cfg)*
                const _: () = {
                    #grads
                    #block
                };
            },
        };
        quote! {
            #structure
            #block
            #(#cfg)*
            #[cfg_attr(clippy, allow(clippy::all, clippy::pedantic, clippy::nursery))]
            const _: () = {
                #import
                #inside
            };
            #test
        }
    }

    fn vis(&self) -> TokenStream {
        let vis = self.op.forward.as_ref().map(|forward| &forward.function.vis);
        vis.map_or_else(TokenStream::new, ToTokens::to_token_stream)
    }

    /// `Grads`, if backward returns it: a field for each differentiable input.
    fn grads(&self) -> Option<TokenStream> {
        let forward = self.op.forward.as_ref()?;
        self.op.backward.as_ref().filter(|of| of.returned.by_name().is_some())?;
        if let Mode::Reported(reported) = &self.mode {
            return Some(fallback::grads(reported));
        }
        let path = private_path(self.args.krate.as_ref());
        let fields = forward.differentiable().into_iter().map(|param| &param.ident);
        let grads = Ident::new("Grads", Span::call_site());
        Some(quote! {
            pub struct #grads<L: #path::elementwise::Lane> {
                #(pub #fields: #path::elementwise::Real<L>),*
            }
        })
    }

    /// The user's function: always inlined into the loops, and made generic if the user left that out.
    fn user_function(&self, function: &Function) -> TokenStream {
        if let Mode::Reported(reported) = &self.mode {
            return fallback::with_error_types(reported, &self.with_lane(function));
        }
        let Function { vis, sig, mut body, .. } = self.completed(function);
        if let Some(proven) = self.conditions(body.stream()) {
            body = regroup(&body, proven);
        }
        let (doc, attrs) = self.op.own_attributes(function);
        let inline =
            (!attrs.iter().any(|attr| is(attr, &["inline"]))).then(|| quote!(#[inline(always)]));
        // The calls are in the formulas' expansion, which is absent after an error.
        let unused = match self.mode {
            Mode::Full => quote! {
                #[cfg_attr(clippy, allow(
                    clippy::inline_always, clippy::too_many_arguments, clippy::needless_pass_by_value
                ))]
            },
            _ => quote!(#[allow(unused)]),
        };
        quote!(#doc #(#attrs)* #inline #unused #vis #sig #body)
    }

    /// `fn forward(x: Real) -> Real` becomes `fn forward<L: Lane>(x: Real<L>) -> Real<L>`.
    fn completed(&self, function: &Function) -> Function {
        let mut function = self.with_lane(function);
        let returns_grads =
            self.op.backward.as_ref().is_some_and(|of| of.returned.by_name().is_some());
        if returns_grads && function.sig.ident == "backward" {
            let lane = function.sig.generics.type_params().next().map(|param| &param.ident);
            if let Some(lane) = lane
                && let Some(typed) = with_arguments(function.body.stream(), &quote!(<#lane>))
            {
                function.body = regroup(&function.body, typed);
            }
            if let (Some(lane), syn::ReturnType::Type(_, ty)) = (lane, &mut function.sig.output)
                && let Type::Path(path) = &mut **ty
                && let Some(segment) = path.path.segments.last_mut()
                && segment.arguments.is_none()
            {
                segment.arguments = syn::PathArguments::AngleBracketed(syn::parse_quote!(<#lane>));
            }
        }
        function
    }

    fn with_lane(&self, function: &Function) -> Function {
        let mut function = function.clone();
        let lane = self.lane();
        let sig = completed(function.sig.to_token_stream(), &lane);
        let Some(sig) = sig.filter(|_| function.sig.generics.type_params().next().is_none()) else {
            return function;
        };
        let path = private_path(self.args.krate.as_ref());
        if let Ok(sig) = syn::parse2::<Signature>(sig) {
            function.sig = sig;
            let parameter: GenericParam = syn::parse_quote!(#lane: #path::elementwise::Lane);
            function.sig.generics.params.push(parameter);
        }
        if let Some(body) = completed(function.body.stream(), &lane) {
            function.body = regroup(&function.body, body);
        }
        function
    }

    /// Adds a proof that the condition is not a mask to `if x.gt(0.0) {`.
    fn conditions(&self, body: TokenStream) -> Option<TokenStream> {
        rewritten(body, &mut |trees, at| {
            let word = matches!(&trees[at], TokenTree::Ident(word) if word == "if");
            let after =
                trees[at..].iter().take_while(|tree| !is_group(Some(tree), Delimiter::Brace));
            let end = at + word.then(|| after.count())?;
            let [word, compared @ .., dot, TokenTree::Ident(name), given] = &trees[at..end] else {
                return None;
            };
            let binds = |tree: &TokenTree| matches!(tree, TokenTree::Ident(word) if word == "let");
            let compares = is_punct(Some(dot), '.')
                && is_one_of(name, "lt le gt ge eq ne")
                && is_group(Some(given), Delimiter::Parenthesis)
                && end < trees.len()
                && !compared.iter().any(binds);
            compares.then(|| {
                let path = located(private_path(self.args.krate.as_ref()), word.span());
                let call = quote_spanned!(word.span()=> #path::elementwise::branch);
                (quote!(#word #call(#(#compared)* #dot #name #given)), end - at)
            })
        })
    }

    fn lane(&self) -> Ident {
        self.op.parameter("L")
    }

    fn struct_name(&self, which: &str) -> Ident {
        generated(&self.op.name, which)
    }
}

/// Writes `Real<L>` for `Real`, and `Mask<L>` for `Mask`. `None` if nothing is replaced.
fn completed(tokens: TokenStream, lane: &Ident) -> Option<TokenStream> {
    rewritten(tokens, &mut |trees, at| {
        let TokenTree::Ident(name) = &trees[at] else { return None };
        let next = |further: usize, c: char| is_punct(trees.get(at + further), c);
        let bare = !next(1, '<') && (!next(1, ':') || !next(2, ':'));
        (bare && (name == "Real" || name == "Mask")).then(|| (quote!(#name<#lane>), 1))
    })
}
