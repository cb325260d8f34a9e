//! The proofs: code by which the compiler checks the macro's guesses, at the user's spans, with the
//! messages of the library's traits. Emitted only if the syntax does not decide.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{PathArguments, Type, TypeParamBound};

use crate::check::types::is_primitive;
use crate::expansion::{Expansion, Mode};
use crate::generics::parameter_name;
use crate::library::{private, private_at};
use crate::model::{
    Forward, Layer, ParamKind, argument_of, as_tensor, bare, bounds_of, contained_types,
    last_segment, without_reference,
};
use crate::tokens::{
    anonymous, ends, first_span, mentions, plain_name, replace_ident, text, whole_span,
};

/// Proves that a value of this type holds no tensor, unless that is certain. The code never runs.
pub(crate) fn plain(value: &TokenStream, ty: &Type) -> TokenStream {
    match bare(ty) {
        Type::Tuple(tuple) => {
            let elements = tuple.elems.iter().enumerate();
            let element = |(position, ty)| {
                let position = syn::Index::from(position);
                plain(&quote!(#value.#position), ty)
            };
            elements.map(element).collect()
        }
        ty if is_primitive(without_reference(ty)) => TokenStream::new(),
        ty => proof(ty, "plain", |span, _| quote_spanned!(span=> (&#value).__probe())),
    }
}

fn proof(ty: &Type, proof: &str, probe: impl Fn(Span, &Ident) -> TokenStream) -> TokenStream {
    let (first, last) = ends(ty.to_token_stream());
    let (p, proof) = (private_at(first), Ident::new(proof, first));
    let (probe, answer) = (probe(first, &p), quote_spanned!(last=> .__holds_tensor()));
    // With the macro's span, where no lint reports unused imports.
    let own = private();
    let traits = quote!(use #own::{HoldsNoTensor as _, HoldsTensorFurther as _, Probed as _};);
    quote_spanned! {first=>
        if false {
            #traits
            #p::#proof(#probe #answer);
        }
    }
}

/// The proofs that plain parameters hold no tensor, and the checks at run time where only the caller knows the type.
pub(crate) fn plain_inputs(layer: &Layer, forward: &Forward) -> TokenStream {
    let (p, op) = (&private(), plain_name(&layer.name));
    let generics = layer.generics.type_params().chain(forward.function.sig.generics.type_params());
    let known: Vec<_> = generics.map(|param| param.ident.to_string()).collect();
    let plain = forward.params.iter().filter(|of| matches!(of.kind, ParamKind::Plain { .. }));
    let proofs = plain.map(|param| {
        let (ident, name) = (&param.ident, plain_name(&param.ident));
        let depends = depends_on_caller(&param.ty, &known);
        let check = depends.then(|| quote!(#p::check_plain(#op, &#ident, #name)?;));
        let mut ident = ident.clone();
        ident.set_span(ident.span().located_at(whole_span(&param.ty)));
        let proof = self::plain(&quote!(#ident), &param.ty);
        quote!(#proof #check)
    });
    proofs.collect()
}

/// Whether a value of this type holds a value whose type only the caller knows. Parameters and results
/// of functions are not held.
fn depends_on_caller(ty: &Type, parameters: &[String]) -> bool {
    match bare(ty) {
        Type::ImplTrait(object) => !object.bounds.iter().any(is_function),
        ty => {
            last_segment(ty).is_some_and(|last| parameters.contains(&last.ident.to_string()))
                || contained_types(ty).into_iter().any(|ty| depends_on_caller(ty, parameters))
        }
    }
}

fn is_function(bound: &TypeParamBound) -> bool {
    match bound {
        TypeParamBound::Trait(bound) => bound
            .path
            .segments
            .last()
            .is_some_and(|last| matches!(last.arguments, PathArguments::Parenthesized(_))),
        _ => false,
    }
}

/// Proves that a type named `Tensor` is one, and an output named `Vec`: one proof for each type, at its first
/// occurrence.
fn named(layer: &Layer) -> TokenStream {
    let inputs = |stopped: bool| {
        layer
            .inputs()
            .filter(move |(_, input)| input.stop_gradient == stopped)
            .map(|(_, input)| &input.tensor)
    };
    let outputs = layer.outputs().into_iter().map(|(_, _, tensor)| tensor);
    let float = inputs(false).chain(outputs).map(|tensor| ("float_tensor", tensor));
    let any = inputs(true).map(|tensor| ("any_tensor", tensor));
    let tensors = float.chain(any).map(|(proof, tensor)| (proof, tensor.to_token_stream()));
    let outputs = layer.outputs().into_iter().map(|(ty, ..)| ty);
    let lists = outputs.filter(|ty| argument_of(ty, "Vec").is_some());
    let lists = lists.map(|ty| ("list", anonymous(ty)));
    let mut proven: Vec<String> = Vec::new();
    let mut proofs = TokenStream::new();
    for (proof, ty) in tensors.chain(lists) {
        let text = text(&ty);
        if proven.contains(&text) {
            continue;
        }
        proven.push(text);
        let span = first_span(&ty);
        let (p, proof) = (private_at(span), Ident::new(proof, span));
        proofs.extend(quote_spanned!(span=> #p::#proof::<#ty>();));
    }
    proofs
}

/// The proofs about declarations: that tensors are tensors, and that `type Attrs` holds none, which would
/// lose its gradient or leak.
pub(crate) fn declared(expansion: &Expansion<'_>) -> TokenStream {
    if !matches!(expansion.mode, Mode::Full) {
        return TokenStream::new();
    }
    let named = named(expansion.layer);
    let attrs = expansion.layer.state.as_ref().map(plain_state);
    quote!(#named #attrs)
}

/// The type that `save_for_backward` checks its argument against: the declared type, unless that cannot be
/// saved, which is reported at the declaration.
pub(crate) fn savable(expansion: &Expansion<'_>) -> TokenStream {
    let layer = expansion.layer;
    let unknown = layer.saved.as_ref().filter(|saved| !is_savable(saved));
    let unknown = unknown.filter(|_| matches!(expansion.mode, Mode::Full));
    let Some((saved, example)) = unknown.and_then(|saved| Some((saved, example(layer, saved)?)))
    else {
        return quote!(Self::Saved);
    };
    let p = &private();
    quote! {
        <#p::Chosen<{
            use #p::CannotSave as _;
            #p::CanSave::<#example>::ANSWER
        }> as #p::Choose<#saved>>::Checked
    }
}

/// The type with `f64` for each float parameter and a function pointer for each function parameter, since
/// a constant cannot depend on parameters. `None` if the type mentions another parameter.
fn example(layer: &Layer, saved: &Type) -> Option<TokenStream> {
    let mut tokens = saved.to_token_stream();
    for parameter in &layer.generics.params {
        let name = parameter_name(parameter);
        if !mentions(saved, name.trim_start_matches('\'')) {
            continue;
        }
        if text(saved).contains(&format!("{name}::")) {
            return None;
        }
        let concrete = bounds_of(&layer.generics, &name).find_map(|bound| {
            let TypeParamBound::Trait(bound) = bound else { return None };
            let last = bound.path.segments.last()?;
            match &last.arguments {
                PathArguments::Parenthesized(function) => {
                    let (inputs, output) = (&function.inputs, &function.output);
                    Some(quote!(fn(#inputs) #output))
                }
                _ => (last.ident == "Float").then(|| quote!(::core::primitive::f64)),
            }
        })?;
        // The function's types may depend on another parameter.
        if layer.generics.params.iter().any(|other| mentions(&concrete, &parameter_name(other))) {
            return None;
        }
        tokens = replace_ident(tokens, &name, &concrete);
    }
    Some(tokens)
}

fn is_savable(ty: &Type) -> bool {
    match bare(ty) {
        Type::Tuple(tuple) => tuple.elems.iter().all(is_savable),
        Type::Array(array) => is_savable(&array.elem),
        // `Vec` and `Option` may be names of other types.
        ty => as_tensor(ty).is_some(),
    }
}

fn plain_state(attrs: &Type) -> TokenStream {
    match bare(attrs) {
        Type::Tuple(tuple) => tuple.elems.iter().map(plain_state).collect(),
        // The compiler reports a `_`.
        attrs if is_primitive(without_reference(attrs)) || mentions(attrs, "_") => {
            TokenStream::new()
        }
        attrs => proof(attrs, "attrs", |span, p| quote_spanned!(span=> #p::Probe::<#attrs>::new())),
    }
}
