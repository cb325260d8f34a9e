//! Generates tests from a `check(..)`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;

use super::parse::{Check, Given, Value};
use crate::args::Args;
use crate::generics::parameter_name;
use crate::library::{import, private, private_at, private_path};
use crate::model::{
    Form, Forward, Layer, Param, ParamKind, TensorInput, bare, element, float_output,
    without_reference,
};
use crate::shapes::{Length, Line};
use crate::tokens::{local, mentions, plain_name, replace_ident, text};

/// The tests of an op: for each check, element type and order.
pub(crate) fn tests(layer: &Layer, args: &Args) -> TokenStream {
    let Some(forward) = layer.forward.as_ref().filter(|_| !args.checks.is_empty()) else {
        return TokenStream::new();
    };
    let types = layer.generics.type_params().chain(forward.function.sig.generics.type_params());
    let types = types.map(|param| param.ident.to_string());
    let of_tensor = |name: &String| forward.inputs().any(|(_, of)| mentions(&of.tensor, name));
    let types: Vec<String> = types.filter(of_tensor).collect();
    // The start of a path to the op's functions: with its arguments if all of them are known. Else they are inferred.
    let is_known = |param| types.contains(&parameter_name(param));
    let (op, name) = (&layer.self_ty, &layer.name);
    let known = layer.generics.params.iter().all(is_known);
    let op = if known { quote!(<#op>) } else { quote!(#name) };
    let elements: &[&str] = if types.is_empty() { &["f64"] } else { &["f32", "f64"] };
    let mut tests = TokenStream::new();
    for (n, check) in args.checks.iter().enumerate() {
        let number = if args.checks.len() > 1 { format!("_{}", n + 1) } else { String::new() };
        for element in elements {
            let typed = if types.is_empty() { String::new() } else { format!("_{element}") };
            let mut name = format_ident!("{}_check{number}{typed}", plain_name(&layer.name));
            // Lints leave out what is located at the user's code, but belongs to the macro.
            name.set_span(Span::call_site().located_at(check.word.span()));
            let (op, types) = (&op, &types);
            tests.extend(TestedOp { layer, forward, args, op, check, types, element }.tests(&name));
        }
    }
    tests
}

struct TestedOp<'a> {
    layer: &'a Layer,
    forward: &'a Forward,
    args: &'a Args,
    op: &'a TokenStream,
    check: &'a Check,
    /// Type parameters that are element types, and the element type that replaces them.
    types: &'a [String],
    element: &'a str,
}

impl TestedOp<'_> {
    /// A function with the check, and the tests that call it.
    fn tests(&self, name: &Ident) -> TokenStream {
        let (import, cfg) = (import(self.args.krate.as_ref()), self.layer.cfg());
        let (order, body) = (local("order"), self.body());
        let lints = self.layer.silent(0);
        // A failure is reported at the user's line.
        let (place, p) = (self.check.word.span(), private_path(self.args.krate.as_ref()));
        let orders = [("first_order", quote!(First)), ("second_order", quote!(Second))];
        let orders =
            orders.into_iter().take(if self.args.once_differentiable.is_some() { 1 } else { 2 });
        let tests = orders.map(|(suffix, order)| {
            let test = format_ident!("{name}_{suffix}");
            let mut called = name.clone();
            called.set_span(place);
            let call = quote_spanned!(place=> #called(#p::check::Order::#order););
            quote! {
                #(#cfg)*
                #[cfg(test)]
                #[test]
                #lints
                fn #test() { #call }
            }
        });
        quote! {
            #(#cfg)*
            #[cfg(test)]
            #[track_caller]
            #lints
            fn #name(#order: #p::check::Order) {
                #import
                #body
            }
            #(#tests)*
        }
    }

    fn body(&self) -> TokenStream {
        let (inputs, order, op) = (local("inputs"), local("order"), self.typed(self.op));
        let line = self.args.shapes.as_ref();
        // With a line, values that fix lengths are made before the others.
        let (mut fixed, mut made, mut arguments) =
            (TokenStream::new(), TokenStream::new(), Vec::new());
        for (i, param) in self.forward.params.iter().enumerate() {
            let given = self.check.of(&plain_name(&param.ident));
            let fixes = given.is_some_and(|given| self.fixes(given));
            let integer = line.is_some_and(|line| line.mentions(&param.ident));
            match (&param.kind, given) {
                (ParamKind::Plain { default }, given) if integer => {
                    let held = local(&format!("input{i}"));
                    let given = given.map(|given| given.tokens.clone());
                    let given =
                        given.or_else(|| default.as_ref().map(|default| self.typed(default)));
                    let (name, ty) = (plain_name(&param.ident), &param.ty);
                    match given {
                        Some(given) => {
                            let given = replace_ident(given, "Self", &op);
                            fixed.extend(quote!(let #held: #ty = #given;));
                        }
                        None => {
                            let (p, lengths) = (private(), local("lengths"));
                            let chosen = quote!(#p::shapes::integer(#lengths.of(#name)));
                            made.extend(quote!(let #held: #ty = #chosen;));
                        }
                    }
                    arguments.push(held.into_token_stream());
                }
                (ParamKind::Plain { default }, given) => {
                    let given = given.map(|given| given.tokens.clone());
                    let value = given.unwrap_or_else(|| self.typed(default));
                    // Outside of the block, the op is not `Self`.
                    arguments.push(replace_ident(value, "Self", &op));
                }
                (ParamKind::Tensor(tensor), given) => {
                    let any = Value::OfLine(None);
                    let value = given.map_or(&any, |given| &given.value);
                    let (value, argument) = self.tensor_argument(param, tensor, value, i);
                    if fixes { &mut fixed } else { &mut made }.extend(value);
                    arguments.push(argument);
                }
            }
        }
        let outputs = self.outputs(quote!(#op::apply(#(#arguments),*)));
        let (name, text, p) = (plain_name(&self.layer.name), &self.check.text, private());
        let (lengths, shown) = (local("lengths"), local("shown"));
        let shown_text = line.map_or_else(|| quote!(#text), |_| quote!(&#shown));
        let arguments =
            quote!(#name, #shown_text, #order, &|#inputs: &mut #p::check::Inputs| { #outputs });
        let (place, q) = (self.check.word.span(), private_at(self.check.word.span()));
        let run = quote_spanned!(place=> #q::check::run(#arguments););
        let Some(line) = line else { return quote!(#fixed #made #run) };
        let given = self.forward.params.iter().enumerate().filter_map(|(i, param)| {
            let ParamKind::Tensor(tensor) = &param.kind else { return None };
            let given = self.check.of(&plain_name(&param.ident)).filter(|given| self.fixes(given));
            let held = local(&format!("input{i}"));
            Some(match given.map(|given| &given.value) {
                None => quote!(::core::option::Option::None),
                Some(Value::Expr(expr))
                    if crate::tokens::text(expr) == "None" && tensor.form == Form::Optional =>
                {
                    quote!(::core::option::Option::Some(&()))
                }
                Some(_) => quote!(::core::option::Option::Some(&#held)),
            })
        });
        let is_tensor = |name: &Ident| self.forward.inputs().any(|(param, _)| param.ident == *name);
        let fixed_names = line.names().into_iter().filter_map(|name| {
            let text = plain_name(&name);
            let given = self.check.of(&text);
            let length = match self.forward.params.iter().position(|param| param.ident == name) {
                Some(i)
                    if !is_tensor(&name)
                        && (given.is_some() || self.forward.params[i].default().is_some()) =>
                {
                    local(&format!("input{i}")).into_token_stream()
                }
                Some(i) if matches!(self.forward.params[i].kind, ParamKind::Plain { .. }) => {
                    return None;
                }
                _ => given.filter(|_| !is_tensor(&name))?.tokens.clone(),
            };
            Some(quote!((#text, #p::shapes::length(#length))))
        });
        // The length of an array is that of its list.
        let arrays = self.forward.inputs().filter_map(|(param, _)| {
            let (shape, length) = (line.of(&param.ident)?, array_length(&param.ty)?);
            let Some(Length::Name(name)) = &shape.count else { return None };
            let text = plain_name(name);
            Some(quote!((#text, ::core::option::Option::Some(#length))))
        });
        let fixed_names = fixed_names.chain(arrays);
        let named = self.lengths_in_values(line).into_iter().map(|name| {
            let text = plain_name(&name);
            quote!(let #name: ::core::primitive::usize = #lengths.of(#text);)
        });
        let separator = if text.is_empty() { "" } else { "; " };
        let call = quote_spanned! {place=>
            #q::shapes::each_lengths(#op::SHAPES, &[#(#given),*], &[#(#fixed_names),*], &|#lengths| {
                #(#named)*
                #made
                let #shown = #q::check::shown(#text, #separator, #lengths);
                #run
            });
        };
        quote!(#fixed #call)
    }

    /// Whether a given value fixes lengths of the line: it needs none of them.
    fn fixes(&self, given: &Given) -> bool {
        let line = self.args.shapes.as_ref();
        !matches!(given.value, Value::OfLine(_))
            && line.is_none_or(|line| {
                line.names().iter().all(|name| !mentions(&given.tokens, &name.to_string()))
            })
    }

    /// The lengths that values use.
    fn lengths_in_values(&self, line: &Line) -> Vec<Ident> {
        let mut names = line.names();
        let names_of_line = names.clone();
        names.retain(|name| {
            let text = name.to_string();
            let is_tensor = self.forward.inputs().any(|(param, _)| param.ident == *name);
            let uses = |given: &Given| {
                !names_of_line.contains(&given.name) && mentions(&given.tokens, &text)
            };
            !is_tensor && self.check.given.iter().any(uses)
        });
        names
    }

    /// A type or an expression, with the element type in place of its parameters.
    fn typed(&self, tokens: &impl ToTokens) -> TokenStream {
        let element = format_ident!("{}", self.element).to_token_stream();
        let replaced = |tokens, name: &String| replace_ident(tokens, name, &element);
        self.types.iter().fold(tokens.to_token_stream(), replaced)
    }

    /// The declaration of a tensor input's value, which is computed once, and the argument of a call: the value,
    /// or the tensor that the test has in its place.
    fn tensor_argument(
        &self,
        param: &Param,
        tensor: &TensorInput,
        value: &Value,
        position: usize,
    ) -> (TokenStream, TokenStream) {
        let (p, inputs, name) = (private(), local("inputs"), plain_name(&param.ident));
        let (ty, differentiable) = (self.typed(&tensor.tensor), !tensor.stop_gradient);
        let held = local(&format!("input{position}"));
        let made = |value, item| made(tensor, &name, value, 100 * position + item);
        let one = quote!(&#p::check::Inputs::one(#inputs, #name, #differentiable, &#held));
        let list_of = |values| {
            let taken = quote!(#p::check::Inputs::list(#inputs, #name, #differentiable, &#held));
            let held =
                quote!(let #held: #p::Vec<#ty> = ::core::iter::FromIterator::from_iter(#values););
            (held, list(&param.ty, &name, taken))
        };
        match (tensor.form, value) {
            (Form::Optional, Value::Expr(expr)) if text(expr) == "None" => {
                (TokenStream::new(), quote!(::core::option::Option::None))
            }
            (Form::Optional, value) => {
                let value = made(value, 1);
                (quote!(let #held: #ty = #value;), quote!(::core::option::Option::Some(#one)))
            }
            // A mask may also have integer elements, so its type is left open.
            (Form::One, Value::Expr(expr)) if is_bool(tensor) => (quote!(let #held = #expr;), one),
            (Form::One, value) => {
                let value = made(value, 1);
                (quote!(let #held: #ty = #value;), one)
            }
            (Form::List, Value::Expr(expr)) => list_of(expr.to_token_stream()),
            (Form::List, Value::OfLine(_)) => {
                let (lengths, item) = (local("lengths"), local("item"));
                let each = made_at(tensor, &name, value, &quote!(#item + #position as u64 * 100));
                let count = match array_length(&param.ty) {
                    Some(length) => length.to_token_stream(),
                    None => quote!(#lengths.count(#name)),
                };
                let count = quote!(#count as u64);
                list_of(quote!((1..=#count).map(|#item| -> #ty { #each })))
            }
            (Form::List, Value::List(items, _)) => {
                let items = items.iter().enumerate().map(|(i, item)| made(item, i + 1));
                list_of(quote!([#(#items),*]))
            }
        }
    }

    fn outputs(&self, call: TokenStream) -> TokenStream {
        let p = private();
        let (result, tensors) = (local("result"), local("tensors"));
        let call =
            if self.forward.outputs.fallible { quote!(#p::check::succeeded(#call)) } else { call };
        let outputs = &self.forward.outputs;
        let parts = outputs.parts.iter().enumerate();
        let parts = parts.filter(|(_, part)| float_output(part).is_some()).map(|(i, _)| {
            let position = outputs.tuple.then(|| syn::Index::from(i)).into_iter();
            quote!(#result #(.#position)*)
        });
        quote! {
            let #result = #call;
            let mut #tensors = #p::Vec::<#p::check::AnyTensor>::new();
            #(#tensors.extend(#p::marked(&#parts));)*
            #tensors
        }
    }
}

/// The code of a tensor: random numbers of a shape, or the user's expression.
fn made(tensor: &TensorInput, name: &str, value: &Value, seed: usize) -> TokenStream {
    made_at(tensor, name, value, &(seed as u64).to_token_stream())
}

fn made_at(tensor: &TensorInput, name: &str, value: &Value, seed: &TokenStream) -> TokenStream {
    let p = private();
    let (shape, range) = match value {
        Value::Expr(expr) => return expr.to_token_stream(),
        Value::List(lengths, range) => {
            let lengths = lengths.iter().map(|length| match length {
                Value::Expr(expr) => expr.to_token_stream(),
                // Reported before.
                Value::List(..) | Value::OfLine(_) => quote!(0),
            });
            (quote!([#(#lengths),*]), range)
        }
        Value::OfLine(range) => {
            let lengths = local("lengths");
            (quote!(#lengths.shape(#name)), range)
        }
    };
    let (low, high) = match range {
        Some(range) => (range.start.to_token_stream(), range.end.to_token_stream()),
        None if is_bool(tensor) => (quote!(0.0), quote!(2.0)),
        None => (quote!(-1.0), quote!(1.0)),
    };
    quote!(#p::check::sample(#seed, &#shape, (#low) as f64, (#high) as f64))
}

/// The length of an array, if it is a number.
fn array_length(ty: &Type) -> Option<&syn::ExprLit> {
    match without_reference(ty) {
        Type::Array(syn::TypeArray { len: syn::Expr::Lit(length), .. }) => Some(length),
        _ => None,
    }
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
        list = quote!(<#p::Vec<&_> as ::core::iter::FromIterator<_>>::from_iter(&#list));
    }
    if array {
        list = quote!(#p::check::array(#name, #list));
    }
    match bare(ty) {
        Type::Reference(_) => quote!(&#list),
        _ => list,
    }
}
