//! The rules of the block: one function each, in the order in which a reader would ask.

use crate::args::Args;
use crate::check_forward;
use crate::check_jvp;
use crate::check_order;
use crate::context_use;
use crate::errors::Errors;
use crate::grads::{Fields, NoField};
use crate::messages;
use crate::model::{
    Form, Layer, Output, ParamKind, Returns, bare, element, gradient_type, hidden_tensor, is_known,
    last_segment, nearest, parameter_type, plain_name, text,
};
use crate::question;
use proc_macro2::Ident;
use syn::{GenericArgument, Lifetime, PathArguments, Type, TypePath};

/// Holds the block against every rule.
pub(crate) fn check(layer: &Layer, args: &Args, errors: &mut Errors) {
    no_grad(layer, args, errors);
    both_functions(layer, args, errors);
    check_forward::check(layer, args, errors);
    gradient_count(layer, errors);
    gradient_types(layer, errors);
    returned_count(layer, errors);
    saved_type(layer, errors);
    attrs_type(layer, errors);
    check_jvp::check(layer, args, errors);
    bodies(layer, errors);
}

/// What is wrong in the bodies. The compiler has reported one that is still being written; what else is
/// found in it follows from that.
fn bodies(layer: &Layer, errors: &mut Errors) {
    let mut found = Errors::new();
    returned_order(layer, &mut found);
    grads_fields(layer, &mut found);
    context_use::check(layer, &mut found);
    question::check(layer, &mut found);
    match found.is_empty() || layer.bodies_are_read() {
        true => errors.extend(found),
        false => found.forget(),
    }
}

fn no_grad(layer: &Layer, args: &Args, errors: &mut Errors) {
    let Some(span) = args.no_grad else { return };
    if let Some(once) = args.once_differentiable {
        errors.at_span(once, messages::no_grad_and_once());
    }
    if let Some(backward) = &layer.backward {
        let _ = span;
        errors.at(&backward.function.sig.ident, messages::no_grad_with_backward());
    }
}

fn both_functions(layer: &Layer, args: &Args, errors: &mut Errors) {
    if layer.is_broken() {
        return;
    }
    let name = layer.name.to_string();
    if layer.forward.is_none() && layer.backward.is_none() && layer.items.is_empty() {
        return errors.at(&layer.self_ty, messages::empty_block(&name));
    }
    if layer.forward.is_none() {
        match near_function(layer, "forward") {
            Some(found) => {
                errors.at(&found, messages::near_name(&found.to_string(), "forward"));
            }
            None => errors.at(&layer.self_ty, messages::no_forward(&name)),
        }
    }
    let without = args.no_grad.is_some() || args.meant_no_grad;
    if layer.backward.is_none() && !without && layer.forward.is_some() {
        match near_function(layer, "backward") {
            Some(found) => {
                errors.at(&found, messages::near_name(&found.to_string(), "backward"));
            }
            // An op whose inputs are all marked is reported so, and needs none.
            None if !layer.differentiable().is_empty() || layer.inputs().next().is_none() => {
                let signature = backward_signature(layer);
                errors.at(&layer.self_ty, messages::no_backward(&name, &signature));
            }
            None => {}
        }
    }
}

fn near_function(layer: &Layer, meant: &str) -> Option<Ident> {
    near(layer, meant).map(|function| function.sig.ident.clone())
}

/// A function whose name is a slip of this one.
pub(crate) fn near<'a>(layer: &'a Layer, meant: &str) -> Option<&'a crate::model::Function> {
    layer.items.iter().find_map(|item| match item {
        crate::model::Item::Function(function) => {
            let name = function.sig.ident.to_string();
            let other = matches!(name.as_str(), "forward" | "backward" | "jvp");
            (!other && nearest(&name, &[meant]).is_some()).then_some(&**function)
        }
        crate::model::Item::Other(_) => None,
    })
}

/// `fn backward(ctx: .., dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>)`
fn backward_signature(layer: &Layer) -> String {
    let mut params = String::new();
    for (position, (_, form, tensor)) in layer.outputs().into_iter().enumerate() {
        let number = if layer.outputs().len() == 1 { String::new() } else { position.to_string() };
        params += &format!(", dy{number}: {}", parameter_type(form, &text(tensor)));
    }
    let returns = wanted_return(layer, false);
    format!("fn backward(ctx: {}{params}) -> {returns}", crate::parse::BACKWARD_CONTEXT)
}

