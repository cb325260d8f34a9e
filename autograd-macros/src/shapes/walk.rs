//! Follows the shapes of a line through forward and backward, step by step. An error is reported only where shapes
//! contradict each other for general lengths. What is not known is not judged: branches, loops, closures, macros and
//! functions of the user's own.

use std::collections::HashMap;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{BinOp, Block, Expr, ExprMethodCall, Lit, Pat, Stmt, UnOp};

use super::known::{Known, Value, broadcast, differ, keys, position};
use super::messages;
use super::parse::{Axis, Length, Line, shown};
use crate::errors::Errors;
use crate::messages::list;
use crate::model::{Derivative, Form, Forward, Layer, ParamKind, as_tensor, shared_target};
use crate::tokens::{Trees, is_one_of, is_punct, plain_name, text};

type Values = HashMap<String, Value>;

/// A gradient or output that is returned: the value and its expression.
type Returned<'e> = (Value, &'e Expr);

pub(crate) fn check(layer: &Layer, line: &Line, errors: &mut Errors) {
    let Some(forward) = &layer.forward else { return };
    let Some(body) = forward.function.parsed() else { return };
    let mut walk = Walk::new(errors, forward.context.as_ref(), [None, None]);
    let mut values = inputs(forward, line);
    let result = walk.block(body, &mut values);
    walk.outputs(body, result, line);
    // What forward refuses does not get to backward.
    let (kept, refined) = (walk.kept, walk.refined);
    let Some(backward) = &layer.backward else { return };
    let Some(body) = backward.function.parsed() else { return };
    let mut walk = Walk::new(errors, backward.context.as_ref(), kept);
    walk.refined = refined;
    let mut values = gradients(forward, backward, line);
    let result = walk.block(body, &mut values);
    walk.gradients(body, result, layer, line);
}

/// The parameters of forward.
fn inputs(forward: &Forward, line: &Line) -> Values {
    let value = |param: &crate::model::Param| match &param.kind {
        ParamKind::Tensor(input) if input.form == Form::One => {
            let axes = line.of(&param.ident).and_then(|shape| shape.axes.clone());
            axes.map_or(Value::Unknown, Value::Tensor)
        }
        ParamKind::Plain { .. } if super::rules::is_integer(&param.ty) => {
            match line.mentions(&param.ident) {
                true => Value::Length(Length::Name(param.ident.clone())),
                // It may be equal to any length of the line.
                false => Value::Number,
            }
        }
        ParamKind::Plain { .. } if is_one_of_types(&param.ty) => Value::Number,
        _ => Value::Unknown,
    };
    forward.params.iter().map(|param| (plain_name(&param.ident), value(param))).collect()
}

fn is_one_of_types(ty: &syn::Type) -> bool {
    matches!(text(ty).as_str(), "f64" | "f32")
}

/// The parameters of backward: the gradients of single outputs have their shapes.
fn gradients(forward: &Forward, backward: &Derivative, line: &Line) -> Values {
    let outputs = forward.outputs.parts.iter().zip(&line.outputs);
    let outputs = outputs.filter(|(part, _)| crate::model::float_output(part).is_some());
    let value =
        |((_, shape), param): ((_, &super::parse::TensorShape), &crate::model::GradientParam)| {
            let is_one = shared_target(&param.ty).and_then(as_tensor).is_some() && !shape.is_list;
            let is_plain = |axis: &Axis| !matches!(axis, Axis::Broadcast(..));
            let axes = shape.axes.clone().filter(|axes| is_one && axes.iter().all(is_plain));
            Some((plain_name(param.name.as_ref()?), axes.map_or(Value::Unknown, Value::Tensor)))
        };
    outputs.zip(&backward.params).filter_map(value).collect()
}

struct Walk<'e> {
    errors: &'e mut Errors,
    context: Option<String>,
    /// What forward saved, and its attributes.
    kept: [Option<Value>; 2],
    /// Whether lengths were compared in a way that may end the function, so that general lengths do not get further.
    refined: bool,
    /// Above 0 in branches, which may be for special lengths.
    quiet: usize,
}

impl<'e> Walk<'e> {
    fn new(errors: &'e mut Errors, context: Option<&Ident>, kept: [Option<Value>; 2]) -> Self {
        let context = context.map(plain_name);
        Self { errors, context, kept, refined: false, quiet: 0 }
    }

