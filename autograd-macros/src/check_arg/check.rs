//! What is given against what forward takes.

use syn::{Expr, ExprLit, ExprUnary, Lit, UnOp};

use super::messages;
use super::model::{Check, Given, Value};
use super::needs_range;
use crate::args::Args;
use crate::errors::Errors;
use crate::messages::{list, twice};
use crate::model::{Form, Layer, Param, ParamKind, TensorInput, element, nearest};
use crate::tokens::{plain_name, text};

/// Holds the checks of an op against its forward; none where it cannot be read.
pub(crate) fn check(layer: Option<&Layer>, args: &Args, errors: &mut Errors) {
    let nothing = match (args.no_grad, args.surrogate) {
        (Some(_), _) => Some(messages::no_gradient()),
        (_, Some(_)) => Some(messages::surrogate()),
        (None, None) => None,
    };
    if let Some(message) = nothing {
        return args.checks.iter().for_each(|check| errors.at(&check.word, message.as_str()));
    }
    // What stands in a signature that cannot be read is not missing.
    if let Some(forward) = layer.and_then(|layer| layer.forward.as_ref())
        && errors.is_empty()
    {
        args.checks.iter().for_each(|check| check.check(&forward.params, errors));
    }
}

impl Check {
    fn check(&self, parameters: &[Param], errors: &mut Errors) {
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
                errors.at(&given.name, messages::unknown(&name, near, &list(&known)));
                continue;
            };
            if seen.contains(&name) {
                errors.at(&given.name, twice(&name));
                continue;
            }
            seen.push(name);
            if let ParamKind::Tensor(tensor) = &parameters[at].kind {
                given.check(tensor, errors);
            } else if let Value::List(_, Some(_)) = given.value {
                errors.at(&given.tokens, messages::malformed());
            }
        }
        if !slip {
            self.complete(parameters, errors);
        }
    }

    pub(super) fn of(&self, name: &str) -> Option<&Given> {
        self.given.iter().find(|given| plain_name(&given.name) == name)
    }

    fn complete(&self, parameters: &[Param], errors: &mut Errors) {
        let missing = |parameter: &&Param| {
            parameter.default().is_none() && self.of(&plain_name(&parameter.ident)).is_none()
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
                (None, ParamKind::Plain { default: Some(_) }) => None,
                (None, ParamKind::Plain { default: None }) => Some(format!("{name} = ..")),
                (None, ParamKind::Tensor(tensor)) => Some(format!("{name} = {}", example(tensor))),
            }
        });
        let write: Vec<_> = written.collect();
        errors.at(&self.word, messages::missing(&names, &write.join(", ")));
    }
}

fn example(tensor: &TensorInput) -> &'static str {
    match (tensor.form == Form::List, needs_range(tensor)) {
        (false, false) => "[2, 3]",
        (false, true) => "[2] in 0..4",
        (true, false) => "[[2, 3], [3]]",
        (true, true) => "[[2] in 0..4]",
    }
}

impl Given {
    fn check(&self, tensor: &TensorInput, errors: &mut Errors) {
        let name = plain_name(&self.name);
        match &self.value {
            Value::List(_, Some(_)) if tensor.form == Form::List => {
                errors.at(&self.tokens, messages::range_of_list(&name));
            }
            Value::List(items, None) if tensor.form == Form::List => {
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
    fn check_one(&self, value: &Value, tensor: &TensorInput, errors: &mut Errors) {
        let name = plain_name(&self.name);
        match value {
            Value::Expr(expr) if is_none(expr) => {
                if tensor.form != Form::Optional {
                    errors.at(expr, messages::not_optional(&name));
                }
            }
            Value::Expr(expr) if is_literal(expr) => {
                let message = match tensor.form == Form::List {
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
                if needs_range(tensor) && range.is_none() {
                    let message =
                        messages::integers(&name, &element(&tensor.tensor), &text(&self.tokens));
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
