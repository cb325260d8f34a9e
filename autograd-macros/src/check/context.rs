//! What the bodies do with the context, as far as it can be seen: only what is sure is reported.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Block, Expr, ExprMethodCall, Pat, Stmt};

use super::calls::{arguments, escapes, find_call, is_stub};
use super::habits;
use super::types::{is_bare_gradient, is_list};
use crate::errors::Errors;
use crate::messages;
use crate::model::{Backward, Form, Forward, Layer, bare};
use crate::tokens::{find, mentions, plain_name, text};

const ONCE: [&str; 5] = [
    "save_for_backward",
    "set_attrs",
    "mark_not_inplace",
    "mark_non_differentiable",
    "set_materialize_grads",
];

pub(crate) fn check(layer: &Layer, errors: &mut Errors) {
    habits::check(layer, errors);
    // A declaration may be among what could not be read.
    if !layer.is_broken() {
        for (call, message) in undeclared_reads(layer) {
            errors.at(call, message);
        }
    }
    if let Some(forward) = &layer.forward {
        if !layer.is_broken() {
            undeclared(layer, forward, errors);
        }
        never_called(layer, forward, errors);
        // Parsing a body is most of what an op costs the macro.
        let body = forward.function.judged();
        if let Some(context) = &forward.context
            && (may_break_a_rule(&body.stream()) || may_save_each(forward, &body.stream()))
            && let Ok(block) = syn::parse2::<Block>(body.to_token_stream())
        {
            let mut walk = Walk::new(context, lists(forward), errors);
            walk.block(&block, &mut Must::default());
            let Walk { calls, repeated, .. } = walk;
            for Repeated { call, list, place } in repeated {
                let saved = layer.saved.as_ref();
                let is_list = saved.is_some_and(is_list);
                let declare = (!is_list).then(|| saved_list(layer));
                errors.at(call, messages::save_of_each(&list, place, declare.as_deref()));
            }
            for call in &calls {
                marks(call, forward, &block, errors);
            }
            if let Some(backward) = &layer.backward {
                materialize(&calls, backward, errors);
            }
        }
    }
}

/// Whether a call that is made once stands there more often, or one whose arguments are checked.
fn may_break_a_rule(body: &TokenStream) -> bool {
    let mut made = [0; ONCE.len()];
    find(body.clone(), &mut |trees, at| {
        if let TokenTree::Ident(word) = &trees[at] {
            ONCE.iter().zip(&mut made).for_each(|(once, made)| *made += usize::from(word == once));
        }
        None::<()>
    });
    let [save, set, checked @ ..] = made;
    save > 1 || set > 1 || checked != [0; 3]
}

/// Whether what is saved may be saved for each tensor of a list.
fn may_save_each(forward: &Forward, body: &TokenStream) -> bool {
    !lists(forward).is_empty() && mentions(body, ONCE[0])
}

/// The names of the inputs that are lists.
fn lists(forward: &Forward) -> Vec<Ident> {
    let lists = forward.inputs().filter(|(_, input)| input.form == Form::List);
    lists.map(|(param, _)| param.ident.clone()).collect()
}

/// `Vec<Tensor<f64>>`, of the tensors of the first list.
fn saved_list(layer: &Layer) -> String {
    let list = layer.inputs().find(|(_, input)| input.form == Form::List);
    list.map_or_else(
        || "Vec<Tensor>".to_owned(),
        |(_, list)| format!("Vec<{}>", text(&list.tensor)),
    )
}

/// A call that the declaration for is missing.
fn undeclared(layer: &Layer, forward: &Forward, errors: &mut Errors) {
    let body = forward.function.judged().stream();
    let pairs = [
        ("save_for_backward", layer.saved.is_none(), "Saved"),
        ("set_attrs", layer.state.is_none(), "Attrs"),
    ];
    for (call, missing, declared) in pairs {
        let name = forward.context.as_ref().filter(|_| missing);
        if let Some((ident, arguments)) = name.and_then(|ctx| find_call(&body, ctx, call)) {
            // `save_for_backward(())` says nothing, and is right.
            if arguments.to_string() == "()" {
                continue;
            }
            let example = match declared {
                "Saved" => saved_example(layer, &arguments),
                _ => attrs_example(forward, &arguments),
            };
            errors.at(ident, messages::not_declared(call, declared, &example));
        }
    }
}

