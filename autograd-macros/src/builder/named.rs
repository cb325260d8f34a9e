//! Types of parameters in generated code, with names for anonymous lifetimes and `impl Trait`.

use std::cell::OnceCell;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{GenericArgument, GenericParam, Lifetime, PathArguments, Type, TypeParamBound};

use crate::check::types::is_plain;
use crate::generics::{argument, generated, is_lifetime, parameter_name};
use crate::library::private;
use crate::model::{Forward, Layer, Param, bare, is_named, last_segment, type_arguments};
use crate::tokens::{
    Trees, anonymous, is_one_of, is_punct, located, mentions, plain_name, rewrite, whole_span,
    with_lifetimes,
};

/// The generic parameters that types of forward's parameters may mention.
pub(crate) struct Scope<'a> {
    layer: &'a Layer,
    forward: &'a Forward,
    generics: Vec<&'a GenericParam>,
    /// Cache of the trees of the generics and of the signature.
    written: OnceCell<Trees>,
}

pub(crate) struct Named {
    pub(crate) ty: TokenStream,
    pub(crate) lifetimes: Vec<Lifetime>,
    /// Type parameters that replace an `impl Trait`. `types` has their declarations with bounds.
    pub(crate) given: Vec<Ident>,
    pub(crate) types: Vec<TokenStream>,
    pub(crate) outlives: Vec<TokenStream>,
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

