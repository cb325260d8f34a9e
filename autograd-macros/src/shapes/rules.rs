//! The rules of a line, against the signature of forward.

use proc_macro2::Ident;
use syn::Type;

use super::messages;
use super::parse::{Axis, Length, Line, TensorShape, shown};
use crate::errors::Errors;
use crate::messages::{plural, twice};
use crate::model::{
    Form, Forward, Layer, Param, ParamKind, TensorInput, last_segment, nearest, output_form,
};
use crate::tokens::{is_one_of, plain_name};

const INTEGERS: &str = "usize u8 u16 u32 u64 isize i8 i16 i32 i64";

pub(crate) fn check(layer: &Layer, line: &Line, errors: &mut Errors) {
    let Some(forward) = &layer.forward else { return };
    let before = errors.count();
    inputs(forward, line, errors);
    outputs(forward, line, errors);
    // A name of a missing input would be reported as unknown.
    if errors.count() == before {
        Known::new(layer, forward, line, errors).check(line, errors);
    }
}

fn inputs(forward: &Forward, line: &Line, errors: &mut Errors) {
    let tensors: Vec<(String, &TensorInput)> =
        forward.inputs().map(|(param, input)| (plain_name(&param.ident), input)).collect();
    let names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
    let mut seen: Vec<String> = Vec::new();
    for (ident, shape) in &line.inputs {
        let name = plain_name(ident);
        let Some((_, input)) = tensors.iter().find(|(known, _)| *known == name) else {
            let is_plain = forward.params.iter().any(|param| plain_name(&param.ident) == name);
            let near = nearest(&name, &names);
            errors.at(
                ident,
                match is_plain {
                    true => messages::not_a_tensor(&name),
                    false => messages::unknown_input(&name, near),
                },
            );
            seen.extend(near.map(str::to_owned));
            continue;
        };
        if seen.contains(&name) {
            errors.at(ident, twice(&name));
        }
        let tokens = shape.tokens.to_string().replace(' ', "");
        let written = shape.axes.as_deref().map_or(tokens, shown);
        match (input.form == Form::List, shape.is_list) {
            (true, false) if shape.axes.is_some() => {
                errors.at(&shape.tokens, messages::list_as_one(&name, &written));
            }
            (false, true) => errors.at(&shape.tokens, messages::one_as_list(&name, &written)),
            _ => {}
        }
        for axis in shape.axes.iter().flatten() {
            if let Axis::Broadcast(name, _) = axis {
                errors.at(name, messages::broadcast_input());
            }
        }
        seen.push(name);
    }
    for (name, input) in tensors.iter().filter(|(name, _)| !seen.contains(name)) {
        let shape = if input.form == Form::List { "[[n, k]]" } else { "[n, k]" };
        errors.at(&line.word, messages::missing_input(name, shape));
    }
}

