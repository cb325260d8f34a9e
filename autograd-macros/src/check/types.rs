//! Classification of types by their syntax, for the rules.

use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Generics, Token, Type, TypeParamBound, TypePath};

use crate::messages;
use crate::model::{
    Form, PRIMITIVES, argument_of, as_tensor, bare, bounds_of, contained_types, element,
    first_argument, is_known, last_segment, output_form, written_lifetimes,
};
use crate::tokens::{is_one_of, text};

/// The found and the expected element type, if they are certainly different.
pub(crate) fn other_element(found: &TypePath, expected: &TypePath) -> Option<(String, String)> {
    let (found, expected) = (element(found), element(expected));
    (is_known(&found) && is_known(&expected) && found != expected).then_some((found, expected))
}

/// The first tensor anywhere in the type of a parameter. `impl Trait` is not searched: it has its own
/// error.
pub(crate) fn tensor_in(ty: &Type) -> Option<&TypePath> {
    as_tensor(ty).or_else(|| contained_types(ty).into_iter().find_map(tensor_in))
}

pub(crate) fn is_list(ty: &Type) -> bool {
    output_form(ty).is_some_and(|(form, _)| form == Form::List)
}

/// Whether the type cannot be a gradient, even through an alias. Other types are left to the compiler.
pub(crate) fn cannot_be_gradient(ty: &Type) -> bool {
    match bare(ty) {
        Type::Reference(_)
        | Type::Slice(_)
        | Type::Array(_)
        | Type::Tuple(_)
        | Type::FnPtr(_)
        | Type::Never(_)
        | Type::Ptr(_) => true,
        Type::Path(path) if path.qself.is_none() => last_segment(ty).is_some_and(|segment| {
            let name = segment.ident.to_string();
            let primitive = is_plain(ty) || matches!(&name[..], "Tensor" | "Vec");
            primitive || (name == "Option" && first_argument(segment).is_some())
        }),
        _ => false,
    }
}

/// Whether the type is certainly not a tensor, not even through an alias.
pub(crate) fn is_plain(ty: &Type) -> bool {
    is_primitive(ty) || matches!(bare(ty), Type::Path(path) if path.path.is_ident("String"))
}

pub(crate) fn is_primitive(ty: &Type) -> bool {
    let Type::Path(path) = bare(ty) else { return false };
    path.path.get_ident().is_some_and(|name| is_one_of(name, PRIMITIVES))
}

/// The parts of `type Saved` that are certainly not tensors, with the messages.
pub(crate) fn unsaveable<'a>(ty: &'a Type, generics: &Generics) -> Vec<(&'a Type, String)> {
    let unsaveable = |ty: &'a Type| unsaveable(ty, generics);
    match bare(ty) {
        Type::Tuple(tuple) => tuple.elems.iter().flat_map(unsaveable).collect(),
        Type::Array(array) => unsaveable(&array.elem),
        Type::Reference(reference) => {
            let inner = unsaveable(&reference.elem);
            match inner.is_empty() {
                true => vec![(ty, messages::saved_reference(&owned(&reference.elem)))],
                false => inner,
            }
        }
        Type::FnPtr(_) | Type::Ptr(_) | Type::Never(_) | Type::TraitObject(_) => {
            vec![(ty, messages::saved_plain(&text(ty)))]
        }
        Type::Path(path) if path.qself.is_none() => {
            if is_plain(ty) || unbound(ty, generics).is_some() {
                return vec![(ty, messages::saved_plain(&text(ty)))];
            }
            let inner = ["Option", "Vec"].into_iter();
            inner.filter_map(|name| argument_of(bare(ty), name)).flat_map(unsaveable).collect()
        }
        _ => Vec::new(),
    }
}