    fn report(&mut self, at: impl ToTokens, message: String) {
        if self.quiet == 0 && !self.refined {
            self.errors.at(at, message);
        }
    }

    fn block(&mut self, block: &Block, values: &mut Values) -> Value {
        let mut last = Value::Unknown;
        for stmt in &block.stmts {
            last = Value::Unknown;
            match stmt {
                Stmt::Local(of) if has_cfg(&of.attrs) => bind(&of.pat, Value::Unknown, values),
                Stmt::Expr(expr, _) if has_cfg(attributes(expr)) => {
                    self.refined = true;
                    forget_assigned(expr, values);
                }
                Stmt::Local(local) => {
                    let init = local.init.as_ref();
                    let value = init.map_or(Value::Unknown, |init| self.expr(&init.expr, values));
                    bind(&local.pat, value, values);
                    // `let &[n, 1] = x.shape() else { .. }`: other lengths do not get further.
                    self.refined |= init.is_some_and(|init| init.diverge.is_some())
                        && has_literal(&local.pat.to_token_stream());
                }
                Stmt::Expr(expr, semicolon) => {
                    let value = self.expr(expr, values);
                    if semicolon.is_none() {
                        last = value;
                    } else {
                        self.refined |= is_demand(expr);
                        self.forget_changed(expr, values);
                    }
                }
                Stmt::Macro(call) => self.called_macro(&call.mac, values),
                Stmt::Item(_) => {}
            }
        }
        last
    }

    /// `z.turn();` may change `z`, if it is a method of the user's own.
    fn forget_changed(&self, expr: &Expr, values: &mut Values) {
        if let Expr::MethodCall(call) = expr
            && let Expr::Path(path) = &*call.receiver
            && let Some(name) = path.path.get_ident().map(plain_name)
            && self.context.as_ref() != Some(&name)
        {
            values.remove(&name);
        }
    }

    /// A macro may assign what it names, or end the function for some lengths.
    fn called_macro(&mut self, call: &syn::Macro, values: &mut Values) {
        let name = call.path.segments.last().map(|segment| segment.ident.to_string());
        match name.as_deref() {
            Some(
                "print" | "println" | "eprint" | "eprintln" | "dbg" | "todo" | "unreachable"
                | "vec" | "format",
            ) => {}
            Some(name) if name.contains("assert") => {
                self.refined |= !is_of_numbers(&call.tokens, values);
            }
            _ => {
                self.refined = true;
                forget(&call.tokens, values);
            }
        }
    }

    /// Branches are for special lengths, so nothing in them is reported.
    fn branch(&mut self, expr: &Expr, pattern: Option<&Pat>, values: &Values) -> Value {
        let mut inner = values.clone();
        pattern.iter().for_each(|pattern| bind(pattern, Value::Unknown, &mut inner));
        self.quiet += 1;
        let value = self.expr(expr, &mut inner);
        self.quiet -= 1;
        value
    }

    fn joined(&mut self, expr: &Expr, branches: Vec<Value>, values: &mut Values) -> Value {
        forget_assigned(expr, values);
        self.refined |= leaves(expr);
        let mut branches = branches.into_iter();
        let first = branches.next().unwrap_or(Value::Unknown);
        branches.fold(first, |a, b| match (a, b) {
            (Value::Tensor(a), Value::Tensor(b)) if keys(&a) == keys(&b) => Value::Tensor(a),
            (Value::Absent, value) | (value, Value::Absent) => value,
            _ => Value::Unknown,
        })
    }

