//! Inputs of forward that the body of backward names and does not get. The compiler only knows that there is no such
//! value, and suggests names that look alike.

use proc_macro2::{Delimiter, Ident, Spacing, TokenStream, TokenTree};
use syn::{FnArg, PatType, Type};

use super::context::collect_bound;
use crate::model::{Function, bare};
use crate::parse::pattern_name;
use crate::tokens::{Trees, is_group, is_one_of, is_punct};

/// The inputs, each where backward first names it, with its type in forward. A name that the body may bind is left to
/// the compiler.
pub(crate) fn inputs<'f>(forward: &'f Function, backward: &Function) -> Vec<(Ident, &'f Type)> {
    let trees = backward.trees();
    // Patterns and functions bind names in ways that tokens do not show.
    if trees.find_ident(|word| is_one_of(word, "match matches fn macro_rules")).is_some() {
        return Vec::new();
    }
    let mut bound: Vec<Ident> = parameters(backward).filter_map(|(name, _)| name).collect();
    collect_bound(backward.body.stream(), false, &mut bound);
    closures(backward.body.stream(), &mut bound);
    let inputs = parameters(forward).filter_map(|(name, ty)| Some((name?, ty)));
    // A free function may have the name of a parameter that is one.
    let inputs = inputs.filter(|(_, ty)| !matches!(bare(ty), Type::FnPtr(_) | Type::ImplTrait(_)));
    let absent = inputs.filter(|(name, _)| !bound.contains(name));
    absent.filter_map(|(name, ty)| Some((used(trees, &name)?, ty))).collect()
}

fn parameters(function: &Function) -> impl Iterator<Item = (Option<Ident>, &Type)> {
    function.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(PatType { pat, ty, .. }) => Some((pattern_name(pat), &**ty)),
        FnArg::Receiver(_) => None,
    })
}

/// The first use of the name as a value: neither a field, a method, a part of a path, nor a function.
fn used(trees: &Trees, name: &Ident) -> Option<Ident> {
    trees.find(&mut |trees, at| {
        let TokenTree::Ident(word) = &trees[at] else { return None };
        let before = at.checked_sub(1).map(|at| &trees[at]);
        let after = trees.get(at + 1);
        let is_path = is_punct(before, ':') || is_punct(after, ':');
        let is_field = is_punct(before, '.') && !is_range(trees, at);
        // A call, or a literal of a struct.
        let is_called =
            is_group(after, Delimiter::Parenthesis) || is_group(after, Delimiter::Brace);
        let is_macro = matches!(after, Some(TokenTree::Punct(not))
            if not.as_char() == '!' && not.spacing() == Spacing::Alone);
        let other = is_path || is_field || is_called || is_macro || is_punct(before, '\'');
        (word == name && !other).then(|| word.clone())
    })
}

/// `..x`
fn is_range(trees: &[TokenTree], at: usize) -> bool {
    at >= 2 && is_punct(Some(&trees[at - 2]), '.')
}

/// Collects the names between bars. Too many names only suppress the error.
fn closures(tokens: TokenStream, names: &mut Vec<Ident>) {
    let mut inside = false;
    for tree in tokens {
        match tree {
            TokenTree::Punct(bar) if bar.as_char() == '|' => inside = !inside,
            TokenTree::Ident(name) if inside => names.push(name),
            TokenTree::Group(group) => {
                if inside {
                    let all = Trees::new(group.stream());
                    all.find(&mut |trees, at| {
                        if let TokenTree::Ident(name) = &trees[at] {
                            names.push(name.clone());
                        }
                        None::<()>
                    });
                }
                closures(group.stream(), names);
            }
            _ => {}
        }
    }
}
