//! What comes out where the block has errors: the user's code, and everything that a caller can
//! name, so that one mistake is one error.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{FnArg, Signature};

use crate::args::Args;
use crate::check::{near, unsaveable};
use crate::errors::Errors;
use crate::expand::{Expansion, Mode, respanned, whole_span};
use crate::model::{Form, Forward, Layer, Returns, bare, is_named, plain_name};
use crate::parse::pattern_name;

/// The block was understood, but breaks a rule.
pub(crate) fn of_layer(layer: &Layer, args: &Args, private: TokenStream) -> TokenStream {
    Expansion { layer, args, private, mode: Mode::Fallback }.tokens()
}

/// The block was not understood: the tokens, and a struct of the name that stands there.
pub(crate) fn of_tokens(tokens: TokenStream) -> TokenStream {
    if is_no_path(&tokens) {
        return TokenStream::new();
    }
    let name = impl_name(tokens.clone());
    let structure = name.map(|name| {
        quote! {
            #[allow(dead_code)]
            struct #name;
        }
    });
    quote!(#structure #tokens)
}

/// Whether the impl is of a reference, a tuple or the like, which no crate may have.
fn is_no_path(tokens: &TokenStream) -> bool {
    let mut trees = tokens.clone().into_iter();
    trees.any(|tree| matches!(&tree, TokenTree::Ident(word) if word == "impl"))
        && match trees.next() {
            Some(TokenTree::Punct(punct)) => matches!(punct.as_char(), '&' | '*' | '!'),
            Some(TokenTree::Group(group)) => group.delimiter() != Delimiter::None,
            _ => false,
        }
}

/// The name in `impl Name { .. }`, if the block is as simple as that.
fn impl_name(tokens: TokenStream) -> Option<TokenTree> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let at =
        trees.iter().position(|tree| matches!(tree, TokenTree::Ident(word) if word == "impl"))?;
    match (trees.get(at + 1), trees.get(at + 2)) {
        (Some(name @ TokenTree::Ident(_)), Some(TokenTree::Group(_))) => Some(name.clone()),
        _ => None,
    }
}

/// A function that is forward by all but its name: `apply` is made from it.
pub(crate) fn meant_forward(layer: &Layer) -> Option<Forward> {
    if layer.forward.is_some() {
        return None;
    }
    let function = near(layer, "forward")?;
    let mut errors = Errors::new();
    let forward = crate::parse::forward(function, &layer.name.to_string(), &mut errors);
    errors.forget();
    Some(forward)
}