    /// Whether the user wrote a lifetime of this name anywhere.
    fn is_taken(&self, lifetime: &str) -> bool {
        let (op, sig) = (&self.layer.generics, &self.forward.function.sig);
        let written = self.written.get_or_init(|| Trees::new(quote!(#op #sig)));
        let is = |trees: &[TokenTree], at: usize| match &trees[at..] {
            [quote, TokenTree::Ident(name), ..] => {
                (is_punct(Some(quote), '\'') && *name == lifetime[1..]).then_some(())
            }
            _ => None,
        };
        written.find(&mut { is }).is_some()
    }

    /// Names the anonymous parts of a parameter's type. `hidden`: also its hidden lifetimes, by an alias.
    pub(crate) fn name(&self, param: &Param, position: usize, hidden: bool) -> Named {
        // The compiler has reported an undeclared lifetime.
        let undeclared = |name: &Ident| {
            let name = format!("'{name}");
            name != "'_" && !self.generics.iter().any(|of| parameter_name(of) == name)
        };
        let known = with_lifetimes(&param.ty, undeclared, "static");
        let known = known.and_then(|ty| syn::parse2(ty).ok());
        let mut ty = known.unwrap_or_else(|| param.ty.clone());
        let (lifetimes, given, types) = (Vec::new(), Vec::new(), Vec::new());
        let (implemented, outlives) = (Vec::new(), Vec::new());
        let (scope, of, is_static) = (self, None, hidden && self.layer.is_formula);
        let mut namer = Namer {
            position,
            scope,
            is_static,
            hidden: of,
            lifetimes,
            given,
            types,
            implemented,
            outlives,
        };
        namer.hidden = hidden.then(|| namer.lifetime());
        namer.ty(&mut ty);
        let Namer { hidden, lifetimes, given, types, implemented, outlives, .. } = namer;
        let without_self = |tokens| without_self(self.layer, tokens);
        let types = types.into_iter().map(without_self).collect();
        let ty = without_self(ty.to_token_stream());
        let mut named = Named { ty, lifetimes, given, types, outlives, alias: None };
        if let Some(hidden) = hidden {
            self.declare(param, &hidden, &implemented, &mut named);
        }
        named
    }

    /// Declares an alias with a lifetime for a type that may hide lifetimes (`Names` for `Names<'a>`). Hidden
    /// lifetimes cannot be written, but as the return type of a function they are elided from its argument.
    fn declare(&self, param: &Param, hidden: &Lifetime, implemented: &[Type], named: &mut Named) {
        let (p, ty) = (private(), &named.ty);
        let written = without_self(self.layer, anonymous(&param.ty));
        let is_mentioned = |name: &str| mentions(ty, name.trim_start_matches('\''));
        let own: Vec<_> = [hidden].into_iter().filter(|_| !self.layer.is_formula).collect();
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
        let given = &named.given;
        let name = generated(&self.layer.name, &format!("Type_{}", plain_name(&param.ident)));
        // The array's length proves the type. If that fails, the alias is an error type.
        let length = match used.is_empty() && given.is_empty() {
            true => quote!({ #p::PhantomData::<fn(&()) -> #written>; 0 }),
            false => quote!(0),
        };
        let declaration = quote! {
            type #name<#(#own,)* #(#lifetimes,)* #(#declared,)* #(#given),*> =
                <[fn(&#hidden ()) -> #ty; #length] as #p::Returned>::Type;
        };
        let elided = lifetimes.iter().chain(&own).map(|_| quote!('_));
        let place = whole_span(&param.ty);
        let shown = located(quote!(#name), place);
        let taken = quote!(#(#elided,)* #(#used,)* #(#implemented),*);
        let taken = syn::parse_quote_spanned!(place=> #shown<#taken>);
        named.ty = quote!(#shown<#(#own,)* #(#lifetimes,)* #(#used,)* #(#given),*>);
        named.alias = Some((declaration, taken));
    }

    fn is_type(&self, name: &str) -> bool {
        let mut types = self.generics.iter().filter(|of| matches!(of, GenericParam::Type(_)));
        types.any(|of| parameter_name(of) == name)
    }

    /// Whether the type is certainly valid in generated code, and hides no lifetime.
    pub(crate) fn is_certain(&self, ty: &Type) -> bool {
        let holds = |last: &syn::PathSegment| {
            let types: Vec<&Type> = type_arguments(last).collect();
            is_one_of(&last.ident, "Vec Option") && types.len() == 1 && self.is_certain(types[0])
        };
        match bare(ty) {
            Type::ImplTrait(_) | Type::FnPtr(_) => true,
            Type::Reference(of) => {
                let lifetime = of.lifetime.as_ref();
                lifetime.is_none_or(|of| of.ident == "_" || of.ident == "static")
                    && match bare(&of.elem) {
                        Type::Slice(slice) => self.is_certain(&slice.elem),
                        Type::TraitObject(object) => object.dyn_token.is_some(),
                        ty => is_named(ty, "str") || self.is_certain(ty),
                    }
            }
            Type::Array(array) => {
                matches!(array.len, syn::Expr::Lit(_)) && self.is_certain(&array.elem)
            }
            Type::Tuple(tuple) => tuple.elems.iter().all(|ty| self.is_certain(ty)),
            Type::Path(path) => match path.path.get_ident() {
                Some(name) => name != "str" && is_plain(ty) || self.is_type(&name.to_string()),
                None => path.path.segments.len() == 1 && last_segment(ty).is_some_and(holds),
            },
            _ => false,
        }
    }
}

/// Gives names to the anonymous lifetimes and the `impl Trait`s of a type.
struct Namer<'a> {
    position: usize,
    scope: &'a Scope<'a>,
    /// Whether each lifetime is `'static`.
    is_static: bool,
    /// The lifetime for all hidden lifetimes of the type, if it may have any.
    hidden: Option<Lifetime>,
    lifetimes: Vec<Lifetime>,
    given: Vec<Ident>,
    types: Vec<TokenStream>,
    /// Each `impl Trait` as written.
    implemented: Vec<Type>,
    outlives: Vec<TokenStream>,
}

impl Namer<'_> {
    /// A new lifetime. The name is short: the compiler suggests it for a type with a hidden lifetime.
    fn lifetime(&mut self) -> Lifetime {
        if self.is_static {
            return Lifetime::new("'static", Span::mixed_site());
        }
        let letter = u8::try_from(self.position).ok().filter(|position| *position < 26);
        let mut name = match letter {
            Some(position) => format!("'{}", char::from(b'a' + position)),
            None => format!("'a{}", self.position),
        };
        if !self.lifetimes.is_empty() {
            name = format!("{name}_{}", self.lifetimes.len());
        }
        while self.scope.is_taken(&name) {
            name.push('_');
        }
        let lifetime = Lifetime::new(&name, Span::mixed_site());
        self.lifetimes.push(lifetime.clone());
        lifetime
    }

    /// Adds the bounds that lifetimes and type parameters behind a reference outlive it.
    fn outlive(&mut self, tokens: TokenStream, reference: &Lifetime) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, tree) in trees.iter().enumerate() {
            let quote =
                at.checked_sub(1).map(|at| &trees[at]).filter(|tree| is_punct(Some(tree), '\''));
            match tree {
                TokenTree::Ident(name) => {
                    let is_type = self.scope.is_type(&name.to_string());
                    let is_bound = match quote {
                        Some(_) => name != "static",
                        None => is_type || name.to_string().starts_with("Given"),
                    };
                    let bound = is_bound.then(|| quote!(#quote #name: #reference));
                    self.outlives.extend(bound);
                }
                // Parameters and results of functions need no bound.
                TokenTree::Group(group) if group.delimiter() != Delimiter::Parenthesis => {
                    self.outlive(group.stream(), reference);
                }
                _ => {}
            }
        }
    }

    /// Adds the bound that hidden lifetimes of the type outlive a reference to a part of it.
    fn outlive_hidden(&mut self, reference: &Lifetime) {
        let hidden = self.hidden.iter();
        self.outlives.extend(hidden.map(|hidden| quote!(#hidden: #reference)));
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
                    self.outlive_hidden(lifetime);
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
                self.implemented.push(Type::ImplTrait(object.clone()));
                self.bounds(object.bounds.iter_mut());
                let bounds = &object.bounds;
                let ident = format_ident!("Given{}_{}", self.position, self.types.len());
                self.types.push(quote!(#ident: #bounds));
                self.given.push(ident.clone());
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
            let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else { continue };
            for argument in &mut arguments.args {
                match argument {
                    GenericArgument::Type(ty) => self.ty(ty),
                    GenericArgument::Lifetime(lifetime) => {
                        if lifetime.ident == "_" {
                            *lifetime = self.lifetime();
                        }
                        self.outlive_hidden(lifetime);
                    }
                    GenericArgument::AssocType(assoc) => self.ty(&mut assoc.ty),
                    _ => {}
                }
            }
        }
    }
}

/// Replaces `Self`, which is another type in the builder, by the op.
pub(super) fn without_self(layer: &Layer, tokens: TokenStream) -> TokenStream {
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
