//! Generates tests from a `check(..)`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;

use super::parse::{Check, Value};
use crate::args::Args;
use crate::generics::parameter_name;
use crate::library::{import, private, private_at};
use crate::model::{
    Form, Forward, Layer, Param, ParamKind, TensorInput, bare, element, float_output,
    without_reference,
};
use crate::tokens::{local, mentions, plain_name, replace_ident, text};

/// The tests of an op: for each check, element type and order.
pub(crate) fn tests(layer: &Layer, args: &Args) -> TokenStream {
    let Some(forward) = layer.forward.as_ref().filter(|_| !args.checks.is_empty()) else {
        return TokenStream::new();
    };
    let types = layer.generics.type_params().chain(forward.function.sig.generics.type_params());
    let types = types.map(|param| &param.ident);
    let of_tensor =
        |name: &&Ident| forward.inputs().any(|(_, of)| mentions(&of.tensor, &name.to_string()));
    let types: Vec<&Ident> = types.filter(of_tensor).collect();
    // The op's type: with its arguments, if all of them are known.
    let is_known = |name: String| types.iter().any(|known| **known == name);
    let op = match layer.generics.params.iter().all(|param| is_known(parameter_name(param))) {
        true => layer.self_ty.to_token_stream(),
        false => layer.name.to_token_stream(),
    };
    let elements: &[&str] = if types.is_empty() { &[""] } else { &["_f32", "_f64"] };
    let orders = if args.once_differentiable.is_some() { &ORDERS[..1] } else { &ORDERS };
    let (import, cfg) = (import(args.krate.as_ref()), layer.cfg());
    let mut tests = TokenStream::new();
    for (n, check) in args.checks.iter().enumerate() {
        let number = if args.checks.len() > 1 { format!("_{}", n + 1) } else { String::new() };
        let body = |order| TestedOp { layer, forward, op: &op, check }.body(order);
        for (element, (suffix, order)) in
            elements.iter().flat_map(|element| orders.iter().map(move |order| (element, order)))
        {
            let name = plain_name(&layer.name);
            let mut name = format_ident!("{name}_check{number}{element}_{suffix}");
            name.set_span(check.word.span());
            let aliases = types.iter().map(|parameter| {
                let element = format_ident!("{}", &element[1..]);
                quote!(type #parameter = #element;)
            });
            let body = body(order);
            tests.extend(quote! {
                #(#cfg)*
                #[cfg(test)]
                #[test]
                #[allow(
                    non_snake_case, unused_qualifications, trivial_numeric_casts, deprecated,
                    clippy::all, clippy::pedantic, clippy::nursery
                )]
                fn #name() {
                    #import
                    #(#aliases)*
                    #body
                }
            });
        }
    }
    tests
}

const ORDERS: [(&str, &str); 2] = [("first_order", "First"), ("second_order", "Second")];

struct TestedOp<'a> {
    layer: &'a Layer,
    forward: &'a Forward,
    op: &'a TokenStream,
    check: &'a Check,
}