fn gradient_count(layer: &Layer, errors: &mut Errors) {
    let (Some(forward), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    let outputs = layer.outputs();
    let found = backward.params.len();
    if outputs.is_empty() || outputs.len() == found || forward.hides_output() {
        return;
    }
    // As in libraries whose backward is a function of its own.
    let inputs: Vec<String> = forward.params.iter().map(|param| plain_name(&param.ident)).collect();
    let is_input = |param: &&crate::model::GradientParam| {
        param.name.as_ref().is_some_and(|name| inputs.contains(&plain_name(name)))
    };
    let given: Vec<_> = backward.params.iter().filter(is_input).collect();
    if found - given.len() == outputs.len() {
        for param in given {
            let name = param.name.as_ref().map(plain_name).unwrap_or_default();
            errors.at(&param.name, messages::gradient_of_input(&name));
        }
        return;
    }
    let is_gradient = |param: &&crate::model::GradientParam| inner_tensor(&param.ty).is_some();
    let taken: Vec<_> = backward.params.iter().filter(is_gradient).collect();
    let wanted: Vec<_> = outputs
        .iter()
        .enumerate()
        .map(|(position, (_, form, tensor))| {
            let name = taken.get(position).and_then(|param| param.name.as_ref());
            let name = match name {
                Some(name) => name.to_string(),
                None if outputs.len() == 1 => "dy".to_owned(),
                None => format!("dy{position}"),
            };
            format!("{name}: {}", parameter_type(*form, &text(tensor)))
        })
        .collect();
    let integers = forward.outputs.parts.len() > outputs.len()
        && forward.outputs.parts.iter().any(Output::is_integer);
    let wanted = format!("`{}`", wanted.join(", "));
    let message = messages::gradient_count(found, outputs.len(), integers, &wanted);
    // The first that is too many: one that is no gradient at all, or else that after the last.
    let other = backward.params.iter().find(|param| !is_gradient(param));
    let surplus = backward.params.get(outputs.len());
    match surplus.map(|surplus| other.unwrap_or(surplus)) {
        Some(first) => errors.at(&first.ty, message),
        None => errors.at(&backward.function.sig.ident, message),
    }
}

/// Where both element types are known by name, they are compared here; the rest is for the
/// compiler.
fn gradient_types(layer: &Layer, errors: &mut Errors) {
    let (Some(_), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    let outputs = layer.outputs();
    if outputs.len() != backward.params.len() {
        return;
    }
    for (position, ((_, form, tensor), param)) in outputs.iter().zip(&backward.params).enumerate() {
        // It has an error of its own.
        if matches!(bare(&param.ty), Type::ImplTrait(_)) {
            continue;
        }
        let of = text(*tensor);
        let write = parameter_type(*form, &of);
        let forms = match form {
            Form::List => format!("&[{of}]` or `&[Option<{of}>]"),
            _ => format!("{write}` or `Option<{write}>"),
        };
        let Some(found) = crate::model::as_tensor(&param.ty)
            .or_else(|| hidden_tensor(&param.ty))
            .or_else(|| inner_tensor(&param.ty))
        else {
            if is_plain(&param.ty) {
                let name = param.name.as_ref().map_or("dy".to_owned(), plain_name);
                let output = messages::output(position, outputs.len());
                let found = text(&param.ty);
                errors.at(&param.ty, messages::gradient_form(&output, &found, &name, &forms));
            }
            continue;
        };
        let (found, expected) = (element(found), element(tensor));
        let name = match &param.name {
            Some(name) => name.to_string(),
            None => "dy".to_owned(),
        };
        let output = messages::output(position, outputs.len());
        if is_known(&found) && is_known(&expected) && found != expected {
            let message = messages::gradient_element(&name, &found, &output, &expected, &write);
            errors.at(&param.ty, message);
        } else if !is_gradient_form(*form, &param.ty) {
            let found = text(&param.ty);
            let message = messages::gradient_form(&output, &found, &name, &forms);
            errors.at(&param.ty, message);
        }
    }
}

pub(crate) fn inner_tensor(ty: &Type) -> Option<&TypePath> {
    match bare(ty) {
        Type::Reference(reference) => {
            crate::model::as_tensor(&reference.elem).or_else(|| inner_tensor(&reference.elem))
        }
        Type::Slice(slice) => inner_tensor(&slice.elem).or(crate::model::as_tensor(&slice.elem)),
        ty => crate::model::argument_of(ty, "Option").and_then(inner_tensor),
    }
}

pub(crate) fn is_gradient_form(form: Form, ty: &Type) -> bool {
    let shared = |ty: &Type| match bare(ty) {
        Type::Reference(reference) if reference.mutability.is_none() => {
            Some((*reference.elem).clone())
        }
        _ => None,
    };
    match form {
        Form::One | Form::Optional => {
            let inner = crate::model::argument_of(ty, "Option").unwrap_or(ty);
            shared(inner).is_some_and(|ty| crate::model::as_tensor(&ty).is_some())
        }
        Form::List => shared(ty).is_some_and(|ty| matches!(bare(&ty), Type::Slice(_))),
    }
}

/// What backward should return, as code.
fn wanted_return(layer: &Layer, by_name: bool) -> String {
    let inputs = layer.differentiable();
    if by_name {
        let names: Vec<_> = inputs.iter().map(|(param, _)| param.ident.to_string()).collect();
        return format!("Grads {{ {} }}", names.join(", "));
    }
    let types: Vec<_> =
        inputs.iter().map(|(_, input)| gradient_type(input.form, &text(&input.tensor))).collect();
    match types.as_slice() {
        [one] => one.clone(),
        many => format!("({})", many.join(", ")),
    }
}

fn returned_count(layer: &Layer, errors: &mut Errors) {
    let (Some(forward), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    let inputs = layer.differentiable();
    if inputs.is_empty() || forward.hides_input() {
        return;
    }
    let names: Vec<_> = inputs.iter().map(|(param, _)| plain_name(&param.ident)).collect();
    let write = match inputs.len() {
        1 => format!("`{}`", wanted_return(layer, false)),
        _ => format!(
            "`{}`, or by name `{}`",
            wanted_return(layer, false),
            wanted_return(layer, true)
        ),
    };
    match &backward.returns {
        Returns::Nothing => {
            let message = messages::returned_count(0, &names, &write);
            match &backward.function.sig.output {
                syn::ReturnType::Default => errors.at(&backward.function.sig.ident, message),
                syn::ReturnType::Type(_, ty) => errors.at(ty, message),
            }
        }
        Returns::Tuple(whole, types) if types.len() != inputs.len() => {
            errors.at(whole, messages::returned_count(types.len(), &names, &write));
        }
        Returns::Tuple(whole, _) if inputs.len() == 1 => {
            let form = crate::parse::form_text(inputs[0].1.form, &text(&inputs[0].1.tensor));
            errors.at(whole, messages::returned_form(&names[0], &text(whole), &form));
        }
        Returns::Tuple(_, types) => {
            for ((param, input), ty) in inputs.iter().zip(types) {
                returned_type(&plain_name(&param.ident), input.form, &input.tensor, ty, errors);
            }
        }
        Returns::One(ty) if inputs.len() == 1 => {
            returned_type(&names[0], inputs[0].1.form, &inputs[0].1.tensor, ty, errors);
        }
        Returns::One(ty) if is_list(ty) => {
            errors.at(ty, messages::returned_list(&text(ty), &names, &write));
        }
        Returns::One(ty) => {
            if let Some(found) = surely_gradients(ty) {
                errors.at(ty, messages::returned_count(found, &names, &write));
            }
        }
        Returns::ByName(_) => {}
    }
}

fn returned_order(layer: &Layer, errors: &mut Errors) {
    let (Some(forward), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    let Returns::Tuple(..) = &backward.returns else { return };
    let inputs: Vec<String> =
        layer.differentiable().iter().map(|(param, _)| plain_name(&param.ident)).collect();
    let given = backward.params.iter().filter_map(|param| param.name.as_ref());
    let all = forward.params.iter().map(|param| &param.ident).chain(given);
    let taken: Vec<String> = all.map(plain_name).collect();
    check_order::check(&inputs, &taken, &backward.function.judged(), errors);
}

pub(crate) fn is_list(ty: &Type) -> bool {
    crate::model::output_form(ty).is_some_and(|(form, _)| form == Form::List)
}

/// How many gradients a type surely is: an alias may be a tuple.
pub(crate) fn surely_gradients(ty: &Type) -> Option<usize> {
    let inner = crate::model::argument_of(ty, "Option").unwrap_or(ty);
    crate::model::output_form(inner).map(|_| 1)
}

fn returned_type(name: &str, form: Form, tensor: &TypePath, ty: &Type, errors: &mut Errors) {
    let of = text(tensor);
    let found = returned_tensor(form, ty);
    if let Some(found) = &found {
        let (found, expected) = (element(found), element(tensor));
        if is_known(&found) && is_known(&expected) && found != expected {
            let write = gradient_type(form, &of);
            errors.at(ty, messages::returned_element(&found, name, &expected, &write));
        }
        return;
    }
    if surely_wrong(ty) {
        let write = crate::parse::form_text(form, &of);
        errors.at(ty, messages::returned_form(name, &text(ty), &write));
    }
}

/// The tensor in what is returned for one of this form, where its place is right.
pub(crate) fn returned_tensor(form: Form, ty: &Type) -> Option<TypePath> {
    let tensor_of = |ty: &Type| crate::model::argument_of(ty, "Option").unwrap_or(ty).clone();
    let inner = match form {
        Form::One | Form::Optional => tensor_of(ty),
        Form::List => tensor_of(match bare(ty) {
            Type::Array(array) => &array.elem,
            ty => crate::model::argument_of(ty, "Vec")?,
        }),
    };
    crate::model::as_tensor(&inner).cloned()
}

/// Types that no alias can make a gradient of: what is left is for the compiler.
pub(crate) fn surely_wrong(ty: &Type) -> bool {
    match bare(ty) {
        Type::Reference(_)
        | Type::Slice(_)
        | Type::Array(_)
        | Type::Tuple(_)
        | Type::FnPtr(_)
        | Type::Never(_)
        | Type::Ptr(_) => true,
        Type::Path(path) if path.qself.is_none() => last_segment(ty).is_some_and(|segment| {
            let name = segment.ident.to_string();
            let primitive = matches!(
                name.as_str(),
                "f32"
                    | "f64"
                    | "i32"
                    | "i64"
                    | "u8"
                    | "usize"
                    | "bool"
                    | "String"
                    | "Tensor"
                    | "Vec"
            );
            let typed = matches!(&segment.arguments,
                    PathArguments::AngleBracketed(list)
                        if list.args.iter().any(|arg| matches!(arg, GenericArgument::Type(_))));
            primitive || (name == "Option" && typed)
        }),
        _ => false,
    }
}

/// What surely cannot be saved, in the declaration itself.
fn saved_type(layer: &Layer, errors: &mut Errors) {
    if let Some(ty) = &layer.saved {
        for (ty, message) in unsaveable(ty) {
            errors.at(ty, message);
        }
    }
}

const PLAIN: [&str; 18] = [
    "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
    "usize", "bool", "char", "str", "String",
];

/// A type that is surely no tensor, and none behind another name.
fn is_plain(ty: &Type) -> bool {
    let Type::Path(path) = bare(ty) else { return false };
    path.path.get_ident().is_some_and(|name| PLAIN.iter().any(|plain| name == plain))
}

/// The parts of `type Saved` that are surely no tensors, with what is to be said of them.
pub(crate) fn unsaveable(ty: &Type) -> Vec<(&Type, String)> {
    match bare(ty) {
        Type::Tuple(tuple) => tuple.elems.iter().flat_map(unsaveable).collect(),
        Type::Array(array) => unsaveable(&array.elem),
        Type::Reference(reference) => {
            let inner = unsaveable(&reference.elem);
            match inner.is_empty() {
                true => vec![(ty, messages::saved_reference(&owned(&reference.elem)))],
                false => inner,
            }
        }
        Type::FnPtr(_) | Type::Ptr(_) | Type::Never(_) | Type::TraitObject(_) => {
            vec![(ty, messages::saved_plain(&text(ty)))]
        }
        Type::Path(path) if path.qself.is_none() => {
            if is_plain(ty) {
                return vec![(ty, messages::saved_plain(&text(ty)))];
            }
            let inner = ["Option", "Vec"].into_iter();
            inner
                .filter_map(|name| crate::model::argument_of(bare(ty), name))
                .flat_map(unsaveable)
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The first reference in `type Attrs` that names no lifetime, with what it borrows.
fn borrowed(ty: &Type) -> Option<(&Type, &Type)> {
    match bare(ty) {
        Type::Reference(reference) if reference.lifetime.is_none() => Some((ty, &reference.elem)),
        Type::Tuple(tuple) => tuple.elems.iter().find_map(borrowed),
        Type::Array(array) => borrowed(&array.elem),
        ty => {
            let inner = ["Option", "Vec"].into_iter();
            inner.filter_map(|name| crate::model::argument_of(ty, name)).find_map(borrowed)
        }
    }
}

/// The first lifetime in `type Attrs` that ends before the program. What functions take and return is
/// not kept.
fn lifetime(ty: &Type) -> Option<&Lifetime> {
    let ends = |lifetime: &&Lifetime| lifetime.ident != "static";
    match bare(ty) {
        Type::Reference(reference) => {
            reference.lifetime.as_ref().filter(ends).or_else(|| lifetime(&reference.elem))
        }
        Type::Tuple(tuple) => tuple.elems.iter().find_map(lifetime),
        Type::Array(array) => lifetime(&array.elem),
        Type::Slice(slice) => lifetime(&slice.elem),
        ty => match &last_segment(ty)?.arguments {
            PathArguments::AngleBracketed(arguments) => {
                arguments.args.iter().find_map(|argument| match argument {
                    GenericArgument::Lifetime(lifetime) => Some(lifetime).filter(ends),
                    GenericArgument::Type(ty) => lifetime(ty),
                    _ => None,
                })
            }
            _ => None,
        },
    }
}

/// `type Attrs`, if it is declared and can be kept.
pub(crate) fn kept_attrs(layer: &Layer) -> Option<&Type> {
    layer.state.as_ref().filter(|state| borrowed(state).is_none() && lifetime(state).is_none())
}

fn attrs_type(layer: &Layer, errors: &mut Errors) {
    let Some(state) = &layer.state else { return };
    if let Some((reference, inner)) = borrowed(state) {
        let message = messages::attrs_reference(&text(inner), &owned(inner));
        errors.at(reference, message);
    } else if let Some(lifetime) = lifetime(state) {
        errors.at(lifetime, messages::attrs_lifetime(&lifetime.to_string()));
    }
}

/// How a borrowed type is written by value.
fn owned(ty: &Type) -> String {
    match bare(ty) {
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        Type::Slice(slice) => format!("Vec<{}>", text(&slice.elem)),
        ty => text(ty),
    }
}

/// The fields of each `Grads { .. }` that backward builds.
fn grads_fields(layer: &Layer, errors: &mut Errors) {
    let (Some(forward), Some(backward)) = (&layer.forward, &layer.backward) else { return };
    let Returns::ByName(_) = &backward.returns else { return };
    let inputs = layer.differentiable();
    let lists = inputs.iter().filter(|(_, input)| input.form == Form::List);
    let fields = Fields {
        names: inputs.iter().map(|(param, _)| plain_name(&param.ident)).collect(),
        lists: lists.map(|(param, _)| plain_name(&param.ident)).collect(),
        write: format!(
            "write `{}` (`None` where there is no gradient)",
            wanted_return(layer, true)
        ),
        other: &|name| {
            let param = forward.params.iter().find(|param| plain_name(&param.ident) == name)?;
            Some(match param.kind {
                ParamKind::Tensor(_) => NoField::Stopped,
                ParamKind::Plain { .. } => NoField::Plain,
            })
        },
    };
    fields.check(backward.function.judged().stream(), errors);
}

/// Whether a parameter is bare: zeros come where no gradient came.
pub(crate) fn is_bare_gradient(ty: &Type) -> bool {
    match bare(ty) {
        Type::Reference(reference) => match bare(&reference.elem) {
            Type::Slice(slice) => crate::model::argument_of(&slice.elem, "Option").is_none(),
            _ => true,
        },
        _ => false,
    }
}