/// What backward and `jvp` read without a declaration. Where forward keeps it, the declaration is reported to be
/// missing there.
pub(crate) fn undeclared_reads(layer: &Layer) -> Vec<(Ident, String)> {
    let backward = layer.backward.iter().map(|b| (&b.context, &b.function));
    let jvp = layer.jvp.iter().map(|jvp| (&jvp.context, &jvp.function));
    let readers: Vec<_> = backward
        .chain(jvp)
        .filter_map(|(context, function)| Some((context.as_ref()?, function.judged().stream())))
        .collect();
    let pairs = [
        ("saved_tensor", layer.saved.is_none(), "Saved", "save_for_backward"),
        ("attrs", layer.state.is_none(), "Attrs", "set_attrs"),
    ];
    let missing = pairs.into_iter().filter(|(_, missing, _, call)| *missing && !keeps(layer, call));
    missing
        .flat_map(|missing| readers.iter().map(move |reader| (missing, reader)))
        .filter_map(|((read, _, declared, call), (context, body))| {
            let (ident, _) = find_call(body, context, read)?;
            let example = match declared {
                "Saved" => saved_example(layer, &TokenStream::new()),
                _ => "f64".to_owned(),
            };
            Some((ident, messages::undeclared_read(read, declared, &example, call)))
        })
        .collect()
}

/// Whether forward calls this on its context, or may do so where it cannot be seen.
fn keeps(layer: &Layer, call: &str) -> bool {
    layer.forward.as_ref().is_none_or(|forward| {
        let body = forward.function.body.stream();
        let context = forward.context.as_ref();
        context.is_some_and(|context| find_call(&body, context, call).is_some())
    })
}

/// What `type Saved` may be: tensors like the first output, as many as are saved.
fn saved_example(layer: &Layer, arguments: &TokenStream) -> String {
    let tensor = layer.outputs().first().map(|(_, _, tensor)| text(*tensor));
    let tensor = tensor.unwrap_or_else(|| "Tensor<f64>".to_owned());
    let given = self::arguments(arguments);
    let count = match given.as_slice() {
        [Expr::Tuple(tuple)] => tuple.elems.len(),
        given => given.len(),
    };
    if count > 1 { format!("({})", vec![tensor; count].join(", ")) } else { tensor }
}

/// What `type Attrs` may be: the type of the literal or the parameter that is kept.
fn attrs_example(forward: &Forward, arguments: &TokenStream) -> String {
    let param = |name: &Ident| forward.params.iter().find(|param| param.ident == *name);
    let kept = syn::parse2::<Expr>(arguments.clone());
    let found = kept.ok().and_then(|kept| match &kept {
        Expr::Lit(literal) => match &literal.lit {
            syn::Lit::Int(_) => Some("usize".to_owned()),
            syn::Lit::Bool(_) => Some("bool".to_owned()),
            syn::Lit::Str(_) => Some("&'static str".to_owned()),
            _ => None,
        },
        Expr::Path(path) => {
            let param = path.path.get_ident().and_then(param)?;
            let written = text(&param.ty);
            let owned = matches!(bare(&param.ty), syn::Type::Path(_)) && !written.contains('\'');
            owned.then_some(written)
        }
        _ => None,
    });
    found.unwrap_or_else(|| "f64".to_owned())
}

/// A declaration without the call, where the context is in plain sight all the time.
fn never_called(layer: &Layer, forward: &Forward, errors: &mut Errors) {
    let body = forward.function.body.stream();
    let declared = [
        (layer.saved.as_ref(), "Saved", "save_for_backward"),
        (layer.state.as_ref(), "Attrs", "set_attrs"),
    ];
    for (ty, name, call) in declared {
        let Some(ty) = ty else { continue };
        if matches!(bare(ty), syn::Type::Tuple(tuple) if tuple.elems.is_empty()) {
            continue;
        }
        let escapes = || forward.context.as_ref().is_some_and(|context| escapes(&body, context));
        if !mentions(&body, call) && !escapes() && !is_stub(&body) {
            errors.at(ty, messages::never_called(name, call));
        }
    }
}

struct Call {
    name: String,
    arguments: Vec<Expr>,
}

