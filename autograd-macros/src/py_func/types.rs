//! Types that are certainly no parameter and no value of a `#[py_func]`, each with the one to write.

use quote::ToTokens;
use syn::{GenericParam, Type};

use super::messages;
use crate::check::types::unbound;
use crate::errors::Errors;
use crate::model::{
    Block, PRIMITIVES, argument_of, bare, is_known, is_named, last_segment, type_arguments,
    without_reference,
};
use crate::signatures::{is_certain, is_type_of};
use crate::tokens::{is_one_of, plain_name, text};

/// Whether a type is that of a parameter or of a returned value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Parameter,
    Returned,
}

impl Place {
    /// The type to write in place of one that is wrong for certain. `generics`: the parameters of the block.
    pub(super) fn instead_of(self, ty: &Type, generics: &[&GenericParam]) -> Option<String> {
        if let Some(inner) = argument_of(ty, "Option") {
            return self.instead_of(inner, generics).map(|inner| format!("Option<{inner}>"));
        }
        let target = without_reference(ty);
        let is_borrowed = matches!(bare(ty), Type::Reference(_));
        let is_mutable = matches!(bare(ty), Type::Reference(of) if of.mutability.is_some());
        if is_named(target, "Tensor") {
            let wants_borrow = self == Self::Parameter;
            let right = is_borrowed == wants_borrow && !is_mutable;
            let written = if wants_borrow { "&" } else { "" };
            return (!right).then(|| format!("{written}{}", text(target)));
        }
        let (form, arguments) = array_of(target, generics)?;
        let write = format!("{}{form}<{arguments}>", self.prefix());
        let is_written = last_segment(target).is_some_and(|last| {
            let types: Vec<String> = type_arguments(last).map(text).collect();
            write == format!("{}<{}>", last.ident, types.join(", "))
        });
        (!is_written || is_borrowed).then_some(write)
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Parameter => "ArrayView",
            Self::Returned => "Array",
        }
    }
}

/// The array that the type is, or that takes its place: what follows `Array` or `ArrayView` in its name, and the
/// arguments. `None` for a type of an unknown name.
fn array_of(ty: &Type, generics: &[&GenericParam]) -> Option<(String, String)> {
    let is_element = |ty: &Type| {
        let name =
            last_segment(ty).filter(|last| last.arguments.is_empty()).map(|last| &last.ident);
        name.is_some_and(|name| is_known(&plain_name(name)) || is_type_of(generics, name))
    };
    let one = |element: &str| Some(("D".to_owned(), element.to_owned()));
    let list = |element: &Type| match is_element(element) {
        true => Some(("1".to_owned(), text(element))),
        false => one("f64"),
    };
    match ty {
        Type::Slice(list_of) => return list(&list_of.elem),
        Type::Array(list_of) => return list(&list_of.elem),
        Type::Tuple(_) => return one("f64"),
        _ => {}
    }
    let last = last_segment(ty)?;
    let name = plain_name(&last.ident);
    if let Some(element) = argument_of(ty, "Vec") {
        return list(element);
    }
    let prefixes = ["ArrayViewMut", "ArrayView", "Array"];
    if let Some(form) = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)) {
        let is_form = matches!(form, "" | "D" | "0" | "1" | "2" | "3" | "4" | "5" | "6");
        let mut arguments: Vec<String> = type_arguments(last).map(text).collect();
        // No array of a program holds such elements.
        let first = arguments.first_mut().filter(|first| !is_known(first));
        if let Some(first) = first.filter(|first| PRIMITIVES.split(' ').any(|name| name == **first))
        {
            *first = if first.starts_with(['i', 'u']) { "i64" } else { "f64" }.to_owned();
        }
        return (is_form && !arguments.is_empty()).then(|| (form.to_owned(), arguments.join(", ")));
    }
    match is_one_of(&last.ident, PRIMITIVES) || is_certain(ty, generics) || name == "Variable" {
        _ if is_element(ty) => one(&name),
        true => one("f64"),
        false => None,
    }
}

/// Reports the first array whose elements are of a type parameter without a bound.
pub(super) fn unbound_element<'a>(
    mut types: impl Iterator<Item = &'a Type>,
    block: &Block,
    errors: &mut Errors,
) {
    let found = types.find_map(|ty| {
        let last = last_segment(without_reference(argument_of(ty, "Option").unwrap_or(ty)))?;
        Some((ty, unbound(type_arguments(last).next()?, &block.generics)?))
    });
    if let Some((ty, name)) = found {
        errors.at(ty, messages::unbound_element(&name, &block.name.to_string()));
    }
}

/// Reports a type that is wrong for certain. `name`: the parameter, if it is that of one.
pub(super) fn check(
    name: Option<&syn::Ident>,
    ty: &Type,
    generics: &[&GenericParam],
    errors: &mut Errors,
) {
    let place = if name.is_some() { Place::Parameter } else { Place::Returned };
    let Some(write) = place.instead_of(ty, generics) else { return };
    let found = text(ty);
    let message = match name {
        Some(name) => messages::no_array(&plain_name(name), &found, &write),
        None => messages::no_array_returned(&found, &write),
    };
    errors.at(ty.to_token_stream(), message);
}
