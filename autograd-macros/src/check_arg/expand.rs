//! From a `check(..)` to tests.

use crate::tokens::{local, plain_name, replace_ident};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Attribute;

use super::model::{Check, Form, Kind, Parameter, Tensor, Value};

/// The op whose tests are generated.
pub(crate) struct Subject<'a> {
    pub(crate) name: &'a Ident,
    /// The op with its parameters, where all of them are elements.
    pub(crate) ty: TokenStream,
    /// The path of what generated code calls.
    pub(crate) private: TokenStream,
    pub(crate) cfg: Vec<&'a Attribute>,
    pub(crate) parameters: Vec<Parameter>,
    /// Type parameters that are elements of tensors: tried with both float types.
    pub(crate) elements: Vec<String>,
    /// Whether `apply` returns a `Result`.
    pub(crate) fallible: bool,
    /// Which of the outputs are tensors.
    pub(crate) outputs: Vec<bool>,
    pub(crate) tuple: bool,
    pub(crate) once_differentiable: bool,
    /// Whether there is a `check_backward` that takes the plain parameters.
    pub(crate) derived: bool,
}

impl Subject<'_> {
    /// Two tests, or one, for each check and element type.
    pub(crate) fn tests(&self, checks: &[Check]) -> TokenStream {
        let several = checks.len() > 1;
        let elements: &[&str] = if self.elements.is_empty() { &[""] } else { &["f32", "f64"] };
        let mut tests = TokenStream::new();
        for (n, check) in checks.iter().enumerate() {
            for element in elements {
                let number = if several { format!("_{}", n + 1) } else { String::new() };
                let typed = if element.is_empty() { String::new() } else { format!("_{element}") };
                let base = format_ident!("{}_check{number}{typed}", plain_name(self.name));
                tests.extend(self.test(check, base, element));
            }
        }
        tests
    }

    fn test(&self, check: &Check, base: Ident, element: &str) -> TokenStream {
        let p = &self.private;
        let cfg = &self.cfg;
        // A failure is shown at the user's line.
        let place = check.word.span();
        let order = local("order");
        let (body, derived) = self.body(check, element, &order, place);
        let mut base = base;
        base.set_span(place);
        let lints = quote! {
            #[allow(
                non_snake_case, unused_qualifications, trivial_numeric_casts, deprecated,
                clippy::all, clippy::pedantic, clippy::nursery
            )]
        };
        let mut orders = vec![("first_order", quote!(First), derived)];
        if !self.once_differentiable {
            orders.push(("second_order", quote!(Second), None));
        }
        let tests = orders.into_iter().map(|(name, order, derived)| {
            let name = format_ident!("{base}_{name}");
            let call = quote_spanned!(place=> #base(#p::check::Order::#order););
            quote! {
                #(#cfg)*
                #[cfg(test)]
                #[test]
                #lints
                fn #name() { #derived #call }
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

    /// The check, and what compares a backward by hand with the derivative.
    fn body(
        &self,
        check: &Check,
        element: &str,
        order: &Ident,
        place: Span,
    ) -> (TokenStream, Option<TokenStream>) {
        let p = &self.private;
        let (name, op) = (plain_name(self.name), self.typed(&self.ty, element));
        let text = &check.text;
        let (inputs, at) = (local("inputs"), local("at"));
        let (mut given, mut taken) = (TokenStream::new(), TokenStream::new());
        let (mut arguments, mut plain) = (Vec::new(), Vec::new());
        for (i, parameter) in self.parameters.iter().enumerate() {
            let name = plain_name(&parameter.ident);
            let value = check.of(&name);
            match &parameter.kind {
                Kind::Plain { default } => {
                    let value = value.map(|given| self.with_op(&given.tokens, &op));
                    let default = default.as_ref().map(|default| self.typed(default, element));
                    let value = value.or(default).unwrap_or_default();
                    plain.push(value.clone());
                    arguments.push(value);
                }
                Kind::Tensor(tensor) => {
                    let Some(value) = value else { continue };
                    let (spot, held) = (local(&format!("place{i}")), local(&format!("input{i}")));
                    let made = self.made(tensor, &name, &value.value, &inputs, i, element);
                    given.extend(quote!(let #spot = #made;));
                    let (take, argument) = self.taken(tensor.form, &name, &at, &spot, &held);
                    taken.extend(take);
                    arguments.push(argument);
                }
            }
        }
        let derived = self.derived.then(|| {
            quote_spanned! {place=>
                if let ::core::result::Result::Err(error) = <#op>::check_backward(#(#plain),*) {
                    ::core::panic!("{error}");
                }
            }
        });
        let outputs = self.outputs(quote!(<#op>::apply(#(#arguments),*)));
        let run = quote_spanned!(place=> #p::check::run);
        let body = quote! {
            let mut #inputs = #p::check::Inputs::new();
            #given
            #run(#name, #text, #order, &#inputs, |#at: &#p::check::At| {
                #taken
                #outputs
            });
        };
        (body, derived)
    }

    /// An expression outside of the block, where the op is not `Self`.
    fn with_op(&self, tokens: &TokenStream, op: &TokenStream) -> TokenStream {
        replace_ident(tokens.clone(), "Self", &quote!(<#op>))
    }

    /// A type or an expression with an element type in place of the parameters for one.
    fn typed(&self, tokens: &TokenStream, element: &str) -> TokenStream {
        self.elements.iter().fold(tokens.clone(), |tokens, name| {
            let element = Ident::new(element, Span::call_site());
            replace_ident(tokens, name, &element.to_token_stream())
        })
    }

    /// What stands for an input from now on.
    fn made(
        &self,
        tensor: &Tensor,
        name: &str,
        value: &Value,
        inputs: &Ident,
        position: usize,
        element: &str,
    ) -> TokenStream {
        let p = &self.private;
        let ty = self.typed(&tensor.ty, element);
        let differentiable = tensor.differentiable;
        let seed = |item: usize| (100 * position + item) as u64;
        match (tensor.form, value) {
            (Form::Optional, Value::Expr(expr)) if expr.to_token_stream().to_string() == "None" => {
                quote!(::core::option::Option::<#p::check::Place<#ty>>::None)
            }
            (Form::Optional, value) => {
                let tensor = self.tensor(tensor, value, &ty, seed(1));
                quote! {
                    ::core::option::Option::Some(
                        #inputs.add::<#ty>(#name, #differentiable, #tensor),
                    )
                }
            }
            (Form::One, Value::Expr(expr)) if tensor.element == "bool" => {
                // A mask may be of integers too.
                quote!(#inputs.add(#name, #differentiable, #expr))
            }
            (Form::One, value) => {
                let tensor = self.tensor(tensor, value, &ty, seed(1));
                quote!(#inputs.add::<#ty>(#name, #differentiable, #tensor))
            }
            (_, Value::Expr(expr)) => {
                quote!(#inputs.list::<#ty>(#name, #differentiable, #expr))
            }
            (_, Value::List(items, _)) => {
                let items = items.iter().enumerate();
                let items = items.map(|(i, item)| self.tensor(tensor, item, &ty, seed(i + 1)));
                quote! {
                    #inputs.list::<#ty>(#name, #differentiable, #p::vec![#(#items),*])
                }
            }
        }
    }

    /// A tensor of a shape, or what the user makes.
    fn tensor(&self, tensor: &Tensor, value: &Value, ty: &TokenStream, seed: u64) -> TokenStream {
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
                    None if tensor.element == "bool" => (quote!(0.0), quote!(2.0)),
                    None => (quote!(-1.0), quote!(1.0)),
                };
                quote! {
                    #p::check::sample::<#ty>(#seed, &[#(#lengths),*], (#low) as f64, (#high) as f64)
                }
            }
        }
    }

    /// Takes an input from where it is, and the argument of `apply`.
    fn taken(
        &self,
        form: Form,
        name: &str,
        at: &Ident,
        spot: &Ident,
        held: &Ident,
    ) -> (TokenStream, TokenStream) {
        let p = &self.private;
        match form {
            Form::One => (quote!(let #held = #at.one(&#spot);), quote!(&#held)),
            Form::Optional => (quote!(let #held = #at.optional(&#spot);), quote!(#held.as_ref())),
            Form::List { references, array, borrowed } => {
                let mut list = held.to_token_stream();
                if references {
                    list = quote!(#p::Vec::<&_>::from_iter(#held.iter()));
                }
                if array {
                    list = quote!(#p::check::array(#name, #list));
                }
                if borrowed {
                    list = quote!(&#list);
                }
                (quote!(let #held = #at.list(&#spot);), list)
            }
        }
    }

    /// The tensors among what `apply` returns.
    fn outputs(&self, call: TokenStream) -> TokenStream {
        let p = &self.private;
        let (result, tensors) = (local("result"), local("tensors"));
        let call = if self.fallible { quote!(#p::check::succeeded(#call)) } else { call };
        let names = (0..self.outputs.len()).map(|i| local(&format!("output{i}")));
        let parts: Vec<_> = names.zip(&self.outputs).collect();
        let patterns = parts.iter().map(|(name, is_tensor)| match is_tensor {
            true => name.to_token_stream(),
            false => quote!(_),
        });
        let pattern = match self.tuple {
            true => quote!((#(#patterns,)*)),
            false => quote!(#(#patterns)*),
        };
        let seen = parts.iter().filter(|(_, is_tensor)| **is_tensor).map(|(name, _)| name);
        quote! {
            let #result = #call;
            let #pattern = #result;
            let mut #tensors = #p::Vec::<#p::check::AnyTensor>::new();
            #(#p::check::Output::into_tensors(#seen, &mut #tensors);)*
            #tensors
        }
    }
}
