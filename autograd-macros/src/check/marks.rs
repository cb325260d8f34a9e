//! `mark_non_differentiable` takes outputs, and `mark_not_inplace` inputs.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Block, Expr, Pat, Stmt};

use super::paths::Call;
use crate::errors::Errors;
use crate::messages;
use crate::model::Forward;
use crate::tokens::plain_name;

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
    let mut bound = Bound::default();
    bound.block(block);
    for name in names {
        let input = forward.inputs().any(|(param, _)| param.ident == name);
        let rebound = bound.names.iter().filter(|other| **other == name).count();
        match call.name.as_str() {
            "mark_non_differentiable" if input && rebound == 0 && !returned(block, &name) => {
                errors.at(&name, messages::marks_input(&plain_name(&name)));
            }
            "mark_not_inplace"
                if !input && rebound == 1 && bound.computed.contains(&name.to_string()) =>
            {
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

/// Names that a body binds, and those that are surely bound to something new.
#[derive(Default)]
struct Bound {
    names: Vec<Ident>,
    computed: Vec<String>,
}

impl Bound {
    /// All names of all patterns, by tokens: `let`, `for`, `match` and closures alike.
    fn block(&mut self, block: &Block) {
        for statement in &block.stmts {
            if let Stmt::Local(local) = statement {
                let before = self.names.len();
                self.pat(&local.pat);
                let one = self.names.len() == before + 1;
                if let (true, Some(init)) = (one, &local.init)
                    && matches!(&*init.expr, Expr::Binary(_))
                {
                    self.computed.push(self.names[before].to_string());
                }
            }
        }
        let tokens = block.to_token_stream();
        self.nested(tokens, 0);
    }

    fn pat(&mut self, pat: &Pat) {
        match pat {
            Pat::Ident(ident) => self.names.push(ident.ident.clone()),
            Pat::Type(typed) => self.pat(&typed.pat),
            Pat::Tuple(tuple) => tuple.elems.iter().for_each(|pat| self.pat(pat)),
            Pat::Paren(inner) => self.pat(&inner.pat),
            Pat::Reference(inner) => self.pat(&inner.pat),
            _ => {}
        }
    }

    /// What stands after `let` deeper down counts as bound too: better silent than wrong.
    fn nested(&mut self, tokens: TokenStream, depth: usize) {
        let mut after_let = false;
        for tree in tokens {
            match tree {
                TokenTree::Ident(word) if matches!(word.to_string().as_str(), "let" | "for") => {
                    after_let = depth > 1;
                }
                TokenTree::Ident(word) if after_let => self.names.push(word),
                TokenTree::Punct(punct) if punct.as_char() == '=' => after_let = false,
                TokenTree::Group(group) => self.nested(group.stream(), depth + 1),
                _ => {}
            }
        }
    }
}
