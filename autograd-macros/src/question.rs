//! `?` in a function of the block that returns no `Result`.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::quote_spanned;
use syn::{ReturnType, Signature, Type};

use crate::errors::Errors;
use crate::messages;
use crate::model::{Function, Layer, bare, last_segment, text};

/// An error at the first `?` that has no `Result` to return.
pub(crate) fn check(layer: &Layer, errors: &mut Errors) {
    if !layer.glance.may_mention("?") {
        return;
    }
    let functions: [Option<&Function>; 3] = [
        layer.forward.as_ref().map(|forward| &forward.function),
        layer.backward.as_ref().map(|backward| &backward.function),
        layer.jvp.as_ref().map(|jvp| &jvp.function),
    ];
    for Function { sig, body, .. } in functions.into_iter().flatten() {
        check_function(sig, body, errors);
    }
}

/// The same of one function.
pub(crate) fn check_function(sig: &Signature, body: &Group, errors: &mut Errors) {
    if let (Some(returned), (_, Some(first))) = (no_result(sig), unwrapped(body)) {
        let name = sig.ident.to_string();
        errors.at_span(first, messages::question_mark(&name, &text(returned)));
    }
}

const NO_RESULT: [&str; 7] = ["Tensor", "Vec", "Grads", "Array", "ArrayD", "Array1", "Array2"];

/// The type that is returned, where it is surely neither a `Result` nor an `Option`.
fn no_result(sig: &Signature) -> Option<&Type> {
    let ReturnType::Type(_, returned) = &sig.output else { return None };
    let surely = match bare(returned) {
        Type::Tuple(_) | Type::Array(_) => true,
        ty => last_segment(ty).is_some_and(|last| NO_RESULT.iter().any(|name| last.ident == name)),
    };
    surely.then_some(returned)
}

/// A group in which each `?` of the function itself is `.unwrap()`, and where the first one stands.
/// Those of closures, async blocks, nested functions and unknown macros stay.
fn unwrapped(group: &Group) -> (Group, Option<Span>) {
    let mut first = None;
    let stream = walk(group.stream(), &mut first);
    if first.is_none() {
        return (group.clone(), None);
    }
    let mut new = Group::new(group.delimiter(), stream);
    new.set_span(group.span());
    (new, first)
}

fn walk(tokens: TokenStream, first: &mut Option<Span>) -> TokenStream {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut out = TokenStream::new();
    let mut at = 0;
    while at < trees.len() {
        let end = opaque(&trees, at);
        if end > at {
            out.extend(trees[at..end].iter().cloned());
            at = end;
            continue;
        }
        match &trees[at] {
            TokenTree::Punct(mark)
                if mark.as_char() == '?' && at > 0 && is_value(&trees[at - 1]) =>
            {
                let span = mark.span();
                first.get_or_insert(span);
                out.extend(quote_spanned!(span=> .unwrap()));
            }
            TokenTree::Group(group) => {
                let (inner, found) = unwrapped(group);
                *first = first.or(found);
                out.extend([TokenTree::Group(inner)]);
            }
            tree => out.extend([tree.clone()]),
        }
        at += 1;
    }
    out
}

/// Where what starts here and is no code of the function itself ends; `at` if nothing does.
fn opaque(trees: &[TokenTree], at: usize) -> usize {
    let is = |i: usize, c: char| matches!(trees.get(i), Some(TokenTree::Punct(punct)) if punct.as_char() == c);
    let upto = |from: usize, last: &dyn Fn(usize) -> bool| {
        (from..trees.len()).find(|&i| last(i)).map_or(trees.len(), |i| i + 1)
    };
    let brace = |i: usize| matches!(&trees[i], TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    match &trees[at] {
        TokenTree::Ident(word) if word == "fn" || word == "async" => upto(at, &brace),
        // A macro whose arguments are not just values.
        TokenTree::Ident(word) if is(at + 1, '!') && !is(at + 2, '=') && word != "vec" => at + 3,
        TokenTree::Punct(bar) if bar.as_char() == '|' && !(at > 0 && is_value(&trees[at - 1])) => {
            let parameters = upto(at + 1, &|i| is(i, '|'));
            upto(parameters, &|i| is(i, ',') || is(i, ';'))
        }
        _ => at,
    }
    .min(trees.len())
}

/// Whether a value may end here, so that an operator follows.
fn is_value(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Ident(word) => {
            !["move", "return", "in", "else"].iter().any(|other| word == other)
        }
        TokenTree::Punct(punct) => punct.as_char() == '?',
        TokenTree::Group(_) | TokenTree::Literal(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::{Group, TokenStream, TokenTree};

    fn unwrapped(body: &str) -> String {
        let tokens: TokenStream = format!("{{ {body} }}").parse().unwrap();
        let Some(TokenTree::Group(group)) = tokens.into_iter().next() else { panic!("{body}") };
        let (group, found): (Group, _) = super::unwrapped(&group);
        assert_eq!(found.is_some(), group.to_string().contains("unwrap"), "{body}");
        group.to_string()
    }

    #[test]
    fn marks_of_the_function_itself_are_found() {
        for body in [
            "dy.try_mul(x)?",
            "let y = dy.try_mul(x)?; y",
            "f(dy)??",
            "vec![dy.try_mul(x)?]",
            "if a | b { dy.try_mul(x)? } else { dy }",
            "Grads { a: dy.try_mul(x)?, b: None }",
            "let f = |x| x + 1.0; dy.try_mul(f(x))?",
            "f(|x| x, dy?)",
            "match a { A | B => dy?, _ => x }",
        ] {
            assert!(!unwrapped(body).contains('?'), "{body}");
        }
    }

    #[test]
    fn marks_of_others_stay() {
        for body in [
            "let f = |x, y| x.try_mul(y)?; f(x)",
            "xs.iter().map(|x| -> R { x.try_mul(dy)? }).collect()",
            "xs.iter().map(move || x?)",
            "let f = async { x? };",
            "fn f(x: T) -> R { x? } dy",
            "fn f<T: ?Sized>(x: &T) {} dy",
            "let x: &dyn A<dyn B + ?Sized> = y;",
            "m!(x?)",
        ] {
            assert!(!unwrapped(body).contains("unwrap"), "{body}");
        }
    }
}
