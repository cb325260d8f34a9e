//! Checks parameters and results of backward and `jvp` against forward.

use syn::{Type, TypePath};

use super::types::{cannot_be_gradient, is_list, is_plain, other_element, tensor_in, together};
use crate::errors::Errors;
use crate::messages;
use crate::model::{
    Derivative, Form, GradientParam, Layer, Param, TensorInput, argument_of, as_tensor, bare,
    contained_types, last_segment, output_form,
};
use crate::tokens::{plain_name, text};

#[derive(Clone, Copy)]
pub(crate) enum Role {
    Gradient,
    Input,
    Tangent,
    Returned,
}

/// The ways to write a value, with `T` for its tensor. The usual one is first.
fn notations(role: Role, form: Form) -> &'static [&'static str] {
    match (role, form) {
        (Role::Returned, Form::List) => &["Vec<T>", "Vec<Option<T>>"],
        (Role::Returned, _) => &["T", "Option<T>"],
        (Role::Input, Form::List) => &["&[T]"],
        (_, Form::List) => &["&[T]", "&[Option<T>]"],
        (_, Form::Optional) => &["Option<&T>"],
        (Role::Input, Form::One) => &["&T"],
        (_, Form::One) => &["&T", "Option<&T>"],
    }
}

/// The type in the notation of [`notations`]: without lifetimes, and arrays as lists.
fn shape(ty: &Type) -> String {
    let inner = || contained_types(ty).into_iter().map(shape).collect::<Vec<_>>().join(", ");
    match bare(ty) {
        ty if as_tensor(ty).is_some() => "T".to_owned(),
        Type::Reference(reference) if reference.mutability.is_none() => format!("&{}", inner()),
        Type::Slice(_) => format!("[{}]", inner()),
        Type::Array(_) => format!("Vec<{}>", inner()),
        ty => match last_segment(ty) {
            Some(last) if last.ident == "Option" || last.ident == "Vec" => {
                format!("{}<{}>", last.ident, inner())
            }
            _ => text(ty),
        },
    }
}

pub(crate) struct Value<'a> {
    pub(crate) role: Role,
    /// `the gradient of`
    pub(crate) what: &'static str,
    /// `the output`, `` `x` ``
    pub(crate) whose: String,
    pub(crate) form: Form,
    pub(crate) tensor: &'a TypePath,
}

impl Value<'_> {
    fn usual(&self) -> String {
        notations(self.role, self.form)[0].replace('T', &text(self.tensor))
    }

    /// Checks the form of a type, and its element type if both are known. The compiler checks the rest.
    pub(crate) fn check(&self, ty: &Type, name: Option<&str>, errors: &mut Errors) {
        let what = format!("{} {}", self.what, self.whose);
        let (tensor, notations) = (tensor_in(ty), notations(self.role, self.form));
        let written = |notations: &[&str]| {
            let written = notations.join("` or `").replace('T', &text(self.tensor));
            name.map_or(written.clone(), |name| format!("{name}: {written}"))
        };
        let is_sure = match self.role {
            Role::Returned => cannot_be_gradient(ty),
            _ => tensor.is_some() || is_plain(ty),
        };
        if let Some((found, of)) = tensor.and_then(|found| other_element(found, self.tensor)) {
            let write = written(&notations[..1]);
            // Without an argument the type in forward may be the mistake.
            let is_bare =
                self.tensor.path.segments.last().is_some_and(|last| last.arguments.is_none());
            let declare = is_bare.then(|| format!("{}<{found}>", text(self.tensor)));
            let (whose, declare) = (&self.whose, declare.as_deref());
            errors.at(ty, messages::value_element(&what, &found, whose, &of, &write, declare));
        } else if is_sure && !notations.contains(&&shape(ty)[..]) {
            let passed = if name.is_some() { "passed" } else { "returned" };
            errors.at(ty, messages::value_form(&what, passed, &text(ty), &written(notations)));
        }
    }
}

/// A value with the usual name of a parameter for it.
pub(crate) type Taken<'a> = (String, Value<'a>);

/// A value for each differentiable input.
pub(crate) fn of_inputs<'a>(layer: &'a Layer, role: Role, what: &'static str) -> Vec<Taken<'a>> {
    let prefix = if matches!(role, Role::Tangent) { "d" } else { "" };
    let value = |(_, param, input): (_, &Param, &'a TensorInput)| {
        let name = plain_name(&param.ident);
        let whose = format!("`{name}`");
        let value = Value { role, what, whose, form: input.form, tensor: &input.tensor };
        (format!("{prefix}{name}"), value)
    };
    layer.differentiable().into_iter().map(value).collect()
}

/// A value for each tensor output.
pub(crate) fn of_outputs<'a>(layer: &'a Layer, role: Role, what: &'static str) -> Vec<Taken<'a>> {
    let outputs = layer.outputs();
    let count = outputs.len();
    let value = |(position, (_, form, tensor))| {
        let number = if count == 1 { String::new() } else { format!("{position}") };
        let whose = messages::output(position, count);
        (format!("dy{number}"), Value { role, what, whose, form, tensor })
    };
    outputs.into_iter().enumerate().map(value).collect()
}

pub(crate) fn written(taken: &[Taken<'_>]) -> String {
    let each = taken.iter().map(|(name, of)| format!("{name}: {}", of.usual()));
    each.collect::<Vec<_>>().join(", ")
}

pub(crate) fn check_taken(taken: &[Taken<'_>], params: &[GradientParam], errors: &mut Errors) {
    for ((usual, value), param) in taken.iter().zip(params) {
        let name = param.name.as_ref().map_or(usual.clone(), plain_name);
        value.check(&param.ty, Some(&name), errors);
    }
}

/// The values as a function returns them.
pub(crate) fn written_return(values: &[Taken<'_>]) -> String {
    together(values.iter().map(|(_, value)| value.usual()).collect())
}

/// Checks what a function returns: the values, each the `one` of an item that forward has. `write`: what to write.
pub(crate) fn check_returned(
    of: &Derivative,
    values: &[Taken<'_>],
    (one, has, write): (&str, &str, &str),
    errors: &mut Errors,
) {
    let (returns, ident) = (&of.returns, &of.function.sig.ident);
    let name = ident.to_string();
    let other = |found| messages::returned_count(&name, found, one, has, write);
    let Some(whole) = &returns.whole else { return errors.at(ident, other(0)) };
    match (&returns.parts[..], values) {
        _ if returns.by_name().is_some() => {}
        (parts, _) if parts.is_empty() || returns.tuple && parts.len() != values.len() => {
            errors.at(whole, other(parts.len()));
        }
        (parts, [_, _, ..]) if returns.tuple => {
            let each = values.iter().zip(parts);
            each.for_each(|((_, value), ty)| value.check(ty, None, errors));
        }
        (_, [(_, value)]) => value.check(whole, None, errors),
        _ if is_list(whole) => {
            errors.at(whole, messages::returned_list(&name, &text(whole), one, has, write));
        }
        // An alias may be a tuple.
        _ if output_form(argument_of(whole, "Option").unwrap_or(whole)).is_some() => {
            errors.at(whole, other(1));
        }
        _ => {}
    }
}
