//! Types of parameters in generated code, with names for anonymous lifetimes and `impl Trait`.

use std::cell::OnceCell;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{GenericArgument, GenericParam, Lifetime, PathArguments, Type, TypeParamBound};

use crate::generics::{argument, generated, is_lifetime, parameter_name};
use crate::model::{
    Forward, Layer, Param, bare, contained_types, is_named, type_arguments, written_lifetimes,
};
use crate::signatures::{checked, is_certain, is_type_of};
use crate::tokens::{Trees, ends, is_punct, mentions, plain_name, rewrite};

/// The generic parameters that types of forward's parameters may mention.
pub(crate) struct Scope<'a> {
    layer: &'a Layer,
    forward: &'a Forward,
    pub(crate) generics: Vec<&'a GenericParam>,
    /// Cache of the text of the generics and the signature.
    written: OnceCell<String>,
}

#[derive(Default)]
pub(crate) struct Named {
    pub(crate) ty: TokenStream,
    pub(crate) lifetimes: Vec<Lifetime>,
    /// Type parameters that replace an `impl Trait`. `types` has their declarations with bounds.
    pub(crate) given: Vec<Ident>,
    pub(crate) types: Vec<TokenStream>,
    pub(crate) outlives: Vec<TokenStream>,
    /// The lifetime for all hidden lifetimes of the type, if it may have any.
    hidden: Option<Lifetime>,
    /// Each `impl Trait` as written.
    implemented: Vec<Type>,
    /// For a type that may hide lifetimes: the declaration of an alias, and the alias in a signature.
    pub(crate) alias: Option<(TokenStream, Type)>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(layer: &'a Layer, forward: &'a Forward) -> Self {
        let own = &forward.function.sig.generics.params;
        let mut generics: Vec<_> = layer.generics.params.iter().chain(own).collect();
        generics.sort_by_key(|param| !is_lifetime(param));
        Self { layer, forward, generics, written: OnceCell::new() }
    }

