//! Parses a `check(..)`, and checks its inputs against the parameters of forward.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, ExprLit, ExprRange, ExprUnary, Ident, Lit, RangeLimits, Token, UnOp};

use super::messages;
use crate::elementwise::parse::Kind;
use crate::errors::Errors;
use crate::generics::{is_lifetime, parameter_name};
use crate::messages::{list, twice};
use crate::model::{Form, Forward, Layer, Param, ParamKind, TensorInput, element, nearest};
use crate::shapes::Line;
use crate::tokens::{mentions, parts, plain_name, text};

pub(crate) struct Check {
    pub(crate) word: Ident,
    pub(crate) text: String,
    pub(crate) given: Vec<Given>,
}

/// `name = value`
pub(crate) struct Given {
    pub(crate) name: Ident,
    pub(crate) value: Value,
    pub(crate) tokens: TokenStream,
}

pub(crate) enum Value {
    /// `[2, 3]`, `[2, 3] in 0.5..2.0`, `[[2, 3], [3]]`
    List(Vec<Value>, Option<Box<ExprRange>>),
    /// `_`, `_ in 0..v`: the shape in the op's `shapes(..)`
    OfLine(Option<Box<ExprRange>>),
    Expr(Box<Expr>),
}

/// The word `exhaustive` of a `check(exhaustive)`.
pub(crate) fn exhaustive(part: &TokenStream) -> Option<Ident> {
    let mut trees = part.clone().into_iter();
    match (trees.next()?, trees.next()?, trees.next()) {
        (TokenTree::Ident(word), TokenTree::Group(group), None) if word == "check" => {
            syn::parse2::<Ident>(group.stream()).ok().filter(|word| word == "exhaustive")
        }
        _ => None,
    }
}

/// Parses an argument of the attribute that begins with `check`; `None` for any other argument.
pub(crate) fn parse(part: &TokenStream, errors: &mut Errors) -> Option<Option<Check>> {
    let mut trees = part.clone().into_iter();
    let Some(TokenTree::Ident(word)) = trees.next() else { return None };
    if word != "check" {
        return None;
    }
    let inputs = match (trees.next(), trees.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::Parenthesis => {
            group.stream()
        }
        _ => {
            errors.at(part, messages::without_inputs());
            return Some(None);
        }
    };
    let mut check = Check { word, text: text(&inputs), given: Vec::new() };
    let before = errors.count();
    for (input, comma) in parts(inputs) {
        match input.is_empty() {
            true => errors.at(comma, messages::empty()),
            false => check.given.extend(given(&input, errors)),
        }
    }
    // A check with a mistake is dropped: its inputs would be reported as missing.
    Some((errors.count() == before).then_some(check))
}

/// `name = value`
fn given(tokens: &TokenStream, errors: &mut Errors) -> Option<Given> {
    let read = |input: ParseStream<'_>| {
        let name = input.call(Ident::parse_any)?;
        let colon = input.parse::<Option<Token![:]>>()?.is_some();
        if !colon {
            input.parse::<Token![=]>()?;
        }
        Ok((name, colon, input.parse::<TokenStream>()?))
    };
    match read.parse2(tokens.clone()) {
        Err(_) => errors.at(tokens, messages::malformed()),
        Ok((name, true, value)) => {
            errors.at(tokens, messages::colon(&name.to_string(), &text(&value)));
        }
        Ok((name, false, written)) => {
            let value = value(&written, tokens, errors)?;
            return Some(Given { name, value, tokens: written });
        }
    }
    None
}

/// Parses a list in brackets, with an optional range after it, or any expression. `all`: the whole input.
fn value(tokens: &TokenStream, all: &TokenStream, errors: &mut Errors) -> Option<Value> {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let is_in = |tree: &TokenTree| matches!(tree, TokenTree::Ident(word) if word == "in");
    let (before, after) = trees.split_at(trees.iter().position(is_in).unwrap_or(trees.len()));
    let range = match after.split_first() {
        None => None,
        Some((_, ends)) => match syn::parse2::<Expr>(ends.iter().cloned().collect()) {
            Ok(Expr::Range(range))
                if range.start.is_some()
                    && matches!(range.limits, RangeLimits::HalfOpen(_))
                    && range.end.is_some() =>
            {
                Some(Box::new(range))
            }
            _ => {
                errors.at(after.iter().cloned().collect::<TokenStream>(), messages::range());
                return None;
            }
        },
    };
    if let [TokenTree::Group(group)] = before
        && group.delimiter() == Delimiter::Bracket
    {
        let values = parts(group.stream()).into_iter().map(|(part, _)| value(&part, all, errors));
        return Some(Value::List(values.collect::<Option<_>>()?, range));
    }
    if let [TokenTree::Ident(any)] = before
        && any == "_"
    {
        return Some(Value::OfLine(range));
    }
    match syn::parse2::<Expr>(tokens.clone()) {
        _ if range.is_some() => {
            let after = after.iter().cloned().collect::<TokenStream>();
            errors.at(after, messages::range_without_shape("x"));
        }
        Ok(expr) => return Some(Value::Expr(Box::new(expr))),
        Err(_) => errors.at(all, messages::malformed()),
    }
    None
}

