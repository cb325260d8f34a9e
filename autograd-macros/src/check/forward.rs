//! The rules of forward's signature and of the impl's parameters.

use proc_macro2::{Ident, TokenTree};
use quote::ToTokens;
use syn::{Type, TypeParamBound, TypePath};

use crate::args::Args;
use crate::errors::Errors;
use crate::messages;
use crate::model::{
    Layer, bare, bounds_of, element, float_output, hidden_tensor, nearest, output_form,
    tensor_of_bounds,
};
use crate::tokens::{Trees, find_ident, is_one_of, is_punct, mentions, plain_name, text};

pub(crate) fn check(layer: &Layer, args: &Args, errors: &mut Errors) {
    tensor_inputs(layer, args, errors);
    defaults(layer, errors);
    tensor_outputs(layer, errors);
    function_generics(layer, errors);
    float_elements(layer, errors);
    carried_tensors(layer, errors);
}

fn tensor_inputs(layer: &Layer, args: &Args, errors: &mut Errors) {
    let Some(forward) = &layer.forward else { return };
    if forward.inputs().next().is_none() {
        // An unsupported form of a tensor has been reported already.
        let hidden = forward
            .params
            .iter()
            .any(|param| hidden_tensor(&param.ty).is_some() || carrier(layer, &param.ty).is_some());
        let slip = forward.params.iter().find_map(|param| misspelling_of(&param.ty, "Tensor"));
        if hidden {
            return;
        }
        return match slip {
            Some(slip) => errors.at(&slip, messages::slip_of_tensor(&slip.to_string())),
            None => errors.at(&forward.function.sig.ident, messages::no_tensor_input()),
        };
    }
    if layer.differentiable().is_empty() && args.no_grad.is_none() && errors.is_empty() {
        let names: Vec<_> = forward.inputs().map(|(param, _)| plain_name(&param.ident)).collect();
        let names = messages::list(&names);
        let inputs = match names.contains(" and ") {
            true => format!("all tensor inputs ({names}) are"),
            false => format!("the only tensor input ({names}) is"),
        };
        errors.at(&forward.function.sig.ident, messages::all_inputs_stopped(&inputs));
    }
}

/// Reports a default that names another parameter: defaults are computed where no parameter is in scope.
fn defaults(layer: &Layer, errors: &mut Errors) {
    let Some(forward) = &layer.forward else { return };
    for param in &forward.params {
        let Some(default) = param.default().map(ToTokens::to_token_stream) else { continue };
        // Closures and blocks bind their own names.
        if text(&default).contains(['|', '{']) {
            continue;
        }
        let others = forward.params.iter().filter(|other| other.ident != param.ident);
        // A free function may have the name of a function-pointer parameter.
        let others = others.filter(|other| !matches!(bare(&other.ty), Type::FnPtr(_)));
        let others: Vec<&Ident> = others.map(|other| &other.ident).collect();
        let found = Trees::new(default).find(&mut |trees, at| match &trees[at] {
            TokenTree::Ident(word) if others.contains(&word) => {
                let before = at.checked_sub(1).map(|at| &trees[at]);
                let after = trees.get(at + 1);
                let part = is_punct(before, '.') || is_punct(before, ':');
                let other = matches!(after, Some(TokenTree::Group(_))) || is_punct(after, ':');
                (!part && !other && !is_punct(after, '!')).then(|| word.clone())
            }
            _ => None,
        });
        if let Some(found) = found {
            let (name, other) = (plain_name(&param.ident), plain_name(&found));
            let message = messages::default_of_another(&name, &other, &text(&param.ty));
            errors.at(found, message);
        }
    }
}

fn tensor_outputs(layer: &Layer, errors: &mut Errors) {
    let Some(forward) = &layer.forward else { return };
    let Some(whole) = &forward.outputs.whole else {
        return errors.at(&forward.function.sig.ident, messages::no_return());
    };
    let mut reported = false;
    for ty in forward.outputs.parts.iter().filter(|ty| float_output(ty).is_none()) {
        if matches!(bare(ty), Type::ImplTrait(_)) && forward.outputs.tuple {
            errors.at(ty, messages::output_impl_trait(&text(ty)));
        } else if let Some(tensor) = hidden_tensor(ty) {
            reported = true;
            let message = match bare(ty) {
                Type::Reference(_) => messages::output_reference(&text(tensor)),
                Type::Path(path) if !forward.outputs.tuple && !forward.outputs.fallible => {
                    let alias = path.path.segments.last().map(|last| last.ident.to_string());
                    let known = "Option Vec Box Rc Arc Cell RefCell Mutex HashMap BTreeMap Result";
                    match alias.filter(|alias| !known.split(' ').any(|name| name == alias)) {
                        Some(alias) => messages::output_alias(&text(ty), &alias, &text(tensor)),
                        None => messages::output_form(&text(tensor)),
                    }
                }
                _ => messages::output_form(&text(tensor)),
            };
            errors.at(ty, message);
        }
    }
    if reported || forward.outputs.tensors().next().is_some() {
        return;
    }
    let nothing = match whole {
        Type::Tuple(tuple) => tuple.elems.is_empty(),
        whole => matches!(whole, Type::Never(_)),
    };
    if nothing {
        return errors.at(whole, messages::no_return());
    }
    if forward.outputs.parts.iter().any(|ty| output_form(ty).is_some()) {
        errors.at(whole, messages::only_integer_outputs());
    } else if let Some(slip) = misspelling_of(whole, "Tensor") {
        errors.at(&slip, messages::slip_of_tensor(&slip.to_string()));
    } else {
        errors.at(whole, messages::no_tensor_output(&text(whole)));
    }
}

