//! Aliases for unknown element types, like that of `Tensor<Price>`, and for unknown plain outputs. Generated
//! code uses the aliases, so an error in such a type is reported once, where the user wrote it.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{ReturnType, Type, TypePath};

use crate::builder::named::Scope;
use crate::check::types::{is_plain, is_primitive};
use crate::errors::Errors;
use crate::generics::{generated, parameter_name};
use crate::library::private;
use crate::model::{
    Forward, Layer, Param, ParamKind, element, first_argument, float_output, is_known,
};
use crate::parse;
use crate::tokens::{first_span, is_punct, mentions, plain_name, rewritten, text};

/// Puts the aliases into forward. Returns forward as written and the declarations; `None` if none is needed.
pub(crate) fn name(layer: &mut Layer) -> Option<(Forward, TokenStream)> {
    let (named, types) = named(layer)?;
    Some((layer.forward.replace(named)?, types))
}

fn named(layer: &Layer) -> Option<(Forward, TokenStream)> {
    let forward = layer.forward.as_ref()?;
    let mut unsure: Vec<(String, &TypePath, &Type)> = Vec::new();
    let outputs = forward.outputs.tensors().map(|(.., tensor)| tensor);
    for tensor in forward.inputs().map(|(_, of)| &of.tensor).chain(outputs) {
        let text = element(tensor);
        if let Some(written) = tensor.path.segments.last().and_then(first_argument)
            && !is_known(&text)
            && is_alone(layer, forward, written)
            && !unsure.iter().any(|(known, ..)| *known == text)
        {
            unsure.push((text, tensor, written));
        }
    }
    // The builder would have to name a hidden lifetime of a plain output.
    let plain = |ty: &Type| float_output(ty).is_none() && !is_primitive(ty);
    let output = match &forward.function.sig.output {
        ReturnType::Type(_, ty) if forward.outputs.parts.iter().any(plain) => Some(ty),
        _ => None,
    };
    let output = output.filter(|ty| is_alone(layer, forward, ty));
    let scope = Scope::new(layer, forward);
    let params = forward.params.iter().enumerate();
    let plain = params.filter(|(_, of)| matches!(of.kind, ParamKind::Plain { .. }));
    let hidden = plain.filter_map(|(at, of)| {
        let alias = match layer.is_formula {
            true => (!is_plain(&of.ty)).then(|| declared_plain(layer, of)),
            false => scope.hides(&of.ty).then(|| scope.name(of, at, true).alias)?,
        };
        Some((at, alias?))
    });
    let hidden: Vec<_> = hidden.collect();
    if unsure.is_empty() && output.is_none() && hidden.is_empty() {
        return None;
    }
    let name = |at: usize| generated(&layer.name, &format!("Element{at}"));
    let types = unsure.iter().enumerate();
    let types = types.map(|(at, (_, tensor, element))| declared(&name(at), element, tensor));
    let mut function = forward.function.clone();
    let sig = rewritten(function.sig.to_token_stream(), &mut |trees, at| {
        let end = element_end(&trees[at..])?;
        let element = text(&trees[at + 2..at + end].iter().cloned().collect::<TokenStream>());
        let mut name = name(unsure.iter().position(|(known, ..)| *known == element)?);
        name.set_span(name.span().located_at(trees[at + 2].span()));
        let (tensor, open, close) = (&trees[at], &trees[at + 1], &trees[at + end]);
        Some((quote!(#tensor #open #name #close), end + 1))
    });
    let mut named = match sig {
        Some(sig) => {
            function.sig = syn::parse2(sig).ok()?;
            parse::forward(&function, &layer.name.to_string(), &mut Errors::new())
        }
        None => forward.clone(),
    };
    let mut types: TokenStream = types.collect();
    for (at, (declaration, ty)) in hidden {
        types.extend(declaration);
        named.params[at].ty = ty;
    }
    if let (Some(_), ReturnType::Type(_, ty)) = (output, &function.sig.output) {
        let mut name = generated(&layer.name, "Output");
        types.extend(quote!(type #name = #ty;));
        name.set_span(name.span().located_at(first_span(ty)));
        named.function.sig.output = syn::parse_quote!(-> #name);
    }
    Some((named, types))
}

/// Declares an alias of a type. In docs it is the plain type, since the alias is private. Otherwise it is the
/// return type of functions in an array whose length proves `proven`: if that fails, the alias is an error type.
fn declared(name: &Ident, ty: &Type, proven: &impl ToTokens) -> TokenStream {
    let p = private();
    quote! {
        #[cfg(doc)]
        type #name = #ty;
        #[cfg(not(doc))]
        type #name =
            <[fn(&'static ()) -> #ty; { #p::PhantomData::<#proven>; 0 }] as #p::Returned>::Type;
    }
}

/// The alias of the type of a formula's plain parameter: its declaration, and the alias in a signature.
fn declared_plain(layer: &Layer, param: &Param) -> (TokenStream, Type) {
    let name = generated(&layer.name, &format!("Type_{}", plain_name(&param.ident)));
    let ty = &param.ty;
    (declared(&name, ty, &quote!(fn(&()) -> #ty)), syn::parse_quote!(#name))
}

/// Whether a type means the same outside the block: it has no parameter, lifetime or `Self`. A name of one
/// letter may be a parameter of an outer function.
fn is_alone(layer: &Layer, forward: &Forward, element: &Type) -> bool {
    let params = layer.generics.params.iter().chain(&forward.function.sig.generics.params);
    let written = text(element).replace("'static", "");
    written.len() > 1
        && !written.contains(['\'', '&'])
        && !params.into_iter().any(|param| mentions(element, &parameter_name(param)))
        && !["Self", "impl", "_"].iter().any(|word| mentions(element, word))
}

/// The position of the `>`, if the trees start with `Tensor<..>`.
fn element_end(trees: &[TokenTree]) -> Option<usize> {
    let tensor = matches!(trees.first(), Some(TokenTree::Ident(name)) if name == "Tensor");
    if !tensor || !is_punct(trees.get(1), '<') {
        return None;
    }
    let mut depth = 0;
    trees.iter().enumerate().skip(1).find_map(|(at, tree)| {
        let close = is_punct(Some(tree), '>') && !is_punct(trees.get(at - 1), '-');
        depth += i32::from(is_punct(Some(tree), '<')) - i32::from(close);
        (depth == 0).then_some(at)
    })
}
