//! What is given against what forward takes.

use syn::{Expr, ExprLit, ExprUnary, Lit, UnOp};

use super::messages;
use super::model::{Check, Form, Given, Kind, Parameter, Tensor, Value};
use crate::errors::Errors;
use crate::model::nearest;
use crate::tokens::{plain_name, text};

impl Check {
    /// Every parameter has a value that fits, once.
    pub(crate) fn check(&self, parameters: &[Parameter], errors: &mut Errors) {
        let known: Vec<String> = parameters.iter().map(|p| plain_name(&p.ident)).collect();
        let mut seen: Vec<String> = Vec::new();
        let mut slip = false;
        for given in &self.given {
            let name = plain_name(&given.name);
            let Some(at) = known.iter().position(|known| *known == name) else {
                let names: Vec<&str> = known.iter().map(String::as_str).collect();
                let near = nearest(&name, &names).filter(|near| self.of(near).is_none());
                // It stands for one that is missing.
                slip = true;
                errors.at(&given.name, messages::unknown(&name, near, &known));
                continue;
            };
            if seen.contains(&name) {
                errors.at(&given.name, messages::repeated(&name));
                continue;
            }
            seen.push(name);
            if let Kind::Tensor(tensor) = &parameters[at].kind {
                given.check(tensor, errors);
            } else if let Value::List(_, Some(_)) = given.value {
                errors.at(&given.tokens, messages::malformed());
            }
        }
        if !slip {
            self.complete(parameters, errors);
        }
    }

    /// What is given for a parameter.
    pub(super) fn of(&self, name: &str) -> Option<&Given> {
        self.given.iter().find(|given| plain_name(&given.name) == name)
    }

    fn complete(&self, parameters: &[Parameter], errors: &mut Errors) {
        let missing = |parameter: &&Parameter| {
            let default = matches!(parameter.kind, Kind::Plain { default: Some(_) });
            !default && self.of(&plain_name(&parameter.ident)).is_none()
        };
        let names: Vec<_> =
            parameters.iter().filter(missing).map(|p| plain_name(&p.ident)).collect();
        if names.is_empty() {
            return;
        }
        let written = parameters.iter().filter_map(|parameter| {
            let name = plain_name(&parameter.ident);
            match (self.of(&name), &parameter.kind) {
                (Some(given), _) => Some(format!("{name} = {}", text(&given.tokens))),
                (None, Kind::Plain { default: Some(_) }) => None,
                (None, Kind::Plain { default: None }) => Some(format!("{name} = ..")),
                (None, Kind::Tensor(tensor)) => Some(format!("{name} = {}", tensor.example())),
            }
        });
        let write: Vec<_> = written.collect();
        errors.at(&self.word, messages::missing(&names, &write.join(", ")));
    }
}

impl Tensor {
    fn example(&self) -> &'static str {
        match (self.form.is_list(), self.needs_range()) {
            (false, false) => "[2, 3]",
            (false, true) => "[2] in 0..4",
            (true, false) => "[[2, 3], [3]]",
            (true, true) => "[[2] in 0..4]",
        }
    }
}

impl Given {
    fn check(&self, tensor: &Tensor, errors: &mut Errors) {
        let name = plain_name(&self.name);
        match &self.value {
            Value::List(_, Some(_)) if tensor.form.is_list() => {
                errors.at(&self.tokens, messages::range_of_list(&name));
            }
            Value::List(items, None) if tensor.form.is_list() => {
                if items.iter().any(|item| matches!(item, Value::Expr(expr) if is_literal(expr))) {
                    return errors.at(&self.tokens, messages::shape_for_list(&name));
                }
                for item in items {
                    self.check_one(item, tensor, errors);
                }
            }
            value => self.check_one(value, tensor, errors),
        }
    }

    /// A shape, or an expression that makes the tensor.
    fn check_one(&self, value: &Value, tensor: &Tensor, errors: &mut Errors) {
        let name = plain_name(&self.name);
        match value {
            Value::Expr(expr) if is_none(expr) => {
                if tensor.form != Form::Optional {
                    errors.at(expr, messages::not_optional(&name));
                }
            }
            Value::Expr(expr) if is_literal(expr) => {
                let message = match tensor.form.is_list() {
                    true => messages::shape_for_list(&name),
                    false => messages::not_a_shape(&name, &text(expr)),
                };
                errors.at(expr, message);
            }
            Value::Expr(_) => {}
            Value::List(lengths, range) => {
                if lengths.iter().any(|length| matches!(length, Value::List(..))) {
                    return errors.at(&self.tokens, messages::shapes_for_one(&name));
                }
                let exprs = lengths.iter().filter_map(|length| match length {
                    Value::Expr(expr) => Some(expr),
                    Value::List(..) => None,
                });
                for length in exprs.filter(|length| is_literal(length) && !is_length(length)) {
                    errors.at(length, messages::length(&text(length)));
                }
                if tensor.needs_range() && range.is_none() {
                    let message = messages::integers(&name, &tensor.element, &text(&self.tokens));
                    errors.at(&self.tokens, message);
                }
            }
        }
    }
}

fn is_none(expr: &Expr) -> bool {
    matches!(expr, Expr::Path(path) if path.path.is_ident("None"))
}

/// A number, text, or such: surely no tensor.
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
