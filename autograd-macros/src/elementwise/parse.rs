//! From tokens to the model: a [`Layer`] on tensors, in which a number of the formula is a tensor of floats, and a
//! mask a tensor of `bool`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{FnArg, PatType, ReturnType, Type};

use super::messages;
use crate::check::refused::is_wrong;
use crate::check::types::closure_not_kept;
use crate::errors::Errors;
use crate::items::ParsedItem;
use crate::library::private;
use crate::model::{
    Block, Derivative, Form, Forward, Function, GradientParam, Layer, Param, ParamKind, Returned,
    TensorInput, argument_of, as_tensor, bare, element, first_argument, is_named, last_segment,
    without_reference,
};
use crate::parse::{
    BlockRules, block, is_context, parameters, params, pattern_name, reject_attributes, returned,
};
use crate::tokens::{find_ident, is_one_of, mentions, plain_name, text};

const BLOCK_RULES: BlockRules = BlockRules {
    rules: &["forward", "backward"],
    generated: &["apply", "try_apply", "with", "check_backward"],
    lenient: false,
};

/// Parses the block; `None` if the tokens are not an impl block of an op.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Option<Layer> {
    let (mut block, mut found) = block(tokens, "py_layer", errors)?;
    let arguments = last_segment(&block.self_ty).map(|segment| &segment.arguments);
    if !block.generics.params.is_empty() || arguments.is_some_and(|a| !a.is_none()) {
        errors.at(&block.self_ty, messages::generics(&block.name.to_string()));
    }
    found.retain(|item| match item {
        ParsedItem::Function(function) if function.sig.ident == "jvp" => {
            errors.at(&function.sig.ident, messages::no_jvp());
            false
        }
        _ => true,
    });
    correct(&mut found, errors);
    let (functions, types) = block.sort(found, &BLOCK_RULES, errors);
    for item in types {
        errors.at(&item.ident, messages::declares_type(&item.ident.to_string()));
    }
    let mut layer = Layer { is_formula: true, ..Layer::new(block) };
    for function in functions {
        match function.sig.ident == "forward" {
            true => layer.forward = Some(forward(&layer.block, &function, errors)),
            false => layer.backward = Some(backward(&function, errors)),
        }
    }
    Some(layer)
}