    fn expr(&mut self, expr: &Expr, values: &mut Values) -> Value {
        match expr {
            Expr::Path(path) => {
                let Some(name) = path.path.get_ident().map(plain_name) else {
                    return Value::Unknown;
                };
                // As a pattern it looks like a variable.
                if name == "None" {
                    return Value::Absent;
                }
                values.get(&name).cloned().unwrap_or(Value::Unknown)
            }
            Expr::Reference(of) if of.mutability.is_some() => {
                forget(&of.expr.to_token_stream(), values);
                Value::Unknown
            }
            Expr::Reference(of) => self.expr(&of.expr, values),
            Expr::Paren(of) => self.expr(&of.expr, values),
            Expr::Group(of) => self.expr(&of.expr, values),
            Expr::Try(of) => {
                let value = self.expr(&of.expr, values);
                // `same(x, y)?` may end the function unless their lengths are equal.
                let mut named = Vec::new();
                shapes_in(&of.expr.to_token_stream(), values, &mut named);
                self.refined |= matches!(value, Value::Unknown) && named.len() > 1;
                value
            }
            Expr::Cast(of) => self.expr(&of.expr, values),
            Expr::Unary(of) if matches!(of.op, UnOp::Deref(_)) => self.expr(&of.expr, values),
            Expr::Unary(of) if matches!(of.op, UnOp::Neg(_)) => match self.expr(&of.expr, values) {
                // `-1` is no length.
                Value::Length(_) => Value::Number,
                value => value,
            },
            Expr::Lit(lit) => match &lit.lit {
                Lit::Int(n) => n
                    .base10_parse()
                    .map_or(Value::Number, |n| Value::Length(Length::Number(n, Span::call_site()))),
                Lit::Float(_) => Value::Number,
                _ => Value::Unknown,
            },
            Expr::Tuple(of) => {
                Value::Tuple(of.elems.iter().map(|of| self.expr(of, values)).collect())
            }
            Expr::Array(of) => {
                Value::Tuple(of.elems.iter().map(|of| self.expr(of, values)).collect())
            }
            Expr::Struct(of) => {
                Value::Tuple(of.fields.iter().map(|of| self.expr(&of.expr, values)).collect())
            }
            // With a label it may have the value of a `break`.
            Expr::Block(of) if of.label.is_none() => {
                let value = self.block(&of.block, &mut values.clone());
                forget_assigned(expr, values);
                value
            }
            Expr::Index(of) => match (self.expr(&of.expr, values), integer(&of.index)) {
                (Value::Dims(axes), Some(at)) => match position(&axes, at).map(|at| &axes[at]) {
                    Some(Axis::One(length)) => Value::Length(length.clone()),
                    _ => Value::Unknown,
                },
                _ => Value::Unknown,
            },
            Expr::Binary(of) => self.binary(of, values),
            Expr::MethodCall(call) => self.method(call, values),
            Expr::Call(call) => self.call(call, values),
            Expr::Assign(of) => {
                let value = self.expr(&of.right, values);
                match &*of.left {
                    Expr::Path(path) if path.path.get_ident().is_some() => {
                        values.insert(text(&path.path), value);
                    }
                    left => forget(&left.to_token_stream(), values),
                }
                Value::Unknown
            }
            Expr::If(of) => {
                let then = Expr::Block(syn::ExprBlock {
                    attrs: Vec::new(),
                    label: None,
                    block: of.then_branch.clone(),
                });
                let pattern = match &*of.cond {
                    Expr::Let(of) => Some(&*of.pat),
                    _ => None,
                };
                let mut branches = vec![self.branch(&then, pattern, values)];
                let otherwise = of.else_branch.as_ref();
                branches.extend(otherwise.map(|(_, of)| self.branch(of, None, values)));
                // Other conditions may be of lengths.
                if pattern.is_none() && !matches!(&*of.cond, Expr::Field(_)) {
                    branches.iter_mut().for_each(|branch| {
                        if matches!(branch, Value::Absent) {
                            *branch = Value::Unknown;
                        }
                    });
                }
                self.joined(expr, branches, values)
            }
            Expr::Match(of) => {
                let arms = of.arms.iter();
                let arms = arms.map(|arm| self.branch(&arm.body, Some(&arm.pat), values)).collect();
                self.joined(expr, arms, values)
            }
            Expr::Macro(of) => {
                self.called_macro(&of.mac, values);
                Value::Unknown
            }
            _ => {
                self.refined |= leaves(expr);
                forget_assigned(expr, values);
                Value::Unknown
            }
        }
    }

