//! The proofs: what the macro guessed from names, the compiler checks by types, at the user's
//! spans, in the words of the traits. Emitted only where the syntax had nothing to say.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;

use crate::errors::ends;
use crate::expand::{Expansion, Mode, whole_span};
use crate::model::{
    Forward, ParamKind, argument_of, as_tensor, bare, last_segment, mentions, parameter_name,
    plain_name, text,
};

/// That a value holds no tensor. Never runs.
pub(crate) fn plain(
    expansion: &Expansion<'_>,
    value: &TokenStream,
    place: &impl ToTokens,
) -> TokenStream {
    let (first, last) = ends(place.to_token_stream());
    let p = expansion.private_at(first);
    let answer = quote_spanned!(last=> .__holds_tensor());
    quote_spanned! {first=>
        if false {
            #[allow(unused_imports)]
            use #p::HoldsNoTensor as _;
            #p::plain(#p::Probe::of(&#value)#answer);
        }
    }
}

/// That no plain parameter holds a tensor.
pub(crate) fn plain_inputs(expansion: &Expansion<'_>, forward: &Forward) -> TokenStream {
    forward
        .params
        .iter()
        .filter(|param| matches!(param.kind, ParamKind::Plain { .. }))
        .map(|param| {
            let mut ident = param.ident.clone();
            ident.set_span(ident.span().located_at(whole_span(&param.ty)));
            plain(expansion, &quote!(#ident), &param.ty)
        })
        .collect()
}

/// The same for a parameter whose type only the caller knows: told when running.
pub(crate) fn checked_when_running(
    expansion: &Expansion<'_>,
    forward: &Forward,
    key: &Ident,
) -> TokenStream {
    let p = &expansion.private;
    let generics = &expansion.layer.generics;
    let known: Vec<_> = generics
        .type_params()
        .chain(forward.function.sig.generics.type_params())
        .map(|param| param.ident.to_string())
        .collect();
    forward
        .params
        .iter()
        .filter(|param| {
            matches!(param.kind, ParamKind::Plain { .. })
                && last_segment(referred(&param.ty))
                    .is_some_and(|segment| known.contains(&segment.ident.to_string()))
        })
        .map(|param| {
            let (ident, name) = (&param.ident, plain_name(&param.ident));
            quote!(#p::check_plain::<Self, #key, _>(&#ident, #name)?;)
        })
        .collect()
}

fn referred(ty: &Type) -> &Type {
    match bare(ty) {
        Type::Reference(reference) => referred(&reference.elem),
        ty => ty,
    }
}

/// That what is called `Tensor` is one: one proof for each type, at the place where it stands first.
fn tensors(expansion: &Expansion<'_>) -> TokenStream {
    let layer = expansion.layer;
    let inputs = |stopped: bool| {
        layer
            .inputs()
            .filter(move |(_, input)| input.stop_gradient == stopped)
            .map(|(_, input)| &input.tensor)
    };
    let outputs = layer.outputs().into_iter().map(|(_, _, tensor)| tensor);
    let float = inputs(false).chain(outputs).map(|tensor| ("float_tensor", tensor));
    let any = inputs(true).map(|tensor| ("any_tensor", tensor));
    let mut proven: Vec<String> = Vec::new();
    let mut proofs = TokenStream::new();
    for (proof, tensor) in float.chain(any) {
        let text = text(tensor);
        if proven.contains(&text) {
            continue;
        }
        proven.push(text);
        let span = ends(tensor.to_token_stream()).0;
        let p = expansion.private_at(span);
        let proof = Ident::new(proof, span);
        proofs.extend(quote_spanned!(span=> #p::#proof::<#tensor>();));
    }
    proofs
}

/// What can be proven of the declarations alone: that tensors are tensors, and that `type Attrs`
/// holds none, which would lose its gradient or leak.
pub(crate) fn declared(expansion: &Expansion<'_>) -> TokenStream {
    if matches!(expansion.mode, Mode::Fallback(_)) {
        return TokenStream::new();
    }
    let tensors = tensors(expansion);
    let attrs = plain_state(expansion);
    quote!(#tensors #attrs)
}

/// What `save_for_backward` is held against: the declared type, unless it turns out to be one that
/// cannot be saved, which is told at the declaration.
pub(crate) fn savable(expansion: &Expansion<'_>) -> TokenStream {
    let layer = expansion.layer;
    let generic = |saved: &Type| {
        let mut names = layer.generics.params.iter().map(parameter_name);
        names.any(|name| mentions(saved, name.trim_start_matches('\'')))
    };
    let unknown = layer.saved.as_ref().filter(|saved| !is_savable(saved) && !generic(saved));
    let Some(saved) = unknown.filter(|_| matches!(expansion.mode, Mode::Full)) else {
        return quote!(Self::Saved);
    };
    let p = &expansion.private;
    quote! {
        <#p::Chosen<{
            #[allow(unused_imports)]
            use #p::CannotSave as _;
            #p::CanSave::<#saved>::ANSWER
        }> as #p::Choose<#saved>>::Checked
    }
}

/// What can be saved by its looks.
fn is_savable(ty: &Type) -> bool {
    match bare(ty) {
        Type::Tuple(tuple) => tuple.elems.iter().all(is_savable),
        Type::Array(array) => is_savable(&array.elem),
        ty => {
            let inner = ["Option", "Vec"].into_iter().find_map(|name| argument_of(ty, name));
            as_tensor(ty).is_some() || inner.is_some_and(is_savable)
        }
    }
}

fn plain_state(expansion: &Expansion<'_>) -> TokenStream {
    let Some(attrs) = &expansion.layer.state else { return TokenStream::new() };
    let (first, last) = ends(attrs.to_token_stream());
    let p = expansion.private_at(first);
    let answer = quote_spanned!(last=> .__holds_tensor());
    quote_spanned! {first=>
        if false {
            #[allow(unused_imports)]
            use #p::HoldsNoTensor as _;
            #p::attrs(#p::Probe::<#attrs>::new()#answer);
        }
    }
}