/// Reports and corrects mistakes that the compiler would report again in generated code.
fn correct(found: &mut [ParsedItem], errors: &mut Errors) {
    let mut narrow: Vec<String> = Vec::new();
    for rule in BLOCK_RULES.rules {
        for item in found.iter_mut() {
            let ParsedItem::Function(Function { sig, body, .. }) = item else { continue };
            if sig.ident != rule {
                continue;
            }
            let converts = |word: &Ident| is_one_of(word, "f64 from into as");
            let is_formula =
                mentions(&sig.inputs, "Real") && find_ident(body.stream(), converts).is_none();
            for input in &mut sig.inputs {
                let FnArg::Typed(PatType { pat, ty, .. }) = input else { continue };
                let name = text(pat);
                if kind(ty) != Kind::Plain
                    && let Some(Type::ImplTrait(_)) = last_segment(ty).and_then(first_argument)
                {
                    let of = last_segment(ty).map(|last| last.ident.clone());
                    errors.at(&*ty, messages::lane_by_impl(&format!("{name}: {}", text(&of))));
                    **ty = syn::parse_quote!(#of);
                }
                let is_f32 = matches!(bare(ty), Type::Path(path) if path.path.is_ident("f32"));
                if is_f32 && is_formula && *rule == "forward" {
                    errors.at(&*ty, messages::plain_f32(&name));
                    narrow.push(name.clone());
                }
                if is_f32 && narrow.contains(&name) {
                    **ty = syn::parse_quote!(f64);
                }
            }
        }
    }
}

fn forward(block: &Block, function: &Function, errors: &mut Errors) -> Forward {
    let typed = typed(function, errors);
    let p = private();
    // Without a number `T` could not be inferred.
    let numbers = typed.iter().any(|param| kind(&param.ty) == Kind::Real || is_tensor(&param.ty));
    let plain = typed.iter().filter(|param| kind(&param.ty) == Kind::Plain);
    let plain: Vec<Type> = plain.map(|param| (*param.ty).clone()).collect();
    let element = match numbers {
        true => block.parameter("T", &plain).to_token_stream(),
        false => quote!(::core::primitive::f64),
    };
    let mut generics = Vec::new();
    if numbers {
        generics.push(quote!(#element: #p::elementwise::Float));
    }
    let params = params(typed, errors, |position, param, errors| {
        let shown = param.shown;
        let ty = param.ty;
        let wrong = wrong_form(ty, shown, if param.is_named { shown } else { "xs" });
        let is_wrong = wrong.is_some() || is_wrong(block, function, ty);
        if !param.is_named && !is_wrong {
            errors.at(param.pat, messages::pattern());
        }
        if let Some(message) = wrong {
            errors.at(ty, message);
        }
        if is_wrong {
            return (ty.clone(), ParamKind::Plain { default: None });
        }
        // A tensor is treated as the number that was meant.
        let is_mask = kind(ty) == Kind::Mask;
        if is_tensor(ty) {
            errors.at(ty, messages::tensor(shown));
        } else if kind(ty) == Kind::Plain {
            let borrowed = match bare(ty) {
                Type::Reference(of) => !of.lifetime.iter().any(|of| of.ident == "static"),
                other => matches!(other, Type::ImplTrait(_)),
            };
            if borrowed {
                errors.at(ty, messages::borrowed_plain(shown));
            }
            if let Some((ty, write)) = closure_not_kept(ty) {
                errors.at(ty, messages::closure_kept(shown, &write));
            }
            if let Some(stop) = param.stop {
                errors.at(stop, messages::stop_on_plain(shown));
            }
            let default = param.default.and_then(|(_, default)| default.clone());
            return (ty.clone(), ParamKind::Plain { default });
        } else if is_mask && param.stop.is_none() {
            errors.at(ty, messages::mask_not_stopped(shown));
        }
        if let Some((attr, _)) = param.default {
            errors.at(attr, messages::default_on_number(shown));
        }
        let (taken, tensor) = match is_mask {
            true => {
                // A mask may have any element type that can be one.
                let mask = block.parameter(&format!("M{position}"), &plain);
                generics.push(quote!(#mask: #p::elementwise::MaskElement));
                (quote!(#mask), quote!(bool))
            }
            false => (element.clone(), element.clone()),
        };
        let kind = TensorInput {
            form: Form::One,
            tensor: syn::parse_quote!(#p::Tensor<#tensor>),
            stop_gradient: is_mask || param.stop.is_some(),
            default: None,
        };
        (syn::parse_quote!(&#p::Tensor<#taken>), ParamKind::Tensor(kind))
    });
    let mut outputs = returns(&function.sig.output);
    check_outputs(function, &outputs, errors);
    let tensor: Type = syn::parse_quote!(#p::Tensor<#element>);
    outputs.parts.fill(tensor.clone());
    let parts = &outputs.parts;
    let output: Type = match outputs.tuple {
        true => syn::parse_quote!((#(#parts,)*)),
        false => tensor,
    };
    let mut function = function.clone();
    function.sig.generics = syn::parse_quote!(<#(#generics),*>);
    function.sig.output = syn::parse_quote!(-> #output);
    Forward { function, context: None, params, outputs }
}

fn check_outputs(function: &Function, outputs: &Returned, errors: &mut Errors) {
    match &outputs.whole {
        Some(whole) if outputs.parts.is_empty() => {
            errors.at(whole, messages::returns(&text(whole)))
        }
        Some(_) => {}
        None => errors.at(&function.sig.ident, messages::returns_nothing()),
    }
    for ty in &outputs.parts {
        if is_tensor(ty) {
            errors.at(ty, messages::tensor_returned());
        } else if kind(ty) != Kind::Real {
            errors.at(ty, messages::returns(&text(ty)));
        }
    }
}

fn backward(function: &Function, errors: &mut Errors) -> Derivative {
    let mut params = Vec::new();
    for PatType { attrs, pat, ty, .. } in typed(function, errors) {
        reject_attributes(&attrs, errors);
        match pattern_name(&pat) {
            name @ Some(_) => params.push(GradientParam { name, ty: *ty }),
            None => errors.at(pat, messages::pattern()),
        }
    }
    let returns = returns(&function.sig.output);
    Derivative { function: function.clone(), context: None, params, returns }
}

fn typed(function: &Function, errors: &mut Errors) -> Vec<PatType> {
    let name = function.sig.ident.to_string();
    let mut params = parameters(function, &messages::receiver(&name), errors);
    params.retain(|param| {
        let context = is_context(&param.ty);
        if context {
            errors.at(param, messages::context(&name));
        }
        !context
    });
    params
}

/// The return type of a formula, which cannot be a `Result`.
fn returns(output: &ReturnType) -> Returned {
    let found = returned(output);
    match output {
        ReturnType::Type(_, ty) if found.fallible => {
            let (whole, parts) = (Some((**ty).clone()), vec![(**ty).clone()]);
            Returned { fallible: false, whole, tuple: false, parts }
        }
        _ => found,
    }
}

/// The message for numbers, masks or tensors in a form that formulas do not support.
pub(super) fn wrong_form(ty: &Type, name: &str, list_name: &str) -> Option<String> {
    let number = |ty: &Type| matches!(kind(ty), Kind::Real | Kind::Mask);
    let element =
        |ty: &Type| as_tensor(without_reference(ty)).is_some() || number(without_reference(ty));
    let inner = without_reference(ty);
    let list = match inner {
        Type::Slice(slice) => element(&slice.elem),
        Type::Array(array) => element(&array.elem),
        Type::Tuple(tuple) => tuple.elems.iter().any(element),
        ty => argument_of(ty, "Vec").is_some_and(element),
    };
    if list {
        Some(messages::list_input(name, list_name))
    } else if argument_of(inner, "Option").is_some_and(element) {
        Some(messages::optional_input(name))
    } else if matches!(bare(ty), Type::Reference(_)) && number(inner) {
        Some(messages::borrowed_number(name, &text(inner)))
    } else {
        None
    }
}

pub(crate) fn is_tensor(ty: &Type) -> bool {
    crate::model::hidden_tensor(ty).is_some() || as_tensor(ty).is_some()
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Real,
    Mask,
    Plain,
}

/// The kind of a type of the formula.
pub(crate) fn kind(ty: &Type) -> Kind {
    if is_named(ty, "Real") {
        Kind::Real
    } else if is_named(ty, "Mask") {
        Kind::Mask
    } else {
        Kind::Plain
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormulaValue {
    /// A parameter of forward, by position.
    Input(usize),
    Output(usize),
    Gradient(usize),
}

impl Param {
    pub(crate) fn formula_kind(&self) -> Kind {
        match &self.kind {
            ParamKind::Tensor(input) if element(&input.tensor) == "bool" => Kind::Mask,
            ParamKind::Tensor(_) => Kind::Real,
            ParamKind::Plain { .. } => Kind::Plain,
        }
    }
}

impl Forward {
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(move |param| param.formula_kind() == kind)
    }

    pub(crate) fn output_name(&self, k: usize) -> String {
        if self.outputs.parts.len() > 1 { format!("y{k}") } else { "y".to_owned() }
    }

    pub(crate) fn names(&self) -> Vec<(String, FormulaValue)> {
        let inputs = self.params.iter().enumerate();
        let inputs = inputs.map(|(i, param)| (plain_name(&param.ident), FormulaValue::Input(i)));
        let outputs = (0..self.outputs.parts.len()).map(|k| (self.output_name(k), k));
        let values = outputs.clone().map(|(name, k)| (name, FormulaValue::Output(k)));
        let gradients = outputs.map(|(name, k)| (format!("d{name}"), FormulaValue::Gradient(k)));
        inputs.chain(values).chain(gradients).collect()
    }

    pub(crate) fn value_named(&self, name: &str) -> Option<FormulaValue> {
        self.names().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl Derivative {
    /// The values that its parameters name, without unknown names.
    pub(crate) fn named_values(&self, forward: &Forward) -> Vec<FormulaValue> {
        let names = self.params.iter().filter_map(|param| param.name.as_ref()).map(plain_name);
        names.filter_map(|name| forward.value_named(&name)).collect()
    }
}
