//! Generates tests from a `check(..)`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;

use super::parse::{Check, Value};
use crate::args::Args;
use crate::generics::parameter_name;
use crate::library::{import, private, private_at, private_path};
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
        let (mut made, mut arguments) = (TokenStream::new(), Vec::new());
        for (i, param) in self.forward.params.iter().enumerate() {
            let given = self.check.of(&plain_name(&param.ident));
            match (&param.kind, given) {
                (ParamKind::Plain { default }, given) => {
                    let given = given.map(|given| given.tokens.clone());
                    let value = given.unwrap_or_else(|| self.typed(default));
                    // Outside of the block, the op is not `Self`.
                    arguments.push(replace_ident(value, "Self", &op));
                }
                (ParamKind::Tensor(tensor), Some(given)) => {
                    let (value, argument) = self.tensor_argument(param, tensor, &given.value, i);
                    made.extend(value);
                    arguments.push(argument);
                }
                (ParamKind::Tensor(_), None) => {}
            }
        }
        let outputs = self.outputs(quote!(#op::apply(#(#arguments),*)));
        let (name, text, p) = (plain_name(&self.layer.name), &self.check.text, private());
        let arguments =
            quote!(#name, #text, #order, |#inputs: &mut #p::check::Inputs| { #outputs });
        let (place, p) = (self.check.word.span(), private_at(self.check.word.span()));
        let run = quote_spanned!(place=> #p::check::run(#arguments););
        quote!(#made #run)
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
        let made = |value, item| made(tensor, value, 100 * position + item);
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
fn made(tensor: &TensorInput, value: &Value, seed: usize) -> TokenStream {
    let (p, seed) = (private(), seed as u64);
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
        Some(range) => (range.start.to_token_stream(), range.end.to_token_stream()),
        None if is_bool(tensor) => (quote!(0.0), quote!(2.0)),
        None => (quote!(-1.0), quote!(1.0)),
    };
    quote!(#p::check::sample(#seed, &[#(#lengths),*], (#low) as f64, (#high) as f64))
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
