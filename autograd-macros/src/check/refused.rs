//! Types of a signature that the compiler rejects, whatever names are in scope. For an expansion that repeats such a
//! type it would report it again, for an undeclared lifetime with help that edits the attribute.

use proc_macro2::TokenTree;
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{FnArg, GenericArgument, GenericParam, ReturnType, Token, Type, TypeParamBound};

use crate::model::{Block, Function, bare, contained_types, generic_arguments};
use crate::tokens::{Trees, is_one_of, is_punct, mentions};

impl Block {
    /// Whether a function of the op has such a type in its signature.
    pub(crate) fn has_wrong_type(&self) -> bool {
        self.rules().any(|function| {
            let is_wrong = |input: &FnArg| matches!(input, FnArg::Typed(of) if is_wrong(self, function, &of.ty));
            function.sig.inputs.iter().any(is_wrong) || returns_wrong_type(self, function)
        })
    }
}

pub(crate) fn returns_wrong_type(block: &Block, function: &Function) -> bool {
    matches!(&function.sig.output, ReturnType::Type(_, ty) if is_wrong(block, function, ty))
}

/// Whether the type has no size, a lifetime that is not declared, or an associated type of the op, which has none.
pub(crate) fn is_wrong(block: &Block, function: &Function, ty: &Type) -> bool {
    let declared = block.generics.params.iter().chain(&function.sig.generics.params);
    let undeclared = |trees: &[TokenTree], at: usize| {
        let TokenTree::Ident(name) = trees.get(at + 1)? else { return None };
        let is = |of: &GenericParam| matches!(of, GenericParam::Lifetime(of) if of.lifetime.ident == *name);
        let known = is_one_of(name, "static _") || declared.clone().any(is);
        (is_punct(trees.get(at), '\'') && !known).then_some(())
    };
    // `for<'a> Fn(&'a f64)` declares one.
    let declares = mentions(ty, "for");
    is_unsized(ty)
        || is_of_self(ty)
        || matches!(bare(ty), Type::ImplTrait(of) if hides_lifetime(&of.bounds))
        || !declares && Trees::new(ty.to_token_stream()).find(&mut { undeclared }).is_some()
}

pub(crate) fn is_unsized(ty: &Type) -> bool {
    match bare(ty) {
        Type::Slice(_) | Type::TraitObject(_) => true,
        Type::Path(path) => path.path.is_ident("str"),
        _ => false,
    }
}

/// `impl Iterator<Item = &f64>`; the parameters of a closure may hide theirs.
fn hides_lifetime(bounds: &Punctuated<TypeParamBound, Token![+]>) -> bool {
    let is_hidden = |ty: &Type| matches!(bare(ty), Type::Reference(of) if of.lifetime.is_none());
    let hides = |argument: &GenericArgument| match argument {
        GenericArgument::Type(ty) => is_hidden(ty),
        GenericArgument::AssocType(of) => is_hidden(&of.ty),
        _ => false,
    };
    bounds.iter().any(|bound| match bound {
        TypeParamBound::Trait(of) => {
            of.path.segments.last().into_iter().flat_map(generic_arguments).any(hides)
        }
        _ => false,
    })
}

fn is_of_self(ty: &Type) -> bool {
    matches!(bare(ty), Type::Path(of) if of.path.segments.len() == 2 && of.path.segments[0].ident == "Self")
        || contained_types(ty).into_iter().any(is_of_self)
}