fn outputs(forward: &Forward, line: &Line, errors: &mut Errors) {
    let parts = &forward.outputs.parts;
    if parts.len() != line.outputs.len() {
        let example = |part: &Type| match output_form(part) {
            Some((Form::List, _)) => "[[n, k]]",
            Some(_) => "[n, k]",
            None => "_",
        };
        let write: Vec<_> = parts.iter().map(example).collect();
        let write =
            if write.len() == 1 { write.concat() } else { format!("({})", write.join(", ")) };
        let message =
            messages::output_count(&plural(parts.len(), "value"), line.outputs.len(), &write);
        let tokens = line.outputs.iter().map(|of| &of.tokens);
        return errors.at(quote::quote!(#(#tokens)*), message);
    }
    for (part, shape) in parts.iter().zip(&line.outputs) {
        let Some(axes) = &shape.axes else { continue };
        let written = shown(axes);
        match output_form(part) {
            None => errors.at(&shape.tokens, messages::plain_output()),
            Some((Form::List, _)) if !shape.is_list => {
                errors.at(&shape.tokens, messages::output_list_as_one(&written));
            }
            Some((form, _)) if form != Form::List && shape.is_list => {
                errors.at(&shape.tokens, messages::output_one_as_list(&written));
            }
            Some(_) => {}
        }
    }
}

/// Whether a type is an integer that may be a length.
pub(super) fn is_integer(ty: &Type) -> bool {
    last_segment(ty).is_some_and(|segment| is_one_of(&segment.ident, INTEGERS))
}

/// The integers that may be lengths: parameters of forward, and const parameters.
pub(super) fn integers(layer: &Layer, forward: &Forward) -> Vec<Ident> {
    let plain = forward
        .params
        .iter()
        .filter(|param| matches!(param.kind, ParamKind::Plain { .. }) && is_integer(&param.ty));
    let consts = layer.generics.const_params();
    let consts = consts.chain(forward.function.sig.generics.const_params());
    let consts = consts.filter(|of| is_integer(&of.ty)).map(|of| of.ident.clone());
    plain.map(|param| param.ident.clone()).chain(consts).collect()
}

/// Which names have a value in a call.
struct Known {
    lengths: Vec<String>,
    groups: Vec<String>,
    /// Names, and groups, that only optional inputs have, each with such an input.
    optional: Vec<(String, String)>,
    optional_groups: Vec<(String, String)>,
    /// Parameters of forward that are no length.
    plain: Vec<String>,
}

impl Known {
    fn new(layer: &Layer, forward: &Forward, line: &Line, errors: &mut Errors) -> Self {
        let is_plain = |param: &&Param| {
            matches!(param.kind, ParamKind::Plain { .. }) && !is_integer(&param.ty)
        };
        let mut known = Self {
            lengths: integers(layer, forward).iter().map(plain_name).collect(),
            groups: Vec::new(),
            optional: Vec::new(),
            optional_groups: Vec::new(),
            plain: forward.params.iter().filter(is_plain).map(|of| plain_name(&of.ident)).collect(),
        };
        let is_optional = |name: &Ident| {
            forward.inputs().any(|(param, of)| param.ident == *name && of.form == Form::Optional)
        };
        let (optional, required): (Vec<_>, Vec<_>) =
            line.inputs.iter().partition(|(name, _)| is_optional(name));
        for (_, shape) in &required {
            for axis in shape.axes.iter().flatten() {
                match axis {
                    Axis::One(Length::Name(name)) => known.lengths.push(plain_name(name)),
                    Axis::Many(name) => known.groups.push(plain_name(name)),
                    _ => {}
                }
            }
            if let Some(Length::Name(name)) = &shape.count {
                known.lengths.push(plain_name(name));
            }
        }
        let of_required: Vec<&Length> =
            required.iter().flat_map(|(_, shape)| computed(shape)).collect();
        while let Some(name) = of_required.iter().find_map(|length| known.solved_by(length)) {
            known.lengths.push(name);
        }
        for (input, shape) in optional {
            let input = plain_name(input);
            for axis in shape.axes.iter().flatten() {
                match axis {
                    Axis::One(Length::Name(name)) => {
                        known.optional.push((plain_name(name), input.clone()));
                    }
                    Axis::Many(name) => {
                        known.optional_groups.push((plain_name(name), input.clone()));
                    }
                    _ => {}
                }
            }
        }
        let has =
            |names: &[(String, String)], name: &String| names.iter().any(|(of, _)| of == name);
        for length in line.inputs.iter().flat_map(|(_, shape)| computed(shape)) {
            length.names(&mut |name| {
                let text = plain_name(name);
                let is_plain = known.plain.contains(&text);
                if !is_plain && !known.lengths.contains(&text) && !has(&known.optional, &text) {
                    errors.at(name, messages::not_determined(&length.to_string(), &text));
                    // It is reported once.
                    known.lengths.push(text);
                }
            });
        }
        known
    }

    /// The only name in the length without a value, if the length determines it.
    fn solved_by(&self, length: &Length) -> Option<String> {
        match length {
            Length::Name(name) => {
                let name = plain_name(name);
                (!self.lengths.contains(&name) && !self.plain.contains(&name)).then_some(name)
            }
            Length::Computed(left, sign, right) => {
                let has = |of: &Length| {
                    let mut all = true;
                    of.names(&mut |name| all &= self.lengths.contains(&plain_name(name)));
                    all
                };
                match (has(left), sign, has(right)) {
                    (false, '+' | '-' | '*', true) => self.solved_by(left),
                    (true, '+' | '-' | '*', false) => self.solved_by(right),
                    _ => None,
                }
            }
            Length::Any(_) | Length::Number(..) => None,
        }
    }

    fn check(&self, line: &Line, errors: &mut Errors) {
        let inputs = line.inputs.iter().map(|(_, shape)| shape);
        for (shape, is_output) in
            inputs.map(|of| (of, false)).chain(line.outputs.iter().map(|of| (of, true)))
        {
            for axis in shape.axes.iter().flatten() {
                match axis {
                    Axis::One(length) => self.length(length, is_output, errors),
                    Axis::Many(name) => self.group(name, is_output, errors),
                    Axis::Broadcast(a, b) => {
                        self.group(a, is_output, errors);
                        self.group(b, is_output, errors);
                    }
                }
            }
            shape.count.iter().for_each(|count| self.length(count, is_output, errors));
        }
    }

    fn length(&self, length: &Length, is_output: bool, errors: &mut Errors) {
        let mut names = Vec::new();
        length.names(&mut |name| names.push(name));
        for name in names {
            let text = plain_name(name);
            let optional = self.optional.iter().find(|(of, _)| *of == text);
            let is_group = self.groups.contains(&text);
            if self.plain.contains(&text) {
                errors.at(name, messages::not_an_integer(&text));
            } else if is_group && !(is_output && self.lengths.contains(&text)) {
                errors.at(name, messages::group_and_length(&text));
            } else if is_output && !self.lengths.contains(&text) {
                let known: Vec<&str> = self.lengths.iter().map(String::as_str).collect();
                errors.at(
                    name,
                    match optional {
                        Some((_, input)) => messages::only_optional(&text, input),
                        None => messages::unknown_length(&text, nearest(&text, &known)),
                    },
                );
            }
        }
        check_computed(length, errors);
    }

    fn group(&self, name: &Ident, is_output: bool, errors: &mut Errors) {
        let text = plain_name(name);
        if !is_output || self.groups.contains(&text) {
            return;
        }
        let optional = self.optional_groups.iter().find(|(of, _)| *of == text);
        let known: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        errors.at(
            name,
            match optional {
                Some((_, input)) => messages::group_only_optional(&text, input),
                None => messages::unknown_group(&text, nearest(&text, &known)),
            },
        );
    }
}

/// The lengths of a shape that are computed.
fn computed(shape: &TensorShape) -> impl Iterator<Item = &Length> {
    let axes = shape.axes.iter().flatten().filter_map(|axis| match axis {
        Axis::One(length) => Some(length),
        _ => None,
    });
    axes.chain(&shape.count).filter(|length| matches!(length, Length::Computed(..)))
}

fn check_computed(length: &Length, errors: &mut Errors) {
    let Length::Computed(left, sign, right) = length else { return };
    for side in [left, right] {
        match &**side {
            Length::Any(span) => errors.at_span(*span, messages::any_in_computed()),
            side => check_computed(side, errors),
        }
    }
    if let ('/', Length::Number(0, span)) = (sign, &**right) {
        errors.at_span(*span, messages::division_by_zero());
    }
}
