//! `export`: the op as a value that hosts call.

mod expand;
mod messages;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{GenericParam, Token, Type, TypeParam};

use crate::errors::Errors;
use crate::generics::parameter_name;
use crate::messages::twice;
use crate::model::{Layer, ParamKind, bare, is_known, last_segment};
use crate::tokens::{plain_name, text};

/// `export`, `export(f32, f64)`
pub(crate) struct Export {
    word: Ident,
    /// The element types of a generic op.
    instances: Vec<Type>,
}

/// Parses an argument of the attribute that begins with `export`; `None` for any other argument.
pub(crate) fn parse(part: &TokenStream, errors: &mut Errors) -> Option<Option<Export>> {
    let mut trees = part.clone().into_iter();
    let Some(TokenTree::Ident(word)) = trees.next().filter(|word| word.to_string() == "export")
    else {
        return None;
    };
    let list = match (trees.next(), trees.next()) {
        (None, _) => return Some(Some(Export { word, instances: Vec::new() })),
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::Parenthesis => {
            let list = Punctuated::<Type, Token![,]>::parse_terminated;
            syn::parse::Parser::parse2(list, group.stream()).ok()
        }
        _ => None,
    };
    let Some(list) = list.filter(|list| !list.is_empty()) else {
        errors.at(part, messages::malformed());
        return Some(None);
    };
    let mut instances: Vec<Type> = Vec::new();
    for ty in list {
        let name = text(&ty);
        if !is_known(&name) {
            errors.at(&ty, messages::unknown_instance(&name));
        } else if instances.iter().any(|known| text(known) == name) {
            errors.at(&ty, twice(&name));
        } else {
            instances.push(ty);
        }
    }
    Some(Some(Export { word, instances }))
}

impl Export {
    pub(crate) fn word(&self) -> &Ident {
        &self.word
    }
}

pub(crate) fn check(layer: &Layer, export: &Export, errors: &mut Errors) {
    let name = plain_name(&layer.name);
    let mut own = layer.generics.params.iter();
    match type_parameter(layer) {
        Some(parameter) if export.instances.is_empty() => {
            let message = messages::instances_missing(&name, &parameter.ident.to_string());
            errors.at(&export.word, message);
        }
        None if !export.instances.is_empty() => {
            errors.at(&export.instances[0], messages::instances_of_none(&name));
        }
        parameter => own.by_ref().take(usize::from(parameter.is_some())).for_each(drop),
    }
    if type_parameter(layer).is_none() || own.len() < layer.generics.params.len() {
        for other in own {
            errors.at(other, messages::second_parameter(&parameter_name(other)));
        }
    }
    let Some(forward) = &layer.forward else { return };
    if !layer.is_formula {
        for parameter in &forward.function.sig.generics.params {
            errors.at(parameter, messages::own_parameter(&parameter_name(parameter)));
        }
    }
    for param in &forward.params {
        if let ParamKind::Plain { .. } = &param.kind
            && !may_be_plain(&param.ty)
        {
            let found = text(&param.ty);
            errors.at(&param.ty, messages::plain(&plain_name(&param.ident), &found));
        }
    }
}

/// The element type of a generic op's tensors.
fn type_parameter(layer: &Layer) -> Option<&TypeParam> {
    match layer.generics.params.first()? {
        GenericParam::Type(parameter) => Some(parameter),
        GenericParam::Const(_) | GenericParam::Lifetime(_) => None,
    }
}

/// Whether a host may have a value of this type: it has a name, or is a borrowed text. The compiler knows the name.
fn may_be_plain(ty: &Type) -> bool {
    match bare(ty) {
        Type::Reference(of) => of.elem.to_token_stream().to_string() == "str",
        Type::Path(_) => last_segment(ty).is_some_and(|last| last.arguments.is_none()),
        _ => false,
    }
}