    fn binary(&mut self, of: &syn::ExprBinary, values: &mut Values) -> Value {
        let (a, b) = (self.expr(&of.left, values), self.expr(&of.right, values));
        let sign = match of.op {
            BinOp::Add(_) => '+',
            BinOp::Sub(_) => '-',
            BinOp::Mul(_) => '*',
            BinOp::Div(_) => '/',
            // `n += 1`. A tensor that is changed in place keeps its shape.
            _ if !matches!(a, Value::Tensor(_)) => {
                forget_assigned(&Expr::Binary(of.clone()), values);
                return Value::Unknown;
            }
            _ => return Value::Unknown,
        };
        match (a, b) {
            (Value::Length(a), Value::Length(b)) => {
                Value::Length(Length::Computed(Box::new(a), sign, Box::new(b)))
            }
            (Value::Tensor(axes), Value::Number | Value::Length(_))
            | (Value::Number | Value::Length(_), Value::Tensor(axes)) => Value::Tensor(axes),
            (Value::Number | Value::Length(_), Value::Number | Value::Length(_)) => Value::Number,
            (Value::Tensor(a), Value::Tensor(b)) => match broadcast(&a, &b) {
                Some(Ok(axes)) => Value::Tensor(axes),
                Some(Err(())) => {
                    let (left, right) = (text(bare(&of.left)), text(bare(&of.right)));
                    self.report(of, messages::no_broadcast(&left, &shown(&a), &right, &shown(&b)));
                    Value::Unknown
                }
                None => Value::Unknown,
            },
            _ => Value::Unknown,
        }
    }

    fn call(&mut self, call: &syn::ExprCall, values: &mut Values) -> Value {
        let args: Vec<Value> = call.args.iter().map(|of| self.expr(of, values)).collect();
        let Expr::Path(path) = &*call.func else { return Value::Unknown };
        let names: Vec<_> = path.path.segments.iter().map(|of| of.ident.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match (&names[..], &args[..]) {
            (["Ok" | "Some"], [one]) => one.clone(),
            (["Tensor", "zeros" | "ones" | "randn"], [_]) => {
                self.dims(&call.args[0], values).map_or(Value::Unknown, Value::Tensor)
            }
            (["Tensor", "zeros_like" | "ones_like"], [Value::Tensor(axes)]) => {
                Value::Tensor(axes.clone())
            }
            _ => Value::Unknown,
        }
    }

    /// The lengths in an argument that is a shape.
    fn dims(&mut self, expr: &Expr, values: &mut Values) -> Option<Vec<Axis>> {
        let Expr::Array(list) = bare(expr) else {
            return match self.expr(expr, values) {
                Value::Dims(axes) => Some(axes),
                _ => None,
            };
        };
        let axes = list.elems.iter().map(|of| match self.expr(of, values) {
            Value::Length(length) if integer(of).is_none_or(|n| n >= 0) => Axis::One(length),
            _ => Axis::One(Length::Any(Span::call_site())),
        });
        Some(axes.collect())
    }

    fn method(&mut self, call: &ExprMethodCall, values: &mut Values) -> Value {
        let name = call.method.to_string();
        let on_context = matches!(&*call.receiver, Expr::Path(path)
            if path.path.get_ident().map(plain_name) == self.context && self.context.is_some());
        if on_context {
            let (at, given) = match (name.as_str(), call.args.first()) {
                ("saved_tensor", _) => (0, None),
                ("attrs", _) => (1, None),
                ("save_for_backward", given) => (0, given),
                ("set_attrs", given) => (1, given),
                _ => return Value::Unknown,
            };
            let Some(given) = given else {
                return self.kept[at].clone().unwrap_or(Value::Unknown);
            };
            let value = self.expr(given, values);
            let is_first = self.kept[at].is_none() && self.quiet == 0;
            self.kept[at] = Some(if is_first { value } else { Value::Unknown });
            return Value::Unknown;
        }
        // `needs.x.then(|| ..)`. Other conditions may be of lengths.
        if let ("then", Some(arg @ Expr::Closure(closure))) = (name.as_str(), call.args.first()) {
            let value = match &*call.receiver {
                Expr::Field(_) => self.expr(&closure.body, &mut values.clone()),
                _ => self.branch(&closure.body, None, values),
            };
            forget_assigned(arg, values);
            return value;
        }
        let on = self.expr(&call.receiver, values);
        let mut args = Vec::new();
        for arg in &call.args {
            let dims =
                matches!(bare(arg), Expr::Array(_)).then(|| self.dims(arg, values)).flatten();
            args.push(dims.map_or_else(|| self.expr(arg, values), Value::Dims));
        }
        let axes = match on {
            Value::Tensor(axes) => axes,
            // `(d as f64).sqrt()`
            Value::Number | Value::Length(_) => {
                return match name.as_str() {
                    "abs" | "cos" | "exp" | "ln" | "powf" | "powi" | "recip" | "sin" | "sqrt" => {
                        Value::Number
                    }
                    _ => Value::Unknown,
                };
            }
            Value::Dims(axes) if matches!(name.as_str(), "to_vec" | "clone") => {
                return Value::Dims(axes);
            }
            _ => return Value::Unknown,
        };
        let integers = call.args.first().and_then(integer_list);
        match Known::of(&name, &axes, &args, integers.as_deref()) {
            Known::Tensor(axes) => Value::Tensor(axes),
            Known::Dims(axes) => Value::Dims(axes),
            Known::Length(length) => Value::Length(length),
            Known::Unequal(n, k) => {
                let left = text(bare(&call.receiver));
                let right = call.args.first().map_or(String::new(), |right| text(bare(right)));
                let other = match args.first() {
                    Some(Value::Tensor(other)) => shown(other),
                    _ => String::new(),
                };
                let (n, k) = (n.to_string(), k.to_string());
                self.report(call, messages::product(&left, &shown(&axes), &right, &other, &n, &k));
                Value::Unknown
            }
            Known::Nothing => Value::Unknown,
        }
    }

    fn outputs(&mut self, body: &Block, result: Value, line: &Line) {
        let Some(result) = returned(body, result) else { return };
        let parts: Vec<Returned<'_>> = match (result.0, result.1) {
            (Value::Tuple(values), Expr::Tuple(of)) if line.outputs.len() > 1 => {
                values.into_iter().zip(&of.elems).collect()
            }
            whole => vec![whole],
        };
        for (position, ((value, expr), shape)) in parts.iter().zip(&line.outputs).enumerate() {
            if let (Value::Tensor(found), Some(axes), false) = (value, &shape.axes, shape.is_list)
                && differ(found, axes)
            {
                let which = match line.outputs.len() {
                    1 => "the output".to_owned(),
                    _ => format!("output {position}"),
                };
                self.report(expr, messages::output(&which, &shown(found), &shown(axes)));
            }
        }
    }

