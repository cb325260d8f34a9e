//! `#[derive(Saved)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::ParseStream;
use syn::{Data, DeriveInput, Fields, Path, Token};

use crate::errors::Errors;
use crate::library::private_path;
use crate::messages;
use crate::model::local;

/// Field by field.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let Ok(input) = syn::parse2::<DeriveInput>(item) else { return TokenStream::new() };
    let krate = said(&input, &mut errors);
    let p = private_path(krate.as_ref());
    let name = &input.ident;
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) if !fields.named.is_empty() => fields.named.iter().collect(),
            _ => {
                errors.at(name, messages::saved_needs_fields());
                Vec::new()
            }
        },
        Data::Enum(data) => {
            errors.at(data.enum_token, messages::saved_struct("an enum"));
            Vec::new()
        }
        Data::Union(data) => {
            errors.at(data.union_token, messages::saved_struct("a union"));
            Vec::new()
        }
    };
    if let Some(lifetime) = input.generics.lifetimes().next() {
        errors.at(lifetime, messages::saved_lifetime());
        return errors.into_tokens();
    }
    let broken = !errors.is_empty();
    let reported = errors.into_tokens();
    let (generics, arguments, clause) = input.generics.split_for_impl();
    let (into, from) = (local("into"), local("from"));
    let packs = fields.iter().map(|field| {
        let (ident, ty) = (&field.ident, &field.ty);
        quote!(<#ty as #p::Saved>::pack(&self.#ident, #into);)
    });
    let unpacks = fields.iter().map(|field| {
        let (ident, ty) = (&field.ident, &field.ty);
        quote!(#ident: <#ty as #p::Saved>::unpack(#from)?)
    });
    // After an error the struct can be saved all the same, so that nothing else is reported.
    let unpacked = match broken {
        true => quote!(::core::unreachable!("this struct did not compile")),
        false => quote!(#p::Result::Ok(Self { #(#unpacks),* })),
    };
    quote! {
        #reported
        #[allow(unused_variables, clippy::all, clippy::pedantic)]
        const _: () = {
            impl #generics #p::Saved for #name #arguments #clause {
                fn pack(&self, #into: &mut #p::Pack) {
                    #(#packs)*
                }
                fn unpack(#from: &mut #p::Unpack<'_>) -> #p::Result<Self> {
                    #unpacked
                }
            }
            impl #generics #p::IntoSaved<#name #arguments> for #name #arguments #clause {
                fn pack(self, #into: &mut #p::Pack) {
                    #p::Saved::pack(&self, #into);
                }
            }
            impl #generics #p::IntoSaved<#name #arguments> for &#name #arguments #clause {
                fn pack(self, #into: &mut #p::Pack) {
                    #p::Saved::pack(self, #into);
                }
            }
        };
    }
}

/// The path in `#[saved(crate = path)]`.
fn said(input: &DeriveInput, errors: &mut Errors) -> Option<Path> {
    let mut path = None;
    for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("saved")) {
        let parsed = attr.parse_args_with(|input: ParseStream<'_>| {
            input.parse::<Token![crate]>()?;
            input.parse::<Token![=]>()?;
            input.call(Path::parse_mod_style)
        });
        match parsed {
            Ok(said) => path = Some(said),
            Err(_) => errors.at(attr, messages::malformed_saved()),
        }
    }
    path
}
