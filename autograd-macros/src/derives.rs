//! `#[derive(Saved)]` and `#[derive(Module)]`: their arguments, the fields, and the impls.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput, Field, Fields, Member, Path};

use crate::args::take_crate;
use crate::errors::Errors;
use crate::library::{import, private};
use crate::messages;
use crate::tokens::{local, mentions, parts, text};

#[derive(Default)]
struct Arguments {
    krate: Option<Path>,
    skip: bool,
}

/// Parses the attributes of this name. `crate = path` is for the struct, `skip` for a field.
fn arguments(attrs: &[Attribute], name: &str, field: bool, errors: &mut Errors) -> Arguments {
    let mut found = Arguments::default();
    let wrong = match (name, field) {
        (name, false) => messages::derive_argument(name),
        ("module", true) => messages::module_field_argument(),
        (_, true) => messages::saved_field_argument(),
    };
    for attr in attrs.iter().filter(|attr| attr.path().is_ident(name)) {
        let Ok(list) = attr.meta.require_list() else {
            errors.at(attr, wrong.as_str());
            continue;
        };
        for (part, _) in parts(list.tokens.clone()) {
            if !field && take_crate(&part, &mut found.krate, errors) {
                continue;
            }
            if !field || name != "module" || text(&part) != "skip" {
                errors.at(part, wrong.as_str());
            } else if std::mem::replace(&mut found.skip, true) {
                errors.at(part, messages::twice("skip"));
            }
        }
    }
    found
}

struct Input {
    item: DeriveInput,
    fields: Vec<(Member, Field)>,
    krate: Option<Path>,
    errors: Errors,
}

fn read(item: TokenStream, attribute: &str, needs_struct: fn(&str) -> String) -> Option<Input> {
    // The compiler has reported a syntax error.
    let item = syn::parse2::<DeriveInput>(item).ok()?;
    let mut errors = Errors::new();
    let krate = arguments(&item.attrs, attribute, false, &mut errors).krate;
    let fields = match &item.data {
        Data::Struct(data) => data.fields.clone(),
        Data::Enum(data) => {
            errors.at(data.enum_token, needs_struct("an enum"));
            Fields::Unit
        }
        Data::Union(data) => {
            errors.at(data.union_token, needs_struct("a union"));
            Fields::Unit
        }
    };
    let fields = fields.members().zip(fields.clone()).collect();
    Some(Input { krate, item, fields, errors })
}

impl Input {
    /// Adds a `Float` bound to parameters that are tensor elements and have no bound, and returns whether there are
    /// any. The compiler reports the missing bound at the struct, and must not repeat it for the generated impls.
    fn bind_elements(&mut self) -> bool {
        let (p, clause, mut found) = (private(), self.item.generics.where_clause.clone(), false);
        for param in self.item.generics.type_params_mut() {
            let element = format!("Tensor<{}>", param.ident);
            if param.bounds.is_empty()
                && !clause.iter().any(|of| mentions(of, &param.ident.to_string()))
                && self.fields.iter().any(|(_, field)| text(&field.ty).contains(&element))
            {
                param.colon_token.get_or_insert_with(Default::default);
                param.bounds.push(syn::parse_quote!(#p::Float));
                found = true;
            }
        }
        found
    }

    /// Emits the errors and the impls, without warnings about a deprecated struct.
    fn finish(self, impls: &TokenStream) -> TokenStream {
        let deprecated = self.item.attrs.iter().any(|attr| attr.path().is_ident("deprecated"));
        let allowed = deprecated.then(|| quote!(#[allow(deprecated)]));
        let library = import(self.krate.as_ref());
        let reported = self.errors.into_tokens();
        quote! {
            #reported
            #allowed
            #[cfg_attr(clippy, allow(clippy::all, clippy::pedantic))]
            const _: () = { #library #impls };
        }
    }
}

pub(crate) fn saved(item: TokenStream) -> TokenStream {
    let Some(mut input) = read(item, "saved", messages::saved_needs_struct) else {
        return TokenStream::new();
    };
    let named = input.fields.iter().any(|(member, _)| matches!(member, Member::Named(_)));
    if input.errors.is_empty() && !named {
        input.errors.at(&input.item.ident, messages::saved_needs_fields());
    }
    for (_, field) in &input.fields {
        arguments(&field.attrs, "saved", true, &mut input.errors);
    }
    if let Some(lifetime) = input.item.generics.lifetimes().next() {
        input.errors.at(lifetime, messages::saved_lifetime());
        return input.errors.into_tokens();
    }
    let unbound = input.bind_elements();
    let (p, name) = (private(), &input.item.ident);
    let (generics, arguments, clause) = input.item.generics.split_for_impl();
    let (into, from, this) = (local("into"), local("from"), local("this"));
    let (packed, unpacked) = (local("packed"), local("unpacked"));
    let packs = input
        .fields
        .iter()
        .map(|(member, Field { ty, .. })| quote!(<#ty as #p::Saved>::pack(&#this.#member, #into);));
    let unpacks = input
        .fields
        .iter()
        .map(|(member, Field { ty, .. })| quote!(#member: <#ty as #p::Saved>::unpack(#from)?));
    // After an error the impls are emitted all the same, so that nothing else is reported.
    let parts = match input.errors.is_empty() && !unbound {
        true => quote!((
            |#this, #into| { #(#packs)* },
            |#from| #p::Result::Ok(Self { #(#unpacks),* }),
        )),
        false => quote!(::core::unreachable!("this struct did not compile")),
    };
    let turbofish = arguments.as_turbofish();
    // Packing and unpacking share one function, so that a field that cannot be saved is reported once.
    let impls = quote! {
        impl #generics #name #arguments #clause {
            #[allow(clippy::type_complexity)]
            fn __ways() -> (
                fn(&Self, &mut #p::Pack),
                fn(&mut #p::Unpack<'_>) -> #p::Result<Self>,
            ) {
                #parts
            }
        }
        impl #generics #p::Saved for #name #arguments #clause {
            fn pack(&self, #into: &mut #p::Pack) {
                let (#packed, _) = #name #turbofish::__ways();
                #packed(self, #into);
            }
            fn unpack(#from: &mut #p::Unpack<'_>) -> #p::Result<Self> {
                let (_, #unpacked) = #name #turbofish::__ways();
                #unpacked(#from)
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
    input.finish(&impls)
}

pub(crate) fn module(item: TokenStream) -> TokenStream {
    let Some(mut input) = read(item, "module", messages::module_needs_struct) else {
        return TokenStream::new();
    };
    let visitor = local("visitor");
    let mut visits = Vec::new();
    for (member, field) in &input.fields {
        if arguments(&field.attrs, "module", true, &mut input.errors).skip {
            continue;
        }
        let path = match member {
            Member::Named(name) => name.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        // With the explicit type, a field that is not a module is reported at its type.
        let (p, ty) = (private(), &field.ty);
        visits.push(quote!(#p::ModuleVisitor::enter::<#ty>(#visitor, #path, &self.#member);));
    }
    let (p, name) = (private(), &input.item.ident);
    let (generics, arguments, clause) = input.item.generics.split_for_impl();
    let impls = quote! {
        impl #generics #p::Module for #name #arguments #clause {
            fn visit(&self, #visitor: &mut #p::ModuleVisitor<'_>) {
                let _ = &#visitor;
                #(#visits)*
            }
        }
        impl #generics #p::HoldsTensor for #name #arguments #clause {}
    };
    input.finish(&impls)
}
