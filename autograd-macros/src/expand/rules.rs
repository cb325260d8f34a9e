//! `CustomOp::pull` and `CustomOp::PUSH`: they lend values to the user's backward and `jvp`, and pass on what these return.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, FieldValue, Member, Token, Type, TypeArray, TypePath};

use crate::builder;
use crate::expansion::{Expansion, Mode};
use crate::library::{kept, private, private_at};
use crate::model::{
    Form, Function, GradientParam, Param, Returned, TensorInput, bare, shared_target,
};
use crate::tokens::{
    anonymous, at, ends, find_ident, here, is_group, is_one_of, is_punct, local, located,
    output_span, regroup, rewritten, whole_span,
};

impl Expansion<'_> {
    pub(super) fn pull(&self) -> TokenStream {
        let Some(backward) =
            self.layer.backward.as_ref().filter(|_| matches!(self.mode, Mode::Full))
        else {
            let (raw, lent) = (local("raw"), local("lent"));
            return quote!(let _ = (#raw, #lent););
        };
        let (p, raw, lender) = (&private(), local("raw"), local("lent"));
        let (context, returned) = (local("context"), local("returned"));
        let outputs = self.layer.outputs();
        let held: Vec<_> = (0..outputs.len()).map(|i| local(&format!("gradient{i}"))).collect();
        let takes = outputs.iter().zip(&held).enumerate().map(|(group, ((ty, ..), held))| {
            self.take(ty, |here| quote_spanned!(here=> gradient), group, held)
        });
        let lends = lend_arguments(&backward.params, &held, "lend");
        let (call, callee) = (&backward.function.sig.ident, self.callee(&quote!(Self)));
        let argument = context_argument(&quote!(&#context), &backward.function);
        let result = backward.returns.fallible.then(|| {
            let span = output_span(&backward.function.sig.output);
            let here = here(span);
            let (raw, returned) = (at(&raw, here), at(&returned, here));
            let (some, kept) = (quote!(::core::option::Option::Some), kept(here));
            quote_spanned!(here=> let #some(#returned) = #raw.user(#returned, #kept) else { return };)
        });
        let inputs = self.layer.differentiable();
        let wanted = inputs.iter().map(|(group, param, input)| {
            (*group, given(&param.ty, input.form, &input.tensor), &input.tensor)
        });
        let wanted: Vec<_> = wanted.collect();
        let names: Vec<&Ident> = inputs.iter().map(|(_, param, _)| &param.ident).collect();
        let gives = self.pass_on(&backward.returns, &wanted, Some(&names), &returned);
        quote! {
            #(#takes)*
            let #context = #p::BackwardContext(#lender, #p::PhantomData);
            let #returned = #callee::#call(#argument, #(#lends),*);
            #result
            #gives
        }
    }

    /// Takes the value of a group: `let held = Known::<ty>::method(raw, group);`.
    pub(super) fn take(
        &self,
        ty: &impl ToTokens,
        method: impl Fn(Span) -> TokenStream,
        group: usize,
        held: &Ident,
    ) -> TokenStream {
        let span = whole_span(ty);
        let (known, here) = (self.known(&anonymous(ty), span), here(span));
        let (held, raw, method) = (at(held, here), at(&local("raw"), here), method(here));
        quote_spanned!(here=> let #held = #known::#method(#raw, #group);)
    }

    /// Passes on the values returned by backward (`names`: those of the inputs) or by `jvp` (no `names`).
    /// `wanted`: the groups that receive them, with the types that the values must match.
    pub(super) fn pass_on(
        &self,
        returns: &Returned,
        wanted: &[(usize, TokenStream, &TypePath)],
        names: Option<&[&Ident]>,
        returned: &Ident,
    ) -> TokenStream {
        let raw = local("raw");
        let (method, fails) = match names {
            Some(_) => ("give", None),
            None => ("give_tangent", Some(quote!(?))),
        };
        let whole =
            returns.whole.as_ref().filter(|_| !returns.tuple && returns.by_name().is_none());
        if let (Some(ty), true) = (whole, wanted.len() != 1) {
            let here = here(whole_span(ty));
            let (raw, returned, of) =
                (at(&raw, here), at(returned, here), wanted.iter().map(|(_, of, _)| of));
            let groups = wanted.iter().map(|(group, ..)| group);
            let groups = names.map(|_| quote_spanned!(here=> , &[#(#groups),*]));
            return quote_spanned! {here=>
                #raw.give_all::<(#(#of,)*), _>(#returned #groups) #fails;
            };
        }
        let parts = parts(returns, names.unwrap_or_default(), returned);
        let gives = wanted.iter().zip(parts).map(|(wanted, (span, value))| {
            let (group, of, tensor) = wanted;
            let (known, here) = (self.known(tensor, span), here(span));
            let raw = at(&raw, here);
            let method = Ident::new(method, here);
            quote_spanned!(here=> #known::#method::<#of, _>(#raw, #group, #value) #fails;)
        });
        gives.collect()
    }

    pub(super) fn grads_struct(&self) -> Option<TokenStream> {
        let backward = self.layer.backward.as_ref().and_then(|of| of.returns.by_name()).is_some();
        match &self.mode {
            Mode::Reported(reported) => {
                Some(crate::fallback::grads(reported, &self.declared_grads()))
            }
            _ if backward => Some(self.declared_grads()),
            _ if self.returns_a_name() => {
                let declared = self.declared_grads();
                Some(quote!(#[cfg(miri)] #declared))
            }
            _ => None,
        }
    }

    /// Whether backward returns a single name, which may become `Grads` while it is typed: an editor then has to see
    /// `Grads`. rust-analyzer sets `miri`, which no lint reports as unknown.
    fn returns_a_name(&self) -> bool {
        let written = self.layer.backward.as_ref().and_then(|of| of.returns.whole.as_ref());
        let name = written.and_then(|ty| match ty {
            Type::Path(path) => path.path.get_ident(),
            _ => None,
        });
        name.is_some_and(|name| !is_one_of(name, "Tensor Real Grads"))
    }

    fn declared_grads(&self) -> TokenStream {
        let inputs = self.layer.differentiable();
        let names: Vec<_> = inputs.iter().map(|(_, param, _)| &param.ident).collect();
        let written = self.layer.backward.as_ref().and_then(|of| of.returns.by_name());
        // An editor then finds it in the user's block.
        let place = written.map_or_else(Span::call_site, whole_span);
        let grads = Ident::new("Grads", Span::call_site().located_at(place));
        if self.layer.is_formula {
            let p = private();
            let (lane, ty) = (quote!(<L: #p::elementwise::Lane>), quote!(#grads<L>));
            // After an error it is another type.
            let full = matches!(self.mode, Mode::Full);
            let debug = full.then(|| super::debug(Some(&lane), &ty, "Grads", &names));
            return quote! {
                /// What backward returns, by the names of the inputs.
                pub struct #grads<L: #p::elementwise::Lane> {
                    #(pub #names: #p::elementwise::Real<L>),*
                }

                #debug
            };
        }
        let types: Vec<_> = (0..names.len()).map(|i| format_ident!("G{i}")).collect();
        // The fields are generic: a gradient may be a tensor or an option of one.
        quote! {
            /// What backward returns, by the names of the inputs.
            #[derive(::core::fmt::Debug)]
            pub struct #grads<#(#types),*> { #(pub #names: #types),* }
        }
    }

    /// Adds the types of the inputs as arguments to each `Grads` that is a type. `None` if there is none.
    pub(super) fn typed_grads(&self, tokens: TokenStream) -> Option<TokenStream> {
        let inputs = self.layer.differentiable().into_iter();
        let types = inputs.map(|(.., input)| concrete(&private(), input));
        let arguments = quote!(<#(#types),*>);
        with_arguments(tokens, "Grads", &arguments)
    }

    /// Whether backward builds `Grads` itself: its fields then have the types of the values there.
    fn builds_grads(&self) -> bool {
        let literal = |trees: &[TokenTree], at: usize| {
            let named = matches!(&trees[at], TokenTree::Ident(ident) if ident == "Grads");
            (named && is_group(trees.get(at + 1), Delimiter::Brace)).then_some(())
        };
        let mut backward = self.layer.backward.iter().filter(|_| self.layer.broken.is_empty());
        backward.any(|of| of.function.trees().find(&mut { literal }).is_some())
    }

    /// Adds a proof to each field, if the only `Grads { .. }` of backward is at the end of its body.
    pub(super) fn with_proofs(&self, body: &TokenStream) -> Option<TokenStream> {
        let mut trees: Vec<TokenTree> = body.clone().into_iter().collect();
        let [before @ .., TokenTree::Ident(name), TokenTree::Group(group)] = &mut trees[..] else {
            return None;
        };
        let before = before.iter().cloned().collect();
        let other = find_ident(before, |word| is_one_of(word, "Grads return")).is_some();
        let inner = match &name.to_string()[..] {
            _ if other => None,
            "Ok" => self.with_proofs(&group.stream()),
            "Grads" => self.with_field_proofs(group.stream()),
            _ => None,
        };
        *group = regroup(group, inner?);
        Some(trees.into_iter().collect())
    }

    fn with_field_proofs(&self, fields: TokenStream) -> Option<TokenStream> {
        let parser = Punctuated::<FieldValue, Token![,]>::parse_terminated;
        let inputs = self.layer.differentiable();
        let proven = parser.parse2(fields).ok()?.into_pairs().map(|pair| {
            let (field, comma) = pair.into_tuple();
            let FieldValue { attrs, member, colon_token, expr, .. } = &field;
            let colon = colon_token.unwrap_or_default();
            let of = |param: &Param| matches!(member, Member::Named(name) if *name == param.ident);
            let (_, param, input) = inputs.iter().find(|(_, param, _)| of(param))?;
            let ((first, last), name) =
                (ends(quote!(#expr)), builder::argument(self.layer, &param.ident));
            let (p, of) = (private_at(first), given(&param.ty, input.form, &input.tensor));
            // The compiler shows the expected type in an error, so the type gets the span of the value.
            let mut of: Vec<TokenTree> = located(of, first).into_iter().collect();
            if let Some(end) = of.last_mut() {
                end.set_span(end.span().located_at(last));
            }
            let (name, given) = (located(name, first), at(&local("given"), first));
            let entries =
                quote_spanned!(first=> <#(#of)* as #p::NamedGrad<#name, _>>::entries(#given));
            // The value first, for editors. An array: no lint reports it as unnecessary.
            Some(quote!(#(#attrs)* #member #colon match [#expr] { #given => #entries } #comma))
        });
        proven.collect()
    }

    pub(super) fn grads_type(&self, grads: &Type) -> TokenStream {
        let (p, span, grads) = (&private(), whole_span(grads), grads.to_token_stream());
        if !self.builds_grads() {
            return self.typed_grads(grads.clone()).unwrap_or(grads);
        }
        let bounds = self.layer.differentiable().into_iter().map(|(_, param, input)| {
            let of = located(given(&param.ty, input.form, &input.tensor), span);
            quote_spanned!(span=> impl #p::GradFor<#of>)
        });
        quote_spanned!(span=> #grads<#(#bounds),*>)
    }
}

/// The arguments for the parameters: the held values, lent by a method.
pub(super) fn lend_arguments<'a>(
    params: &'a [GradientParam],
    held: &'a [Ident],
    method: &str,
) -> impl Iterator<Item = TokenStream> + use<'a> {
    let method = Ident::new(method, Span::mixed_site());
    params.iter().zip(held).map(move |(param, held)| {
        let here = here(whole_span(&param.ty));
        let (held, method) = (at(held, here), at(&method, here));
        quote_spanned!(here=> (&#held).#method())
    })
}

/// The values that backward or `jvp` returned, each with the span of its type.
fn parts(returns: &Returned, names: &[&Ident], returned: &Ident) -> Vec<(Span, TokenStream)> {
    let part = |ty: &Type, field: Option<TokenStream>| {
        let span = whole_span(ty);
        let returned = at(returned, span);
        let field = field.map(|field| quote_spanned!(here(span)=> .#field));
        (span, quote!(#returned #field))
    };
    match returns.by_name() {
        Some(ty) => names.iter().map(|name| part(ty, Some(name.to_token_stream()))).collect(),
        None => {
            let position = |i: usize| returns.tuple.then(|| syn::Index::from(i).to_token_stream());
            let types = returns.parts.iter().enumerate();
            types.map(|(i, ty)| part(ty, position(i))).collect()
        }
    }
}

/// The type that a gradient or a tangent of a value of type `ty` must match: the tensor type, or for a list
/// a slice of it, or an array. A length by name may be a parameter of forward, which is not known elsewhere.
pub(super) fn given(ty: &Type, form: Form, tensor: &TypePath) -> TokenStream {
    match (form, bare(shared_target(ty).unwrap_or(ty))) {
        (Form::List, Type::Array(TypeArray { len: len @ Expr::Lit(_), .. })) => {
            quote!([#tensor; #len])
        }
        (Form::List, _) => quote!([#tensor]),
        (Form::One | Form::Optional, _) => quote!(#tensor),
    }
}

pub(crate) fn concrete(p: &Ident, input: &TensorInput) -> TokenStream {
    let tensor = &input.tensor;
    match input.form {
        Form::List => quote!(#p::Vec<#tensor>),
        Form::One | Form::Optional => quote!(#tensor),
    }
}

/// Adds arguments to each of these names that is a type, not a value or a pattern. `Grads` has no path.
pub(crate) fn with_arguments(
    tokens: TokenStream,
    names: &str,
    arguments: &TokenStream,
) -> Option<TokenStream> {
    rewritten(tokens, &mut |trees, at| {
        let TokenTree::Ident(word) = &trees[at] else { return None };
        let is = |at: Option<usize>, c: char| is_punct(at.and_then(|at| trees.get(at)), c);
        // `-> Grads { .. }`
        let returned = is(at.checked_sub(1), '>') && is(at.checked_sub(2), '-');
        let path = is(at.checked_sub(1), ':') && is(at.checked_sub(2), ':');
        let group = |delimiter| is_group(trees.get(at + 1), delimiter);
        let is_value = group(Delimiter::Brace) && !returned || group(Delimiter::Parenthesis);
        let is_type = !is_value && !is(Some(at + 1), '<') && !is(Some(at + 1), ':');
        (is_one_of(word, names) && is_type && !(path && word == "Grads")).then(|| {
            let here = located(arguments.clone(), word.span());
            (quote!(#word #here), 1)
        })
    })
}

/// The context argument of a call, with the span of the parameter's type, where a wrong type is reported.
pub(super) fn context_argument(context: &TokenStream, function: &Function) -> TokenStream {
    match function.sig.inputs.first() {
        Some(syn::FnArg::Typed(param)) => located(context.clone(), here(whole_span(&param.ty))),
        _ => context.clone(),
    }
}

/// The constant `PUSH`; `None` if the op has no `jvp`.
pub(crate) fn push(expansion: &Expansion<'_>) -> Option<TokenStream> {
    let jvp = expansion.layer.jvp.as_ref().filter(|_| matches!(expansion.mode, Mode::Full))?;
    let p = &private();
    let key = expansion.key();
    let raw = local("raw");
    let (saved, context, returned) = (local("saved"), local("context"), local("returned"));
    let inputs = expansion.layer.differentiable();
    let held: Vec<_> = (0..inputs.len()).map(|i| local(&format!("dual{i}"))).collect();
    let takes = inputs.iter().zip(&held).map(|((group, _, input), held)| {
        let of = form(input);
        let method = |here| quote_spanned!(here=> primal::<#of>);
        expansion.take(&input.tensor, method, *group, held)
    });
    let (primals, tangents) = jvp.params.split_at(inputs.len().min(jvp.params.len()));
    let (primals, tangents) =
        (lend_arguments(primals, &held, "input"), lend_arguments(tangents, &held, "tangent"));
    let result = jvp.returns.fallible.then(|| {
        let here = here(output_span(&jvp.function.sig.output));
        let (raw, returned, kept) = (at(&raw, here), at(&returned, here), kept(here));
        quote_spanned!(here=> let #returned = #raw.user(#returned, #kept)?;)
    });
    let outputs = expansion.layer.outputs().into_iter().enumerate();
    let wanted: Vec<_> =
        outputs.map(|(at, (ty, form, tensor))| (at, given(ty, form, tensor), tensor)).collect();
    let gives = expansion.pass_on(&jvp.returns, &wanted, None, &returned);
    let (call, callee) = (&jvp.function.sig.ident, expansion.callee(&quote!(Self)));
    Some(quote! {
        const PUSH: ::core::option::Option<fn(&#p::RawJvp<'_>) -> #p::Result<()>> =
            ::core::option::Option::Some(|#raw: &#p::RawJvp<'_>| {
                let #saved = #raw.saved::<Self, #key>()?;
                let #context = #raw.context::<Self, #key>(&#saved);
                #(#takes)*
                let #returned = #callee::#call(&#context, #(#primals,)* #(#tangents),*);
                #result
                #gives
                #p::Result::Ok(())
            });
    })
}

fn form(input: &TensorInput) -> TokenStream {
    let tensor = &input.tensor;
    match input.form {
        Form::One => quote!(#tensor),
        Form::Optional => quote!(::core::option::Option<#tensor>),
        Form::List => quote!([#tensor]),
    }
}
