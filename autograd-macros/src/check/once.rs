//! Calls that may run only once, but are repeated in the same statements or run for each tensor of a list.
//! Repeated calls on other paths are rejected at run time.

use proc_macro2::{Delimiter, Group, Ident, TokenTree};

use super::calls::ends_statement;
use crate::tokens::{Trees, find_ident, is_group, is_one_of, is_punct};

const ONCE: &str = "save_for_backward set_attrs mark_not_inplace mark_non_differentiable \
    set_materialize_grads";

/// Methods whose iterator still yields every tensor of a list.
const EVERY_ITEM: &str = "iter into_iter enumerate zip cloned copied rev map";

/// The calls that repeat an earlier one, in the same statements or in those around them. `earlier` has the
/// names of the earlier calls.
pub(super) fn repeated_calls(body: &Group, context: &Ident, mut earlier: Vec<Ident>) -> Vec<Ident> {
    let trees: Vec<TokenTree> = body.stream().into_iter().collect();
    let mut found = Vec::new();
    for (at, tree) in trees.iter().enumerate() {
        match statement(&trees, at, context) {
            Some(call) if earlier.contains(call) => found.push(call.clone()),
            Some(call) => earlier.push(call.clone()),
            None => {}
        }
        if let TokenTree::Group(group) = tree {
            found.extend(repeated_calls(group, context, earlier.clone()));
            let first = trees[..at].rsplit(ends_statement).next().and_then(<[_]>::first);
            if matches!(first, Some(TokenTree::Ident(word)) if word == "match") {
                earlier.extend(in_each_arm(group, context));
            }
        }
    }
    found
}

/// The calls that each arm of a `match` makes. A `>` that is no arrow only suppresses the error.
fn in_each_arm(arms: &Group, context: &Ident) -> Vec<Ident> {
    let trees: Vec<TokenTree> = arms.stream().into_iter().collect();
    let arms = trees.split(|tree| is_punct(Some(tree), '>')).skip(1);
    let mut calls = arms.map(|arm| -> Vec<Ident> {
        let code = match arm.first() {
            Some(TokenTree::Group(block)) => block.stream().into_iter().collect(),
            _ => arm.to_vec(),
        };
        (0..code.len()).filter_map(|at| statement(&code, at, context).cloned()).collect()
    });
    let first = calls.next().unwrap_or_default();
    calls.fold(first, |common, calls| common.into_iter().filter(|of| calls.contains(of)).collect())
}

/// Calls of `save_for_backward` for each tensor of a list: the call, the list, and `loop` or `closure`.
pub(super) fn calls_per_tensor<'a>(
    body: &Trees,
    context: &Ident,
    lists: &'a [Ident],
) -> Vec<(Ident, &'a Ident, &'static str)> {
    let mut found = Vec::new();
    body.find(&mut |trees, at| {
        let each = match &trees[at..] {
            [TokenTree::Ident(word), head @ ..] if word == "for" => loop_body(head, lists),
            [TokenTree::Ident(word), rest @ ..] => {
                let list = lists.iter().find(|list| *list == word);
                list.and_then(|list| Some((list, closure(rest)?, "closure")))
            }
            _ => None,
        };
        if let Some((list, code, place)) = each {
            let leaves = |word: &Ident| is_one_of(word, "break return");
            let mut calls = (0..code.len()).filter_map(|at| statement(&code, at, context));
            if let Some(call) = calls.find(|call| *call == "save_for_backward")
                && find_ident(code.iter().cloned().collect(), leaves).is_none()
            {
                found.push((call.clone(), list, place));
            }
        }
        None::<()>
    });
    found
}

/// The name of the call, if `ctx.call(..)` starts here and is a statement or the value of a `let`.
fn statement<'a>(trees: &'a [TokenTree], at: usize, context: &Ident) -> Option<&'a Ident> {
    let before = at.checked_sub(1).map(|at| &trees[at]);
    match &trees[at..] {
        [TokenTree::Ident(word), dot, TokenTree::Ident(call), TokenTree::Group(_), ..]
            if word == context
                && is_punct(Some(dot), '.')
                && is_one_of(call, ONCE)
                && before.is_none_or(|tree| ends_statement(tree) || is_punct(Some(tree), '=')) =>
        {
            Some(call)
        }
        _ => None,
    }
}

type Each<'a> = (&'a Ident, Vec<TokenTree>, &'static str);

/// The block of a loop over a whole list: `y in &xs`, `(i, y) in xs.iter().enumerate()`.
fn loop_body<'a>(head: &[TokenTree], lists: &'a [Ident]) -> Option<Each<'a>> {
    let is_in = |tree: &TokenTree| matches!(tree, TokenTree::Ident(word) if word == "in");
    let start = head.iter().position(is_in)? + 1;
    let end =
        start + head[start..].iter().position(|tree| is_group(Some(tree), Delimiter::Brace))?;
    let first = start + head[start..end].iter().position(|tree| !is_punct(Some(tree), '&'))?;
    let [TokenTree::Ident(name), calls @ ..] = &head[first..end] else { return None };
    let whole = calls.chunks(3).all(|call| {
        matches!(call, [_, TokenTree::Ident(method), TokenTree::Group(_)] if is_one_of(method, EVERY_ITEM))
    });
    let list = lists.iter().find(|list| whole && *list == name)?;
    let TokenTree::Group(block) = &head[end] else { return None };
    Some((list, block.stream().into_iter().collect(), "loop"))
}

/// The code of a closure that runs for each tensor of a list. `rest` follows the list's name.
fn closure(mut rest: &[TokenTree]) -> Option<Vec<TokenTree>> {
    while let [dot, TokenTree::Ident(method), TokenTree::Group(given), after @ ..] = rest
        && is_punct(Some(dot), '.')
    {
        let mut code = given.stream().into_iter();
        let bar = |tree: &TokenTree| is_punct(Some(tree), '|');
        if code.any(|tree| bar(&tree)) && code.any(|tree| bar(&tree)) {
            let code: Vec<TokenTree> = code.collect();
            return match &code[..] {
                [TokenTree::Group(block)] => Some(block.stream().into_iter().collect()),
                _ => Some(code),
            };
        }
        if !is_one_of(method, EVERY_ITEM) {
            return None;
        }
        rest = after;
    }
    None
}