    fn gradients(&mut self, body: &Block, result: Value, layer: &Layer, line: &Line) {
        let Some((value, expr)) = returned(body, result) else { return };
        let wanted: Vec<(String, Vec<Axis>)> = layer
            .differentiable()
            .into_iter()
            .map(|(_, param, input)| {
                let axes = line.of(&param.ident).filter(|_| input.form != Form::List);
                let any = || vec![Axis::One(Length::Any(Span::call_site()))];
                (plain_name(&param.ident), axes.and_then(|of| of.axes.clone()).unwrap_or_else(any))
            })
            .collect();
        let parts: Vec<(String, Value, &Expr)> = match (expr, value) {
            (Expr::Struct(of), Value::Tuple(values)) => {
                let fields = of.fields.iter().zip(values);
                fields.map(|(field, value)| (text(&field.member), value, &field.expr)).collect()
            }
            (Expr::Tuple(of), Value::Tuple(values)) => {
                let parts = of.elems.iter().zip(values).zip(&wanted);
                parts.map(|((expr, value), (name, _))| (name.clone(), value, expr)).collect()
            }
            (expr, value) if wanted.len() == 1 => vec![(wanted[0].0.clone(), value, expr)],
            _ => return,
        };
        let shape_of = |name: &str| wanted.iter().find(|(of, _)| of == name).map(|(_, axes)| axes);
        for (name, value, expr) in &parts {
            let (Value::Tensor(found), Some(axes)) = (value, shape_of(name)) else { continue };
            if !differ(found, axes) {
                continue;
            }
            let other = wanted.iter().find(|(of, axes)| of != name && keys(axes) == keys(found));
            let swapped = other.filter(|(other, _)| {
                parts.iter().any(|(of, value, _)| {
                    of == other && matches!(value, Value::Tensor(of) if keys(of) == keys(axes))
                })
            });
            let (found_keys, mut turned) = (keys(found), keys(axes));
            let extra = found_keys.strip_suffix(&turned[..]);
            turned.reverse();
            let hint = match (swapped, other, extra) {
                (Some((other, _)), ..) => messages::swapped(other),
                // The result of a broadcast often has the shape of the other operand.
                (None, _, Some(extra)) => messages::sum_over(&list(extra), &summed(extra, name)),
                (None, Some((other, _)), None) => messages::shape_of_other(other),
                _ if turned == found_keys && turned.len() == 2 => messages::transposed(),
                _ => messages::no_hint(),
            };
            self.report(expr, messages::gradient(name, &shown(found), &shown(axes), &hint));
        }
    }
}

