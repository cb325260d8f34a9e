//! Aliases for the types of forward that the compiler may reject, like `Tensor<Price>` or `Box<dyn Name>`.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{ReturnType, Type, TypePath};

use crate::builder::named::{Scope, without_self};
use crate::check::types::is_plain;
use crate::errors::Errors;
use crate::generics::{generated, parameter_name};
use crate::library::private;
use crate::model::{Forward, Layer, Param, ParamKind, element, first_argument, is_known};
use crate::parse;
use crate::signatures::{checked, is_certain, signatures};
use crate::tokens::{find_ident, first_span, is_punct, mentions, plain_name, rewritten, text};

/// What stands for the types of forward in generated code.
pub(crate) struct Named {
    /// Forward with the types as written.
    pub(crate) written: Forward,
    /// The declarations of the aliases.
    pub(crate) types: TokenStream,
}

/// Puts the aliases into forward; `None` if the types are certainly right.
pub(crate) fn name(layer: &mut Layer) -> Option<Named> {
    let (named, types) = named(layer)?;
    let written = layer.forward.replace(named)?;
    Some(Named { written, types })
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
    let scope = Scope::new(layer, forward);
    let output = match &forward.function.sig.output {
        ReturnType::Type(_, ty)
            if !is_certain(ty, &scope.generics) && is_alone(layer, forward, ty) =>
        {
            Some(ty)
        }
        _ => None,
    };
    let params = forward.params.iter().enumerate();
    let plain = params.filter(|(_, of)| matches!(of.kind, ParamKind::Plain { .. }));
    let hidden = plain.filter_map(|(at, of)| {
        let alias = match layer.is_formula {
            true => {
                let certain = is_plain(&of.ty) && is_certain(&of.ty, &scope.generics);
                (!certain && !mentions(&of.ty, "impl")).then(|| declared_plain(layer, of))
            }
            false => scope.needs_alias(&of.ty).then(|| scope.name(of, at, true).alias)?,
        };
        Some((at, alias?))
    });
    let hidden: Vec<_> = hidden.collect();
    let given = layer.backward.iter().chain(&layer.jvp).flat_map(|of| {
        let returned = match &of.function.sig.output {
            ReturnType::Type(_, ty) if of.returns.by_name().is_none() => Some(&**ty),
            _ => None,
        };
        of.params.iter().map(|param| &param.ty).chain(returned)
    });
    let certain = unsure.is_empty() && output.is_none() && hidden.is_empty();
    if certain && given.into_iter().all(|ty| is_certain(ty, &scope.generics)) {
        return None;
    }
    let name = |at: usize| generated(&layer.name, &format!("Element{at}"));
    let types = unsure.iter().enumerate();
    let types = types.map(|(at, (.., element))| declared(&name(at), element));
    let p = private();
    let lane = layer.is_formula.then(|| quote!(#p::elementwise::Traced));
    let signatures = signatures(layer, lane, TokenStream::new());
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
    let mut types: TokenStream = types.chain([signatures]).collect();
    for (at, (declaration, ty)) in hidden {
        types.extend(declaration);
        named.params[at].ty = ty;
    }
    if let (Some(_), ReturnType::Type(_, ty)) = (output, &function.sig.output) {
        let mut name = generated(&layer.name, "Output");
        types.extend(declared(&name, ty));
        name.set_span(name.span().located_at(first_span(ty)));
        named.function.sig.output = syn::parse_quote!(-> #name);
    }
    Some((named, types))
}

fn declared(name: &Ident, ty: &impl ToTokens) -> TokenStream {
    let checked = checked(&quote!('static), ty, Span::call_site());
    quote!(type #name = #checked;)
}

/// The alias of the type of a formula's plain parameter: its declaration, and the alias in a signature.
fn declared_plain(layer: &Layer, param: &Param) -> (TokenStream, Type) {
    let name = generated(&layer.name, &format!("Type_{}", plain_name(&param.ident)));
    let ty = without_self(layer, param.ty.to_token_stream());
    (declared(&name, &ty), syn::parse_quote!(#name))
}

/// Whether a type means the same outside the block: it has no parameter, lifetime or `Self`. A name of one
/// letter may be a parameter of an outer function.
fn is_alone(layer: &Layer, forward: &Forward, element: &Type) -> bool {
    let params = layer.generics.params.iter().chain(&forward.function.sig.generics.params);
    let written = text(element).replace("'static", "");
    let of_one_letter = find_ident(element.to_token_stream(), |name| name.to_string().len() == 1);
    of_one_letter.is_none()
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
