//! `mark_non_differentiable` takes outputs, and `mark_not_inplace` inputs.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Block, Expr, Local, Pat, Stmt};

use super::paths::Call;
use crate::errors::Errors;
use crate::messages;
use crate::model::Forward;
use crate::parse::pattern_name;
use crate::tokens::{is_one_of, plain_name};

/// Names in the tuple or reference that a mark takes, with their place.
fn marked_names(expr: &Expr, names: &mut Vec<Ident>) {
    match expr {
        Expr::Reference(inner) => marked_names(&inner.expr, names),
        Expr::Paren(inner) => marked_names(&inner.expr, names),
        Expr::Tuple(tuple) => tuple.elems.iter().for_each(|expr| marked_names(expr, names)),
        Expr::Array(array) => array.elems.iter().for_each(|expr| marked_names(expr, names)),
        Expr::Path(path) => names.extend(path.path.get_ident().cloned()),
        _ => {}
    }
}

/// Inputs among what is marked as outputs, and the reverse.
pub(super) fn check(call: &Call, forward: &Forward, block: &Block, errors: &mut Errors) {
    let mut names = Vec::new();
    call.arguments.iter().for_each(|argument| marked_names(argument, &mut names));
    let (mut bound, computed) = (Vec::new(), computed(block));
    collect_bound(block.to_token_stream(), false, &mut bound);
    for name in names {
        let input = forward.inputs().any(|(param, _)| param.ident == name);
        let rebound = bound.iter().filter(|other| **other == name).count();
        match call.name.as_str() {
            "mark_non_differentiable" if input && rebound == 0 && !returned(block, &name) => {
                errors.at(&name, messages::marks_input(&plain_name(&name)));
            }
            "mark_not_inplace" if !input && rebound == 1 && computed.contains(&name) => {
                errors.at(&name, messages::marks_output(&plain_name(&name)));
            }
            _ => {}
        }
    }
}

/// Whether the function ends with this name, alone or in a tuple: then it is an output too.
fn returned(block: &Block, name: &Ident) -> bool {
    let Some(Stmt::Expr(tail, None)) = block.stmts.last() else { return true };
    let mut names = Vec::new();
    tail_names(tail, &mut names);
    names.contains(name)
}

fn tail_names(expr: &Expr, names: &mut Vec<Ident>) {
    match expr {
        Expr::Path(path) => names.extend(path.path.get_ident().cloned()),
        Expr::Tuple(tuple) => tuple.elems.iter().for_each(|expr| tail_names(expr, names)),
        Expr::MethodCall(call) if call.method == "clone" => tail_names(&call.receiver, names),
        Expr::Call(call) => call.args.iter().for_each(|expr| tail_names(expr, names)),
        _ => {}
    }
}

/// Names that are surely bound to something new.
fn computed(block: &Block) -> Vec<Ident> {
    let named = |statement: &Stmt| match statement {
        Stmt::Local(Local { pat, init: Some(init), .. })
            if matches!(*init.expr, Expr::Binary(_)) =>
        {
            match pat {
                Pat::Type(typed) => pattern_name(&typed.pat),
                pat => pattern_name(pat),
            }
        }
        _ => None,
    };
    block.stmts.iter().filter_map(named).collect()
}

/// What stands after `let` and `for`, at any depth, counts as bound: better silent than wrong.
fn collect_bound(tokens: TokenStream, mut binds: bool, names: &mut Vec<Ident>) {
    for tree in tokens {
        match tree {
            TokenTree::Ident(word) if is_one_of(&word, "let for") => binds = true,
            TokenTree::Ident(word) if binds && word != "in" => names.push(word),
            TokenTree::Ident(_) => binds = false,
            TokenTree::Punct(punct) => binds &= !matches!(punct.as_char(), '=' | ';'),
            TokenTree::Group(group) => collect_bound(group.stream(), binds, names),
            TokenTree::Literal(_) => {}
        }
    }
}
