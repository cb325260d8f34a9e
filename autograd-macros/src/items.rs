//! Splits the block into items. Items with syntax errors are skipped: the compiler parses the block before
//! the macro runs, and has reported them.

use std::cell::OnceCell;

use proc_macro2::{Delimiter, Group, Ident, Spacing, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, ImplItem, Signature, Token, Visibility};

use crate::errors::Errors;
use crate::messages;
use crate::model::{Broken, Function};
use crate::tokens::{is_one_of, parts, text};

pub(crate) enum ParsedItem {
    Function(Function),
    Type(syn::ImplItemType),
    Macro(TokenStream),
    Other(TokenStream),
    Broken(Broken),
}

pub(crate) fn split(body: TokenStream, errors: &mut Errors) -> Vec<ParsedItem> {
    let mut found = Vec::new();
    let parser = |input: ParseStream<'_>| -> syn::Result<()> {
        input.call(Attribute::parse_inner)?;
        while !input.is_empty() {
            let ahead = input.fork();
            match item(&ahead, errors) {
                Ok(item) => {
                    input.advance_to(&ahead);
                    found.push(item);
                }
                Err(_) => {
                    let (item, tokens) = broken(input)?;
                    found.push(ParsedItem::Broken(item));
                    if let Some(object) = without_dyn(tokens, false) {
                        errors.at(&object, messages::without_dyn(&text(&object)));
                    }
                }
            }
        }
        Ok(())
    };
    if parser.parse2(body).is_err() {
        found.push(ParsedItem::Broken(Broken { name: None, parameters: None }));
    }
    found
}

fn item(input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<ParsedItem> {
    let ahead = input.fork();
    let attrs = ahead.call(Attribute::parse_outer)?;
    let vis: Visibility = ahead.parse()?;
    let default = ahead.parse::<Option<Token![default]>>()?;
    if let Ok(sig) = ahead.parse::<Signature>() {
        input.advance_to(&ahead);
        if let Some(word) = default {
            errors.at(word, messages::qualifier("default", &sig.ident.to_string()));
        }
        let body = match inner(input.parse::<TokenTree>()?) {
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => body,
            TokenTree::Punct(end) if end.as_char() == ';' => {
                errors.at(&end, messages::no_body(&sig.ident.to_string()));
                Group::new(Delimiter::Brace, quote!(loop {}))
            }
            other => return Err(syn::Error::new(other.span(), "no body")),
        };
        let (without_cfg, trees, parsed) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let function = Function { attrs, vis, sig, body, without_cfg, trees, parsed };
        return Ok(ParsedItem::Function(function));
    }
    Ok(match input.parse()? {
        ImplItem::Type(ty) => ParsedItem::Type(ty),
        ImplItem::Macro(call) => ParsedItem::Macro(call.to_token_stream()),
        other => ParsedItem::Other(other.to_token_stream()),
    })
}

/// Unwraps groups without delimiters: `macro_rules!` passes a `$body:block` in one.
fn inner(tree: TokenTree) -> TokenTree {
    if let TokenTree::Group(group) = &tree
        && group.delimiter() == Delimiter::None
    {
        let mut trees = group.stream().into_iter();
        if let (Some(only), None) = (trees.next(), trees.next()) {
            return inner(only);
        }
    }
    tree
}

/// An item with a syntax error, and its tokens.
fn broken(input: ParseStream<'_>) -> syn::Result<(Broken, TokenStream)> {
    let mut tokens = TokenStream::new();
    let mut broken = Broken { name: None, parameters: None };
    let mut inside = false;
    while !(input.is_empty() || inside && starts_item(input)) {
        let tree = input.parse::<TokenTree>()?;
        tokens.extend([tree.clone()]);
        match &tree {
            TokenTree::Ident(word) => {
                if inside && broken.name.is_none() && !is_one_of(word, "fn type const let") {
                    broken.name = Some(word.clone());
                }
                // Attributes, visibility and qualifiers belong to what follows.
                inside |= !is_one_of(word, "pub async unsafe extern");
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis && inside => {
                broken.parameters.get_or_insert_with(|| group.clone());
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
            TokenTree::Punct(punct) if punct.as_char() == ';' => break,
            _ => {}
        }
    }
    Ok((broken, tokens))
}

/// A trait object of a closure without `dyn`, which is no syntax error to the compiler.
fn without_dyn(tokens: TokenStream, in_group: bool) -> Option<TokenStream> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (i, tree) in trees.iter().enumerate() {
        let TokenTree::Group(group) = tree else { continue };
        if group.delimiter() == Delimiter::Brace {
            continue;
        }
        let (before, name) =
            trees[..i].split_last().map_or((&[][..], None), |(name, before)| (before, Some(name)));
        let is_object = match before.last() {
            None => in_group,
            // A `:` outside of the parameters is that of a bound.
            Some(TokenTree::Punct(punct)) => match punct.as_char() {
                ':' => in_group,
                other => "<&,=".contains(other),
            },
            Some(_) => false,
        };
        if let Some(TokenTree::Ident(word)) = name
            && is_object
            && is_one_of(word, "Fn FnMut FnOnce")
        {
            return Some(quote!(#word #group));
        }
        if let Some(found) = without_dyn(group.stream(), true) {
            return Some(found);
        }
    }
    None
}

fn starts_item(input: ParseStream<'_>) -> bool {
    input.peek(Token![fn]) && input.peek2(syn::Ident)
        || input.peek(Token![pub])
        || input.peek(Token![type])
        || input.peek(Token![#])
}

/// The names of the parameters of a function with a syntax error: the identifiers before a `:`, or the first
/// identifier of a parameter without one.
pub(crate) fn parameter_names(parameters: &Group) -> Vec<Ident> {
    let mut names: Vec<Ident> = Vec::new();
    for (part, _) in parts(parameters.stream()) {
        let trees: Vec<TokenTree> = part.into_iter().collect();
        let before = names.len();
        names.extend(trees.windows(2).filter_map(|two| match two {
            [TokenTree::Ident(name), TokenTree::Punct(colon)] => {
                let is_type = colon.as_char() == ':' && colon.spacing() == Spacing::Alone;
                is_type.then(|| name.clone())
            }
            _ => None,
        }));
        if let (Some(TokenTree::Ident(name)), true) = (trees.first(), names.len() == before) {
            names.push(name.clone());
        }
    }
    for (at, name) in names.iter_mut().enumerate().filter(|(_, name)| *name == "_") {
        *name = Ident::new(&format!("argument_{at}"), name.span());
    }
    names
}
