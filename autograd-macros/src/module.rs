//! `#[derive(Module)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput, Fields, Member};

use crate::errors::Errors;
use crate::library::private_path;
use crate::messages;
use crate::model::local;

/// Field by field, in their order.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let p = private_path(None);
    let Ok(input) = syn::parse2::<DeriveInput>(item) else { return TokenStream::new() };
    let name = &input.ident;
    let fields = match &input.data {
        Data::Struct(data) => data.fields.clone(),
        Data::Enum(data) => {
            errors.at(data.enum_token, messages::module_struct("an enum"));
            Fields::Unit
        }
        Data::Union(data) => {
            errors.at(data.union_token, messages::module_struct("a union"));
            Fields::Unit
        }
    };
    let visitor = local("visitor");
    let mut visits = Vec::new();
    for (member, field) in fields.members().zip(&fields) {
        if is_skipped(&field.attrs, &mut errors) {
            continue;
        }
        let path = match &member {
            Member::Named(name) => name.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        // The type stands there so that a field that is no module is reported at it.
        let ty = &field.ty;
        visits.push(quote!(#p::ModuleVisitor::enter::<#ty>(#visitor, #path, &self.#member);));
    }
    let reported = errors.into_tokens();
    let (generics, arguments, clause) = input.generics.split_for_impl();
    quote! {
        #reported
        #[automatically_derived]
        #[allow(unused_variables, clippy::all, clippy::pedantic)]
        const _: () = {
            impl #generics #p::Module for #name #arguments #clause {
                fn visit(&self, #visitor: &mut #p::ModuleVisitor<'_>) {
                    #(#visits)*
                }
            }

            impl #generics #p::HoldsTensor for #name #arguments #clause {}
        };
    }
}

/// Whether a field says `#[module(skip)]`.
fn is_skipped(attributes: &[Attribute], errors: &mut Errors) -> bool {
    let mut skipped = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("module")) {
        match attribute.parse_args::<syn::Ident>() {
            Ok(word) if word == "skip" => skipped = true,
            _ => errors.at(attribute, messages::module_attribute()),
        }
    }
    skipped
}
