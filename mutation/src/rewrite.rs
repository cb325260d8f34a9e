//! Rewrites sources with mutants behind switches.

use std::collections::BTreeSet;
use std::path::Path;

use proc_macro2::{LineColumn, TokenStream};
use syn::spanned::Spanned;
use syn::visit_mut::{VisitMut, visit_arm_mut, visit_block_mut, visit_expr_mut};
use syn::{Arm, Block, Expr, ExprBinary, Pat, PatGuard, parse_quote};

use crate::Mutant;

/// The function that returns whether a mutant is active.
const SWITCH: &str = "
#[allow(missing_docs, unreachable_pub, dead_code)]
pub(crate) mod mutant {
    static ON: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    pub(crate) fn on(id: usize) -> bool {
        let read = || std::env::var(\"MUTANT\").ok().and_then(|id| id.parse().ok()).unwrap_or(0);
        *ON.get_or_init(read) == id
    }
}
";

/// Adds the switch to each crate that has mutants.
pub fn add_switch(folder: &Path, files: &[(&str, String)]) {
    let crates: BTreeSet<&str> = files
        .iter()
        .filter_map(|(file, _)| file.split_once("/src/").map(|(name, _)| name))
        .collect();
    for name in crates {
        let path = folder.join(name).join("src/lib.rs");
        let text = std::fs::read_to_string(&path).expect("lib.rs");
        if !text.contains("mod mutant {") {
            std::fs::write(&path, text + SWITCH).expect("lib.rs");
        }
    }
}

/// Returns the source with the mutants. `placed` receives the ids of those that were inserted.
pub fn file(source: &str, mutants: &[Mutant], placed: &mut BTreeSet<usize>) -> String {
    let mut file = syn::parse_file(source).expect("a source");
    Rewrite { mutants, placed }.visit_file_mut(&mut file);
    prettyplease::unparse(&file)
}

struct Rewrite<'a> {
    mutants: &'a [Mutant],
    placed: &'a mut BTreeSet<usize>,
}

impl Rewrite<'_> {
    /// The mutants of a genre that start here.
    fn at(&mut self, genre: &str, start: LineColumn) -> Vec<Mutant> {
        let here = (start.line, start.column + 1);
        let found = self.mutants.iter().filter(|m| m.genre == genre && m.start == here);
        // A function that returns `impl Iterator` has one type, and these replacements have another.
        let found = found.filter(|m| !m.replacement.contains("::std::iter::"));
        let found: Vec<Mutant> = found.cloned().collect();
        self.placed.extend(found.iter().map(|m| m.id));
        found
    }

    fn binary(&mut self, binary: &ExprBinary) -> Option<Expr> {
        let start = binary.op.span().start();
        if has_let(&binary.left) || has_let(&binary.right) {
            return None;
        }
        let found = self.at("BinaryOperator", start);
        if found.is_empty() {
            return None;
        }
        let (left, op, right) = (&binary.left, &binary.op, &binary.right);
        let other: Vec<(usize, TokenStream)> = found
            .iter()
            .filter_map(|m| Some((m.id, m.replacement.parse::<TokenStream>().ok()?)))
            .collect();
        let ids = other.iter().map(|(id, _)| id);
        let ops = other.iter().map(|(_, op)| op);
        use syn::BinOp::*;
        Some(match op {
            And(_) | Or(_) => parse_quote! {
                (match #left { left => #(if crate::mutant::on(#ids) { left #ops (#right) } else)* { left #op (#right) } })
            },
            Eq(_) | Ne(_) | Lt(_) | Le(_) | Gt(_) | Ge(_) => parse_quote! {
                (match (&(#left), &(#right)) { (left, right) => #(if crate::mutant::on(#ids) { left #ops right } else)* { left #op right } })
            },
            _ => parse_quote! {
                (#(if crate::mutant::on(#ids) { (#left) #ops (#right) } else)* { (#left) #op (#right) })
            },
        })
    }
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(paren) => has_let(&paren.expr),
        _ => false,
    }
}

impl VisitMut for Rewrite<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        // Before inner expressions are changed: positions are those of the source.
        let found = match &*expr {
            Expr::Unary(unary) => self.at("UnaryOperator", unary.span().start()),
            _ => Vec::new(),
        };
        visit_expr_mut(self, expr);
        let new = match &*expr {
            Expr::Unary(unary) => found.first().map(|m| {
                let (id, op, inner) = (m.id, &unary.op, &unary.expr);
                parse_quote!((if crate::mutant::on(#id) { #inner } else { #op #inner }))
            }),
            Expr::Binary(binary) => self.binary(binary),
            _ => None,
        };
        if let Some(new) = new {
            *expr = new;
        }
    }

    fn visit_arm_mut(&mut self, arm: &mut Arm) {
        let start = arm.span().start();
        let guards = match &arm.pat {
            Pat::Guard(pat) if !has_let(&pat.guard) => {
                self.at("MatchArmGuard", pat.guard.span().start())
            }
            _ => Vec::new(),
        };
        let deleted = self.at("MatchArm", start);
        visit_arm_mut(self, arm);
        if let Pat::Guard(pat) = &mut arm.pat
            && !guards.is_empty()
        {
            let ids = guards.iter().map(|m| m.id);
            let values =
                guards.iter().map(|m| m.replacement.parse::<TokenStream>().expect("tokens"));
            let guard = &pat.guard;
            *pat.guard = parse_quote!((#(if crate::mutant::on(#ids) { #values } else)* { #guard }));
        }
        if let Some(id) = deleted.first().map(|m| m.id) {
            let off: Expr = parse_quote!(!crate::mutant::on(#id));
            match &mut arm.pat {
                Pat::Guard(pat) => {
                    let guard = &pat.guard;
                    *pat.guard = parse_quote!(#off && #guard);
                }
                pat => {
                    arm.pat = Pat::Guard(PatGuard {
                        attrs: Vec::new(),
                        pat: Box::new(pat.clone()),
                        if_token: Default::default(),
                        guard: Box::new(off),
                    });
                }
            }
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        let start = block.stmts.first().map(|first| first.span().start());
        let found = start.map(|start| self.at("FnValue", start)).unwrap_or_default();
        visit_block_mut(self, block);
        for mutant in found.iter().rev() {
            let id = mutant.id;
            let Ok(value) = mutant.replacement.parse::<TokenStream>() else { continue };
            block.stmts.insert(0, parse_quote!(if crate::mutant::on(#id) { return #value; }));
        }
    }
}
