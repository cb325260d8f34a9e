//! The paths through a body, and what is called on the context on each.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{BinOp, Block, Expr, ExprMethodCall, Macro, Stmt};

use super::calls::{DIVERGING, find_call};
use crate::errors::Errors;
use crate::messages;
use crate::tokens::{Trees, is_one_of, plain_name};

pub(super) const ONCE: [&str; 5] = [
    "save_for_backward",
    "set_attrs",
    "mark_not_inplace",
    "mark_non_differentiable",
    "set_materialize_grads",
];

/// The calls in a body, and what is saved for each tensor of one of these lists. A second call on a path
/// that surely had the first is reported.
pub(super) fn walk(
    context: &Ident,
    lists: Vec<Ident>,
    body: &Block,
    errors: &mut Errors,
) -> (Vec<Call>, Vec<Repeated>) {
    let mut walk = Walk::new(context, lists, errors);
    walk.block(body, &mut Must::default());
    (walk.calls, walk.repeated)
}

pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Vec<Expr>,
}

/// `save_for_backward` for each tensor of a list.
pub(super) struct Repeated {
    pub(super) call: Ident,
    pub(super) list: String,
    pub(super) place: &'static str,
}

/// Follows the paths through a body; a second call on a path that surely had the first is reported.
struct Walk<'a> {
    context: &'a Ident,
    lists: Vec<Ident>,
    errors: &'a mut Errors,
    calls: Vec<Call>,
    repeated: Vec<Repeated>,
}

/// The calls that were surely made, and whether this point can be reached at all.
#[derive(Clone, Default)]
struct Must {
    made: [bool; ONCE.len()],
    left: bool,
}

impl Must {
    /// After two branches: what both made, where both come back.
    fn join(mut self, other: Self) -> Self {
        if self.left {
            return other;
        }
        if other.left {
            return self;
        }
        for (made, other) in self.made.iter_mut().zip(other.made) {
            *made &= other;
        }
        self
    }
}

impl<'a> Walk<'a> {
    fn new(context: &'a Ident, lists: Vec<Ident>, errors: &'a mut Errors) -> Self {
        Self { context, lists, errors, calls: Vec::new(), repeated: Vec::new() }
    }

    /// Notes `save_for_backward` in code that runs for each tensor of a list.
    fn each(&mut self, over: &Expr, code: &Expr, place: &'static str, must: &Must) {
        let code_trees = Trees::new(code.to_token_stream());
        let leaves = ["break", "return"].iter().any(|word| code_trees.mentions(word));
        let Some(list) = self.whole_list(over).filter(|_| !leaves) else { return };
        let (mut pass, mut unread) = (must.clone(), Errors::new());
        pass.made[0] = false;
        Walk::new(self.context, self.lists.clone(), &mut unread).expr(code, &mut pass);
        unread.forget();
        if pass.made[0]
            && !pass.left
            && let Some((call, _)) = find_call(&code_trees, self.context, ONCE[0])
        {
            self.repeated.push(Repeated { call, list: plain_name(&list), place });
        }
    }

    /// The list input whose every tensor an iterator gives.
    fn whole_list(&self, over: &Expr) -> Option<Ident> {
        const WHOLE: &str = "iter into_iter enumerate zip cloned copied rev map";
        match over {
            Expr::Path(path) => {
                let name = path.path.get_ident()?;
                self.lists.contains(name).then(|| name.clone())
            }
            Expr::Reference(inner) => self.whole_list(&inner.expr),
            Expr::Paren(inner) => self.whole_list(&inner.expr),
            Expr::MethodCall(call) if is_one_of(&call.method, WHOLE) => {
                self.whole_list(&call.receiver)
            }
            _ => None,
        }
    }

    fn block(&mut self, block: &Block, must: &mut Must) {
        for statement in &block.stmts {
            match statement {
                Stmt::Local(local) => {
                    if let Some(init) = &local.init {
                        self.expr(&init.expr, must);
                        if let Some((_, diverge)) = &init.diverge {
                            let mut branch = must.clone();
                            self.expr(diverge, &mut branch);
                        }
                    }
                }
                Stmt::Expr(expr, _) => self.expr(expr, must),
                Stmt::Macro(mac) => must.left |= diverges(&mac.mac),
                _ => {}
            }
        }
    }