pub(crate) fn misspelling_of(tokens: &impl ToTokens, meant: &str) -> Option<Ident> {
    find_ident(tokens.to_token_stream(), |name| {
        name != meant && nearest(&name.to_string(), &[meant]).is_some()
    })
}

/// Backward has only the impl's parameters, so forward's own type parameters cannot be element types.
fn function_generics(layer: &Layer, errors: &mut Errors) {
    let Some(forward) = &layer.forward else { return };
    for parameter in forward.function.sig.generics.type_params() {
        let name = parameter.ident.to_string();
        let inputs = forward.inputs().map(|(_, input)| &input.tensor);
        let outputs = forward.outputs.tensors().map(|(_, _, tensor)| tensor);
        if let Some(tensor) = inputs.chain(outputs).find(|tensor| mentions(*tensor, &name)) {
            let op = layer.name.to_string();
            errors.at(tensor, messages::function_generic(&name, &text(parameter), &op));
        }
    }
}

fn float_elements(layer: &Layer, errors: &mut Errors) {
    for (parameter, tensor) in not_floats(layer) {
        let name = parameter.to_string();
        errors.at(tensor, messages::not_float(&name, &layer.name.to_string()));
    }
}

/// Type parameters that are element types without a bound that makes them floats, each with its first
/// tensor.
pub(crate) fn not_floats(layer: &Layer) -> Vec<(Ident, TypePath)> {
    const NON_FLOAT: &str = "Element Numeric Copy Clone Debug Display Default Send Sync Sized PartialEq \
        PartialOrd Eq Ord Hash";
    let less = |bound: &TypeParamBound| match bound {
        TypeParamBound::Trait(bound) => {
            bound.path.segments.last().is_some_and(|last| is_one_of(&last.ident, NON_FLOAT))
        }
        _ => true,
    };
    let inputs = layer.differentiable().into_iter().map(|(.., input)| &input.tensor);
    let outputs = layer.outputs().into_iter().map(|(_, _, tensor)| tensor);
    let tensors: Vec<_> = inputs.chain(outputs).collect();
    let of = |parameter: &syn::TypeParam| {
        let name = parameter.ident.to_string();
        let first = tensors.iter().find(|tensor| element(tensor) == name)?;
        let known = bounds_of(&layer.generics, &name).all(less);
        known.then(|| (parameter.ident.clone(), TypePath::clone(first)))
    };
    layer.generics.type_params().filter_map(of).collect()
}

/// Reports a type parameter that carries tensors, like `I: IntoIterator<Item = Tensor<f64>>`.
fn carried_tensors(layer: &Layer, errors: &mut Errors) {
    let Some(forward) = &layer.forward else { return };
    for param in forward.params.iter().filter(|param| hidden_tensor(&param.ty).is_none()) {
        if let Some((found, tensor)) = carrier(layer, &param.ty) {
            let shown = plain_name(&param.ident);
            errors.at(&param.ty, messages::tensor_form(&shown, &found, &text(tensor), None));
        }
    }
}

/// The type parameter in the type that carries tensors, with its bounds, and the tensor.
fn carrier<'a>(layer: &'a Layer, ty: &Type) -> Option<(String, &'a TypePath)> {
    let own = &layer.forward.as_ref()?.function.sig.generics;
    [own, &layer.generics].into_iter().find_map(|generics| {
        let parameter =
            generics.type_params().find(|parameter| mentions_type(ty, &parameter.ident))?;
        let name = parameter.ident.to_string();
        let bounds: Vec<_> = bounds_of(generics, &name).collect();
        let tensor = tensor_of_bounds(bounds.iter().copied())?;
        let found: Vec<_> = bounds.iter().map(text).collect();
        Some((format!("{name}: {}", found.join(" + ")), tensor))
    })
}

/// Whether a value of the type can hold a value of the parameter. A function only takes and returns it.
fn mentions_type(ty: &Type, parameter: &Ident) -> bool {
    !matches!(bare(ty), Type::FnPtr(_) | Type::ImplTrait(_) | Type::TraitObject(_))
        && mentions(ty, &parameter.to_string())
}
