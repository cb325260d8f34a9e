//! The expansion of a block with errors: the user's code, and the names that callers use, with an error
//! type. The compiler reports nothing about values of an error type, so one mistake is one error.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{FnArg, Generics, ReturnType, Token, Type};

use crate::check::forward::misspelling_of;
use crate::check::refused::returns_wrong_type;
use crate::elementwise::parse::{Kind, kind};
use crate::errors::Errors;
use crate::expansion::{Expansion, Mode};
use crate::generics::{generated, phantom};
use crate::items;
use crate::library::private;
use crate::model::{
    Block, Broken, Function, bare, first_argument, is_named, last_segment, without_reference,
};
use crate::parse::{is_context, other_item, pattern_name};
use crate::tokens::{is_punct, mentions, regroup, replace_ident, text};

pub(crate) const CALLS: [&str; 3] = ["apply", "try_apply", "with"];

/// The mode of an expansion, and the items that report the errors.
pub(crate) fn mode(op: &Ident, errors: Errors, refused: bool) -> (Mode, TokenStream) {
    if !errors.is_empty() {
        let name = reported_name(op);
        let items = errors.into_items(&name);
        return (Mode::Reported(name), items);
    }
    match refused {
        true => (Mode::Refused, not_understood(op)),
        false => (Mode::Full, TokenStream::new()),
    }
}

pub(crate) fn reported_name(op: &Ident) -> Ident {
    generated(op, "Reported")
}

