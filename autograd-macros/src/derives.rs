//! `#[derive(Saved)]` and `#[derive(Module)]`: their arguments, the fields, and the impls.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput, Field, Fields, Member, Path, Type};

use crate::args::take_crate;
use crate::check::refused::is_unsized;
use crate::errors::Errors;
use crate::generics::generated;
use crate::library::{import, private};
use crate::messages;
use crate::tokens::{ends, local, mentions, parts, plain_name, text};

/// Parses the attributes of this name: `crate = path` of the struct, and whether there is `skip`, of a field.
fn arguments(
    attrs: &[Attribute],
    name: &str,
    field: bool,
    errors: &mut Errors,
) -> (Option<Path>, bool) {
    let (mut krate, mut skip) = (None, false);
    let wrong = match (name, field) {
        (name, false) => messages::derive_argument(name),
        ("module", true) => messages::module_field_argument(),
        (_, true) => messages::saved_field_argument(),
    };
    for attr in attrs.iter().filter(|attr| attr.path().is_ident(name)) {
        let list = attr.meta.require_list();
        let Some(list) = list.ok().filter(|list| !list.tokens.is_empty()) else {
            errors.at(attr, wrong.as_str());
            continue;
        };
        for (part, _) in parts(list.tokens.clone()) {
            if !field && take_crate(&part, &mut krate, errors) {
                continue;
            }
            if !field || name != "module" || text(&part) != "skip" {
                errors.at(part, wrong.as_str());
            } else if std::mem::replace(&mut skip, true) {
                errors.at(part, messages::twice("skip"));
            }
        }
    }
    (krate, skip)
}

/// An expression at the place of a type. It ends with a name and a group, or is `&` and a group.
fn placed(expression: TokenStream, ty: &Type) -> TokenStream {
    let (first, last) = ends(ty.to_token_stream());
    let mut trees: Vec<TokenTree> = expression.into_iter().collect();
    let end = trees.len().saturating_sub(2).max(1);
    trees[end..].iter_mut().for_each(|tree| tree.set_span(last));
    trees[0].set_span(first);
    trees.into_iter().collect()
}

/// The name with the hygiene of the derive, in which the compiler reports nothing as deprecated.
fn in_derive(name: &Ident) -> Ident {
    // Raw: the macro's edition may have more keywords than the user's.
    Ident::new_raw(&plain_name(name), name.span().resolved_at(Span::call_site()))
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
    let krate = arguments(&item.attrs, attribute, false, &mut errors).0;
    let (fields, other) = match &item.data {
        Data::Struct(data) => (data.fields.clone(), None),
        Data::Enum(data) => (Fields::Unit, Some((data.enum_token.span, "an enum"))),
        Data::Union(data) => (Fields::Unit, Some((data.union_token.span, "a union"))),
    };
    if let Some((place, found)) = other {
        errors.at_span(place, needs_struct(found));
    }
    let named = |(member, field)| match member {
        Member::Named(name) => (Member::Named(in_derive(&name)), field),
        unnamed => (unnamed, field),
    };
    let fields = fields.members().zip(fields.clone()).map(named).collect();
    Some(Input { krate, item, fields, errors })
}

