//! Generates tests from a `check(..)`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;

use super::model::{Check, Given, Value};
use crate::args::Args;
use crate::generics::parameter_name;
use crate::library::{import, private, private_path};
use crate::model::{
    Form, Forward, Layer, Param, ParamKind, TensorInput, bare, element, float_output,
    without_reference,
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
    let import = import(args.krate.as_ref());
    let op = TestedOp { layer, forward, ty, private, import, elements, once_differentiable };
    op.tests(&args.checks)
}

struct TestedOp<'a> {
    layer: &'a Layer,
    forward: &'a Forward,
    /// The op's type: with its arguments, if all of them are element types.
    ty: TokenStream,
    private: TokenStream,
    import: TokenStream,
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
        let (p, import, cfg) = (&self.private, &self.import, self.layer.cfg());
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
            fn #base(#order: #p::check::Order) {
                #import
                #body
            }
            #(#tests)*
        }
    }

    fn body(&self, check: &Check, element: &str, order: &Ident, place: Span) -> TokenStream {
        let (p, inputs) = (private(), local("inputs"));
        let (name, op) = (plain_name(&self.layer.name), self.typed(&self.ty, element));
        let params = self.forward.params.iter().enumerate();
        let arguments = params.map(|(i, param)| match &param.kind {
            ParamKind::Plain { default } => {
                let given = check.of(&plain_name(&param.ident)).map(|given| given.tokens.clone());
                let value =
                    given.unwrap_or_else(|| self.typed(&default.to_token_stream(), element));
                // Outside of the block, the op is not `Self`.
                replace_ident(value, "Self", &quote!(<#op>))
            }
            ParamKind::Tensor(tensor) => self.tensor_argument(check, param, tensor, i, element),
        });
        let outputs = self.outputs(quote!(<#op>::apply(#(#arguments),*)));
        let (run, text) = (quote_spanned!(place=> #p::check::run), &check.text);
        quote!(#run(#name, #text, #order, |#inputs: &mut #p::check::Inputs| { #outputs });)
    }

    /// A type or an expression, with `element` in place of the type parameters for elements.
    fn typed(&self, tokens: &TokenStream, element: &str) -> TokenStream {
        self.elements.iter().fold(tokens.clone(), |tokens, name| {
            let element = Ident::new(element, Span::call_site());
            replace_ident(tokens, name, &element.to_token_stream())
        })
    }

    /// The argument for a tensor input, which the test may replace by another tensor.
    fn tensor_argument(
        &self,
        check: &Check,
        param: &Param,
        tensor: &TensorInput,
        position: usize,
        element: &str,
    ) -> TokenStream {
        let (p, inputs, name) = (private(), local("inputs"), plain_name(&param.ident));
        let Some(Given { value, .. }) = check.of(&name) else { return TokenStream::new() };
        let ty = self.typed(&tensor.tensor.to_token_stream(), element);
        let differentiable = !tensor.stop_gradient;
        // A mask may also have integer elements, so its type is left open.
        let is_open = is_bool(tensor) && matches!(value, Value::Expr(_));
        let of = (!is_open).then(|| quote!(::<#ty>));
        let seed = |item: usize| (100 * position + item) as u64;
        let one = |value| {
            let tensor = self.tensor(tensor, value, &ty, seed(1));
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
                        let items = items.iter().enumerate();
                        let each = |(i, item)| self.tensor(tensor, item, &ty, seed(i + 1));
                        let items = items.map(each);
                        quote!(#p::vec![#(#items),*])
                    }
                };
                let taken = quote!(#inputs.list::<#ty>(#name, #differentiable, #tensors));
                list(&param.ty, &name, taken)
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
        let p = private();
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