/// `save_for_backward` for each tensor of a list.
struct Repeated {
    call: Ident,
    list: String,
    /// `loop` or `closure`.
    place: &'static str,
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
        let tokens = code.to_token_stream();
        let leaves = ["break", "return"].iter().any(|word| mentions(&tokens, word));
        let Some(list) = self.whole_list(over).filter(|_| !leaves) else { return };
        let (mut pass, mut unread) = (must.clone(), Errors::new());
        pass.made[0] = false;
        Walk::new(self.context, self.lists.clone(), &mut unread).expr(code, &mut pass);
        unread.forget();
        if pass.made[0]
            && !pass.left
            && let Some((call, _)) = find_call(&tokens, self.context, ONCE[0])
        {
            self.repeated.push(Repeated { call, list: plain_name(&list), place });
        }
    }

    /// The list input whose every tensor an iterator gives.
    fn whole_list(&self, over: &Expr) -> Option<Ident> {
        const WHOLE: [&str; 8] =
            ["iter", "into_iter", "enumerate", "zip", "cloned", "copied", "rev", "map"];
        match over {
            Expr::Path(path) => {
                let name = path.path.get_ident()?;
                self.lists.contains(name).then(|| name.clone())
            }
            Expr::Reference(inner) => self.whole_list(&inner.expr),
            Expr::Paren(inner) => self.whole_list(&inner.expr),
            Expr::MethodCall(call) if WHOLE.iter().any(|name| call.method == name) => {
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
                Stmt::Macro(mac) => {
                    let path = &mac.mac.path;
                    let diverges = ["panic", "todo", "unimplemented", "unreachable"];
                    must.left |= diverges.iter().any(|name| path.is_ident(name));
                }
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
            Expr::Macro(mac) => {
                let diverges = ["panic", "todo", "unimplemented", "unreachable"];
                must.left |= diverges.iter().any(|name| mac.mac.path.is_ident(name));
            }
            Expr::Paren(inner) => self.expr(&inner.expr, must),
            Expr::Group(inner) => self.expr(&inner.expr, must),
            Expr::Reference(inner) => self.expr(&inner.expr, must),
            Expr::Unary(inner) => self.expr(&inner.expr, must),
            Expr::Try(inner) => self.expr(&inner.expr, must),
            Expr::Cast(inner) => self.expr(&inner.expr, must),
            Expr::Field(inner) => self.expr(&inner.base, must),
            Expr::Assign(assign) => {
                self.expr(&assign.right, must);
                self.expr(&assign.left, must);
            }
            Expr::Binary(binary) => {
                self.expr(&binary.left, must);
                match binary.op {
                    syn::BinOp::And(_) | syn::BinOp::Or(_) => {
                        self.expr(&binary.right, &mut must.clone());
                    }
                    _ => self.expr(&binary.right, must),
                }
            }
            Expr::Call(call) => {
                self.expr(&call.func, must);
                call.args.iter().for_each(|argument| self.expr(argument, must));
            }
            Expr::Tuple(tuple) => tuple.elems.iter().for_each(|expr| self.expr(expr, must)),
            Expr::Array(array) => array.elems.iter().for_each(|expr| self.expr(expr, must)),
            Expr::Index(index) => {
                self.expr(&index.expr, must);
                self.expr(&index.index, must);
            }
            _ => {}
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

fn marks(call: &Call, forward: &Forward, block: &Block, errors: &mut Errors) {
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

fn materialize(calls: &[Call], backward: &Backward, errors: &mut Errors) {
    let off = calls.iter().any(|call| {
        call.name == "set_materialize_grads"
            && call.arguments.first().is_some_and(|argument| text(argument) == "false")
    });
    for param in backward.params.iter().filter(|_| off) {
        if is_bare_gradient(&param.ty) {
            let name = param.name.as_ref().map_or_else(|| "_".to_owned(), plain_name);
            let list = match bare(&param.ty) {
                syn::Type::Reference(reference) => match bare(&reference.elem) {
                    syn::Type::Slice(slice) => Some(&slice.elem),
                    _ => None,
                },
                _ => None,
            };
            let write = match list {
                Some(element) => format!("&[Option<{}>]", text(element)),
                None => format!("Option<{}>", text(&param.ty)),
            };
            errors.at(&param.ty, messages::bare_gradient(&name, &write));
        }
    }
}
