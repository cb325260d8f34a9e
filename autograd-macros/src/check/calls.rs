//! Calls on a context, found among tokens: the body may still be half written.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, Token};

use crate::model::nearest;
use crate::tokens::{self, Trees, is_group, is_one_of, is_punct, text};

pub(crate) fn find_call(body: &Trees, context: &Ident, call: &str) -> Option<(Ident, TokenStream)> {
    body.find(&mut |trees, at| match &trees[at..] {
        [TokenTree::Ident(ctx), dot, TokenTree::Ident(name), TokenTree::Group(arguments), ..]
            if ctx == context
                && is_punct(Some(dot), '.')
                && name == call
                && arguments.delimiter() == Delimiter::Parenthesis =>
        {
            Some((name.clone(), arguments.stream()))
        }
        _ => None,
    })
}

/// The arguments of a call; none where they cannot be read.
pub(crate) fn arguments(tokens: &TokenStream) -> Vec<Expr> {
    let parsed = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens.clone());
    parsed.map(|arguments| arguments.into_iter().collect()).unwrap_or_default()
}

pub(crate) const DIVERGING: &str = "panic todo unimplemented unreachable";

/// `todo!()`, `unimplemented!()`, `panic!()` alone: still being written.
pub(crate) fn is_stub(body: &TokenStream) -> bool {
    let mut trees = body.clone().into_iter();
    let first = (trees.next(), trees.next());
    // `loop {}` is what the macro puts where there is no body.
    if let (Some(TokenTree::Ident(word)), Some(TokenTree::Group(_))) = &first {
        return word == "loop";
    }
    matches!(
        first,
        (Some(TokenTree::Ident(name)), Some(TokenTree::Punct(bang)))
            if bang.as_char() == '!' && is_one_of(&name, DIVERGING)
    )
}

/// Whether the context is used otherwise than before a dot.
pub(crate) fn escapes(body: &Trees, context: &Ident) -> bool {
    let escapes = |trees: &[TokenTree], at: usize| {
        let here = matches!(&trees[at], TokenTree::Ident(ident) if ident == context);
        (here && !is_punct(trees.get(at + 1), '.')).then_some(())
    };
    body.find(&mut { escapes }).is_some()
}

/// Whether a name that is nearly this one is called on the context.
pub(crate) fn is_misspelt(body: &Trees, context: &Ident, call: &str) -> bool {
    let misspelt = |trees: &[TokenTree], at: usize| match &trees[at..] {
        [TokenTree::Ident(ctx), dot, TokenTree::Ident(name), ..]
            if ctx == context && is_punct(Some(dot), '.') =>
        {
            nearest(&name.to_string(), &[call]).map(drop)
        }
        _ => None,
    };
    body.find(&mut { misspelt }).is_some()
}

/// The parts of the tuple at the end of a body, also of one inside `Ok(..)`; what is no tuple is the only part.
pub(crate) fn returned_parts(body: &Group) -> Vec<TokenStream> {
    let trees: Vec<TokenTree> = body.stream().into_iter().collect();
    let ends =
        |tree: &TokenTree| is_punct(Some(tree), ';') || is_group(Some(tree), Delimiter::Brace);
    let start = trees.iter().rposition(ends).map_or(0, |end| end + 1);
    parts_of(&trees[start..])
}

fn parts_of(tail: &[TokenTree]) -> Vec<TokenStream> {
    match tail {
        [TokenTree::Ident(ok), TokenTree::Group(inner)] if ok == "Ok" => {
            parts_of(&inner.stream().into_iter().collect::<Vec<_>>())
        }
        [TokenTree::Group(tuple)] if is_group(tail.first(), Delimiter::Parenthesis) => {
            tokens::parts(tuple.stream()).into_iter().map(|(part, _)| part).collect()
        }
        one => vec![one.iter().cloned().collect()],
    }
}

/// `dx`, `&dx`, `Some(dx)`, `dx.clone()`
pub(crate) fn name(part: &TokenStream) -> Option<Ident> {
    let trees: Vec<TokenTree> =
        part.clone().into_iter().skip_while(|tree| is_punct(Some(tree), '&')).collect();
    match &trees[..] {
        [TokenTree::Ident(some), TokenTree::Group(inner)] if some == "Some" => {
            name(&inner.stream())
        }
        [TokenTree::Ident(name)] => Some(name.clone()),
        [TokenTree::Ident(name), rest @ ..] => {
            let rest: TokenStream = rest.iter().cloned().collect();
            (text(&rest) == ".clone()").then(|| name.clone())
        }
        _ => None,
    }
}
