//! Kinds of attributes, and the parts of an expansion that they go to.

use proc_macro2::{Ident, Literal, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::Attribute;

use crate::tokens::{Trees, find_ident, is_one_of, mentions, parts};

pub(crate) fn is(attr: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attr.path().is_ident(name))
}

/// The doc comment `doc`, unless the user wrote one.
pub(crate) fn undocumented(attrs: &[Attribute], doc: &str) -> Option<TokenStream> {
    (!attrs.iter().any(is_doc)).then(|| quote!(#[doc = #doc]))
}

pub(crate) fn is_expect(attr: &Attribute) -> bool {
    is_lint(attr) && mentions(attr, "expect")
}

/// Whether the attribute sets levels of lints, also behind a `cfg_attr`.
pub(crate) fn is_lint(attr: &Attribute) -> bool {
    let is_level = |word: &Ident| is_one_of(word, "allow warn deny forbid expect");
    match &attr.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg_attr") => {
            let mut set = parts(list.tokens.clone()).into_iter().skip(1);
            let is_level = |part: TokenStream| matches!(part.into_iter().next(), Some(TokenTree::Ident(word)) if is_level(&word));
            set.len() > 0 && set.all(|(part, _)| is_level(part))
        }
        meta => meta.path().get_ident().is_some_and(is_level),
    }
}

pub(crate) fn is_doc(attr: &Attribute) -> bool {
    attr.path().is_ident("doc")
}

pub(crate) fn is_cfg(attr: &Attribute) -> bool {
    is(attr, &["cfg", "cfg_attr"]) && !is_lint(attr)
}

/// Whether the attribute has one of the names, also inside a `cfg_attr`: `#[cfg_attr(unix, deprecated)]`.
fn has_name(attr: &Attribute, names: &[&str]) -> bool {
    is(attr, names) && is_well_formed(attr)
        || attr.path().is_ident("cfg_attr") && names.iter().any(|name| mentions(attr, name))
}

/// Whether the compiler accepts the attribute. Others are not moved, so that they are reported only once.
fn is_well_formed(attr: &Attribute) -> bool {
    let is_other = |trees: &[TokenTree], at: usize| {
        let text = |literal: &Literal| literal.to_string().contains('"');
        matches!(&trees[at], TokenTree::Literal(literal) if !text(literal)).then_some(())
    };
    let takes_list = !attr.path().is_ident("must_use");
    (takes_list || !matches!(attr.meta, syn::Meta::List(_)))
        && Trees::new(attr.meta.to_token_stream()).find(&mut { is_other }).is_none()
}

/// Whether an attribute of forward concerns callers. It moves from forward to `apply` and its variants.
pub(crate) fn is_for_callers(attr: &Attribute) -> bool {
    has_name(attr, &["doc", "must_use", "deprecated"])
}

/// As [`is_for_callers`], for attributes that are repeated on every calling function. Docs are not.
pub(crate) fn is_for_each_call(attr: &Attribute) -> bool {
    has_name(attr, &["must_use", "deprecated"]) && !has_name(attr, &["doc"])
}

pub(crate) fn is_lint_of_types(attr: &Attribute) -> bool {
    const LINTS: &str = "non_camel_case_types missing_docs missing_debug_implementations \
        missing_copy_implementations";
    find_ident(attr.to_token_stream(), |name| is_one_of(name, LINTS)).is_some()
}