    fn branches(&mut self, must: &mut Must, branches: Vec<Must>) {
        let mut branches = branches.into_iter();
        if let Some(first) = branches.next() {
            *must = branches.fold(first, Must::join);
        }
    }

    fn expr(&mut self, expr: &Expr, must: &mut Must) {
        match expr {
            Expr::MethodCall(call) => {
                self.expr(&call.receiver, must);
                for argument in &call.args {
                    match argument {
                        Expr::Closure(closure) => {
                            self.each(&call.receiver, &closure.body, "closure", must);
                        }
                        argument => self.expr(argument, must),
                    }
                }
                self.method(call, must);
            }
            Expr::Block(block) => self.block(&block.block, must),
            Expr::Unsafe(block) => self.block(&block.block, must),
            Expr::If(branch) => {
                self.expr(&branch.cond, must);
                let mut then = must.clone();
                self.block(&branch.then_branch, &mut then);
                let mut otherwise = must.clone();
                if let Some((_, expr)) = &branch.else_branch {
                    self.expr(expr, &mut otherwise);
                }
                self.branches(must, vec![then, otherwise]);
            }
            Expr::Match(matched) => {
                self.expr(&matched.expr, must);
                let mut arms = Vec::new();
                for arm in &matched.arms {
                    let mut branch = must.clone();
                    self.expr(&arm.body, &mut branch);
                    arms.push(branch);
                }
                self.branches(must, arms);
            }
            // A loop may run its body never, or often: what it calls is left to `apply`.
            Expr::While(looped) => self.block(&looped.body, &mut must.clone()),
            Expr::ForLoop(looped) => {
                self.expr(&looped.expr, must);
                self.block(&looped.body, &mut must.clone());
                let body = Expr::Block(syn::ExprBlock {
                    attrs: Vec::new(),
                    label: None,
                    block: looped.body.clone(),
                });
                self.each(&looped.expr, &body, "loop", must);
            }
            Expr::Loop(looped) => self.block(&looped.body, &mut must.clone()),
            Expr::Return(returned) => {
                if let Some(expr) = &returned.expr {
                    self.expr(expr, must);
                }
                must.left = true;
            }
            Expr::Break(_) | Expr::Continue(_) => must.left = true,
            Expr::Macro(mac) => must.left |= diverges(&mac.mac),
            Expr::Binary(lazy) if matches!(lazy.op, BinOp::And(_) | BinOp::Or(_)) => {
                self.expr(&lazy.left, must);
                self.expr(&lazy.right, &mut must.clone());
            }
            other => parts(other).into_iter().for_each(|part| self.expr(part, must)),
        }
    }

    fn method(&mut self, call: &ExprMethodCall, must: &mut Must) {
        let Expr::Path(receiver) = &*call.receiver else { return };
        if !receiver.path.is_ident(self.context) {
            return;
        }
        let name = call.method.to_string();
        let Some(position) = ONCE.iter().position(|once| *once == name) else { return };
        if must.made[position] && !must.left {
            self.errors.at(&call.method, messages::call_twice(&name));
        }
        must.made[position] = true;
        let arguments = call.args.iter().cloned().collect();
        self.calls.push(Call { name, arguments });
    }
}

fn parts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Paren(inner) => vec![&inner.expr],
        Expr::Group(inner) => vec![&inner.expr],
        Expr::Reference(inner) => vec![&inner.expr],
        Expr::Unary(inner) => vec![&inner.expr],
        Expr::Try(inner) => vec![&inner.expr],
        Expr::Cast(inner) => vec![&inner.expr],
        Expr::Field(inner) => vec![&inner.base],
        Expr::Assign(assign) => vec![&assign.right, &assign.left],
        Expr::Binary(binary) => vec![&binary.left, &binary.right],
        Expr::Index(index) => vec![&index.expr, &index.index],
        Expr::Call(call) => std::iter::once(&*call.func).chain(&call.args).collect(),
        Expr::Tuple(tuple) => tuple.elems.iter().collect(),
        Expr::Array(array) => array.elems.iter().collect(),
        _ => Vec::new(),
    }
}

fn diverges(call: &Macro) -> bool {
    call.path.get_ident().is_some_and(|name| is_one_of(name, DIVERGING))
}