/// The call that sums a gradient over its first axes. Their number is unknown if they are a group.
fn summed(extra: &[String], name: &str) -> String {
    match extra {
        _ if extra.iter().any(|axis| axis.contains("..")) => format!(".sum_to({name}.shape())"),
        [_] => ".sum_axes(0)".to_owned(),
        _ => format!(".sum_axes({:?})", (0..extra.len()).collect::<Vec<_>>()),
    }
}

/// The last expression of a body, without `Ok(..)` around it. One that returns earlier is not judged.
fn returned(body: &Block, value: Value) -> Option<Returned<'_>> {
    let Some(Stmt::Expr(expr, None)) = body.stmts.last() else { return None };
    let inner = match expr {
        Expr::Call(call) if matches!(text(&call.func).as_str(), "Ok" | "Some") => {
            call.args.first()?
        }
        expr => expr,
    };
    Some((value, inner))
}

/// The expression without references and parentheses.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Reference(of) => bare(&of.expr),
        Expr::Paren(of) => bare(&of.expr),
        _ => expr,
    }
}

fn integer(expr: &Expr) -> Option<i64> {
    match bare(expr) {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(n) => n.base10_parse().ok(),
            _ => None,
        },
        Expr::Unary(of) if matches!(of.op, UnOp::Neg(_)) => integer(&of.expr).map(|n| -n),
        _ => None,
    }
}

/// One integer, or a list of them.
fn integer_list(expr: &Expr) -> Option<Vec<i64>> {
    match bare(expr) {
        Expr::Array(list) => list.elems.iter().map(integer).collect(),
        expr => Some(vec![integer(expr)?]),
    }
}

fn bind(pattern: &Pat, value: Value, values: &mut Values) {
    match (pattern, value) {
        // Methods may change it.
        (Pat::Ident(of), Value::Dims(_) | Value::Tuple(_)) if of.mutability.is_some() => {
            values.remove(&plain_name(&of.ident));
        }
        (Pat::Ident(of), value) if of.subpat.is_none() => {
            values.insert(plain_name(&of.ident), value);
        }
        (Pat::Type(of), value) => bind(&of.pat, value, values),
        (Pat::Reference(of), value) => bind(&of.pat, value, values),
        (Pat::Paren(of), value) => bind(&of.pat, value, values),
        (Pat::Tuple(of), Value::Tuple(parts)) if of.elems.len() == parts.len() => {
            of.elems.iter().zip(parts).for_each(|(of, value)| bind(of, value, values));
        }
        (Pat::Slice(of), Value::Tuple(parts))
            if of.elems.len() == parts.len()
                && !of.elems.iter().any(|of| matches!(of, Pat::Rest(_))) =>
        {
            of.elems.iter().zip(parts).for_each(|(of, value)| bind(of, value, values));
        }
        (Pat::Slice(of), Value::Dims(axes))
            if of.elems.len() == axes.len()
                && axes.iter().all(|axis| matches!(axis, Axis::One(_)))
                && !of.elems.iter().any(|of| matches!(of, Pat::Rest(_))) =>
        {
            for (of, axis) in of.elems.iter().zip(axes) {
                let Axis::One(length) = axis else { continue };
                let known = !matches!(length, Length::Any(_));
                bind(of, if known { Value::Length(length) } else { Value::Number }, values);
            }
        }
        (pattern, _) => forget(&pattern.to_token_stream(), values),
    }
}

/// Every name in these tokens is unknown from now on.
fn forget(tokens: &TokenStream, values: &mut Values) {
    for tree in tokens.clone() {
        match tree {
            TokenTree::Ident(name) => drop(values.remove(&plain_name(&name))),
            TokenTree::Group(group) => forget(&group.stream(), values),
            _ => {}
        }
    }
}