/// A value of the error type. It type-checks anywhere.
fn value_of(reported: &Ident) -> TokenStream {
    quote!((*<#reported>::value))
}

/// What callers use after an error: constants of the error type, for editors the functions.
pub(crate) fn calls(constants: &TokenStream, functions: &TokenStream) -> TokenStream {
    quote! {
        #[allow(unexpected_cfgs)]
        const _: () = {
            #[cfg(not(rust_analyzer))]
            #constants
            #[cfg(rust_analyzer)]
            const _: () = { #functions };
        };
    }
}

/// Constants of the error type, with the names that callers use.
pub(crate) fn constants(
    names: &[&str],
    generics: &Generics,
    op: &impl ToTokens,
    reported: &Ident,
) -> TokenStream {
    let (generics, _, clause) = generics.split_for_impl();
    let (names, value) = (names.iter().map(|name| format_ident!("{name}")), value_of(reported));
    quote! {
        impl #generics #op #clause {
            #(pub const #names: #reported = #value;)*
        }
    }
}

/// Reports a block that was not understood, unless the compiler has reported an error in it: lints run
/// only if there is no error.
fn not_understood(name: &Ident) -> TokenStream {
    let message = crate::messages::not_understood();
    let span = Span::mixed_site().located_at(name.span());
    quote_spanned! {span=>
        const _: () = {
            #[must_use = #message]
            struct Unread;
            const fn unread() -> Unread {
                Unread
            }
            #[deny(unused_must_use)]
            fn tell() {
                unread();
            }
        };
    }
}

/// The expansion of the impl of a trait: no struct, and the constants that callers use. The error beside
/// these silences unresolved names.
pub(crate) fn of_trait(calls: &[&str], block: &Block, errors: Errors) -> TokenStream {
    let reported = reported_name(&block.name);
    let calls = constants(calls, &block.generics, &block.self_ty, &reported);
    errors.into_tokens().into_iter().chain(calls).collect()
}

/// The expansion of anything but an impl block: the tokens, and an `apply` for the type that they declare.
pub(crate) fn of_tokens(tokens: TokenStream, errors: Errors) -> TokenStream {
    if errors.is_empty() {
        return tokens;
    }
    let made = match other_item(tokens.clone()) {
        // The compiler would also report an impl for a foreign or an absent type.
        None if mentions(&tokens, "impl") => return errors.into_tokens(),
        Some(("a struct" | "an enum" | "a union", words)) if !is_punct(words.get(2), '<') => {
            words.into_iter().nth(1)
        }
        _ => None,
    };
    let Some(TokenTree::Ident(name)) = made else {
        let items = errors.into_tokens();
        return quote!(#tokens #items);
    };
    let reported = reported_name(&name);
    let items = errors.into_items(&reported);
    let constants = constants(&CALLS, &Generics::default(), &name, &reported);
    quote!(#tokens #items #constants)
}

/// The body of a function that is only for editors, or whose types the compiler rejects.
pub(crate) fn nothing() -> TokenStream {
    quote!({ ::core::unimplemented!("this op did not compile") })
}

/// Calls by position and by name that accept anything, for a block that the compiler rejects: they do not
/// repeat the types of the signature, which the compiler has reported.
pub(crate) fn permissive_calls(expansion: &Expansion<'_>) -> TokenStream {
    let (p, layer) = (&private(), expansion.layer);
    let tensor = quote!(#p::Tensor<::core::primitive::f64>);
    let output = match &layer.forward {
        // The element type of a formula is a parameter of `apply`.
        Some(forward) if layer.is_formula && forward.outputs.tuple => {
            let tensors = vec![tensor; forward.outputs.parts.len()];
            quote!((#(#tensors,)*))
        }
        Some(forward) if !layer.is_formula && !returns_wrong_type(layer, &forward.function) => {
            forward.output()
        }
        _ => tensor,
    };
    let names: Vec<Ident> = match &layer.forward {
        Some(forward) => forward.params.iter().map(|param| param.ident.clone()).collect(),
        None => {
            let named =
                |broken: &&Broken| broken.name.as_ref().is_some_and(|name| name == "forward");
            let forward = layer.broken.iter().find(named);
            let parameters = forward.and_then(|forward| forward.parameters.as_ref());
            let names = parameters.map(items::parameter_names).unwrap_or_default();
            let contexts = usize::from(!layer.is_formula);
            names.into_iter().skip(contexts).collect()
        }
    };
    let types: Vec<Ident> = (0..names.len()).map(|i| format_ident!("__Input{i}")).collect();
    let (op, phantom) = (&layer.self_ty, phantom(&layer.generics));
    let (generics, arguments, clause) = layer.generics.split_for_impl();
    let with = generated(&layer.name, "With");
    let setters = names.iter().filter(|name| *name != "apply" && *name != "try_apply");
    let nothing = nothing();
    quote! {
        impl #generics #op #clause {
            pub fn apply<#(#types),*>(#(_: #types),*) -> #output #nothing
            pub fn try_apply<#(#types),*>(#(_: #types),*) -> #p::Result<#output> #nothing
            pub fn with() -> #with #arguments #nothing
        }
        pub struct #with #generics(::core::marker::PhantomData<#phantom>) #clause;
        impl #generics #with #arguments #clause {
            #(pub fn #setters<Input>(self, _: Input) -> Self { self })*
            pub fn apply(self) -> #output #nothing
            pub fn try_apply(self) -> #p::Result<#output> #nothing
        }
    }
}

/// Whether a name in the type looks like a misspelt `Tensor` or `Real`.
fn is_slip(ty: &Type) -> bool {
    ["Tensor", "Real"].iter().any(|meant| misspelling_of(ty, meant).is_some())
}

fn is_of_self(ty: &Type) -> bool {
    let first = last_segment(ty).and_then(first_argument);
    first.is_some_and(|argument| is_named(argument, "Self"))
}

/// `Grads` after an error, as the error type; for editors as declared.
pub(crate) fn grads(reported: &Ident, declared: &TokenStream) -> TokenStream {
    let (grads, value) = (Ident::new("Grads", Span::call_site()), value_of(reported));
    quote! {
        #[cfg(not(rust_analyzer))]
        type #grads = #reported;
        #[cfg(not(rust_analyzer))]
        const #grads: #reported = #value;
        #[cfg(rust_analyzer)]
        #declared
    }
}

/// A function of an op after an error: mistakes of its signature that were reported are corrected, its
/// context and return type become the error type, and its body is unchanged. In an editor it is as written.
/// `absent`: names of its body that have no value.
pub(crate) fn with_error_types(
    reported: &Ident,
    function: &Function,
    absent: Vec<Ident>,
) -> TokenStream {
    let Function { attrs, vis, sig, body, .. } = function;
    let mut sig = sig.clone();
    if !function.is_rule() {
        return quote!(#(#attrs)* #vis #sig #body);
    }
    sig.constness = None;
    sig.asyncness = None;
    sig.abi = None;
    sig.variadic = None;
    sig.safety = syn::Safety::Default;
    sig.output = output(reported, &sig.output);
    let value = value_of(reported);
    let absent = absent.into_iter().map(unseen);
    let mut shadows = quote!(#(#[cfg(not(rust_analyzer))] let #absent = #value;)*);
    for pair in std::mem::take(&mut sig.inputs).into_pairs() {
        let (input, comma) = pair.into_tuple();
        let (input, shadow, instead) = parameter(input, &value);
        shadows.extend(shadow);
        sig.inputs.push(input);
        sig.inputs.push_punct(comma.unwrap_or_default());
        sig.inputs.extend(instead);
    }
    // An op has no `self`: this was reported.
    let silent = match sig.receiver() {
        Some(_) => replace_ident(body.stream(), "self", &value),
        None => body.stream(),
    };
    let silent = regroup(body, quote!(#shadows #silent));
    quote!(#(#attrs)* #vis #sig #silent)
}

/// The return type after an error: the error type, which contains the written type, so that imports for it count as
/// used. A type that the compiler would reject is only for editors.
fn output(reported: &Ident, written: &ReturnType) -> ReturnType {
    let (arrow, returned) = match written {
        ReturnType::Type(arrow, ty) => {
            let other = text(ty).contains(['&', '!', '_']) || mentions(ty, "impl");
            let returned = match other || is_slip(ty) {
                true => quote!([(); { #[cfg(rust_analyzer)] type Written = #ty; 0 }]),
                false => quote!(#ty),
            };
            (*arrow, Some(returned))
        }
        ReturnType::Default => (Token![->](Span::call_site()), None),
    };
    syn::parse_quote!(#arrow <(#reported, #returned) as ::core::iter::Iterator>::Item)
}

/// A name at a place of the macro's: an editor shows code that is not compiled in gray.
fn unseen(mut name: Ident) -> Ident {
    name.set_span(Span::call_site().resolved_at(name.span()));
    name
}

/// A parameter after an error, and the statement that gives it the error type if it is a context or its type was
/// reported. Editors need the parameter as it was written; the last is what the compiler gets instead.
fn parameter(mut input: FnArg, value: &TokenStream) -> (FnArg, Option<TokenStream>, Option<FnArg>) {
    let FnArg::Typed(param) = &mut input else { return (input, None, None) };
    let Some(name) = pattern_name(&param.pat).map(unseen) else { return (input, None, None) };
    let inner = without_reference(&param.ty);
    let absent =
        is_slip(&param.ty) || matches!(bare(&param.ty), Type::ImplTrait(_) | Type::Infer(_));
    let context = is_context(inner);
    // The reported mistake may be in what the body does with a number.
    let is_number = kind(inner) != Kind::Plain;
    let shadow = (context || absent || is_number)
        .then(|| quote!(#[cfg(not(rust_analyzer))] let #name = #value;));
    let instead = (absent || context && !is_of_self(inner)).then(|| {
        let attrs = param.attrs.clone();
        param.attrs.push(syn::parse_quote!(#[cfg(rust_analyzer)]));
        syn::parse_quote!(#(#attrs)* #[cfg(not(rust_analyzer))] #name: impl ::core::marker::Sized)
    });
    (input, shadow, instead)
}
