//! `apply` and `try_apply`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, LitStr, Meta};

use super::proofs;
use super::rules::context_argument;
use crate::attributes::{is_for_callers, is_for_each_call, undocumented};
use crate::builder::ByName;
use crate::check::types::is_primitive;
use crate::check_arg;
use crate::elementwise;
use crate::expansion::{Expansion, Mode};
use crate::fallback;
use crate::generics::turbofish;
use crate::library::private;
use crate::model::{Form, Forward, Param, ParamKind, float_output};
use crate::shapes::{self, Checks};
use crate::tokens::{at, first_span, here, local, output_span, plain_name, whole_span};

impl Expansion<'_> {
    pub(super) fn apply(&self, by_name: Option<&ByName>) -> TokenStream {
        let Some(forward) = &self.layer.forward else { return TokenStream::new() };
        let try_doc = if self.layer.is_formula { elementwise::TRY_DOC } else { TRY_DOC };
        let body = match (&self.mode, self.layer.is_formula) {
            (Mode::Full, true) => self.formula_body(forward),
            (Mode::Full, false) => self.try_apply_body(forward),
            _ => fallback::nothing(),
        };
        let p = &private();
        let (generics, _, clause) = self.layer.generics.split_for_impl();
        let (op, keyword) = (&self.layer.self_ty, self.layer.keyword());
        let vis = &forward.function.vis;
        let attrs: Vec<_> =
            forward.function.attrs.iter().filter(|attr| is_for_callers(attr)).collect();
        let calls: Vec<_> = attrs.iter().filter(|attr| is_for_each_call(attr)).collect();
        let doc = undocumented(&forward.function.attrs, "Runs the op on these inputs.");
        let documented = forward.params.iter().map(|param| (&param.ident, &param.docs[..]));
        let arguments = documented_arguments(documented);
        let own = &forward.function.sig.generics;
        let own_clause = &own.where_clause;
        let turbofish = turbofish(own);
        let names: Vec<_> = forward.params.iter().map(|param| &param.ident).collect();
        let with = by_name.map(|by_name| &by_name.with);
        let starts: Vec<_> = calls.iter().filter(|_| with.is_some()).collect();
        // An editor's "go to definition" then leads from a call to forward.
        let place = Span::call_site().located_at(forward.function.sig.ident.span());
        let (apply, try_apply) = (Ident::new("apply", place), Ident::new("try_apply", place));
        // An editor renames an input here too. rust-analyzer sets `miri`, which no lint reports as unknown.
        let checks = self.args.checks.iter().flat_map(|check| &check.given);
        let checked = checks.map(|given| &given.name).filter(|name| names.contains(name));
        let checked: Vec<_> = checked.collect();
        let line = self.args.shapes.as_ref().filter(|_| matches!(self.mode, Mode::Full));
        let shapes = line.map(|line| {
            let (doc, table) =
                (format!("The shapes of the tensors: `{line}`."), shapes::table(self.layer, line));
            quote!(#[doc = #doc] #vis const SHAPES: &'static #p::shapes::Shapes = #table;)
        });
        let said = line.map(|line| format!("\n# Shapes\n\n`{line}`"));
        let said = said.map(|said| quote!(#[doc = #said]));
        let functions = |forward: &Forward| {
            let params = forward.params.iter().map(|Param { ident, ty, .. }| quote!(#ident: #ty));
            let (params, output): (Vec<_>, _) = (params.collect(), forward.output());
            quote! {
                #keyword #generics #op #clause {
                    #shapes

                    #doc #(#attrs)*
                    #arguments
                    #said
                    #[track_caller]
                    #[inline]
                    #vis fn #apply #own (#(#params),*) -> #output #own_clause {
                        #(#[cfg(miri)] let _ = &#checked;)*
                        #p::expect(Self::try_apply #turbofish (#(#names),*))
                    }

                    #[doc = #try_doc]
                    #(#calls)*
                    #[track_caller]
                    #vis fn #try_apply #own (#(#params),*) -> #p::Result<#output> #own_clause
                    #body

                    #(#starts)*
                    #with
                }
            }
        };
        let generated = functions(forward);
        // Docs show types as they are written, not their aliases.
        let Some(named) = self.named else { return generated };
        let shown = functions(&named.written);
        quote!(#[cfg(doc)] #shown #[cfg(not(doc))] #generated)
    }

    fn try_apply_body(&self, forward: &Forward) -> TokenStream {
        let p = &private();
        let key = self.key();
        let inputs = forward.inputs().map(|(param, input)| {
            let ident = &param.ident;
            let first = first_span(&param.ty);
            let function = if input.stop_gradient { "constant" } else { "input" };
            let function = Ident::new(function, first);
            let (known, ident) = (self.known(&input.tensor, first), at(ident, first));
            quote_spanned!(first=> #known::#function(&#ident))
        });
        let (array, state, context) = (local("inputs"), local("state"), local("context"));
        let (function, callee) = (&forward.function.sig.ident, self.callee(&quote!(Self)));
        let turbofish = turbofish(&forward.function.sig.generics);
        let names = forward.params.iter().map(|param| &param.ident);
        let refuse =
            self.layer.backward.is_none().then(|| quote!(#p::without_gradient(#context.0)?;));
        let proofs = proofs::plain_inputs(self.layer, self.written(forward));
        let finish = if forward.outputs.fallible { "finish_fallible" } else { "finish" };
        let lent = context_argument(&quote!(&mut #context), &forward.function);
        // Another type with the name `Result` is reported at its own span.
        let returned = at(&local("returned"), here(output_span(&forward.function.sig.output)));
        let end = match forward.outputs.parts.as_slice() {
            // A single output needs no closure that visits it.
            [ty] if !forward.outputs.tuple && float_output(ty).is_some() => {
                // All tokens have this span, otherwise an error would be shown at the whole op.
                let span = match forward.outputs.fallible {
                    true => here(output_span(&forward.function.sig.output)),
                    false => whole_span(ty),
                };
                let (known, finish) = (self.known(ty, span), Ident::new(finish, span));
                let (context, here) = (at(&context, here(span)), here(span));
                let call = quote_spanned!(here=> #known::#finish(#context.0, #returned));
                match forward.outputs.fallible {
                    true => quote_spanned!(here=> let #returned = #call; #returned),
                    false => call,
                }
            }
            _ => {
                let (out, visitor) = (local("out"), local("visitor"));
                let visits = self.visits(forward, &out, &visitor);
                let finish = Ident::new(finish, Span::mixed_site());
                // Needed if another type has the name `Result`.
                let ty = forward.outputs.whole.as_ref().filter(|_| forward.outputs.fallible);
                let ty = ty.map(|ty| quote!(: &mut #ty));
                quote! {
                    #p::#finish(#context.0, #returned, |#out #ty, #visitor| { #visits })
                }
            }
        };
        let verify = self.verify(forward, &array);
        let checks = self.args.shapes.as_ref();
        let checks =
            checks.map(|line| shapes::checks(self.layer, forward, line, &array, &returned));
        let (before, after) = checks.map(|Checks { before, after }| (before, after)).unzip();
        let constructed = self.layer.constructed();
        quote! {{
            #constructed
            #proofs
            let #array: &[#p::InputTensors<'_>] = &[#(#inputs),*];
            #before
            #verify
            let #state = &mut #p::start(<Self as #p::CustomOp<#key>>::RULES, #array);
            let mut #context = #p::ForwardContext(#state.start(), #p::PhantomData);
            #refuse
            let #returned = #callee::#function #turbofish (#lent, #(#names),*);
            #after
            #end
        }}
    }

    /// Code that repeats the call with perturbed inputs, if the program runs with verification.
    fn verify(&self, forward: &Forward, inputs: &Ident) -> Option<TokenStream> {
        if !self.args.verifies || self.layer.backward.is_none() || self.args.surrogate.is_some() {
            return None;
        }
        // The perturbed inputs do not outlive a lifetime of a plain input or of the op.
        let (tensors, plain): (Vec<_>, Vec<_>) =
            forward.params.iter().partition(|param| matches!(param.kind, ParamKind::Tensor(_)));
        let named = |params: &[&Param], lifetime: &str| {
            params.iter().any(|param| param.ty.to_token_stream().to_string().contains(lifetime))
        };
        let of_op = self.layer.generics.lifetimes().map(|of| (true, of.lifetime.to_string()));
        let own = forward.function.sig.generics.lifetimes();
        let mut all = of_op.chain(own.map(|of| (false, of.lifetime.to_string())));
        if all.any(|(op, name)| named(&tensors, &name) && (op || named(&plain, &name))) {
            return None;
        }
        let (p, key, again) = (&private(), self.key(), local("again"));
        let turbofish = turbofish(&forward.function.sig.generics);
        let mut group = 0_usize;
        let arguments: Vec<_> = forward
            .params
            .iter()
            .map(|Param { ident, ty, kind, .. }| {
                let ParamKind::Tensor(input) = kind else {
                    return quote!(#p::Reused(&#ident).again()?);
                };
                let (known, at) = (self.known(&input.tensor, Span::call_site()), group);
                group += 1;
                match input.form {
                    Form::One => quote!(&#known::again_one(#again, #at)),
                    Form::Optional => quote!(#known::again_optional(#again, #at).as_ref()),
                    Form::List => {
                        let again = quote!(#known::again_list(#again, #at));
                        check_arg::list(ty, &plain_name(ident), again)
                    }
                }
            })
            .collect();
        Some(quote! {
            if #p::verifying() {
                use #p::NotReused as _;
                #p::verify::<Self, #key>(::core::panic::Location::caller(), #inputs, &|#again| {
                    Self::try_apply #turbofish (#(#arguments),*).ok().map(::core::mem::drop)
                })?;
            }
        })
    }

    /// Passes each tensor output to the visitor, and proves that the other outputs hold no tensor.
    pub(super) fn visits(&self, forward: &Forward, out: &Ident, visitor: &Ident) -> TokenStream {
        let tuple = forward.outputs.tuple;
        forward
            .outputs
            .parts
            .iter()
            .enumerate()
            .map(|(position, ty)| {
                let position = syn::Index::from(position);
                let span = whole_span(ty);
                let here = here(span);
                let (out, visitor) = (at(out, here), at(visitor, here));
                let part = match tuple {
                    true => quote_spanned!(here=> #out.#position),
                    false => quote_spanned!(here=> *#out),
                };
                match float_output(ty) {
                    Some(_) => {
                        let known = self.known(ty, span);
                        quote_spanned!(here=> #known::output(#visitor, &mut #part);)
                    }
                    None if is_primitive(ty) => TokenStream::new(),
                    None => {
                        let (p, proof) = (&private(), proofs::plain(&part, ty));
                        quote! {
                            #proof
                            use #p::NoTensors as _;
                            #p::PlainOutput(&#part).__show(#visitor);
                        }
                    }
                }
            })
            .collect()
    }
}

/// The docs of forward's parameters as a list.
pub(crate) fn documented_arguments<'a>(
    params: impl Iterator<Item = (&'a Ident, &'a [Attribute])>,
) -> Option<TokenStream> {
    let items = params.map(|(name, docs)| {
        let texts = docs.iter().filter_map(|doc| match &doc.meta {
            Meta::NameValue(doc) => syn::parse2::<LitStr>(doc.value.to_token_stream()).ok(),
            _ => None,
        });
        let texts: Vec<String> = texts.map(|text| text.value()).collect();
        let text = texts.join("\n");
        // An example is run once, where the builder has it.
        let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("```"));
        let lines = lines.collect::<Vec<_>>().join("\n  ");
        (!lines.trim().is_empty()).then(|| format!("- `{}`: {}", plain_name(name), lines.trim()))
    });
    let items: Vec<String> = items.flatten().collect();
    let doc = format!("\n# Arguments\n\n{}", items.join("\n"));
    (!items.is_empty()).then(|| quote!(#[doc = #doc]))
}

const TRY_DOC: &str = "As `apply`, with misuse of the op as an error instead of a \
    panic.\n\n# Errors\n\nIf a context call was against its rules, or an input against the op's.";