/// Forgets what an expression may assign: names before `=` or after `&mut`, and names in its macros. What a `let` in
/// it names is another variable.
fn forget_assigned(expr: &Expr, values: &mut Values) {
    fn each(tokens: TokenStream, values: &mut Values) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let mut start = 0;
        for (at, tree) in trees.iter().enumerate() {
            match tree {
                TokenTree::Ident(name) => {
                    let mutable = at > 0
                        && matches!(&trees[at - 1], TokenTree::Ident(word) if is_one_of(word, "mut"));
                    if mutable {
                        values.remove(&plain_name(name));
                    }
                }
                TokenTree::Group(group) => {
                    let of_macro = at > 0 && is_punct(Some(&trees[at - 1]), '!');
                    if of_macro && group.delimiter() != Delimiter::None {
                        forget(&group.stream(), values);
                    }
                    each(group.stream(), values);
                }
                TokenTree::Punct(sign) if sign.as_char() == ';' => start = at + 1,
                TokenTree::Punct(sign) if sign.as_char() == '=' => {
                    let after = |sign| at > 0 && is_punct(trees.get(at - 1), sign);
                    let before = |sign| is_punct(trees.get(at + 1), sign);
                    let compares = ['=', '!', '<', '>', '.'].into_iter().any(after);
                    if compares || before('=') {
                        continue;
                    }
                    let left = &trees[start..at];
                    let is_let =
                        |tree: &TokenTree| matches!(tree, TokenTree::Ident(word) if word == "let");
                    if !before('>') && !left.iter().any(is_let) {
                        forget(&left.iter().cloned().collect(), values);
                    }
                    start = at + 1;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
    each(expr.to_token_stream(), values);
}

/// The names of tensors and lengths in these tokens.
fn shapes_in(tokens: &TokenStream, values: &Values, named: &mut Vec<String>) {
    for tree in tokens.clone() {
        match tree {
            TokenTree::Ident(name) => {
                let name = plain_name(&name);
                let is_shape = matches!(
                    values.get(&name),
                    Some(Value::Tensor(_) | Value::Dims(_) | Value::Length(_) | Value::Tuple(_))
                );
                if is_shape && !named.contains(&name) {
                    named.push(name);
                }
            }
            TokenTree::Group(group) => shapes_in(&group.stream(), values, named),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn has_cfg(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| attr.path().is_ident("cfg"))
}

/// The attributes of an expression that is a statement.
fn attributes(expr: &Expr) -> &[syn::Attribute] {
    match expr {
        Expr::Block(of) => &of.attrs,
        Expr::Assign(of) => &of.attrs,
        Expr::Call(of) => &of.attrs,
        Expr::MethodCall(of) => &of.attrs,
        Expr::Return(of) => &of.attrs,
        Expr::If(of) => &of.attrs,
        Expr::Struct(of) => &of.attrs,
        Expr::Path(of) => &of.attrs,
        _ => &[],
    }
}

/// Whether a condition names only numbers, like `tau > 0.0`, so that it says nothing of lengths.
fn is_of_numbers(condition: &TokenStream, values: &Values) -> bool {
    let trees: Vec<TokenTree> = condition.clone().into_iter().collect();
    trees.iter().enumerate().all(|(at, tree)| match tree {
        TokenTree::Ident(_) if at > 0 && is_punct(trees.get(at - 1), '.') => true,
        TokenTree::Ident(name) => matches!(values.get(&plain_name(name)), Some(Value::Number)),
        TokenTree::Group(group) => is_of_numbers(&group.stream(), values),
        TokenTree::Punct(_) | TokenTree::Literal(_) => true,
    })
}

/// Whether a pattern is for special lengths only.
fn has_literal(pattern: &TokenStream) -> bool {
    pattern.clone().into_iter().any(|tree| match tree {
        TokenTree::Literal(_) => true,
        TokenTree::Ident(word) => word == "true" || word == "false",
        TokenTree::Group(group) => has_literal(&group.stream()),
        TokenTree::Punct(_) => false,
    })
}

/// Whether a statement is a function's call, `same(x, y)?;`, which may end the function for some lengths.
fn is_demand(expr: &Expr) -> bool {
    match expr {
        Expr::Call(_) => true,
        Expr::Try(of) => is_demand(&of.expr),
        _ => false,
    }
}

/// Whether an expression may end the function: by `return`, or in a macro.
fn leaves(expr: &Expr) -> bool {
    let leaves = |trees: &[TokenTree], at: usize| match &trees[at] {
        TokenTree::Ident(word) if word == "return" => Some(()),
        TokenTree::Ident(_) if is_punct(trees.get(at + 1), '!') => {
            matches!(trees.get(at + 2), Some(TokenTree::Group(_))).then_some(())
        }
        _ => None,
    };
    Trees::new(expr.to_token_stream()).find(&mut { leaves }).is_some()
}