impl TestedOp<'_> {
    fn body(&self, order: &str) -> TokenStream {
        let (p, op, inputs) = (private(), self.op, local("inputs"));
        let params = self.forward.params.iter().enumerate();
        let arguments = params.map(|(i, param)| {
            let given = self.check.of(&plain_name(&param.ident));
            match (&param.kind, given) {
                (ParamKind::Plain { default }, given) => {
                    let given = given.map(|given| given.tokens.clone());
                    let value = given.unwrap_or_else(|| default.to_token_stream());
                    // Outside of the block, the op is not `Self`.
                    replace_ident(value, "Self", &quote!(<#op>))
                }
                (ParamKind::Tensor(tensor), Some(given)) => {
                    tensor_argument(param, tensor, &given.value, i)
                }
                (ParamKind::Tensor(_), None) => TokenStream::new(),
            }
        });
        let outputs = self.outputs(quote!(<#op>::apply(#(#arguments),*)));
        let (name, text) = (plain_name(&self.layer.name), &self.check.text);
        let order = format_ident!("{order}");
        let arguments = quote! {
            #name, #text, #p::check::Order::#order, |#inputs: &mut #p::check::Inputs| { #outputs }
        };
        // A failure is reported at the user's line.
        let (place, p) = (self.check.word.span(), private_at(self.check.word.span()));
        quote_spanned!(place=> #p::check::run(#arguments);)
    }

    fn outputs(&self, call: TokenStream) -> TokenStream {
        let p = private();
        let (result, tensors) = (local("result"), local("tensors"));
        let call =
            if self.forward.outputs.fallible { quote!(#p::check::succeeded(#call)) } else { call };
        let outputs = &self.forward.outputs;
        let parts = outputs
            .parts
            .iter()
            .enumerate()
            .map(|(i, part)| (local(&format!("output{i}")), float_output(part).is_some()));
        let parts: Vec<_> = parts.collect();
        let patterns = parts.iter().map(|(name, is_tensor)| match is_tensor {
            true => name.to_token_stream(),
            false => quote!(_),
        });
        let pattern = match outputs.tuple {
            true => quote!((#(#patterns,)*)),
            false => quote!(#(#patterns)*),
        };
        let seen = parts.iter().filter(|(_, is_tensor)| *is_tensor).map(|(name, _)| name);
        quote! {
            let #result = #call;
            let #pattern = #result;
            let mut #tensors = #p::Vec::<#p::check::AnyTensor>::new();
            #(#p::check::Output::into_tensors(#seen, &mut #tensors);)*
            #tensors
        }
    }
}

/// The argument for a tensor input, which the test may replace by another tensor.
fn tensor_argument(
    param: &Param,
    tensor: &TensorInput,
    value: &Value,
    position: usize,
) -> TokenStream {
    let (p, inputs, name) = (private(), local("inputs"), plain_name(&param.ident));
    let (ty, differentiable) = (&tensor.tensor, !tensor.stop_gradient);
    // A mask may also have integer elements, so its type is left open.
    let is_open = is_bool(tensor) && matches!(value, Value::Expr(_));
    let of = (!is_open).then(|| quote!(::<#ty>));
    let made = |value, item| made(tensor, value, 100 * position + item);
    let one = |value| {
        let tensor = made(value, 1);
        quote!(&#inputs.one #of(#name, #differentiable, #tensor))
    };
    match (tensor.form, value) {
        (Form::Optional, Value::Expr(expr)) if text(expr) == "None" => {
            quote!(::core::option::Option::None)
        }
        (Form::Optional, value) => {
            let one = one(value);
            quote!(::core::option::Option::Some(#one))
        }
        (Form::One, value) => one(value),
        (Form::List, value) => {
            let tensors = match value {
                Value::Expr(expr) => expr.to_token_stream(),
                Value::List(items, _) => {
                    let items = items.iter().enumerate().map(|(i, item)| made(item, i + 1));
                    quote!(#p::vec![#(#items),*])
                }
            };
            let taken = quote!(#inputs.list::<#ty>(#name, #differentiable, #tensors));
            list(&param.ty, &name, taken)
        }
    }
}

/// The code of a tensor: random numbers of a shape, or the user's expression.
fn made(tensor: &TensorInput, value: &Value, seed: usize) -> TokenStream {
    let (p, ty, seed) = (private(), &tensor.tensor, seed as u64);
    let (lengths, range) = match value {
        Value::Expr(expr) => return expr.to_token_stream(),
        Value::List(lengths, range) => (lengths, range),
    };
    let lengths = lengths.iter().map(|length| match length {
        Value::Expr(expr) => expr.to_token_stream(),
        // Reported before.
        Value::List(..) => quote!(0),
    });
    let (low, high) = match range {
        Some(range) => (range.low.to_token_stream(), range.high.to_token_stream()),
        None if is_bool(tensor) => (quote!(0.0), quote!(2.0)),
        None => (quote!(-1.0), quote!(1.0)),
    };
    quote!(#p::check::sample::<#ty>(#seed, &[#(#lengths),*], (#low) as f64, (#high) as f64))
}

fn is_bool(tensor: &TensorInput) -> bool {
    element(&tensor.tensor) == "bool"
}

/// Converts a `Vec<Tensor<T>>` to an argument of type `ty`: `&[Tensor<T>]`, `[&Tensor<T>; N]` and so on.
pub(crate) fn list(ty: &Type, name: &str, list: TokenStream) -> TokenStream {
    let p = private();
    let (item, array) = match without_reference(ty) {
        Type::Slice(slice) => (Some(bare(&slice.elem)), false),
        Type::Array(array) => (Some(bare(&array.elem)), true),
        _ => (None, false),
    };
    let mut list = list;
    if matches!(item, Some(Type::Reference(_))) {
        list = quote!(#p::Vec::<&_>::from_iter(#list.iter()));
    }
    if array {
        list = quote!(#p::check::array(#name, #list));
    }
    match bare(ty) {
        Type::Reference(_) => quote!(&#list),
        _ => list,
    }
}
