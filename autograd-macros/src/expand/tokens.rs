//! Tokens, where they are shown, and what is made of generics and attributes.

use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt, quote};
use syn::{Attribute, GenericParam, Generics, ReturnType};

use crate::model::{mentions, plain_name};

/// The macro's own names at a place of the user's.
pub(crate) fn here(place: Span) -> Span {
    Span::mixed_site().located_at(place)
}

/// A local at the place where an error is to be shown.
pub(crate) fn at(local: &Ident, span: Span) -> Ident {
    let mut local = local.clone();
    local.set_span(local.span().located_at(span));
    local
}

/// A name that is made of the op's, and is shown where that stands.
pub(crate) fn generated(op: &Ident, what: &str) -> Ident {
    Ident::new(&format!("{}{what}", plain_name(op)), Span::call_site().located_at(op.span()))
}

/// A name made of text, in the edition of its place; none where the text is no name.
pub(crate) fn named(text: &str, place: Span) -> Option<Ident> {
    let raw = format!("r#{text}");
    let mut ident = [text, &raw].into_iter().find_map(|text| syn::parse_str::<Ident>(text).ok())?;
    ident.set_span(place);
    Some(ident)
}

/// Tokens at one place, with the names as they were.
pub(crate) fn respanned(tokens: TokenStream, span: Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|mut tree| {
            tree.set_span(span);
            tree
        })
        .collect()
}

/// The same tokens, shown at another place.
pub(super) fn located(tokens: TokenStream, place: Span) -> TokenStream {
    let locate = |mut tree: TokenTree| {
        tree.set_span(tree.span().located_at(place));
        tree
    };
    tokens.into_iter().map(locate).collect()
}

/// Puts tokens in place of a name.
pub(crate) fn replace_ident(tokens: TokenStream, name: &str, with: &TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|tree| match tree {
            TokenTree::Ident(ident) if ident == name => with.clone(),
            TokenTree::Group(group) => {
                let inner = replace_ident(group.stream(), name, with);
                let mut new = Group::new(group.delimiter(), inner);
                new.set_span(group.span());
                TokenTree::Group(new).into()
            }
            tree => tree.into(),
        })
        .collect()
}

/// A type with `'_` in place of its lifetimes.
pub(crate) fn anonymous(ty: &impl ToTokens) -> TokenStream {
    let mut tokens = TokenStream::new();
    let mut trees = ty.to_token_stream().into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Punct(punct) if punct.as_char() == '\'' => {
                tokens.extend([TokenTree::Punct(punct)]);
                if let Some(TokenTree::Ident(name)) = trees.next() {
                    let name = if name == "static" { name } else { Ident::new("_", name.span()) };
                    tokens.extend([TokenTree::Ident(name)]);
                }
            }
            TokenTree::Group(group) => {
                let mut new = Group::new(group.delimiter(), anonymous(&group.stream()));
                new.set_span(group.span());
                tokens.extend([TokenTree::Group(new)]);
            }
            tree => tokens.extend([tree]),
        }
    }
    tokens
}

/// `::<F, N>`, or nothing.
pub(crate) fn turbofish(generics: &Generics) -> Option<TokenStream> {
    let names: Vec<_> = generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.ident),
            GenericParam::Const(param) => Some(&param.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    (!names.is_empty()).then(|| quote!(::<#(#names),*>))
}

/// A type that mentions all parameters and is `Send` and `Sync` whatever they are.
pub(crate) fn phantom(generics: &Generics) -> TokenStream {
    let parts = generics.params.iter().filter_map(|param| match param {
        GenericParam::Type(param) => {
            let ident = &param.ident;
            Some(quote!(*const #ident))
        }
        GenericParam::Lifetime(param) => {
            let lifetime = &param.lifetime;
            Some(quote!(& #lifetime ()))
        }
        GenericParam::Const(_) => None,
    });
    quote!(fn() -> (#(#parts,)*))
}

/// A doc comment.
pub(super) struct Doc(&'static str);

impl ToTokens for Doc {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let text = self.0;
        tokens.append(Punct::new('#', Spacing::Alone));
        tokens.append(Group::new(Delimiter::Bracket, quote!(doc = #text)));
    }
}

/// A doc comment where the user wrote none.
pub(super) fn undocumented(attrs: &[Attribute], doc: &'static str) -> Option<Doc> {
    let documented = attrs.iter().any(|attr| attr.path().is_ident("doc"));
    (!documented).then_some(Doc(doc))
}

pub(super) fn is_cfg(attr: &Attribute) -> bool {
    attr.path().is_ident("cfg")
}

pub(super) fn is_expect(attr: &Attribute) -> bool {
    attr.path().is_ident("expect")
}

/// What an attribute says, also where it is configured: `#[cfg_attr(unix, deprecated)]`.
fn says(attr: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attr.path().is_ident(name)) && is_well_formed(attr)
        || attr.path().is_ident("cfg_attr") && names.iter().any(|name| mentions(attr, name))
}

/// Whether the compiler reads it: what it refuses stays where it stands, and is reported once.
fn is_well_formed(attr: &Attribute) -> bool {
    let is_text = |value: &syn::Expr| match value {
        syn::Expr::Lit(literal) => matches!(literal.lit, syn::Lit::Str(_)),
        syn::Expr::Macro(_) => true,
        _ => false,
    };
    let known = |meta: &syn::MetaNameValue| {
        let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        matches!(&name[..], "since" | "note" | "suggestion") && is_text(&meta.value)
    };
    match &attr.meta {
        syn::Meta::Path(_) => true,
        syn::Meta::NameValue(meta) => is_text(&meta.value),
        syn::Meta::List(_) if attr.path().is_ident("deprecated") => {
            type Parts = syn::punctuated::Punctuated<syn::MetaNameValue, syn::Token![,]>;
            let parts = attr.parse_args_with(Parts::parse_terminated);
            parts.is_ok_and(|parts| parts.iter().all(known))
        }
        syn::Meta::List(_) => attr.path().is_ident("doc"),
    }
}

/// Attributes of forward that say something of its callers: they stand on what is called, `apply` and
/// the like, and not on forward.
pub(crate) fn of_callers(attr: &Attribute) -> bool {
    says(attr, &["doc", "must_use", "deprecated"])
}

/// Those of them that stand on every way of a call; docs stand once.
pub(crate) fn of_each_call(attr: &Attribute) -> bool {
    says(attr, &["must_use", "deprecated"]) && !says(attr, &["doc"])
}

/// Those that stand on the start of a call.
pub(crate) fn of_start(attr: &Attribute) -> bool {
    says(attr, &["deprecated"]) && !says(attr, &["doc", "must_use"])
}

/// A lint of the type itself: an expectation of it is one of the struct.
pub(crate) fn is_lint_of_types(attr: &Attribute) -> bool {
    const LINTS: [&str; 4] = [
        "non_camel_case_types",
        "missing_docs",
        "missing_debug_implementations",
        "missing_copy_implementations",
    ];
    LINTS.iter().any(|lint| mentions(attr, lint))
}

pub(crate) fn first_span(tokens: &impl ToTokens) -> Span {
    crate::errors::ends(tokens.to_token_stream()).0
}

/// The span over all of some tokens, where the compiler can join spans; else the first.
pub(crate) fn whole_span(tokens: &impl ToTokens) -> Span {
    let (first, last) = crate::errors::ends(tokens.to_token_stream());
    first.join(last).unwrap_or(first)
}

pub(crate) fn output_span(output: &ReturnType) -> Span {
    match output {
        ReturnType::Default => Span::call_site(),
        ReturnType::Type(_, ty) => whole_span(ty),
    }
}
