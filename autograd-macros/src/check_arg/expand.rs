//! Generates tests from a `check(..)`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;

use super::model::{Check, Value};
use crate::args::Args;
use crate::generics::parameter_name;
use crate::library::private_path;
use crate::model::{
    Form, Forward, Layer, ParamKind, TensorInput, bare, element, float_output, without_reference,
};
use crate::tokens::{local, mentions, plain_name, replace_ident, text};

/// The tests of an op.
pub(crate) fn tests(layer: &Layer, args: &Args) -> TokenStream {
    let Some(forward) = layer.forward.as_ref().filter(|_| !args.checks.is_empty()) else {
        return TokenStream::new();
    };
    let types = layer.generics.type_params().chain(forward.function.sig.generics.type_params());
    let elements = types.map(|param| param.ident.to_string());
    let of_tensor = |name: &String| forward.inputs().any(|(_, of)| mentions(&of.tensor, name));
    let elements: Vec<String> = elements.filter(of_tensor).collect();
    // The op's type: with its arguments, if all of them are known.
    let known = layer.generics.params.iter().all(|param| elements.contains(&parameter_name(param)));
    let ty = match known {
        true => layer.self_ty.to_token_stream(),
        false => layer.name.to_token_stream(),
    };
    let private = private_path(args.krate.as_ref());
    let once_differentiable = args.once_differentiable.is_some();
    TestedOp { layer, forward, ty, private, elements, once_differentiable }.tests(&args.checks)
}

struct TestedOp<'a> {
    layer: &'a Layer,
    forward: &'a Forward,
    /// The op's type: with its arguments, if all of them are element types.
    ty: TokenStream,
    private: TokenStream,
    /// Type parameters that are element types. They are tested with both float types.
    elements: Vec<String>,
    once_differentiable: bool,
}