/// Without a forward: an `apply` of anything, as many as backward has gradients for.
pub(crate) fn guessed_apply(expansion: &Expansion<'_>) -> TokenStream {
    let p = &expansion.private;
    let layer = expansion.layer;
    let inputs = match layer.backward.as_ref().map(|backward| &backward.returns) {
        Some(Returns::Tuple(_, types)) => types.len(),
        Some(Returns::ByName(_)) => layer
            .backward
            .iter()
            .flat_map(|backward| crate::grads::literals(backward.function.body.stream()))
            .map(|literal| literal.fields.len())
            .next()
            .unwrap_or(1),
        _ => 1,
    };
    let outputs: Vec<TokenStream> = layer
        .backward
        .iter()
        .flat_map(|backward| &backward.params)
        .filter_map(|param| crate::model::input_form(&param.ty))
        .map(|(form, tensor)| match form {
            Form::List => quote!(::std::vec::Vec<#tensor>),
            Form::One | Form::Optional => quote!(#tensor),
        })
        .collect();
    let output = match outputs.as_slice() {
        [] => quote!(#p::Tensor<::core::primitive::f64>),
        [one] => one.clone(),
        many => quote!((#(#many),*)),
    };
    let types: Vec<Ident> = (0..inputs).map(|i| quote::format_ident!("Input{i}")).collect();
    let (generics, _, clause) = layer.generics.split_for_impl();
    let op = expansion.op();
    quote! {
        impl #generics #op #clause {
            fn apply<#(#types),*>(#(_: #types),*) -> #output {
                ::core::unimplemented!("this op did not compile")
            }
            fn try_apply<#(#types),*>(#(_: #types),*) -> #p::Result<#output> {
                ::core::unimplemented!("this op did not compile")
            }
        }
    }
}

/// Puts right what was told already, so that the compiler does not tell it again: qualifiers,
/// contexts of a wrong form, calls that need a declaration. The user's tokens stay where they are.
pub(crate) fn repair(expansion: &Expansion<'_>, sig: &mut Signature, body: &Group) -> Group {
    let forward = sig.ident == "forward";
    if !forward && sig.ident != "backward" {
        return body.clone();
    }
    sig.constness = None;
    sig.asyncness = None;
    sig.abi = None;
    sig.variadic = None;
    sig.safety = syn::Safety::Default;
    rename_repeated(sig);
    for input in &mut sig.inputs {
        let FnArg::Typed(param) = input else { continue };
        let inner = match bare(&param.ty) {
            syn::Type::Reference(reference) => &*reference.elem,
            ty => ty,
        };
        if is_named(inner, "ForwardContext") || is_named(inner, "BackwardContext") {
            let span = whole_span(&param.ty);
            let p = respanned(expansion.private.clone(), span);
            let ty = match forward {
                true => quote_spanned!(span=> &mut #p::ForwardContext<'_, Self>),
                false => quote_spanned!(span=> &#p::BackwardContext<'_, Self>),
            };
            if let Ok(ty) = syn::parse2(ty) {
                *param.ty = ty;
            }
        }
    }
    if forward { repair_forward(expansion, body) } else { repair_backward(expansion, body) }
}

/// A second parameter of the same name becomes `_`.
fn rename_repeated(sig: &mut Signature) {
    let mut seen: Vec<String> = Vec::new();
    for input in &mut sig.inputs {
        let FnArg::Typed(param) = input else { continue };
        let Some(name) = pattern_name(&param.pat) else { continue };
        let text = plain_name(&name);
        if seen.contains(&text) {
            *param.pat = syn::Pat::Wild(syn::PatWild {
                attrs: Vec::new(),
                underscore_token: syn::Token![_](name.span()),
            });
        }
        seen.push(text);
    }
}

fn repair_forward(expansion: &Expansion<'_>, body: &Group) -> Group {
    let layer = expansion.layer;
    let Some(context) = layer.forward.as_ref().and_then(|forward| forward.context.clone()) else {
        return body.clone();
    };
    let mut calls = Vec::new();
    if layer.saved.as_ref().is_none_or(|saved| !unsaveable(saved).is_empty()) {
        calls.push("save_for_backward");
    }
    if layer.state.is_none() {
        calls.push("set_attrs");
    }
    let drop = |name: &Ident, _: &Group| quote_spanned!(name.span()=> ::core::mem::drop(()));
    replace_calls(body, &context, &calls, &drop)
}

fn repair_backward(expansion: &Expansion<'_>, body: &Group) -> Group {
    let layer = expansion.layer;
    let Some(backward) = &layer.backward else { return body.clone() };
    let body = match &backward.returns {
        Returns::ByName(_) => crate::grads::completed(expansion, body),
        _ => body.clone(),
    };
    let (Some(context), Some(saved)) = (&backward.context, &layer.saved) else { return body };
    if unsaveable(saved).is_empty() {
        return body;
    }
    let saved = by_value(saved);
    let declared = |name: &Ident, _: &Group| {
        let p = respanned(expansion.private.clone(), name.span());
        quote_spanned!(name.span()=> #p::stand_in::<&'static #saved>())
    };
    replace_calls(&body, context, &["saved_tensor"], &declared)
}

/// A type without its outer references: what the user meant to keep.
fn by_value(ty: &syn::Type) -> syn::Type {
    match bare(ty) {
        syn::Type::Reference(reference) => match bare(&reference.elem) {
            syn::Type::Slice(slice) => {
                let item = &slice.elem;
                syn::parse_quote!(::std::vec::Vec<#item>)
            }
            inner => by_value(inner),
        },
        syn::Type::Tuple(tuple) => {
            let mut tuple = tuple.clone();
            tuple.elems.iter_mut().for_each(|ty| *ty = by_value(ty));
            syn::Type::Tuple(tuple)
        }
        ty => ty.clone(),
    }
}

/// Puts something in place of `ctx.call(value)`.
fn replace_calls(
    group: &Group,
    context: &Ident,
    calls: &[&str],
    with: &dyn Fn(&Ident, &Group) -> TokenStream,
) -> Group {
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    let mut out = TokenStream::new();
    let mut position = 0;
    while position < trees.len() {
        if let [
            TokenTree::Ident(receiver),
            TokenTree::Punct(dot),
            TokenTree::Ident(name),
            TokenTree::Group(value),
            ..,
        ] = &trees[position..]
            && receiver == context
            && dot.as_char() == '.'
            && calls.iter().any(|call| name == call)
            && value.delimiter() == Delimiter::Parenthesis
        {
            out.extend(with(name, value));
            position += 4;
            continue;
        }
        match &trees[position] {
            TokenTree::Group(inner) => {
                replace_calls(inner, context, calls, with).to_tokens(&mut out);
            }
            tree => tree.to_tokens(&mut out),
        }
        position += 1;
    }
    let mut new = Group::new(group.delimiter(), out);
    new.set_span(group.span());
    new
}