/// The first borrow in `type Attrs` that is not `'static`, with the message. Parameters and results of functions
/// are not stored.
pub(crate) fn borrowed(ty: &Type) -> Option<(TokenStream, String)> {
    if let Type::Reference(syn::TypeReference { lifetime: None, elem, .. }) = bare(ty) {
        return Some((quote!(#ty), messages::attrs_reference(&text(elem), &owned(elem))));
    }
    let own = written_lifetimes(ty).into_iter().find(|lifetime| lifetime.ident != "static");
    let own = own.map(|own| (quote!(#own), messages::attrs_lifetime(&own.to_string())));
    own.or_else(|| contained_types(ty).into_iter().find_map(borrowed))
}

/// What cannot be kept in `type Attrs` for certain, with the message.
pub(crate) fn unkeepable(ty: &Type, generics: &Generics) -> Option<(TokenStream, String)> {
    borrowed(ty).or_else(|| not_shared(ty, false, generics))
}

/// The first part of the type that cannot go to other threads, or has no size. `behind`: whether it is that of a
/// pointer or of a container.
fn not_shared(ty: &Type, behind: bool, generics: &Generics) -> Option<(TokenStream, String)> {
    let at = |message: String| Some((quote!(#ty), message));
    match bare(ty) {
        Type::ImplTrait(object) => {
            at(messages::attrs_impl_trait(&text(ty), &boxed(&object.bounds)))
        }
        Type::TraitObject(object) if !behind => {
            at(messages::attrs_unsized(&text(ty), &boxed(&object.bounds)))
        }
        Type::TraitObject(object) => {
            let is_closure = object.bounds.iter().any(|bound| is_bound(bound, "Fn FnMut FnOnce"));
            let is_shared = shared(&object.bounds) == text(&object.bounds);
            let write = || format!("dyn {}", shared(&object.bounds));
            (is_closure && !is_shared).then(|| (quote!(#ty), messages::attrs_threads(&write())))
        }
        Type::Path(path) if path.path.get_ident().is_some() => {
            unbound(ty, generics).map(|name| (quote!(#ty), messages::attrs_parameter(&name)))
        }
        ty => contained_types(ty).into_iter().find_map(|ty| not_shared(ty, true, generics)),
    }
}

/// The name of a type parameter without a bound that may be one of tensors, or of threads.
pub(crate) fn unbound(ty: &Type, generics: &Generics) -> Option<String> {
    let name = text(ty);
    generics.type_params().find(|param| param.ident == name)?;
    let is_other = |bound: &TypeParamBound| {
        matches!(bound, TypeParamBound::Trait(_)) && !is_bound(bound, PLAIN_TRAITS)
    };
    let is_bound = bounds_of(generics, &name).any(is_other);
    (!is_bound).then_some(name)
}

/// The closure that a formula cannot keep, with the type to write: it is cloned, and goes to other threads.
pub(crate) fn closure_not_kept(ty: &Type) -> Option<(&Type, String)> {
    let (pointer, object) = ["Box", "Rc", "Arc"].into_iter().find_map(|pointer| {
        let Type::TraitObject(object) = bare(argument_of(ty, pointer)?) else { return None };
        Some((pointer, object))
    })?;
    let is_closure = object.bounds.iter().any(|bound| is_bound(bound, "Fn FnMut FnOnce"));
    let is_shared = pointer == "Arc" && shared(&object.bounds) == text(&object.bounds);
    (is_closure && !is_shared).then(|| (ty, format!("Arc<dyn {}>", shared(&object.bounds))))
}

/// Names of traits that say nothing of threads, nor of tensors.
const PLAIN_TRAITS: &str = "Copy Clone Debug Display Default Sized PartialEq PartialOrd Eq Ord Hash Fn FnMut \
    FnOnce Send";

fn is_bound(bound: &TypeParamBound, names: &str) -> bool {
    matches!(bound, TypeParamBound::Trait(of)
        if of.path.segments.last().is_some_and(|last| is_one_of(&last.ident, names)))
}

/// The bounds with `Send` and `Sync`.
fn shared(bounds: &Punctuated<TypeParamBound, Token![+]>) -> String {
    let missing = ["Send", "Sync"].into_iter();
    let missing = missing.filter(|name| !bounds.iter().any(|bound| is_bound(bound, name)));
    [text(bounds)].into_iter().chain(missing.map(str::to_owned)).collect::<Vec<_>>().join(" + ")
}

fn boxed(bounds: &Punctuated<TypeParamBound, Token![+]>) -> String {
    format!("Box<dyn {}>", shared(bounds))
}

pub(crate) fn owned(ty: &Type) -> String {
    match bare(ty) {
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        Type::Slice(slice) => format!("Vec<{}>", text(&slice.elem)),
        ty => text(ty),
    }
}

/// The types as a function returns them: as a tuple, unless there is only one.
pub(crate) fn together(types: Vec<String>) -> String {
    let written = types.join(", ");
    if types.len() == 1 { written } else { format!("({written})") }
}

/// Whether the parameter is not an `Option`: a missing gradient is then passed as zeros.
pub(crate) fn is_bare_gradient(ty: &Type) -> bool {
    let Type::Reference(reference) = bare(ty) else { return false };
    !matches!(bare(&reference.elem), Type::Slice(slice) if argument_of(&slice.elem, "Option").is_some())
}
