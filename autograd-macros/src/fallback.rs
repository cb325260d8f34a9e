//! What comes out where the block has errors: the user's code, and everything that a caller can
//! name, so that one mistake is one error.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{FnArg, Signature, Type};

use crate::args::Args;
use crate::check::{kept_attrs, near, unsaveable};
use crate::check_forward::not_floats;
use crate::context_habits::{self, TOGETHER};
use crate::context_use::{find_call, saves_each};
use crate::errors::Errors;
use crate::expand::{Expansion, Mode, concrete, generated, phantom, whole_span};
use crate::library::{Private, private_path};
use crate::model::{Form, Forward, Layer, Outputs, Returns, bare, is_named, mentions, plain_name};
use crate::parse::{CONTEXTS, pattern_name};
use crate::replace::replaced;

/// The block was understood, but breaks a rule.
pub(crate) fn of_layer(layer: &mut Layer, args: &Args, errors: Errors) -> TokenStream {
    let silent = errors.is_empty().then(|| not_understood(&layer.name));
    let name = generated(&layer.name, "Reported");
    let reported = match errors.is_empty() {
        // The compiler has reported it.
        true => not_compiled(),
        false => value_of(&name),
    };
    let (private, mode) =
        (Private::Path(private_path(args.krate.as_ref())), Mode::Fallback(reported));
    for (parameter, _) in not_floats(layer) {
        let bounded = layer.generics.type_params_mut().find(|param| param.ident == parameter);
        if let Some(parameter) = bounded {
            parameter.colon_token.get_or_insert_with(Default::default);
            parameter.bounds.push(syn::parse_quote!(#private::Float));
        }
    }
    nothing_for_never(layer);
    let expansion = Expansion { layer, args, private, mode, verifies: false }.tokens();
    // Errors that stand beside the block silence the names in it that the compiler cannot find.
    let items = match mentions(&expansion, &name.to_string()) {
        true => errors.into_items(&name),
        false => errors.into_tokens(),
    };
    quote!(#items #expansion #silent)
}

/// What stands for code that cannot be made.
pub(crate) fn not_compiled() -> TokenStream {
    quote!(::core::unimplemented!("this op did not compile"))
}

/// A value that stands for what was reported, in any place: of a type with an error.
fn value_of(reported: &Ident) -> TokenStream {
    quote!((*<#reported>::value))
}

/// `!` stands only where a function returns it: `apply` returns it in a `Result` too.
fn nothing_for_never(layer: &mut Layer) {
    let Some(forward) = &mut layer.forward else { return };
    if matches!(forward.outputs.ty, Some(Type::Never(_))) {
        forward.function.sig.output = syn::ReturnType::Default;
        forward.outputs = Outputs { ty: None, tuple: false, parts: Vec::new() };
    }
}

/// Tells that something was not understood, unless the compiler did not understand it either and
/// has reported: lints are found only where there is no error.
pub(crate) fn not_understood(name: &Ident) -> TokenStream {
    let message = crate::messages::not_understood();
    let span = Span::mixed_site().located_at(name.span());
    quote_spanned! {span=>
        #[allow(dead_code)]
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

/// The block of a trait, whose type may be there: then it can be called, and is not made again. The
/// name of the constants' type is not there, and what stands beside an error is silent about that.
pub(crate) fn of_trait_impl(
    generics: &syn::Generics,
    op: &Type,
    name: &Ident,
    errors: Errors,
) -> TokenStream {
    let (generics, _, clause) = generics.split_for_impl();
    let name = generated(name, "Reported");
    let constants = universal_apply(&quote!(#name), &quote!(#name));
    let reported = errors.into_tokens();
    quote!(#reported impl #generics #op #clause { #constants })
}

/// No impl block that could be understood: the tokens, and an `apply` for the type they make.
pub(crate) fn of_tokens(tokens: TokenStream, errors: Errors) -> TokenStream {
    if is_no_path(&tokens) {
        return errors.into_tokens();
    }
    match made_type(tokens.clone()).filter(|_| !errors.is_empty()) {
        Some(name) => {
            let ty = generated(&name, "Reported");
            let items = errors.into_items(&ty);
            let constants = universal_apply(&quote!(#ty), &value_of(&ty));
            quote!(#items #tokens impl #name { #constants })
        }
        None => {
            let items = errors.into_tokens();
            quote!(#items #tokens)
        }
    }
}

/// Whether the impl is of a tuple or the like, which no crate may have.
fn is_no_path(tokens: &TokenStream) -> bool {
    let mut trees = tokens.clone().into_iter();
    trees.any(|tree| matches!(&tree, TokenTree::Ident(word) if word == "impl"))
        && match trees.next() {
            Some(TokenTree::Punct(punct)) => matches!(punct.as_char(), '&' | '*' | '!'),
            Some(TokenTree::Group(group)) => group.delimiter() != Delimiter::None,
            _ => false,
        }
}

/// The name of a struct, an enum or a union without parameters.
fn made_type(tokens: TokenStream) -> Option<Ident> {
    let mut trees = tokens.into_iter();
    trees.find(|tree| {
        let words = ["struct", "enum", "union"];
        matches!(tree, TokenTree::Ident(word) if words.iter().any(|made| word == made))
    })?;
    let Some(TokenTree::Ident(name)) = trees.next() else { return None };
    let parameters =
        matches!(trees.next(), Some(TokenTree::Punct(punct)) if punct.as_char() == '<');
    (!parameters).then_some(name)
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

/// Without a forward: `apply`, `try_apply` and `with` that can be called in any way.
pub(crate) fn guessed_apply(expansion: &Expansion<'_>) -> TokenStream {
    let forward = expansion.layer.broken.iter().find(|broken| {
        broken.parameters.is_some() && broken.name.as_ref().is_some_and(|name| name == "forward")
    });
    match (&expansion.mode, forward.and_then(|forward| forward.parameters.as_ref())) {
        (_, Some(parameters)) => {
            let outputs = expansion.layer.backward.iter().flat_map(|backward| &backward.params);
            let outputs = outputs.filter_map(|param| crate::model::input_form(&param.ty));
            let output = output_like(&expansion.private, outputs);
            loose_apply(expansion, &crate::items::parameter_names(parameters), &output)
        }
        (Mode::Fallback(reported), None) => {
            let (generics, _, clause) = expansion.layer.generics.split_for_impl();
            // Without an error of ours the compiler has reported one, and evaluates nothing.
            let ty = match reported.to_string().contains("unimplemented") {
                true => quote!([(); { #reported }]),
                false => generated(&expansion.layer.name, "Reported").into_token_stream(),
            };
            let (op, constants) = (expansion.op(), universal_apply(&ty, reported));
            quote!(impl #generics #op #clause { #constants })
        }
        (Mode::Full, None) => TokenStream::new(),
    }
}

/// Constants whose type has an error in it: the compiler says nothing of what is done with them.
fn universal_apply(reported: &TokenStream, value: &TokenStream) -> TokenStream {
    quote! {
        #[allow(non_upper_case_globals)]
        pub const apply: #reported = #value;
        #[allow(non_upper_case_globals)]
        pub const try_apply: #reported = #value;
        #[allow(non_upper_case_globals)]
        pub const with: #reported = #value;
    }
}

/// The outputs by the gradients that backward takes.
fn output_like<'a>(
    p: &Private,
    gradients: impl Iterator<Item = (Form, &'a syn::TypePath)>,
) -> TokenStream {
    let outputs = gradients.map(|(form, tensor)| match form {
        Form::List => quote!(#p::Vec<#tensor>),
        Form::One | Form::Optional => quote!(#tensor),
    });
    match outputs.collect::<Vec<_>>().as_slice() {
        [] => quote!(#p::Tensor<::core::primitive::f64>),
        [one] => one.clone(),
        many => quote!((#(#many),*)),
    }
}

/// The compiler refuses a type of the signature: all can be called, and nothing repeats it.
pub(crate) fn apply_of_wrong_types(expansion: &Expansion<'_>, forward: &Forward) -> TokenStream {
    let output = match expansion.layer.wrong.1 {
        true => output_like(&expansion.private, std::iter::empty()),
        false => crate::expand::output_type(&expansion.private, forward),
    };
    let names: Vec<Ident> = forward.params.iter().map(|param| param.ident.clone()).collect();
    loose_apply(expansion, &names, &output)
}

/// `apply`, `try_apply` and `with` that take anything.
fn loose_apply(expansion: &Expansion<'_>, names: &[Ident], output: &TokenStream) -> TokenStream {
    let p = &expansion.private;
    let layer = expansion.layer;
    let types: Vec<Ident> = (0..names.len()).map(|i| quote::format_ident!("Input{i}")).collect();
    let (generics, arguments, clause) = layer.generics.split_for_impl();
    let phantom = phantom(&layer.generics);
    let op = expansion.op();
    let with = quote::format_ident!("{}With", layer.name);
    let setters = names.iter().filter(|name| *name != "apply" && *name != "try_apply");
    quote! {
        impl #generics #op #clause {
            pub fn apply<#(#types),*>(#(_: #types),*) -> #output {
                ::core::unimplemented!("this op did not compile")
            }
            pub fn try_apply<#(#types),*>(#(_: #types),*) -> #p::Result<#output> {
                ::core::unimplemented!("this op did not compile")
            }
            pub fn with() -> #with #arguments {
                ::core::unimplemented!("this op did not compile")
            }
        }
        pub struct #with #generics(::core::marker::PhantomData<#phantom>) #clause;
        impl #generics #with #arguments #clause {
            #(
                pub fn #setters<Input>(self, _: Input) -> Self {
                    self
                }
            )*
            pub fn apply(self) -> #output {
                ::core::unimplemented!("this op did not compile")
            }
            pub fn try_apply(self) -> #p::Result<#output> {
                ::core::unimplemented!("this op did not compile")
            }
        }
    }
}

/// Puts right what was reported already, so that the compiler does not report it again: qualifiers,
/// contexts of a wrong form, calls that need a declaration. The user's tokens stay where they are.
pub(crate) fn repair(
    expansion: &Expansion<'_>,
    reported: &TokenStream,
    sig: &mut Signature,
    body: &Group,
) -> Group {
    let forward = sig.ident == "forward";
    let jvp = sig.ident == "jvp";
    if !forward && !jvp && sig.ident != "backward" {
        return body.clone();
    }
    sig.constness = None;
    sig.asyncness = None;
    sig.abi = None;
    sig.variadic = None;
    sig.safety = syn::Safety::Default;
    rename_repeated(sig);
    one_lifetime(sig);
    if sig.ident == "backward" {
        return_gradients(&expansion.private, expansion.layer, sig, body);
    }
    let context = context_of(expansion.layer, &sig.ident);
    for input in &mut sig.inputs {
        let FnArg::Typed(param) = input else { continue };
        // Types that no parameter has; another one is what the body makes of it.
        let absent = matches!(bare(&param.ty), Type::ImplTrait(_) | Type::Infer(_));
        let reported = absent && context.is_some() && pattern_name(&param.pat) == context;
        let inner = match bare(&param.ty) {
            Type::Reference(reference) => &*reference.elem,
            ty => ty,
        };
        let right = match (forward, jvp) {
            (true, _) => "ForwardContext",
            (_, true) => "JvpContext",
            _ => "BackwardContext",
        };
        // What is right stays: an import that only the op needs is used.
        if is_context(&param.ty, right, forward) {
            continue;
        }
        if reported || CONTEXTS.iter().any(|name| is_named(inner, name)) {
            let span = whole_span(&param.ty);
            let p = expansion.private_at(span);
            let lifetime = match bare(&param.ty) {
                Type::Reference(reference) => reference.lifetime.clone(),
                _ => None,
            };
            let ty = match (forward, jvp) {
                (true, _) => quote_spanned!(span=> & #lifetime mut #p::ForwardContext<'_, Self>),
                (_, true) => quote_spanned!(span=> & #lifetime #p::JvpContext<'_, Self>),
                _ => quote_spanned!(span=> & #lifetime #p::BackwardContext<'_, Self>),
            };
            if let Ok(ty) = syn::parse2(ty) {
                *param.ty = ty;
            }
        }
    }
    // Values that an op was thought to have.
    let own = |rest: &[TokenTree]| match rest {
        [TokenTree::Ident(own), TokenTree::Punct(dot), TokenTree::Ident(_), rest @ ..]
            if own == "self"
                && dot.as_char() == '.'
                && !matches!(rest.first(), Some(TokenTree::Group(call)) if call.delimiter() == Delimiter::Parenthesis) =>
        {
            Some((quote!((#reported)), 3))
        }
        _ => None,
    };
    let body = match sig.receiver() {
        Some(_) => &replaced(body, &own).unwrap_or_else(|| body.clone()),
        None => body,
    };
    let body = &crate::question::repaired(sig, body).unwrap_or_else(|| body.clone());
    match (forward, jvp) {
        (true, _) if returns_nothing(sig) && ends_with_a_value(body) => {
            let body = repair_forward(expansion, reported, body);
            let mut unused = Group::new(Delimiter::Brace, quote!(let _ = #body;));
            unused.set_span(body.span());
            unused
        }
        (true, _) => repair_forward(expansion, reported, body),
        (_, true) => repair_jvp(expansion, reported, body),
        _ => repair_backward(expansion, reported, body),
    }
}

fn returns_nothing(sig: &Signature) -> bool {
    matches!(sig.output, syn::ReturnType::Default)
}

fn ends_with_a_value(body: &Group) -> bool {
    match body.stream().into_iter().last() {
        None => false,
        Some(TokenTree::Punct(end)) => end.as_char() != ';',
        Some(TokenTree::Group(end)) => end.delimiter() != Delimiter::Brace,
        Some(_) => true,
    }
}

/// That backward returns nothing was reported; where it ends with a value all the same, that is what is
/// returned.
fn return_gradients(p: &Private, layer: &Layer, sig: &mut Signature, body: &Group) {
    if !returns_nothing(sig) || !ends_with_a_value(body) {
        return;
    }
    let types: Vec<_> =
        layer.differentiable().into_iter().map(|(_, input)| concrete(p, input)).collect();
    sig.output = match types.as_slice() {
        [] => return,
        [one] => syn::parse_quote!(-> #one),
        many => syn::parse_quote!(-> (#(#many),*)),
    };
}

/// What the context of this function is called, whatever its type.
fn context_of(layer: &Layer, function: &Ident) -> Option<Ident> {
    match function.to_string().as_str() {
        "forward" => layer.forward.as_ref()?.context.clone(),
        "backward" => layer.backward.as_ref()?.context.clone(),
        _ => layer.jvp.as_ref()?.context.clone(),
    }
}

/// What is returned by reference was reported: all references are of one lifetime then.
fn one_lifetime(sig: &mut Signature) {
    let syn::ReturnType::Type(_, returned) = &sig.output else { return };
    let mut found = false;
    let output = with_lifetimes(quote!(#returned), &mut found);
    let Ok(output) = syn::parse2(output) else { return };
    if !found {
        return;
    }
    let syn::ReturnType::Type(_, returned) = &mut sig.output else { return };
    **returned = output;
    for input in &mut sig.inputs {
        let FnArg::Typed(param) = input else { continue };
        let ty = &param.ty;
        if let Ok(ty) = syn::parse2(with_lifetimes(quote!(#ty), &mut found)) {
            *param.ty = ty;
        }
    }
    sig.generics.params.insert(0, syn::parse_quote!('reported));
}

/// The same with a lifetime after each `&` that has none.
fn with_lifetimes(tokens: TokenStream, found: &mut bool) -> TokenStream {
    let mut out = TokenStream::new();
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let reference = matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == '&');
        match tree {
            TokenTree::Group(group) => {
                let mut new = Group::new(group.delimiter(), with_lifetimes(group.stream(), found));
                new.set_span(group.span());
                out.extend([TokenTree::Group(new)]);
            }
            tree => out.extend([tree]),
        }
        let named =
            matches!(trees.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == '\'');
        if reference && !named {
            *found = true;
            out.extend(quote!('reported));
        }
    }
    out
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

/// Whether a type is `&mut ForwardContext<Self>`, or another context where that is `right`.
fn is_context(ty: &Type, right: &str, mutable: bool) -> bool {
    let Type::Reference(reference) = bare(ty) else { return false };
    let Type::Path(path) = bare(&reference.elem) else { return false };
    let of_self = path.path.segments.last().is_some_and(|last| {
        let syn::PathArguments::AngleBracketed(given) = &last.arguments else { return false };
        let types =
            given.args.iter().filter(|arg| !matches!(arg, syn::GenericArgument::Lifetime(_)));
        let types: Vec<_> = types.collect();
        last.ident == right
            && matches!(types[..], [syn::GenericArgument::Type(ty)] if is_named(ty, "Self"))
    });
    of_self && path.qself.is_none() && reference.mutability.is_some() == mutable
}

fn repair_forward(expansion: &Expansion<'_>, reported: &TokenStream, body: &Group) -> Group {
    let layer = expansion.layer;
    let Some(context) = layer.forward.as_ref().and_then(|forward| forward.context.clone()) else {
        return body.clone();
    };
    let mut calls = Vec::new();
    if layer.saved.as_ref().is_none_or(|saved| !unsaveable(saved).is_empty()) || saves_each(layer) {
        calls.push("save_for_backward");
    }
    if kept_attrs(layer).is_none() {
        calls.push("set_attrs");
    }
    calls.extend(context_habits::ELSEWHERE);
    let drop = |name: &Ident, _: &Group| quote_spanned!(name.span()=> ::core::mem::drop(()));
    let body = replace_calls(body, &context, &calls, &drop);
    let tuple = |name: &Ident, arguments: &Group| {
        let values = arguments.stream();
        quote_spanned!(name.span()=> #context.#name((#values)))
    };
    let several = |call: &&str| {
        let found = find_call(&body.stream(), &context, call);
        found.is_some_and(|(_, values)| context_habits::arguments(&values).len() > 1)
    };
    let several: Vec<&str> = TOGETHER.into_iter().filter(several).collect();
    let body = replace_calls(&body, &context, &several, &tuple);
    replace_fields(&body, &context, reported)
}

/// Fields that the context does not have, and positions, become what was reported of them.
fn replace_fields(group: &Group, context: &Ident, reported: &TokenStream) -> Group {
    let replace = |rest: &[TokenTree]| {
        let field = context_habits::field(rest, context).map(|_| 3);
        let taken = field.or(context_habits::position(rest, context).map(|_| 5))?;
        // As a statement of its own it would not be what something is assigned to.
        Some((quote!((#reported)), taken))
    };
    replaced(group, &replace).unwrap_or_else(|| group.clone())
}

fn repair_backward(expansion: &Expansion<'_>, reported: &TokenStream, body: &Group) -> Group {
    let layer = expansion.layer;
    let Some(backward) = &layer.backward else { return body.clone() };
    let body = match &backward.returns {
        Returns::ByName(_) => completed_grads(expansion, body),
        _ => body.clone(),
    };
    repair_reads(expansion, reported, &body, backward.context.as_ref())
}

/// Every field of `Grads { .. }` once, and none that there is not.
fn completed_grads(expansion: &Expansion<'_>, body: &Group) -> Group {
    let inputs = expansion.layer.differentiable();
    let fields: Vec<Ident> = inputs.iter().map(|(param, _)| param.ident.clone()).collect();
    let literals = crate::grads::literals(body.stream());
    let fill = |ident: &Ident, span: Span| {
        let p = expansion.private_at(span);
        // Where another place gives it, its type is the one that stands there.
        let elsewhere =
            literals.len() > 1 && literals.iter().any(|literal| literal.fields.contains(ident));
        let input = inputs.iter().find(|(param, _)| param.ident == *ident);
        let ty = match input {
            Some((_, input)) if !elsewhere => concrete(&p, input),
            _ => quote_spanned!(span=> _),
        };
        quote_spanned!(span=> #p::stand_in::<#ty>())
    };
    crate::grads::completed(body, &fields, &fill)
}

fn repair_jvp(expansion: &Expansion<'_>, reported: &TokenStream, body: &Group) -> Group {
    let context = expansion.layer.jvp.as_ref().and_then(|jvp| jvp.context.as_ref());
    repair_reads(expansion, reported, body, context)
}

/// What cannot be read was reported.
fn repair_reads(
    expansion: &Expansion<'_>,
    reported: &TokenStream,
    body: &Group,
    context: Option<&Ident>,
) -> Group {
    let layer = expansion.layer;
    let Some(context) = context else { return body.clone() };
    let mut calls = Vec::new();
    if layer.saved.as_ref().is_none_or(|saved| !unsaveable(saved).is_empty()) {
        calls.push("saved_tensor");
    }
    if kept_attrs(layer).is_none() {
        calls.push("attrs");
    }
    // Where `type Saved` itself cannot be read, it most likely is a tensor like the output.
    let guess = layer.outputs().first().filter(|_| !layer.broken.is_empty()).map(|output| output.2);
    let declared = |name: &Ident, _: &Group| match guess {
        Some(tensor) if name == "saved_tensor" => {
            let p = expansion.private_at(name.span());
            quote_spanned!(name.span()=> #p::stand_in::<&'static #tensor>())
        }
        _ => reported.clone(),
    };
    let body = replace_calls(body, context, &calls, &declared);
    replace_fields(&body, context, reported)
}

/// Puts something in place of `ctx.call(value)`.
fn replace_calls(
    group: &Group,
    context: &Ident,
    calls: &[&str],
    with: &dyn Fn(&Ident, &Group) -> TokenStream,
) -> Group {
    let replace = |rest: &[TokenTree]| match rest {
        [
            TokenTree::Ident(receiver),
            TokenTree::Punct(dot),
            TokenTree::Ident(name),
            TokenTree::Group(value),
            ..,
        ] if receiver == context
            && dot.as_char() == '.'
            && calls.iter().any(|call| name == call)
            && value.delimiter() == Delimiter::Parenthesis =>
        {
            Some((with(name, value), 4))
        }
        _ => None,
    };
    replaced(group, &replace).unwrap_or_else(|| group.clone())
}