impl Input {
    /// Adds the bound of the types of these names to parameters of such fields. The compiler reports a missing bound
    /// at the struct, and must not repeat it for the generated impls.
    fn bind(&mut self, names: &[&str], bound: &TokenStream) {
        let types: String = self.fields.iter().map(|(_, field)| text(&field.ty) + ";").collect();
        let clause = self.item.generics.where_clause.clone();
        let is_part = |last: char| last == '_' || last == ':' || last.is_alphanumeric();
        for param in self.item.generics.type_params_mut() {
            let found = |name: &&str| {
                let whole = format!("{name}<{}>", param.ident);
                types.match_indices(&whole).any(|(at, _)| !types[..at].ends_with(is_part))
            };
            let bound_already =
                mentions(&param.bounds, "Float") || mentions(&clause, &param.ident.to_string());
            if names.iter().any(found) && !bound_already {
                param.bounds.push(syn::parse_quote!(#bound));
            }
        }
    }

    /// An expression for each field with a reference to it, at the place of its type: a type that does not fit is
    /// reported there. The type is not repeated, so a mistake in it is reported once.
    fn each(&self, made: impl Fn(&Member, TokenStream) -> TokenStream) -> Vec<TokenStream> {
        let this = local("this");
        let each = self.fields.iter().map(|(member, Field { ty, .. })| {
            placed(made(member, placed(quote!(&(#this.#member)), ty)), ty)
        });
        each.collect()
    }

    /// The struct in the bodies of the impls: if a type of a field is wrong, it is an error type, so nothing is
    /// reported about it. Parameters cannot stand in the proof, which is an array's length.
    fn proven(&self) -> (Ident, Option<TokenStream>) {
        let (p, name, this) = (private(), in_derive(&self.item.ident), local("this"));
        let proven = self.item.generics.params.is_empty()
            && !self.fields.iter().any(|(_, field)| is_unsized(&field.ty));
        let kept =
            if proven { generated(&name, "Kept") } else { Ident::new("Self", Span::call_site()) };
        let proofs = self.each(|_, value| quote!(#p::PlainOutput(#value)));
        let alias = quote! {
            type #kept = <[fn(&'static ()) -> #name; {
                let _ = |#this: &#name| { #(let _ = #proofs;)* };
                0
            }] as #p::Returned>::Type;
        };
        (kept, proven.then_some(alias))
    }

    fn finish(self, impls: &TokenStream) -> TokenStream {
        let (library, reported) = (import(self.krate.as_ref()), self.errors.into_tokens());
        quote! {
            #reported
            const _: () = { #library #impls };
        }
    }
}

pub(crate) fn saved(item: TokenStream) -> TokenStream {
    let Some(mut input) = read(item, "saved", messages::saved_needs_struct) else {
        return TokenStream::new();
    };
    for (_, field) in &input.fields {
        arguments(&field.attrs, "saved", true, &mut input.errors);
    }
    let flawed = input.fields.iter().find(|(_, field)| is_unsized(&field.ty));
    let flawed = flawed.map(|(_, field)| (field.ty.to_token_stream(), messages::saved_unsized()));
    let lifetime = input.item.generics.lifetimes().next();
    let lifetime = lifetime.map(|of| (of.to_token_stream(), messages::saved_lifetime()));
    if let Some((place, message)) = flawed.or(lifetime) {
        input.errors.at(place, message);
        return input.errors.into_tokens();
    }
    let named = input.fields.iter().any(|(member, _)| matches!(member, Member::Named(_)));
    if input.errors.is_empty() && !named {
        input.errors.at(&input.item.ident, messages::saved_needs_fields());
    }
    let p = private();
    for param in input.item.generics.type_params_mut() {
        // As what is saved: the compiler would report its absence for each function.
        param.bounds.push(syn::parse_quote!('static));
    }
    input.bind(&["Tensor"], &quote!(#p::Element));
    let (name, (kept, alias)) = (in_derive(&input.item.ident), input.proven());
    let (generics, arguments, clause) = input.item.generics.split_for_impl();
    let (into, from, this) = (local("into"), local("from"), local("this"));
    let (packed, unpacked) = (local("packed"), local("unpacked"));
    let members = input.fields.iter().map(|(member, _)| member);
    let packs = input.each(|_, value| quote!(#p::Saved::pack(#value, #into)));
    let unpacks = input.each(|_, _| quote!(#p::Saved::unpack(#from)));
    // After an error the impls are emitted all the same, so that nothing else is reported.
    let parts = match input.errors.is_empty() {
        true => quote!((
            |#this: &#kept, #into| { #(#packs;)* },
            |#from| #p::Result::Ok(#kept { #(#members: #unpacks?),* }),
        )),
        false => quote!(::core::unreachable!("this struct did not compile")),
    };
    let turbofish = arguments.as_turbofish();
    let givens = [quote!(#name #arguments), quote!(&#name #arguments)];
    let (selves, lents) = ([quote!(#kept), quote!(Self)], [quote!(&self), quote!(self)]);
    // Packing and unpacking share one function, so that a field that cannot be saved is reported once.
    let impls = quote! {
        #alias
        impl #generics #name #arguments #clause {
            fn __ways() -> (
                fn(&#kept, &mut #p::Pack),
                fn(&mut #p::Unpack<'_>) -> #p::Result<#kept>,
            ) {
                #parts
            }
        }
        impl #generics #p::Saved for #name #arguments #clause {
            fn pack(&self, #into: &mut #p::Pack) {
                let (#packed, _) = #name #turbofish::__ways();
                #packed(self, #into);
            }
            fn unpack(#from: &mut #p::Unpack<'_>) -> #p::Result<#kept> {
                let (_, #unpacked) = #name #turbofish::__ways();
                #unpacked(#from)
            }
        }
        #(
            impl #generics #p::IntoSaved<#name #arguments> for #givens #clause {
                fn pack(self: #selves, #into: &mut #p::Pack) {
                    #p::Saved::pack(#lents, #into);
                }
            }
        )*
    };
    input.finish(&impls)
}

pub(crate) fn module(item: TokenStream) -> TokenStream {
    let Some(mut input) = read(item, "module", messages::module_needs_struct) else {
        return TokenStream::new();
    };
    let (p, this, visitor) = (private(), local("this"), local("visitor"));
    let (name, (kept, alias)) = (in_derive(&input.item.ident), input.proven());
    let Input { fields, errors, .. } = &mut input;
    fields.retain(|(_, field)| !arguments(&field.attrs, "module", true, errors).1);
    let visits = input.each(|member, value| {
        let path = match member {
            Member::Named(name) => name.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        quote!(#p::ModuleVisitor::enter(#visitor, #path, #value))
    });
    input.bind(&["Tensor", "Linear"], &quote!(#p::Float));
    let (generics, arguments, clause) = input.item.generics.split_for_impl();
    let impls = quote! {
        #alias
        impl #generics #p::Module for #name #arguments #clause {
            fn visit(&self, #visitor: &mut #p::ModuleVisitor<'_>) {
                let (#this, _): (&#kept, _) = (self, &#visitor);
                #(#visits;)*
            }
        }
        impl #generics #p::HoldsTensor for #name #arguments #clause {}
    };
    input.finish(&impls)
}