/// Checks the inputs against forward. `no_grad`, `surrogate`: arguments of the op that exclude a check.
pub(crate) fn check(
    layer: &Layer,
    checks: &[Check],
    line: Option<&Line>,
    (no_grad, surrogate): (bool, bool),
    errors: &mut Errors,
) {
    let nothing = match (no_grad, surrogate) {
        (true, _) => messages::no_gradient(),
        (false, true) => messages::surrogate(),
        // A parameter of a signature with errors may seem missing.
        (false, false) => match layer.forward.as_ref().filter(|_| errors.is_empty()) {
            Some(of) => {
                checks.iter().for_each(|check| check.check(&of.params, line, errors));
                match unknown_parameter(layer, of) {
                    Some(name) => messages::unknown_parameter(&name, &layer.name.to_string()),
                    None => return,
                }
            }
            None => return,
        },
    };
    checks.iter().for_each(|check| errors.at(&check.word, nothing.as_str()));
}

/// Checks that a `check(exhaustive)` has one number to try.
pub(crate) fn check_exhaustive(
    layer: &Layer,
    word: &Ident,
    (is_surrogate, is_reduced): (bool, bool),
    errors: &mut Errors,
) {
    let Some(forward) = &layer.forward else { return };
    let of = |kind| forward.of(kind).count();
    let defaults = forward.of(Kind::Plain).all(|param| param.default().is_some());
    let one = of(Kind::Real) == 1 && of(Kind::Mask) == 0 && forward.outputs.parts.len() == 1;
    if is_surrogate {
        errors.at(word, messages::surrogate());
    } else if !layer.is_formula || !one || !defaults || is_reduced {
        errors.at(word, messages::exhaustive());
    }
}

