//! `?` in a function of the block that returns no `Result`.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::{ReturnType, Type};

use crate::errors::Errors;
use crate::messages;
use crate::model::{Function, bare, last_segment};
use crate::tokens::{is_group, is_one_of, is_punct, text};

pub(crate) fn check(function: &Function, errors: &mut Errors) {
    if let Some(returned) = no_result(&function.sig.output)
        && let Some(first) = first_mark(function.judged().0.stream())
    {
        let name = function.sig.ident.to_string();
        errors.at_span(first, messages::question_mark(&name, &text(returned)));
    }
}

const NO_RESULT: &str = "Tensor Vec Grads Array ArrayD Array1 Array2";

/// The type that is returned, where it is surely neither a `Result` nor an `Option`.
fn no_result(output: &ReturnType) -> Option<&Type> {
    let ReturnType::Type(_, returned) = output else { return None };
    let surely = match bare(returned) {
        Type::Tuple(_) | Type::Array(_) => true,
        ty => last_segment(ty).is_some_and(|last| is_one_of(&last.ident, NO_RESULT)),
    };
    surely.then_some(returned)
}

/// The first `?` of the function itself: not of closures, async blocks, nested functions and unknown
/// macros.
fn first_mark(tokens: TokenStream) -> Option<Span> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        let end = opaque(&trees, at);
        if end > at {
            at = end;
            continue;
        }
        match &trees[at] {
            mark if is_punct(Some(mark), '?') && at > 0 && is_value(&trees[at - 1]) => {
                return Some(mark.span());
            }
            TokenTree::Group(group) => {
                if let Some(found) = first_mark(group.stream()) {
                    return Some(found);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where what starts here and is no code of the function itself ends; `at` if nothing does.
pub(super) fn opaque(trees: &[TokenTree], at: usize) -> usize {
    let is = |i: usize, c: char| is_punct(trees.get(i), c);
    let upto = |from: usize, last: &dyn Fn(usize) -> bool| {
        (from..trees.len()).find(|&i| last(i)).map_or(trees.len(), |i| i + 1)
    };
    let brace = |i: usize| is_group(trees.get(i), Delimiter::Brace);
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
pub(super) fn is_value(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Ident(word) => !is_one_of(word, "move return in else"),
        TokenTree::Punct(punct) => punct.as_char() == '?',
        TokenTree::Group(_) | TokenTree::Literal(_) => true,
    }
}

#[cfg(test)]
mod tests {
    fn is_marked(body: &str) -> bool {
        super::first_mark(format!("{{ {body} }}").parse().unwrap()).is_some()
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
            assert!(is_marked(body), "{body}");
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
            assert!(!is_marked(body), "{body}");
        }
    }
}