impl TestedOp<'_> {
    /// One or two tests for each check and element type.
    fn tests(&self, checks: &[Check]) -> TokenStream {
        let several = checks.len() > 1;
        let elements: &[&str] = if self.elements.is_empty() { &[""] } else { &["f32", "f64"] };
        let mut tests = TokenStream::new();
        for (n, check) in checks.iter().enumerate() {
            for element in elements {
                let number = if several { format!("_{}", n + 1) } else { String::new() };
                let typed = if element.is_empty() { String::new() } else { format!("_{element}") };
                let base = format_ident!("{}_check{number}{typed}", plain_name(&self.layer.name));
                tests.extend(self.test(check, base, element));
            }
        }
        tests
    }

    fn test(&self, check: &Check, base: Ident, element: &str) -> TokenStream {
        let (p, cfg) = (&self.private, self.layer.cfg());
        // A failure is reported at the user's line.
        let place = check.word.span();
        let order = local("order");
        let body = self.body(check, element, &order, place);
        let mut base = base;
        base.set_span(place);
        let lints = quote! {
            #[allow(
                non_snake_case, unused_qualifications, trivial_numeric_casts, deprecated,
                clippy::all, clippy::pedantic, clippy::nursery
            )]
        };
        let orders = [("first_order", quote!(First)), ("second_order", quote!(Second))];
        let orders = orders.into_iter().take(if self.once_differentiable { 1 } else { 2 });
        let tests = orders.map(|(name, order)| {
            let name = format_ident!("{base}_{name}");
            let call = quote_spanned!(place=> #base(#p::check::Order::#order););
            quote! {
                #(#cfg)*
                #[cfg(test)]
                #[test]
                #lints
                fn #name() { #call }
            }
        });
        quote! {
            #(#cfg)*
            #[cfg(test)]
            #[track_caller]
            #lints
            fn #base(#order: #p::check::Order) { #body }
            #(#tests)*
        }
    }

    fn body(&self, check: &Check, element: &str, order: &Ident, place: Span) -> TokenStream {
        let p = &self.private;
        let (name, op) = (plain_name(&self.layer.name), self.typed(&self.ty, element));
        let text = &check.text;
        let (inputs, at) = (local("inputs"), local("at"));
        let (mut given, mut taken) = (TokenStream::new(), TokenStream::new());
        let mut arguments = Vec::new();
        for (i, parameter) in self.forward.params.iter().enumerate() {
            let name = plain_name(&parameter.ident);
            let value = check.of(&name);
            match &parameter.kind {
                ParamKind::Plain { default } => {
                    let default = || Some(self.typed(&default.to_token_stream(), element));
                    let value = value.map(|given| given.tokens.clone()).or_else(default);
                    // Outside of the block, the op is not `Self`.
                    let value = value.unwrap_or_default();
                    arguments.push(replace_ident(value, "Self", &quote!(<#op>)));
                }
                ParamKind::Tensor(tensor) => {
                    let Some(value) = value else { continue };
                    let (spot, held) = (local(&format!("place{i}")), local(&format!("input{i}")));
                    let made =
                        self.register_input(tensor, &name, &value.value, &inputs, i, element);
                    given.extend(quote!(let #spot = #made;));
                    let (take, argument) = match tensor.form {
                        Form::One => (quote!(one), quote!(&#held)),
                        Form::Optional => (quote!(optional), quote!(#held.as_ref())),
                        Form::List => {
                            (quote!(list), list(p, &parameter.ty, &name, held.to_token_stream()))
                        }
                    };
                    taken.extend(quote!(let #held = #at.#take(&#spot);));
                    arguments.push(argument);
                }
            }
        }
        let outputs = self.outputs(quote!(<#op>::apply(#(#arguments),*)));
        let run = quote_spanned!(place=> #p::check::run);
        quote! {
            let mut #inputs = #p::check::Inputs::new();
            #given
            #run(#name, #text, #order, &#inputs, |#at: &#p::check::At| {
                #taken
                #outputs
            });
        }
    }

    /// A type or an expression, with `element` in place of the type parameters for elements.
    fn typed(&self, tokens: &TokenStream, element: &str) -> TokenStream {
        self.elements.iter().fold(tokens.clone(), |tokens, name| {
            let element = Ident::new(element, Span::call_site());
            replace_ident(tokens, name, &element.to_token_stream())
        })
    }

    /// The code that registers an input.
    fn register_input(
        &self,
        tensor: &TensorInput,
        name: &str,
        value: &Value,
        inputs: &Ident,
        position: usize,
        element: &str,
    ) -> TokenStream {
        let p = &self.private;
        let ty = self.typed(&tensor.tensor.to_token_stream(), element);
        let (differentiable, is_bool) = (!tensor.stop_gradient, is_bool(tensor));
        let seed = |item: usize| (100 * position + item) as u64;
        let one = |value| {
            let tensor = self.tensor(tensor, value, &ty, seed(1));
            quote!(#inputs.add::<#ty>(#name, #differentiable, #tensor))
        };
        match (tensor.form, value) {
            (Form::Optional, Value::Expr(expr)) if text(expr) == "None" => {
                quote!(::core::option::Option::<#p::check::Place<#ty>>::None)
            }
            (Form::Optional, value) => {
                let one = one(value);
                quote!(::core::option::Option::Some(#one))
            }
            // A mask may also have integer elements, so the type is left open.
            (Form::One, Value::Expr(expr)) if is_bool => {
                quote!(#inputs.add(#name, #differentiable, #expr))
            }
            (Form::One, value) => one(value),
            (Form::List, Value::Expr(expr)) => {
                quote!(#inputs.list::<#ty>(#name, #differentiable, #expr))
            }
            (Form::List, Value::List(items, _)) => {
                let items = items.iter().enumerate();
                let items = items.map(|(i, item)| self.tensor(tensor, item, &ty, seed(i + 1)));
                quote!(#inputs.list::<#ty>(#name, #differentiable, #p::vec![#(#items),*]))
            }
        }
    }

    /// The code of a tensor: random numbers of a shape, or the user's expression.
    fn tensor(
        &self,
        tensor: &TensorInput,
        value: &Value,
        ty: &TokenStream,
        seed: u64,
    ) -> TokenStream {
        let p = &self.private;
        match value {
            Value::Expr(expr) => expr.to_token_stream(),
            Value::List(lengths, range) => {
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
                quote! {
                    #p::check::sample::<#ty>(#seed, &[#(#lengths),*], (#low) as f64, (#high) as f64)
                }
            }
        }
    }

    fn outputs(&self, call: TokenStream) -> TokenStream {
        let p = &self.private;
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

fn is_bool(tensor: &TensorInput) -> bool {
    element(&tensor.tensor) == "bool"
}

/// Converts a `Vec<Tensor<T>>` to an argument of type `ty`: `&[Tensor<T>]`, `[&Tensor<T>; N]` and so on.
pub(crate) fn list(p: &impl ToTokens, ty: &Type, name: &str, list: TokenStream) -> TokenStream {
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