/// A type or constant that nothing given to a call determines.
fn unknown_parameter(layer: &Layer, forward: &Forward) -> Option<String> {
    let own = &forward.function.sig.generics;
    let (clause, own_clause) = (&layer.generics.where_clause, &own.where_clause);
    let all: Vec<_> = layer.generics.params.iter().chain(&own.params).collect();
    let mut names = all.iter().filter(|of| !is_lifetime(of)).map(|of| parameter_name(of));
    names.find(|name| {
        let others = all.iter().filter(|of| parameter_name(of) != *name);
        let types = forward.params.iter().map(|of| &of.ty);
        !mentions(&quote!(#(#types)* #(#others)* #clause #own_clause), name)
    })
}

impl Check {
    fn check(&self, parameters: &[Param], line: Option<&Line>, errors: &mut Errors) {
        let known: Vec<String> = parameters.iter().map(|p| plain_name(&p.ident)).collect();
        let lengths = line.map(Line::names).unwrap_or_default();
        let mut seen: Vec<String> = Vec::new();
        let mut slip = false;
        for given in &self.given {
            let name = plain_name(&given.name);
            if lengths.contains(&given.name) && !known.contains(&name) {
                continue;
            }
            let Some(at) = known.iter().position(|known| *known == name) else {
                let names: Vec<&str> = known.iter().map(String::as_str).collect();
                let near = nearest(&name, &names).filter(|near| self.of(near).is_none());
                // The unknown name was meant for a missing parameter.
                slip = true;
                errors.at(&given.name, messages::unknown(&name, near, &list(&known)));
                continue;
            };
            if seen.contains(&name) {
                errors.at(&given.name, twice(&name));
                continue;
            }
            seen.push(name.clone());
            if let ParamKind::Tensor(tensor) = &parameters[at].kind {
                if matches!(given.value, Value::OfLine(_)) && line.is_none() {
                    errors.at(&given.tokens, messages::no_line());
                } else if !fits(&given.value, tensor, tensor.form) {
                    let list = tensor.form == Form::List;
                    let make = if list { "vec![..]" } else { "Tensor::from([..])" };
                    let (kind, write) = (kind(tensor), example(tensor));
                    errors.at(&given.tokens, messages::wrong_value(&name, &kind, write, make));
                }
            } else if let Value::List(_, Some(_)) | Value::OfLine(_) = given.value {
                errors.at(&given.tokens, messages::malformed());
            }
        }
        if !slip {
            self.complete(parameters, line, errors);
        }
    }

    pub(super) fn of(&self, name: &str) -> Option<&Given> {
        self.given.iter().find(|given| plain_name(&given.name) == name)
    }

    fn complete(&self, parameters: &[Param], line: Option<&Line>, errors: &mut Errors) {
        let missing = |parameter: &&Param| {
            !matches!(parameter.kind, ParamKind::Plain { default: Some(_) })
                && self.of(&plain_name(&parameter.ident)).is_none()
                && !line.is_some_and(|line| is_in_line(parameter, line))
        };
        let missing: Vec<&Param> = parameters.iter().filter(missing).collect();
        if missing.is_empty() {
            return;
        }
        let names: Vec<_> = missing.iter().map(|of| plain_name(&of.ident)).collect();
        let written = missing.iter().zip(&names).map(|(parameter, name)| match &parameter.kind {
            ParamKind::Plain { .. } => format!("{name} = .."),
            ParamKind::Tensor(tensor) if line.is_some() && needs_range(tensor) => {
                format!("{name} = _ in 0..4")
            }
            ParamKind::Tensor(tensor) => format!("{name} = {}", example(tensor)),
        });
        let add: Vec<_> = written.collect();
        errors.at(&self.word, messages::missing(&list(&names), &add.join(", ")));
    }
}

/// Whether the line says enough of a parameter: the shape of a tensor whose numbers may be any, or that an integer is
/// a length.
fn is_in_line(parameter: &Param, line: &Line) -> bool {
    match &parameter.kind {
        ParamKind::Tensor(tensor) => {
            let shape = line.of(&parameter.ident);
            !needs_range(tensor) && shape.is_some_and(|shape| shape.axes.is_some())
        }
        ParamKind::Plain { .. } => line.mentions(&parameter.ident),
    }
}

/// Whether a tensor needs a range, since sensible random values cannot be guessed.
fn needs_range(tensor: &TensorInput) -> bool {
    matches!(&element(&tensor.tensor)[..], "i32" | "i64" | "u8")
}

fn example(tensor: &TensorInput) -> &'static str {
    match (tensor.form == Form::List, needs_range(tensor)) {
        (false, false) => "[2, 3]",
        (false, true) => "[2] in 0..4",
        (true, false) => "[[2, 3], [3] in 0.5..2.0]",
        (true, true) => "[[2] in 0..4]",
    }
}

fn kind(tensor: &TensorInput) -> String {
    let kind = match tensor.form {
        Form::One => "one tensor",
        Form::Optional => "an optional tensor",
        Form::List => "a list of tensors",
    };
    match needs_range(tensor) {
        true => {
            let element = element(&tensor.tensor);
            format!("{kind} of `{element}`, whose numbers cannot be guessed")
        }
        false => kind.to_owned(),
    }
}

/// Whether the value fits a tensor of this form: a shape, or an expression.
fn fits(value: &Value, tensor: &TensorInput, form: Form) -> bool {
    match (value, form) {
        (Value::OfLine(range), _) => range.is_some() || !needs_range(tensor),
        (Value::Expr(expr), Form::Optional) if is_none(expr) => true,
        (Value::Expr(expr), _) => !is_none(expr) && !is_literal(expr),
        (Value::List(items, range), Form::List) => {
            range.is_none() && items.iter().all(|item| fits(item, tensor, Form::One))
        }
        (Value::List(lengths, range), _) => {
            let is_length = |length: &Value| matches!(length, Value::Expr(expr) if !is_literal(expr) || is_length(expr));
            lengths.iter().all(is_length) && (range.is_some() || !needs_range(tensor))
        }
    }
}

fn is_none(expr: &Expr) -> bool {
    matches!(expr, Expr::Path(path) if path.path.is_ident("None"))
}

/// Whether the expression is a literal, so certainly not a tensor.
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) => true,
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => is_literal(expr),
        _ => false,
    }
}

fn is_length(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(int), .. }) => matches!(int.suffix(), "" | "usize"),
        _ => false,
    }
}