    fn is_taken(&self, lifetime: &str) -> bool {
        let written = self.written.get_or_init(|| {
            let (op, sig) = (&self.layer.generics, &self.forward.function.sig);
            quote!(#op #sig).to_string()
        });
        written.contains(lifetime)
    }

    /// Names the anonymous parts of a parameter's type. `hidden`: also its hidden lifetimes, by an alias.
    pub(crate) fn name(&self, param: &Param, position: usize, hidden: bool) -> Named {
        let mut ty = param.ty.clone();
        let mut namer = Namer { position, scope: self, named: Named::default() };
        namer.named.hidden = hidden.then(|| namer.lifetime());
        namer.ty(&mut ty);
        let mut named = namer.named;
        let without_self = |tokens| without_self(self.layer, tokens);
        named.types = named.types.into_iter().map(without_self).collect();
        named.ty = without_self(ty.to_token_stream());
        if let Some(hidden) = named.hidden.clone() {
            self.declare(param, &hidden, &mut named);
        }
        named
    }

    /// Declares an alias with a lifetime for a type that may hide lifetimes (`Names` for `Names<'a>`). Hidden
    /// lifetimes cannot be written, but as the return type of a function they are elided from its argument.
    fn declare(&self, param: &Param, hidden: &Lifetime, named: &mut Named) {
        let ty = &named.ty;
        let is_mentioned = |name: &str| mentions(ty, name.trim_start_matches('\''));
        let of = |of: &&Lifetime| *of != hidden && is_mentioned(&of.to_string());
        let lifetimes: Vec<_> = named.lifetimes.iter().filter(of).collect();
        let generics = self.generics.iter().filter(|of| is_mentioned(&parameter_name(of)));
        let (used, declared): (Vec<_>, Vec<_>) = generics
            .map(|param| match param {
                GenericParam::Const(of) => {
                    let (ident, ty) = (&of.ident, &of.ty);
                    (argument(param), quote!(const #ident: #ty))
                }
                param => (argument(param), argument(param)),
            })
            .unzip();
        let (given, implemented) = (&named.given, &named.implemented);
        let name = generated(&self.layer.name, &format!("Type_{}", plain_name(&param.ident)));
        let checked = checked(hidden, ty, Span::call_site());
        let declaration = quote! {
            type #name<#hidden, #(#lifetimes,)* #(#declared,)* #(#given),*> = #checked;
        };
        let elided = lifetimes.iter().map(|_| quote!('_));
        let (first, last) = ends(param.ty.to_token_stream());
        let (shown, end) = (Ident::new(&name.to_string(), first), quote_spanned!(last=> >));
        let own = quote!('_, #(#elided,)* #(#used,)* #(#implemented),*);
        let taken = syn::parse_quote!(#shown<#own #end);
        named.ty = quote!(#shown<#hidden, #(#lifetimes,)* #(#used,)* #(#given),* #end);
        named.alias = Some((declaration, taken));
    }

    fn is_type(&self, name: &Ident) -> bool {
        is_type_of(&self.generics, name)
    }

    /// Whether the type may have lifetimes that are not written.
    fn hides(&self, ty: &Type) -> bool {
        let named = matches!(bare(ty), Type::Path(_)) && written_lifetimes(ty).is_empty();
        named && !is_named(ty, "str") && !is_certain(ty, &self.generics)
            || contained_types(ty).into_iter().any(|ty| self.hides(ty))
    }

    /// Whether generated code uses an alias of the type: not for an associated type of a parameter, whose bound
    /// an alias cannot have.
    pub(crate) fn needs_alias(&self, ty: &Type) -> bool {
        let trees = Trees::new(ty.to_token_stream());
        let of_parameter = trees.find(&mut |trees, at| match &trees[at] {
            TokenTree::Ident(name) if is_punct(trees.get(at + 1), ':') => {
                self.is_type(name).then_some(())
            }
            _ => None,
        });
        !is_certain(ty, &self.generics) && of_parameter.is_none()
    }
}

/// Gives names to the anonymous lifetimes and the `impl Trait`s of a type.
struct Namer<'a> {
    position: usize,
    scope: &'a Scope<'a>,
    /// What is found so far.
    named: Named,
}

impl Namer<'_> {
    /// A new lifetime. The name is short: the compiler suggests it for a type with a hidden lifetime.
    fn lifetime(&mut self) -> Lifetime {
        let letter = u8::try_from(self.position).ok().filter(|position| *position < 26);
        let mut name = match letter {
            Some(position) => format!("'{}", char::from(b'a' + position)),
            None => format!("'a{}", self.position),
        };
        if !self.named.lifetimes.is_empty() {
            name = format!("{name}_{}", self.named.lifetimes.len());
        }
        while self.scope.is_taken(&name) {
            name.push('_');
        }
        let lifetime = Lifetime::new(&name, Span::mixed_site());
        self.named.lifetimes.push(lifetime.clone());
        lifetime
    }

    /// Adds the bounds that lifetimes and type parameters behind a reference outlive it.
    fn outlive(&mut self, tokens: TokenStream, reference: &Lifetime) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, tree) in trees.iter().enumerate() {
            match tree {
                TokenTree::Ident(name) => {
                    let text = name.to_string();
                    if !is_punct(at.checked_sub(1).map(|at| &trees[at]), '\'') {
                        let is_type = self.scope.is_type(name) || text.starts_with("__Given");
                        self.named.outlives.extend(is_type.then(|| quote!(#name: #reference)));
                    } else if text != "static" {
                        let lifetime = Lifetime { apostrophe: name.span(), ident: name.clone() };
                        self.named.outlives.push(quote!(#lifetime: #reference));
                    }
                }
                // Parameters and results of functions need no bound.
                TokenTree::Group(group) if group.delimiter() != Delimiter::Parenthesis => {
                    self.outlive(group.stream(), reference);
                }
                _ => {}
            }
        }
    }

    /// Adds the bound that hidden lifetimes of the type outlive a reference to it.
    fn outlive_hidden(&mut self, ty: &Type, reference: &Lifetime) {
        if let Some(hidden) = self.named.hidden.as_ref().filter(|_| self.scope.hides(ty)) {
            self.named.outlives.push(quote!(#hidden: #reference));
        }
    }

    fn ty(&mut self, ty: &mut Type) {
        match ty {
            Type::Reference(reference) => {
                let anonymous = reference.lifetime.as_ref().is_none_or(|name| name.ident == "_");
                if anonymous {
                    reference.lifetime = Some(self.lifetime());
                }
                self.ty(&mut reference.elem);
                if let Some(lifetime) = &reference.lifetime {
                    if anonymous {
                        self.outlive(reference.elem.to_token_stream(), lifetime);
                    }
                    self.outlive_hidden(&reference.elem, lifetime);
                }
            }
            Type::Slice(slice) => self.ty(&mut slice.elem),
            Type::Array(array) => self.ty(&mut array.elem),
            Type::Paren(paren) => self.ty(&mut paren.elem),
            Type::Group(group) => self.ty(&mut group.elem),
            Type::Ptr(pointer) => self.ty(&mut pointer.elem),
            Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(|ty| self.ty(ty)),
            Type::Path(path) => {
                if let Some(qself) = &mut path.qself {
                    self.ty(&mut qself.ty);
                }
                self.path(&mut path.path);
            }
            Type::TraitObject(object) => self.bounds(object.bounds.iter_mut()),
            Type::ImplTrait(object) => {
                self.named.implemented.push(Type::ImplTrait(object.clone()));
                self.bounds(object.bounds.iter_mut());
                let bounds = &object.bounds;
                let ident = format_ident!("__Given{}_{}", self.position, self.named.types.len());
                self.named.types.push(quote!(#ident: #bounds));
                self.named.given.push(ident.clone());
                *ty = Type::Path(syn::TypePath {
                    attrs: Vec::new(),
                    qself: None,
                    path: ident.into(),
                });
            }
            _ => {}
        }
    }

    fn bounds<'b>(&mut self, bounds: impl Iterator<Item = &'b mut TypeParamBound>) {
        for bound in bounds {
            match bound {
                TypeParamBound::Trait(bound) => self.path(&mut bound.path),
                TypeParamBound::Lifetime(lifetime) if lifetime.ident == "_" => {
                    *lifetime = self.lifetime();
                }
                _ => {}
            }
        }
    }

    /// Skips parameters and results of functions (`Fn(&T) -> &U`), which have their own elision rules.
    fn path(&mut self, path: &mut syn::Path) {
        for segment in &mut path.segments {
            let types: Vec<Type> = type_arguments(segment).cloned().collect();
            let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else { continue };
            for argument in &mut arguments.args {
                match argument {
                    GenericArgument::Type(ty) => self.ty(ty),
                    GenericArgument::Lifetime(lifetime) => {
                        if lifetime.ident == "_" {
                            *lifetime = self.lifetime();
                        }
                        types.iter().for_each(|ty| self.outlive_hidden(ty, lifetime));
                    }
                    GenericArgument::AssocType(assoc) => self.ty(&mut assoc.ty),
                    _ => {}
                }
            }
        }
    }
}

/// Replaces `Self`, which is another type in the builder, by the op.
pub(crate) fn without_self(layer: &Layer, tokens: TokenStream) -> TokenStream {
    let op = &layer.self_ty;
    rewrite(tokens, &mut |trees, at| match &trees[at] {
        // `Self::X` becomes `<Op<T>>::X`.
        TokenTree::Ident(ident) if ident == "Self" => {
            let path = !layer.generics.params.is_empty() && is_punct(trees.get(at + 1), ':');
            Some((if path { quote!(<#op>) } else { op.to_token_stream() }, 1))
        }
        _ => None,
    })
}
