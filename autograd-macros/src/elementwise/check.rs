//! The rules of an elementwise block, one function each.

use super::parse::wrong_form;
use super::parse::{FormulaValue, Kind, kind};
use super::{bodies, messages};
use crate::args::Args;
use crate::check::forward::misspelling_of;
use crate::check::report_misspelling;
use crate::check::types::together;
use crate::errors::Errors;
use crate::messages::{list, plural};
use crate::model::{Derivative, Forward, GradientParam, Layer, is_named, nearest};
use crate::tokens::{plain_name, text};

pub(crate) fn check(op: &Layer, args: &Args, errors: &mut Errors) {
    functions(op, args, errors);
    bodies::check(op, errors);
    let Some(forward) = &op.forward else { return };
    inputs(op, forward, errors);
    let Some(backward) = &op.backward else { return };
    // The intended type of a wrong input is unknown, so other errors may follow from it.
    if has_wrong_input(op, forward) {
        return;
    }
    names(forward, backward, errors);
    gradient(forward, backward, errors);
    reduced(forward, backward, args, errors);
    returned(op, backward, errors);
}

fn functions(op: &Layer, args: &Args, errors: &mut Errors) {
    if !op.broken.is_empty() {
        return;
    }
    if op.forward.is_none() && !report_misspelling(&op.items, "forward", errors) {
        errors.at(&op.name, messages::no_forward(&op.name.to_string()));
    }
    if op.backward.is_none() {
        match (args.surrogate, args.verify) {
            _ if report_misspelling(&op.items, "backward", errors) => {}
            (Some(span), _) => errors.at_span(span, messages::surrogate_without_backward()),
            (_, Some(span)) => errors.at_span(span, messages::verify_without_backward()),
            (None, None) => {}
        }
    } else if let (Some(span), Some(_)) = (args.verify, args.surrogate) {
        errors.at_span(span, messages::verify_of_a_surrogate());
    }
}

fn has_wrong_input(op: &Layer, forward: &Forward) -> bool {
    op.has_wrong_type()
        || forward.of(Kind::Plain).any(|param| wrong_form(&param.ty, "", "").is_some())
}

fn inputs(op: &Layer, forward: &Forward, errors: &mut Errors) {
    for param in &forward.params {
        let name = plain_name(&param.ident);
        if is_reserved(&name) {
            errors.at(&param.ident, messages::reserved(&name));
        }
    }
    let numbers: Vec<_> = forward.of(Kind::Real).map(|param| plain_name(&param.ident)).collect();
    if has_wrong_input(op, forward) {
    } else if numbers.is_empty() {
        let plain = forward
            .of(Kind::Plain)
            .find(|param| ["f32", "f64"].iter().any(|float| is_named(&param.ty, float)));
        match plain {
            Some(param) => {
                let (name, found) = (plain_name(&param.ident), text(&param.ty));
                errors.at(&param.ty, messages::only_plain_number(&name, &found));
            }
            None => match forward.params.iter().find_map(|param| misspelling_of(&param.ty, "Real"))
            {
                Some(slip) => errors.at(&slip, messages::slip_of_real(&slip.to_string())),
                None => errors.at(&forward.function.sig.ident, messages::no_number()),
            },
        }
    } else if op.differentiable().is_empty() {
        let are = if numbers.len() == 1 { "is" } else { "are" };
        let all = format!("{} {are}", list(&numbers));
        errors.at(&forward.function.sig.ident, messages::all_stopped(&all));
    }
}

/// Whether the name is that of an output or its gradient: `y`, `dy`, `y0`, `dy0` ..
fn is_reserved(name: &str) -> bool {
    let name = name.strip_prefix('d').unwrap_or(name);
    name.strip_prefix('y').is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
}

/// Parameters of backward must exist in forward, with the same type.
fn names(forward: &Forward, backward: &Derivative, errors: &mut Errors) {
    for GradientParam { name: ident, ty } in &backward.params {
        let name = ident.as_ref().map(plain_name).unwrap_or_default();
        let Some(value) = forward.value_named(&name) else {
            let known: Vec<String> = forward.names().into_iter().map(|(name, _)| name).collect();
            let candidates: Vec<&str> = known.iter().map(String::as_str).collect();
            let near = nearest(&name, &candidates);
            errors.at(ident, messages::unknown_name(&name, near, &list(&known)));
            continue;
        };
        let expected = match value {
            FormulaValue::Input(i) => forward.params[i].formula_kind(),
            _ => Kind::Real,
        };
        let written = match (expected, value) {
            (Kind::Plain, FormulaValue::Input(i)) => text(&forward.params[i].ty),
            (Kind::Mask, _) => "Mask".to_owned(),
            _ => "Real".to_owned(),
        };
        let found = text(ty);
        if kind(ty) != expected || expected == Kind::Plain && found != written {
            errors.at(ty, messages::other_type(&name, &found, &written));
        }
    }
}

fn gradient(forward: &Forward, backward: &Derivative, errors: &mut Errors) {
    let given = backward.named_values(forward);
    // An unknown name has been reported. It may be a misspelt gradient.
    if given.len() == backward.params.len()
        && !given.iter().any(|value| matches!(value, FormulaValue::Gradient(_)))
    {
        let write = format!("d{}", forward.output_name(0));
        errors.at(&backward.function.sig.ident, messages::no_gradient(&write));
    }
}

fn reduced(forward: &Forward, backward: &Derivative, args: &Args, errors: &mut Errors) {
    let Some(reduce) = &args.reduce else { return };
    for ident in backward.params.iter().filter_map(|param| param.name.as_ref()) {
        let name = plain_name(ident);
        if let Some(FormulaValue::Output(_)) = forward.value_named(&name) {
            errors.at(ident, messages::output_of_a_reduction(&name, &reduce.name.to_string()));
        }
    }
}

fn returned(op: &Layer, backward: &Derivative, errors: &mut Errors) {
    let inputs: Vec<String> =
        op.differentiable().iter().map(|(_, param, _)| plain_name(&param.ident)).collect();
    if backward.returns.by_name().is_some() || inputs.is_empty() {
        return;
    }
    let found = backward.returns.parts.len();
    if found != inputs.len() {
        let count = plural(inputs.len(), "differentiable input");
        let has = format!("{count} ({})", list(&inputs));
        let write = format!("`{}`", together(vec!["Real".to_owned(); inputs.len()]));
        let message = crate::messages::returned_count("backward", found, "gradient", &has, &write);
        return errors.at_output(&backward.function.sig, message);
    }
    for (name, ty) in inputs.iter().zip(&backward.returns.parts) {
        if kind(ty) != Kind::Real {
            errors.at(ty, messages::returned_type(name, &text(ty)));
        }
    }
}
